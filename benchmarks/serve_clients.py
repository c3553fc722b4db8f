"""Servers as processes, and clients that keep them busy; for `serve_load`."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DIM, LABELS, K, SEED = 128, 100, 10, 0
BATCH = 100
"""Rows of a batch."""
PACE = 20.0
"""Rows a second that the writer ingests, one a call."""
ARROW = "application/vnd.apache.arrow.stream"
Floats = NDArray[np.float32]


class Rows:
    """Rows around as many places as there are labels, and the name of each one's place."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(SEED)
        self._places = self._rng.normal(size=(LABELS, DIM))

    def draw(self, n: int) -> tuple[Floats, list[str]]:
        """Return n rows and their labels."""
        which = self._rng.integers(0, LABELS, n)
        noise = 0.7 * self._rng.normal(size=(n, DIM))
        return (self._places[which] + noise).astype(np.float32), [f"label {i}" for i in which]


class Server(NamedTuple):
    """A process that listens at a port."""

    number: int
    port: int

    def worked(self) -> float:
        """Return the seconds a processor has worked for it."""
        fields = Path(f"/proc/{self.number}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return its resident memory in MB."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.number}/status").read_text())
        return int(found[1]) / 1000 if found else float("nan")


@contextmanager
def started(*program: str) -> Iterator[Server]:
    """Run a server, once it says where it listens."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, *program], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None  # noqa: S101
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        if found is None:
            raise SystemExit("the server did not start")
        yield Server(process.pid, int(found[1]))
    finally:
        process.terminate()
        process.wait()


@dataclass
class Tally:
    """What clients have seen."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    told_when: int = 0
    """Answers 503 that say when to come back."""
    size: int = 0
    """Bytes of the last body."""
    work: float = 0.0
    """Seconds that a processor has worked for the answers."""

    @property
    def rate(self) -> float:
        """Answers 200 a second."""
        return self.statuses[200] / self.seconds if self.seconds else 0.0

    @property
    def cost(self) -> float:
        """Seconds of a processor an answer."""
        return self.work / max(1, self.statuses.total())

    def percentile(self, share: float) -> float:
        """Return a latency in milliseconds."""
        return 1000 * float(np.percentile(self.latencies, share)) if self.latencies else 0.0


class Client(asyncio.Protocol):
    """A connection that sends the next request as soon as it has the answer to the last.

    It reads no more of an answer than it must, so that the server is the limit.
    """

    def __init__(self, requests: Iterator[bytes], tally: Tally, pace: float = 0.0) -> None:
        self._requests, self._tally, self._pace = requests, tally, pace
        self._text, self._sent, self._going = b"", 0.0, True
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self._transport = transport
        self._send()

    def _send(self) -> None:
        if self._going:
            self._sent = time.perf_counter()
            self._transport.write(next(self._requests))
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Take an answer, and send the next request."""
        self._text += data
        top = self._text.find(b"\r\n\r\n")
        if top < 0:
            return
        head = self._text[:top].lower()
        size = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(self._text) < top + 4 + size:
            return
        self._text = self._text[top + 4 + size :]
        took, status = time.perf_counter() - self._sent, int(head[9:12])
        self._tally.latencies.append(took)
        self._tally.statuses[status] += 1
        self._tally.told_when += b"\r\nretry-after: 1" in head
        self._tally.size = size
        if self._pace:
            wait = max(0.0, 1 / self._pace - took)
            asyncio.get_running_loop().call_later(wait, self._send)
        else:
            self._send()

    def stop(self) -> None:
        """Send nothing more."""
        self._going = False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Note the end, and whether it was one."""
        if self._going:
            self._tally.statuses[0] += 1
        if not self.ended.done():
            self.ended.set_result(None)


async def drive(
    server: Server, seconds: float, make: Callable[[], Iterator[bytes]], clients: int, tally: Tally
) -> None:
    """Have clients ask for a while."""
    loop, began, worked = asyncio.get_running_loop(), time.perf_counter(), server.worked()
    pairs = [
        await loop.create_connection(lambda: Client(make(), tally), "127.0.0.1", server.port)
        for _ in range(clients)
    ]
    await asyncio.sleep(seconds)
    for _, client in pairs:
        client.stop()
    tally.seconds += time.perf_counter() - began
    await asyncio.wait([client.ended for _, client in pairs], timeout=70)
    tally.work += server.worked() - worked


def request(path: str, body: bytes, kind: str = "application/json", accept: str = "*/*") -> bytes:
    """Return a request as it is sent."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        f"Accept: {accept}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def as_npy(X: Floats) -> bytes:
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


class Asked(NamedTuple):
    """Requests, drawn anew for each client."""

    rows: Rows

    def singles(self, path: str) -> Iterator[bytes]:
        """One query a request, as JSON."""
        X = self.rows.draw(50)[0]
        rows = [[round(float(v), 6) for v in row] for row in X]
        texts = [json.dumps({"rows": [row], "k": K, "by": "meaning"}) for row in rows]
        return _around([request(path, text.encode()) for text in texts])

    def batches(self) -> Iterator[bytes]:
        """A hundred queries a request, as .npy, to be answered as Arrow."""
        bodies = [as_npy(self.rows.draw(BATCH)[0]) for _ in range(10)]
        path = f"/search?k={K}&by=meaning"
        return _around([request(path, body, "application/x-npy", ARROW) for body in bodies])

    def writes(self) -> Iterator[bytes]:
        """One labelled row a request."""
        while True:
            X, y = self.rows.draw(1)
            yield request("/ingest", json.dumps({"rows": X.tolist(), "labels": y}).encode())


def _around(items: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from items


class Writing:
    """A client that writes at a pace, while the block runs."""

    def __init__(self, server: Server, asked: Asked) -> None:
        self._port, self._asked = server.port, asked
        self.tally = Tally()

    async def __aenter__(self) -> Writing:
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        _, self._client = await loop.create_connection(
            lambda: Client(self._asked.writes(), self.tally, PACE), "127.0.0.1", self._port
        )
        self._began = began
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._client.stop()
        self.tally.seconds = time.perf_counter() - self._began
        await asyncio.wait([self._client.ended], timeout=70)


async def ready(server: Server) -> None:
    """Wait until the collection is open."""
    while True:
        tally = Tally()
        await drive(
            server,
            0.05,
            lambda: _around([b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"]),
            1,
            tally,
        )
        if tally.statuses[200]:
            return
