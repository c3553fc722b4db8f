"""The page on the service names everything there is."""

from __future__ import annotations

import re
from pathlib import Path

from everhash.serve import limits
from everhash.serve.errors import MEANINGS
from everhash.serve.metrics import Metrics
from everhash.wire.routes import ROUTES

PAGE = (Path(__file__).parents[3] / "docs" / "service.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_route_is_described_with_its_key() -> None:
    rows = re.findall(r"^\| (.+?) \| (\w*) ?\| .+ \|$", section("Routes"), re.MULTILINE)
    told = {
        path.rstrip("…").rstrip("/") or "/": role or None
        for paths, role in rows
        for path in re.findall(r"`(?:GET |POST )?(/[^`]*)`", paths)
    }
    assert told == {route.path: route.role for route in ROUTES}


def test_every_route_but_those_of_machines_has_an_example() -> None:
    examples = "\n".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    for path in {route.path for route in ROUTES if route.role is not None}:
        assert path == "/metrics" or f"localhost:8765{path.replace('{job}', '1')}" in examples, path


def test_every_limit_is_told() -> None:
    text = section("Limits")
    for name, value in limits.TABLE.items():
        assert f"`{name}`" in text
        assert f"{value:,}" in text
    for value in (
        *(limits.LISTENERS, limits.MATCHES, limits.EXPLAINED),
        *(limits.CONNECTIONS, limits.KEEP_ALIVE, limits.SNAPSHOTS, limits.PAYLOADS),
        *(limits.HEAD_SECONDS, limits.READ_SECONDS, limits.HEAD >> 10),
    ):
        assert f"| {value:,}" in text


def test_every_status_and_metric_is_told() -> None:
    for status in MEANINGS:
        assert str(status) in section("Errors")
    metrics = Metrics()
    metrics.count("/x", "GET", 200, 0.1)
    text = metrics.text({}, 0).decode()
    for name in re.findall(r"^# TYPE (\w+)", text, re.MULTILINE):
        assert f"`{name}" in section("Metrics"), name
