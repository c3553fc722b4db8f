"""Who may ask: keys, roles, the Host header and pages of other sites."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st

from everhash.errors import DataMissingError, InputError, OptionError
from everhash.serve.app import make_app
from everhash.serve.keys import ROLES as RANKS
from everhash.serve.keys import ApiKey, Keys, add_key, as_toml, make_key, read_keys
from everhash.wire.routes import ROUTES
from tests.unit.serve.serving import DIM, Served, error_of, filled, serving

OPEN = {"/live", "/ready", "/limits", "/openapi.json", "/docs", "/", "/static"}
MADE = {role: make_key(role) for role in RANKS}
SECRETS = {role: secret for role, (secret, _) in MADE.items()}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    """A service that others can reach."""
    keys = Keys([key for _, key in MADE.values()])
    with filled() as collection, serving(collection, keys=keys, public=True) as served:
        yield served


def routes(served: Served) -> list[tuple[str, str]]:
    """Return method and path of every route there is."""
    found = []
    for route in served.server.config.app.app.routes:  # type: ignore[union-attr]
        path = getattr(route, "path", "")
        methods = (isinstance(route, APIRoute) and route.methods) or {"GET"}
        found += [(method, path.replace("{job}", "1")) for method in methods]
    return found


NEARLY = (
    "\n",
    "%0A",
    "%0a%0a",
    "%0D",
    "%00",
    "/",
    "%2F",
    "%20",
    ";x",
    "%3F",
    ".",
    "\x85",
    "%E2%80%A8",
)


@pytest.mark.parametrize("more", NEARLY)
def test_what_the_framework_takes_for_a_route_is_none(guarded: Served, more: str) -> None:
    """Starlette's patterns end in $, which matches before a newline."""
    for method, path in routes(guarded):
        if path in ("/", "/static") or (path == "/jobs/1" and more != "/"):
            continue  # any file, or any job
        target = path + more
        with guarded.connect() as bare:
            head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
            bare.sendall(f"{head}Connection: close\r\n\r\n".encode("latin-1"))
            answer = b"".join(iter(lambda: bare.recv(65536), b""))
        assert answer[9:12] in (b"404", b"400", b"401"), (target, answer[:80])


def test_every_route_but_the_open_ones_needs_a_key(guarded: Served) -> None:
    seen = set()
    for method, path in routes(guarded):
        template = path.replace("/jobs/1", "/jobs/{job}")
        seen.add(template)
        if template in OPEN:
            continue
        for headers in ({}, {"X-Api-Key": "eh_wrong"}, {"Authorization": "Basic eDp5"}):
            answer = guarded.http.request(method, path, headers=headers)
            assert error_of(answer)["status"] == 401, path
            assert answer.headers["www-authenticate"] == "Bearer"
    assert {"/search", "/snapshot", "/events", "/jobs/{job}", "/metrics"} <= seen
    assert seen == {route.path for route in ROUTES}
    assert {route.path for route in ROUTES if route.role is None} == OPEN


def test_a_key_opens_what_its_role_allows(guarded: Served) -> None:
    for method, path, needed, *_ in ROUTES:
        if needed is None or path == "/events":
            continue
        target = path.replace("{job}", "1")
        for role, secret in SECRETS.items():
            for headers in ({"Authorization": f"Bearer {secret}"}, {"X-Api-Key": secret}):
                answer = guarded.http.request(method, target, headers=headers)
                enough = RANKS.index(role) >= RANKS.index(needed)
                assert (answer.status_code == 403) != enough, (path, role)
                assert answer.status_code != 401


def test_open_routes_need_no_key(guarded: Served) -> None:
    for path in ("/live", "/ready", "/limits", "/openapi.json"):
        assert guarded.get(path).status_code == 200
    assert guarded.get("/nope").status_code == 404


def test_a_service_with_keys_takes_any_host_name(guarded: Served) -> None:
    headers = {"Host": "shop.example.org", "X-Api-Key": SECRETS["read"]}
    assert guarded.get("/stats", headers=headers).status_code == 200


def test_keys_are_never_logged(guarded: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        guarded.get("/stats", headers={"Authorization": f"Bearer {SECRETS['read']}"})
        guarded.get("/snapshot", headers={"X-Api-Key": SECRETS["read"]})
        told = guarded.get("/metrics", headers={"X-Api-Key": SECRETS["admin"]}).text
    for secret, key in MADE.values():
        assert secret not in caplog.text + told
        assert key.sha256 not in caplog.text + told


def test_others_are_served_only_with_keys() -> None:
    with filled() as collection, pytest.raises(OptionError, match="needs keys"):
        make_app(collection, public=True)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("localhost", 200), ("127.0.0.1:8765", 200), ("[::1]:8765", 200), ("LOCALHOST:1", 200)),
        *(("127.0.0.2", 200), ("evil.example", 403), ("localhost.evil.example:80", 403)),
        *(("127.0.0.1.evil.example", 403), ("10.0.0.7", 403), ("", 403), ("[::1", 403)),
    ],
)
def test_without_keys_the_host_has_to_be_this_machine(
    reading: Served, host: str, status: int
) -> None:
    assert reading.get("/stats", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        *((None, 200), ("same", 200), ("http://evil.example", 403), ("null", 403)),
        *(("http://127.0.0.1:1", 403), ("http://localhost", 403)),
    ],
)
def test_pages_of_other_sites_post_nothing(
    reading: Served, origin: str | None, status: int
) -> None:
    headers = {} if origin is None else {"Origin": origin.replace("same", reading.address)}
    answer = reading.post("/search", {"rows": [[0.0] * DIM]}, headers=headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


def test_a_key_is_random_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    for role in (*RANKS, "read"):
        secret, key = make_key(role)
        add_key(path, key)
        assert secret not in path.read_text()
        assert read_keys(path).find(secret.encode()) == key
    assert len(read_keys(path)) == 4
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_keys(path).find(b"eh_other") is None
    assert read_keys(path).find(b"") is None


@given(st.text(min_size=1, max_size=64), st.sampled_from(RANKS))
def test_a_key_reads_as_it_was_written(tmp_path_factory: Any, name: str, role: str) -> None:
    path = tmp_path_factory.mktemp("keys") / "keys"
    try:
        secret, key = make_key(role, name)
    except OptionError:
        assert not name.isprintable()
        return
    path.write_text(as_toml(key), encoding="utf-8")
    assert read_keys(path).find(secret.encode()) == key
    path.write_text(json.dumps({"key": [vars(key)]}))
    assert read_keys(path).find(secret.encode()) == key


@pytest.mark.parametrize(
    "text",
    [
        *("", "[[key]]", "{}", "[", '{"key": 3}', '{"key": [3]}', "key = 1", "\udc80", "[" * 5000),
        '[[key]]\nname = "a"\nrole = "boss"\nsha256 = "' + "0" * 64 + '"',
        '[[key]]\nname = "a"\nrole = "read"\nsha256 = "eh_plain"',
        '[[key]]\nname = 3\nrole = "read"\nsha256 = "' + "0" * 64 + '"',
        2 * ('[[key]]\nname = "a"\nrole = "read"\nsha256 = "' + "0" * 64 + '"\n'),
        '{"key": []}',
    ],
)
def test_what_is_no_file_of_keys_is_refused_without_quoting_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        read_keys(path)
    assert str(path) in caught.value.message
    assert "eh_plain" not in str(caught.value)


def test_a_missing_or_endless_file_of_keys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError):
        read_keys(tmp_path / "no")
    path = tmp_path / "large"
    path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(InputError, match="too large"):
        read_keys(path)


def test_a_key_is_not_appended_to_json(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first, second = make_key("read")[1], make_key("write")[1]
    path.write_text(json.dumps({"key": [vars(first)]}))
    with pytest.raises(OptionError, match="JSON"):
        add_key(path, second)
    assert json.loads(path.read_text()) == {"key": [vars(first)]}


def test_roles_include_those_before_them() -> None:
    for i, role in enumerate(RANKS):
        key = ApiKey("x", role, "0" * 64)
        assert [key.allows(other) for other in RANKS] == [j <= i for j in range(3)]
    with pytest.raises(OptionError, match="unknown"):
        make_key("boss")
