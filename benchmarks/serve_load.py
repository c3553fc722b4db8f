"""The service under load: many clients search while one writes.

    python benchmarks/serve_load.py [--seconds 60] [--clients 32] [--entries 100000]

Three kinds of figures. The first two have yardsticks that are measured in turn with them, by the
clock and by the work of a processor an answer, since the machine may be busy with other things:

    single     POST /search, one row as JSON, k = 10, against a bare FastAPI route of the same size
    batches    100 rows as .npy, answers as Arrow, against the same batches searched in process
    overload   200 connections at once: who is turned away, and whether it recovers

`--soak 10` goes on searching and writing for ten minutes and watches the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash.bench.machine import describe_machine

DIM, LABELS, BITS, K, SEED = 128, 100, 32, 10, 0
BATCH, READERS = 100, 4
"""Rows of a batch, and clients that send batches."""
PACE = 20.0
"""Rows a second that the writer ingests, one a call."""
SLICE = 2.0
"""Seconds that a kind of request is measured before its yardstick has its turn."""
CROWD = 200
ARROW = "application/vnd.apache.arrow.stream"
BARE = """
import sys
import uvicorn
from fastapi import FastAPI, Request, Response
app, body = FastAPI(), b"x" * int(sys.argv[1])
@app.post("/bare")
async def bare(request: Request) -> Response:
    return Response(body, media_type="application/json")
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"bare at http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)
Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False)).run()
"""
"""A route that returns a body of some size and does nothing else, as a program."""
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


def fill(path: Path, rows: Rows, entries: int) -> None:
    """Make a collection, half of its entries labelled."""
    with everhash.create(path, DIM, BITS, random_state=SEED) as collection:
        collection.learn(*rows.draw(4000))
        X, y = rows.draw(entries // 2)
        collection.add(X, y=y)
        collection.add(rows.draw(entries - entries // 2)[0])


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
    process = subprocess.Popen(  # noqa: S603
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


class Asked(NamedTuple):
    """Requests, drawn anew for each client."""

    rows: Rows

    def singles(self, path: str) -> Iterator[bytes]:
        """One query a request, as JSON."""
        X = self.rows.draw(50)[0]
        texts = [json.dumps({"rows": [[round(float(v), 6) for v in row]], "k": K}) for row in X]
        return _around([request(path, text.encode()) for text in texts])

    def batches(self) -> Iterator[bytes]:
        """A hundred queries a request, as .npy, to be answered as Arrow."""
        bodies = [as_npy(self.rows.draw(BATCH)[0]) for _ in range(10)]
        path = f"/search?k={K}"
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


def show(name: str, tally: Tally, yardstick: Tally | None = None, per: int = 1) -> None:
    """Print a line of the table."""
    failed = sum(n for status, n in tally.statuses.items() if status != 200)
    ratios = ("", "")
    if yardstick is not None:
        ratios = f"{tally.rate / yardstick.rate:.2f}", f"{yardstick.cost / tally.cost:.2f}"
    work = f"{1e6 * tally.cost:,.0f}" if tally.work else ""
    print(
        f"{name:<34}{per * tally.rate:>12,.0f}{tally.percentile(50):>10.2f}"
        f"{tally.percentile(99):>10.2f}{failed:>9}{ratios[0]:>8}{work:>12}{ratios[1]:>8}",
        flush=True,
    )


async def measure_singles(
    served: Server, bare: Server, asked: Asked, clients: int, seconds: float
) -> None:
    """Searches and the bare route in turn, with one writer all the while."""
    ours, theirs = Tally(), Tally()
    async with Writing(served, asked) as writing:
        for _ in range(max(1, round(seconds / SLICE / 2))):
            await drive(bare, SLICE, lambda: asked.singles("/bare"), clients, theirs)
            await drive(served, SLICE, lambda: asked.singles("/search"), clients, ours)
    show(f"bare route, {clients} clients", theirs)
    show(f"/search, 1 row of JSON, {clients} clients", ours, theirs)
    show(f"/ingest meanwhile, {PACE:g} calls/s wanted", writing.tally)


async def measure_batches(served: Server, path: Path, asked: Asked, seconds: float) -> None:
    """Batches over HTTP and in process in turn, nobody writing."""
    ours, theirs = Tally(), Tally()
    batches = [asked.rows.draw(BATCH)[0] for _ in range(10)]
    with everhash.open(path, readonly=True) as collection:
        for number in range(max(1, round(seconds / SLICE / 2))):
            await drive(served, SLICE, asked.batches, READERS, ours)
            end, worked = time.perf_counter() + SLICE, time.process_time()
            while (began := time.perf_counter()) < end:
                collection.search(batches[number % 10], K)
                theirs.latencies.append(time.perf_counter() - began)
                theirs.statuses[200] += 1
            theirs.seconds += SLICE
            theirs.work += time.process_time() - worked
    show("in process, queries/s", theirs, per=BATCH)
    show(f"/search, {BATCH} rows of .npy to Arrow", ours, theirs, per=BATCH)


async def measure_overload(served: Server, asked: Asked, clients: int) -> None:
    """More connections than are served at once, then as many as before."""
    crowd, after = Tally(), Tally()
    await drive(served, 5 * SLICE, lambda: asked.singles("/search"), CROWD, crowd)
    await drive(served, SLICE, lambda: asked.singles("/search"), clients, after)
    show(f"/search, {CROWD} connections", crowd)
    show("/search, afterwards", after)
    refused = crowd.statuses[503]
    print(
        f"\noverload: {crowd.statuses[200]:,} answered, {refused:,} turned away with 503, "
        f"{crowd.told_when:,} of them told when to come back; other answers: "
        f"{ {status: n for status, n in crowd.statuses.items() if status not in (200, 503)} }"
    )


async def soak(served: Server, asked: Asked, clients: int, minutes: float) -> None:
    """Search and write for minutes, and print the memory each tenth of them."""
    tally, seen = Tally(), [served.memory()]
    print(
        f"\nsoak, {minutes:g} minutes; resident memory in MB:\n{seen[0]:,.0f}", end="", flush=True
    )
    async with Writing(served, asked) as writing:
        for _ in range(10):
            await drive(served, 6 * minutes, lambda: asked.singles("/search"), clients, tally)
            tally.latencies.clear()
            seen.append(served.memory())
            print(f" {seen[-1]:,.0f}", end="", flush=True)
    failed = sum(n for status, n in tally.statuses.items() if status != 200)
    print(
        f"\n{tally.statuses[200]:,} searches, {writing.tally.statuses[200]:,} writes, "
        f"{failed} failed; memory from the second tenth on: {seen[-1] - seen[2]:+,.0f} MB"
    )


async def run(arguments: argparse.Namespace, folder: str) -> None:
    rows, path = Rows(), Path(folder, "load.ever")
    fill(path, rows, arguments.entries)
    asked, probe = Asked(rows), Tally()
    with started("-m", "everhash", "serve", str(path), "--port", "0") as served:
        await ready(served)
        await drive(served, 0.5, lambda: asked.singles("/search"), 1, probe)
        with started("-c", BARE, str(probe.size)) as bare:
            await measure_singles(served, bare, asked, arguments.clients, arguments.seconds)
        await measure_batches(served, path, asked, arguments.seconds)
        await measure_overload(served, asked, arguments.clients)
        print(f"resident memory of the server: {served.memory():,.0f} MB")
        if arguments.soak:
            await soak(served, asked, arguments.clients, arguments.soak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--soak", type=float, default=0.0, metavar="MINUTES")
    arguments = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print(describe_machine())
    print(
        f"{arguments.entries:,} entries of {DIM} features, half of them labelled, {LABELS} labels, "
        f"{BITS} bits, k {K}, seed {SEED}; {arguments.seconds:g} s, in turns of {SLICE:g} s; "
        "milliseconds\n"
    )
    print(
        f"{'':<34}{'a second':>12}{'p50':>10}{'p99':>10}{'failed':>9}{'ratio':>8}{'CPU us':>12}{'ratio':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(arguments, folder))


if __name__ == "__main__":
    main()
