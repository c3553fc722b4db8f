"""Connections whose clients do not read, do not finish, or are too many."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from everhash.collection.collection import Collection
from everhash.serve import limits
from tests.unit.serve.serving import DIM, Served, error_of, filled, serving, until
from tests.unit.serve.test_bounds import BODY, answer, head, port_of

LIVE = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"
DOCUMENT = LIVE.replace(b"/live", b"/openapi.json")
LONG = json.dumps({"ids": [0] * 1000, "k": 60})
"""Asks for an answer of two megabytes."""


def served(reading: Served, connection: socket.socket) -> Any:
    """Return the server's end of a connection, None once it is gone."""
    connections: Any = tuple(reading.server.server_state.connections)
    ends = [c for c in connections if c.client and c.client[1] == port_of(connection)]
    return ends[0] if ends else None


@pytest.fixture
def opened(reading: Served) -> Iterator[Any]:
    """A function that opens connections for which the system itself keeps little."""
    with ExitStack() as stack:

        def connect(sent: bytes = b"") -> socket.socket:
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(30)
            connection.connect(("127.0.0.1", reading.port))
            until(lambda: served(reading, connection))
            end = served(reading, connection).transport.get_extra_info("socket")
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            connection.sendall(sent)
            return connection

        yield connect


def search(reading: Served) -> int:
    return reading.post("/search", {"rows": [[0.5] * DIM]}).status_code


def ended(connection: socket.socket) -> bool:
    """Whether the other end has closed a connection, whatever it had sent."""
    with suppress(ConnectionResetError):
        while connection.recv(65_536):
            pass
    return True


def test_whoever_does_not_read_takes_no_place(
    monkeypatch: pytest.MonkeyPatch, reading: Served, opened: Any
) -> None:
    monkeypatch.setattr(limits, "REQUESTS", 4)
    connections = [opened(400 * DOCUMENT) for _ in range(8)]
    until(lambda: all(served(reading, c).unsent for c in connections))
    for _ in range(5):
        assert search(reading) == 200
        time.sleep(0.1)
    assert reading.service.metrics.running == 0


def test_requests_that_wait_behind_an_answer_are_answered_once_it_is_taken(
    reading: Served, opened: Any
) -> None:
    n = 5
    connection = opened(n * DOCUMENT + LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    until(lambda: served(reading, connection).unsent)
    text = b""
    while piece := connection.recv(1 << 20):
        text += piece
    assert text.count(b"HTTP/1.1 200 OK") == n + 1
    assert text.endswith(b'{"live":true}')


def long_answers(n: int, reading: Served, opened: Any) -> list[socket.socket]:
    sent = head("/search", len(LONG)) + LONG.encode()
    connections = []
    for _ in range(n):
        connections.append(opened(sent))
        until(lambda: (end := served(reading, connections[-1])) is None or end.unsent)
    return connections


def test_answers_that_nobody_takes_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, reading: Served, opened: Any
) -> None:
    size = len(reading.post("/search", json.loads(LONG)).content)
    monkeypatch.setattr(limits, "UNSENT", 2 * size)
    connections = long_answers(4, reading, opened)
    until(lambda: served(reading, connections[0]) is None)
    assert ended(connections[0])
    status, _, told = answer(connections[3])  # the last one was in nobody's way
    assert (status, len(told["matches"])) == (200, 1000)


def test_an_answer_has_to_be_taken_in_time_whatever_drips(
    monkeypatch: pytest.MonkeyPatch, reading: Served, opened: Any
) -> None:
    monkeypatch.setattr(limits, "TAKE_SECONDS", 0.6)
    (slow,) = long_answers(1, reading, opened)
    began = time.monotonic()
    while served(reading, slow) is not None:
        assert time.monotonic() - began < 20
        slow.recv(1000)
        time.sleep(0.05)
    assert search(reading) == 200


def test_whoever_comes_is_served_however_many_wait(
    monkeypatch: pytest.MonkeyPatch, reading: Served, opened: Any
) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 8)
    with reading.connect() as listener:
        listener.sendall(LIVE.replace(b"/live", b"/events"))
        until(lambda: len(reading.service.events) == 1)
        idle = []
        for i in range(20):
            idle.append(opened((b"", LIVE, LIVE[:-2], DOCUMENT)[i % 4]))
            with httpx.Client(base_url=reading.address) as client:
                assert client.get("/stats").status_code == 200
        assert len(reading.server.server_state.connections) <= 8
        assert all(ended(connection) for connection in idle[:10])
        assert served(reading, listener) is not None  # it is being answered


def test_where_all_are_busy_the_newcomer_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 2)
    let_go, stats = threading.Event(), Collection.search

    def wait(*arguments: Any, **options: Any) -> Any:
        assert let_go.wait(30)
        return stats(*arguments, **options)

    with filled() as collection, serving(collection) as service, ExitStack() as stack:
        monkeypatch.setattr(Collection, "search", wait)
        busy = [stack.enter_context(service.connect()) for _ in range(2)]
        for connection in busy:
            connection.sendall(head("/search", len(BODY)) + BODY)
        until(lambda: service.service.metrics.running == 2)
        assert ended(stack.enter_context(service.connect()))
        let_go.set()
        assert [answer(connection)[0] for connection in busy] == [200, 200]


@pytest.mark.parametrize(
    "start",
    [
        LIVE.replace(b"\r\n\r\n", b"\r\nContent-Length: 1000\r\n\r\n"),
        head("/nope", 1000),
        head("/live", 1000),
    ],
)
def test_a_body_that_nobody_reads_cannot_drip_for_ever(
    monkeypatch: pytest.MonkeyPatch, reading: Served, start: bytes
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.5)
    with reading.connect() as connection:
        connection.sendall(start)
        assert answer(connection)[0] in (200, 404, 405)
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 20:
                connection.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() - began < 10


def test_after_a_body_that_nobody_reads_a_connection_goes_on(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.5)
    with reading.connect() as connection:
        connection.sendall(head("/nope", 300_000))
        assert answer(connection)[0] == 404
        connection.sendall(b"x" * 300_000)
        time.sleep(0.8)
        connection.sendall(LIVE)
        assert answer(connection)[0] == 200


def test_whoever_has_said_all_and_listens_is_answered(writing: Served) -> None:
    body = BODY.replace(b"}", b', "ids": ["half"]}')
    with writing.connect() as connection:
        connection.sendall(head("/add", len(body)) + body)
        connection.shutdown(socket.SHUT_WR)
        assert answer(connection)[::2] == (200, {"ids": ["half"]})
        assert connection.recv(1) == b""
    with writing.connect() as connection:
        connection.sendall(head("/add", len(body)) + body[:-1])
        connection.shutdown(socket.SHUT_WR)  # half a body is no request
        assert connection.recv(1) == b""
    with writing.connect() as connection:
        connection.sendall(LIVE.replace(b"/live", b"/events"))
        until(lambda: len(writing.service.events) == 1)
        connection.shutdown(socket.SHUT_WR)
        until(lambda: len(writing.service.events) == 0)


def test_every_503_says_when_to_come_back() -> None:
    let_go = threading.Event()

    def open_slowly() -> Collection:
        assert let_go.wait(30)
        return filled()

    with serving(open_slowly, wait=False) as early:
        try:
            for path in ("/ready", "/stats", "/snapshot", "/labels", "/events"):
                refused = early.get(path)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1"), path
                if path != "/ready":
                    error_of(refused)
        finally:
            let_go.set()
        until(lambda: early.service.ready)
