"""A cluster that is started for one process can be reached from this machine only, by a token."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from everhash.cluster import connecting
from everhash.cluster.connecting import EVERYWHERE, MODE, NO_CLUSTER, OPEN, TOKEN
from tests.cluster.on_ray import need_ray

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_local_cluster_listens_on_loopback_only(tmp_path: Path) -> None:
    need_ray()
    home = tmp_path / "home"
    home.mkdir()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.cluster.listening", str(tmp_path / "storage")],
        env={**plain, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
        cwd=ROOT,
    )
    found = json.loads(ended.stdout)
    assert len(found) > 5  # Ray's own servers and the members
    assert [one for one in found if not ip_address(one[0]).is_loopback] == []
    assert "Ray" not in ended.stderr
    assert not (home / ".ray").exists()  # the token is of this run only


class FakeRay:
    """Takes down what Ray is started with."""

    def __init__(self, address: str) -> None:
        self.started: dict[str, Any] = {}
        self.environment: dict[str, str] = {}
        self.util = SimpleNamespace(get_node_ip_address=lambda: address)

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        self.started, self.environment = options, dict(os.environ)


def started(monkeypatch: pytest.MonkeyPatch, address: str | None, node: str) -> FakeRay:
    """Connect to a Ray that is none."""
    ray = FakeRay(node)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(connecting, "require", lambda _: None)
    for name in (MODE, TOKEN, NO_CLUSTER, "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    connecting.connect(address)
    return ray


def test_a_ray_of_ones_own_gets_a_token_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = {started(monkeypatch, None, "127.0.0.1").environment[TOKEN] for _ in range(2)}
    assert len(tokens) == 2
    assert min(map(len, tokens)) == 64
    assert TOKEN not in os.environ


def test_an_open_port_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        started(monkeypatch, "auto", "10.0.0.7")
        assert caplog.messages == [OPEN]
        caplog.clear()
        started(monkeypatch, None, "10.0.0.7")
        assert EVERYWHERE in caplog.messages
    assert "runs code as you" in OPEN
    assert "runs code as you" in EVERYWHERE


def test_who_has_decided_is_not_warned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(MODE, "disabled")
    monkeypatch.setitem(sys.modules, "ray", FakeRay("10.0.0.7"))
    monkeypatch.setattr(connecting, "require", lambda _: None)
    with caplog.at_level(logging.WARNING):
        connecting.connect("auto")
    assert caplog.messages == []
