"""Connecting a process to Ray, or starting one for it that nobody else can reach.

Whoever reaches a port of Ray, and has its token if it asks for one, runs code as the user who
started it. A Ray that is started here listens on this machine only and asks for a token that its
own processes alone know. Two things of that are Ray's to grant:

    listening   Ray replaces 127.0.0.1 by the machine's address, unless the variable `NO_CLUSTER` of
                the environment says otherwise when Ray is imported; whoever has imported it before
                gets a Ray that listens on all addresses
    a token     exists since Ray 2.52; unless set before Ray is imported, since 2.59
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from everhash.errors import OptionError
from everhash.extras import require

REACHABLE = 5.0
"""Seconds within which Ray has to accept a connection."""
LOOPBACK = "127.0.0.1"
NO_CLUSTER = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""At 0, Ray takes no part in a cluster of machines, on any system: it listens on loopback only."""
MODE, TOKEN, TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
RISK = "whoever reaches its ports{} runs code as you"
OPEN = (
    f"Ray asks for no token: {RISK.format('')}; keep them inside a private network, and set "
    f"{MODE}=token where Ray starts and where it is used"
)
EVERYWHERE = (
    f"Ray listens on all addresses of this machine: {RISK.format(' and has its token')}; open "
    f"the cluster before Ray is imported, or set {NO_CLUSTER}=0 before"
)

log = logging.getLogger(__name__)


def connect(address: str | None) -> None:
    """Connect this process to a Ray cluster, unless it is connected; None starts one for it."""
    require("cluster")
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        return
    _check_reachable(os.environ.get("RAY_ADDRESS", "") if address == "auto" else address or "")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address is None:
        with _environment(_private()):
            options |= {"include_dashboard": False, "_node_ip_address": LOOPBACK}
            _start("local", options)  # Ray takes None for any cluster that it finds here
    else:
        _start(address, options)
    for problem in exposed(started=address is None):
        log.warning(problem)


def exposed(*, started: bool) -> list[str]:
    """Return why others may run code through the Ray that this process is connected to.

    Args:
        started: whether it was started for this process, which others have no business with.
    """
    import ray

    problems = [] if MODE in os.environ else [OPEN]  # who has set it has decided
    if started and ray.util.get_node_ip_address() != LOOPBACK:
        problems.append(EVERYWHERE)
    return problems


def _private() -> dict[str, str]:
    """Return the environment of a Ray for one process; what people have set themselves stays."""
    wanted = {NO_CLUSTER: "0", "RAY_USAGE_STATS_ENABLED": "0"}
    if os.environ.get(MODE, "token").lower() == "token":
        if not os.environ.keys() & {TOKEN, TOKEN_FILE}:
            wanted[TOKEN] = secrets.token_hex(32)  # otherwise Ray writes one into the home folder
        if "ray" not in sys.modules:  # which has read it, and from 2.59 on sets it by itself
            wanted[MODE] = "token"
    return {name: value for name, value in wanted.items() if name not in os.environ}


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for processes that are started in the block; the mode stays, as in Ray."""
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values.keys() - {MODE}:
            os.environ.pop(name, None)


def _start(address: str, options: dict[str, Any]) -> None:
    import ray

    try:
        ray.init(address=address, namespace="everhash", **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _no_ray(f"{address!r:.80}: {str(error).splitlines()[0]:.200}") from None


def _check_reachable(address: str) -> None:
    """Raise if nothing listens at host:port: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()) or "//" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHABLE).close()
    except (OSError, OverflowError) as error:
        raise _no_ray(f"{address!r:.80}: {error}") from None


def _no_ray(problem: str) -> OptionError:
    return OptionError(
        f"no Ray cluster at {problem}",
        hint="start one with `ray start --head`; if it wants a token, set RAY_AUTH_MODE=token",
    )
