"""What one connection may do before anybody has asked who it is."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import repeat
from typing import Any

import pytest

from everhash.serve import limits
from tests.unit.serve.serving import DIM, Served, error_of, until
from tests.unit.serve.test_bounds import BODY, answer, head, port_of

ASK = b"GET /live HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = head("/live").replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")


def flood(connection: socket.socket, pieces: Iterator[bytes], most: int) -> bytes:
    """Send until the connection is closed, `most` bytes at most; return what was said of it."""
    sent = 0
    try:
        for piece in pieces:
            connection.sendall(piece)
            sent += len(piece)
            assert sent < most, "nobody has closed it"
    except OSError:
        pass
    return last_words(connection)


def last_words(connection: socket.socket) -> bytes:
    """Return all that a connection says until it is closed."""
    said = b""
    try:
        while piece := connection.recv(65_536):
            said += piece
    except ConnectionError:
        pass
    return said


ENDLESS = {
    "lines": (ASK, b"X-A: b\r\n" * 1000),
    "one line": (ASK + b"X-A: ", b"a" * 8000),
    "a path": (b"GET /", b"a" * 8000),
    "nothing": (b"", b"\r\n" * 4000),
    "trailers": (CHUNKED + b"0\r\n", b"X-A: b\r\n" * 1000),
    "one trailer": (CHUNKED + b"0\r\nX-A: ", b"a" * 8000),
    "the size of a chunk": (CHUNKED + b"1;a=", b"a" * 8000),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_head_without_end_is_cut_off(reading: Served, kind: str) -> None:
    first, more = ENDLESS[kind]
    with reading.connect() as connection:
        connection.sendall(first)
        flood(connection, repeat(more), 16 << 20)
    assert reading.get("/live").status_code == 200


def test_whoever_sends_a_long_head_is_told_why(reading: Served) -> None:
    with reading.connect() as connection:
        connection.sendall(ASK)
        for _ in range(10):
            connection.sendall(b"X-A: b\r\n" * 900)
            time.sleep(0.01)
        assert last_words(connection).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "more", [b"X-A: b\r\n" * (limits.HEADERS + 1), b"X-A: " + b"a" * limits.HEAD + b"\r\n"]
)
def test_a_whole_head_that_is_too_large_is_refused_in_the_form_of_all_errors(
    reading: Served, more: bytes
) -> None:
    with reading.connect() as connection:
        connection.sendall(ASK + more + b"\r\n")
        said = last_words(connection)
        assert said.startswith(b"HTTP/1.1 431 ")
    assert not said.partition(b"\r\n\r\n")[2] or b"TooLargeError" in said


def test_a_head_of_sixty_kilobytes_is_read(reading: Served) -> None:
    with reading.connect() as connection:
        connection.sendall(ASK)
        for number in range(6):
            connection.sendall(b"X-%d: %s\r\n" % (number, b"a" * 10_000))
            time.sleep(0.01)
        connection.sendall(b"\r\n")
        assert answer(connection)[0] == 200


AMBIGUOUS = {
    "two hosts": [b"Host: localhost", b"Host: localhost"],
    "two other hosts": [b"Host: localhost", b"Host: elsewhere.example"],
    "no host": [b"Accept: */*"],
    "two lengths": [b"Host: localhost", b"Content-Length: 2", b"Content-Length: 3"],
    "one length twice": [b"Host: localhost", b"Content-Length: 2", b"Content-Length: 2"],
    "length and chunks": [
        *(b"Host: localhost", b"Content-Length: 2", b"Transfer-Encoding: chunked")
    ],
    "chunks and length": [
        *(b"Host: localhost", b"Transfer-Encoding: chunked", b"Content-Length: 2")
    ],
    "two keys": [b"Host: localhost", b"X-Api-Key: a", b"X-Api-Key: b"],
    "two types": [b"Host: localhost", b"Content-Type: a/b", b"Content-Type: application/json"],
    "another coding": [b"Host: localhost", b"Transfer-Encoding: gzip"],
    "a signed length": [b"Host: localhost", b"Content-Length: +2"],
    "a line folded": [b"Host: localhost", b"X-A: b", b" c"],
    "a space before the colon": [b"Host : localhost"],
}


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_a_head_that_could_be_read_in_two_ways_is_refused(reading: Served, kind: str) -> None:
    with reading.connect() as connection:
        lines = [b"GET /live HTTP/1.1", *AMBIGUOUS[kind], b"", b""]
        has_body = any(line.startswith(b"Content-Length") for line in lines)
        connection.sendall(b"\r\n".join(lines) + has_body * b"{}")
        assert last_words(connection).startswith(b"HTTP/1.1 400 ")


@contextmanager
def hurried(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.3) -> Iterator[None]:
    """Give heads little time, and look that those in the block did not take much more."""
    monkeypatch.setattr(limits, "HEAD_SECONDS", seconds)
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 10


def test_a_head_has_to_arrive_in_time(monkeypatch: pytest.MonkeyPatch, reading: Served) -> None:
    with hurried(monkeypatch), reading.connect() as half, reading.connect() as silent:
        half.sendall(ASK)
        assert last_words(half).startswith(b"HTTP/1.1 408 ")
        last_words(silent)


def test_a_head_that_trickles_has_no_more_time(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    def trickle() -> Iterator[bytes]:
        while True:
            time.sleep(0.02)
            yield b"X-A: b\r\n"

    with hurried(monkeypatch), reading.connect() as connection:
        connection.sendall(ASK)
        flood(connection, trickle(), 10_000)
    with hurried(monkeypatch), reading.connect() as connection:  # the second of a connection too
        connection.sendall(ASK + b"\r\n")
        assert answer(connection)[0] == 200
        connection.sendall(ASK)
        flood(connection, trickle(), 10_000)


def test_the_rest_of_a_body_that_nobody_reads_has_to_arrive_in_time(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    with hurried(monkeypatch), reading.connect() as connection:
        connection.sendall(head("/live", 1000) + b"x")
        assert answer(connection)[0] == 405
        last_words(connection)


def test_idle_connections_and_bodies_have_times_of_their_own(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    with hurried(monkeypatch, 0.1), reading.connect() as idle, reading.connect() as slow:
        slow.sendall(head("/search", len(BODY)) + BODY[:5])
        for _ in range(3):
            idle.sendall(ASK + b"\r\n")
            assert answer(idle)[0] == 200
            time.sleep(0.2)
        slow.sendall(BODY[5:])
        assert answer(slow)[0] == 200


def test_half_open_and_idle_connections_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 10)
    for sent in (b"", ASK, ASK + b"\r\n", head("/live", 1000) + b"x"):
        with ExitStack() as stack:
            for _ in range(15):
                stack.enter_context(reading.connect()).sendall(sent)
            with reading.connect() as connection:
                connection.sendall(head("/search", len(BODY)) + BODY)
                assert answer(connection)[0] == 200
            assert len(reading.service.connections) <= 10


def test_a_connection_that_is_worked_for_makes_no_room(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 10)
    with reading.connect() as slow, ExitStack() as stack:
        slow.sendall(head("/search", len(BODY)) + BODY[:5])
        time.sleep(0.1)
        for _ in range(15):
            stack.enter_context(reading.connect()).sendall(ASK)
        time.sleep(0.1)
        slow.sendall(BODY[5:])
        assert answer(slow)[0] == 200


LARGE = json.dumps({"rows": [[0.5] * DIM] * 1000, "k": 60}).encode()
"""What is answered with some megabytes."""


def test_an_answer_that_nobody_reads_is_given_up(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "READ_SECONDS", 1)
    monkeypatch.setattr(limits, "ANSWERS", 8 << 20)
    with reading.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(head("/search", len(LARGE)) + LARGE)
        connection.recv(1)
        refused = reading.send("/search", LARGE, "application/json")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "wait to be read" in error_of(refused)["message"]
        connections: Any = reading.server.server_state.connections
        until(lambda: port_of(connection) not in {c.client[1] for c in list(connections)}, 10)
    read = reading.send("/search", LARGE, "application/json")
    assert (read.status_code, len(read.json()["matches"])) == (200, 1000)
