"""Clients that are slow, greedy or many."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from everhash.collection.collection import Collection
from everhash.serve import limits
from tests.unit.serve.serving import DIM, Served, error_of, filled, serving, until

ROWS = [[0.5] * DIM]
BODY = json.dumps({"rows": ROWS}).encode()


def head(path: str, length: int | None = None, **more: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in more.items()]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def answer(connection: socket.socket) -> tuple[int, dict[str, str], Any]:
    """Read one answer of a connection: status, headers, JSON."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = connection.recv(65_536)
        assert piece, f"the connection ended after {text!r}"
        text += piece
    top, _, body = text.partition(b"\r\n\r\n")
    lines = top.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65_536)
    return int(lines[0].split()[1]), headers, json.loads(body)


def test_an_announced_body_of_ten_gigabytes_is_refused_at_once(reading: Served) -> None:
    for path in ("/search", "/add"):
        with reading.connect() as connection:
            connection.sendall(head(path, 10 << 30))
            status, headers, told = answer(connection)
            assert (status, told["error"]["code"]) == (413, "TooLargeError")
            assert headers["connection"] == "close"
            assert connection.recv(1) == b""


def test_a_body_that_waits_to_be_asked_for_is_refused_without_being_asked(reading: Served) -> None:
    with reading.connect() as connection:
        connection.sendall(head("/search", 10 << 30, Expect="100-continue"))
        assert answer(connection)[0] == 413


def test_a_body_that_grows_without_end_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "BODY", 100_000)
    with reading.connect() as connection:
        chunked = head("/search").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(chunked)
        for _ in range(11):
            connection.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
        status, headers, told = answer(connection)
        assert (status, told["error"]["code"]) == (413, "TooLargeError")
        assert headers["connection"] == "close"


def is_crowded(connection: socket.socket) -> bool:
    """Whether a body had to make room for others, and its client was told when to come back."""
    status, headers, told = answer(connection)
    assert (status, told["error"]["code"]) == (503, "ServiceError")
    return (headers["connection"], headers["retry-after"]) == ("close", "1")


def test_bodies_are_bounded_together(monkeypatch: pytest.MonkeyPatch, reading: Served) -> None:
    monkeypatch.setattr(limits, "BODIES", 150_000)
    with reading.connect() as first, reading.connect() as second, reading.connect() as third:
        first.sendall(head("/search", 100_001) + b"x" * 100_000)
        time.sleep(0.2)
        second.sendall(head("/search", 100_000) + b"x" * 100_000)
        assert is_crowded(second)  # more than there is room for
        first.sendall(b"x")
        assert answer(first)[0] == 422
        third.sendall(head("/search", 160_000) + b"x" * 160_000)
        assert is_crowded(third)  # more than there is room for
    assert reading.post("/search", {"rows": ROWS}).status_code == 200


def test_only_routes_that_take_a_body_read_one(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "BODIES", 10)
    for path in ("/live", "/stats", "/nope", "/static/nope"):
        refused = reading.http.post(path, content=b"x" * 100)
        assert refused.status_code in (404, 405), path
    assert is_crowded_answer(reading.post("/search", {"rows": ROWS}))


def is_crowded_answer(response: httpx.Response) -> bool:
    return "at once" in error_of(response)["message"] and response.headers["retry-after"] == "1"


def test_a_body_is_not_kept_after_its_answer(reading: Served) -> None:
    with reading.connect() as idle:
        idle.sendall(head("/search", len(BODY)) + BODY)
        assert answer(idle)[0] == 200
        connections: Any = reading.server.server_state.connections
        (kept,) = [c for c in connections if c.client and c.client[1] == port_of(idle)]
        until(lambda: BODY not in kept.scope.values())


def test_a_body_has_to_arrive_in_time(monkeypatch: pytest.MonkeyPatch, reading: Served) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.5)
    with reading.connect() as connection:
        connection.sendall(head("/search", len(BODY)))
        began = time.monotonic()
        for byte in BODY[:3]:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)
        status, headers, told = answer(connection)
        assert time.monotonic() - began < 30
        assert (status, told["error"]["status"], headers["connection"]) == (408, 408, "close")


def test_slow_bodies_keep_nobody_out(reading: Served) -> None:
    slow = [reading.connect() for _ in range(limits.REQUESTS + 10)]
    try:
        for connection in slow:
            connection.sendall(head("/search", len(BODY)) + BODY[:5])
        assert reading.post("/search", {"rows": ROWS}).status_code == 200
        for connection in slow[:5]:
            connection.sendall(BODY[5:])
            assert answer(connection)[0] == 200
    finally:
        for connection in slow:
            connection.close()


def port_of(connection: socket.socket) -> int:
    return int(connection.getsockname()[1])


def test_clients_who_leave_do_no_harm(reading: Served) -> None:
    for sent in (head("/search", len(BODY)) + BODY, head("/search", 1000) + BODY, b"GET /stats"):
        for _ in range(10):
            with reading.connect() as connection:
                connection.sendall(sent)
    assert reading.post("/search", {"rows": ROWS}).status_code == 200
    until(lambda: reading.service.metrics.running == 0)


class Held:
    """A collection whose searches wait until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let_go = threading.Event()
        self.waiting = 0
        search = Collection.search

        def wait(*arguments: Any, **options: Any) -> Any:
            self.waiting += 1
            assert self.let_go.wait(300)
            return search(*arguments, **options)

        monkeypatch.setattr(Collection, "search", wait)


def at_once(served: Served, n: int, call: Callable[[httpx.Client], int]) -> Counter[int]:
    """Make a call by n clients at once, and count how they end."""
    seen = Counter[int]()

    def run() -> None:
        with httpx.Client(base_url=served.address, timeout=60) as client:
            seen[call(client)] += 1

    threads = [threading.Thread(target=run) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def test_whoever_comes_while_it_is_full_is_told_when_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "REQUESTS", 4)
    with filled() as collection, serving(collection) as served:
        held = Held(monkeypatch)
        inside = threading.Thread(
            target=lambda: seen.update(
                at_once(served, 4, lambda c: c.post("/search", json={"rows": ROWS}).status_code)
            )
        )
        seen = Counter[int]()
        inside.start()
        until(lambda: served.service.metrics.running == 4)
        refused = served.post("/search", {"rows": ROWS})
        assert error_of(refused)["code"] == "ServiceError"
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert served.get("/live").status_code == 200
        held.let_go.set()
        inside.join()
        assert seen == {200: 4}
        assert served.post("/search", {"rows": ROWS}).status_code == 200


def test_an_answer_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    with filled() as collection, serving(collection) as served:
        held = Held(monkeypatch)
        late = served.post("/search", {"rows": ROWS})
        assert (late.status_code, late.headers["retry-after"]) == (503, "1")
        assert error_of(late)["hint"] == "ask for less at a time"
        served.post("/search", {"rows": 2 * ROWS})
        held.let_go.set()
        until(lambda: served.post("/search", {"rows": ROWS}).status_code == 200)
        assert served.service.metrics.running == 0


def test_a_write_given_up_before_its_turn_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    with filled() as collection, serving(collection) as served:
        let_go, learn = threading.Event(), Collection.learn

        def wait(*arguments: Any) -> None:
            assert let_go.wait(300)
            learn(*arguments)

        monkeypatch.setattr(Collection, "learn", wait)
        given_up = served.post("/learn", {"rows": ROWS, "labels": ["x"]})
        assert error_of(given_up)["status"] == 503
        assert "look before you repeat" in error_of(given_up)["hint"]
        late = served.post("/add", {"rows": ROWS, "ids": ["late"]})
        assert late.status_code == 503
        let_go.set()
        until(lambda: served.post("/add", {"rows": ROWS}).status_code == 200)
        assert "late" not in collection
        assert collection.hasher.labels_[-1] == "x"
