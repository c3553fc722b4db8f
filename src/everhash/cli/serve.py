"""`everhash serve`: a collection over HTTP."""

from __future__ import annotations

import ipaddress
import logging
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import everhash
from everhash.cli.arguments import File
from everhash.cli.formatting import shown
from everhash.store.connection import find

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def serve(
    path: File,
    host: Annotated[
        str, typer.Option(help="Address to listen at; others than this machine's need --keys.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 picks a free one.")
    ] = 8765,
    keys: Annotated[
        Path | None,
        typer.Option(
            help="File of keys, as everhash key writes it. Without, only this machine is served.",
            envvar="EVERHASH_KEYS",
            show_default=False,
        ),
    ] = None,
    readonly: Annotated[
        bool,
        typer.Option("--readonly", help="Refuse writes; follow a process that writes the file."),
    ] = False,
) -> None:
    """Serve a collection over HTTP until Ctrl-C or SIGTERM; docs/service.md lists the routes.

    Requests under way are finished, and the file is closed, before it ends.

    Example: everhash serve shop.ever --port 8080 --keys keys.toml
    """
    from everhash.serve.app import make_app
    from everhash.serve.keys import read_keys
    from everhash.serve.server import bind, run

    known = None if keys is None else read_keys(keys)
    opener = partial(everhash.open, path, readonly=readonly)
    app = make_app(opener, keys=known, readonly=readonly, public=not is_local(host))
    logging.basicConfig(level=logging.WARNING, format=LINE)
    find(path)  # before anybody is told that it is served
    listening = bind(host, port)
    address = f"[{host}]" if ":" in host else host
    typer.echo(f"serving {shown(path)} at http://{address}:{listening.getsockname()[1]}")
    run(app, listening)


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
