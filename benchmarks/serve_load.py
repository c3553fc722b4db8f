"""The service under load: many clients search while one writes.

    python benchmarks/serve_load.py [--seconds 60] [--clients 32] [--entries 100000]

Four kinds of figures. The first two have yardsticks that are measured in turn with them, by the
clock and by the work of a processor an answer, since the machine may be busy with other things:

    single     POST /search, one row as JSON, k = 10, against a bare FastAPI route of the same size,
               on the parser the service uses, httptools, and on uvicorn's other one, h11
    batches    100 rows as .npy, answers as Arrow, against the same batches searched in process
    refresh    the same searches while all unlabelled entries are refreshed, over and over
    overload   200 connections at once: who is turned away, and whether it recovers

`--soak 10` goes on searching and writing for ten minutes and watches the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import everhash
from everhash.bench.machine import describe_machine
from serve_clients import (
    BATCH,
    DIM,
    LABELS,
    PACE,
    SEED,
    Asked,
    K,
    Rows,
    Server,
    Tally,
    Writing,
    drive,
    ready,
    started,
)

BITS, READERS = 32, 4
"""Bits of a code, and clients that send batches."""
SLICE = 2.0
"""Seconds that a kind of request is measured before its yardstick has its turn."""
CROWD = 200
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
settings = {"http": sys.argv[2], "log_level": "warning", "access_log": False}
Server(uvicorn.Config(app, port=0, **settings)).run()
"""
"""A route that returns a body of some size and does nothing else, as a program."""
HEADING = (
    f"{'':<36}{'a second':>10}{'p50':>10}{'p99':>10}{'failed':>9}{'ratio':>8}"
    f"{'CPU us':>10}{'ratio':>8}"
)


def fill(path: Path, rows: Rows, entries: int) -> None:
    """Make a collection, half of its entries labelled."""
    with everhash.create(path, DIM, BITS, random_state=SEED) as collection:
        collection.learn(*rows.draw(4000))
        X, y = rows.draw(entries // 2)
        collection.add(X, y=y)
        collection.add(rows.draw(entries - entries // 2)[0])


def show(name: str, tally: Tally, yardstick: Tally | None = None, per: int = 1) -> None:
    """Print a line of the table."""
    failed = sum(n for status, n in tally.statuses.items() if status != 200)
    ratios = ("", "")
    if yardstick is not None:
        ratios = f"{tally.rate / yardstick.rate:.2f}", f"{yardstick.cost / tally.cost:.2f}"
    work = f"{1e6 * tally.cost:,.0f}" if tally.work else ""
    print(
        f"{name:<36}{per * tally.rate:>10,.0f}{tally.percentile(50):>10.2f}"
        f"{tally.percentile(99):>10.2f}{failed:>9}{ratios[0]:>8}{work:>10}{ratios[1]:>8}",
        flush=True,
    )


async def measure_singles(
    served: Server, bare: dict[str, Server], asked: Asked, clients: int, seconds: float
) -> None:
    """Searches and the bare routes in turn, with one writer all the while."""
    ours, theirs = Tally(), {name: Tally() for name in bare}
    async with Writing(served, asked) as writing:
        for _ in range(max(1, round(seconds / SLICE / 2))):
            for name, tally in theirs.items():
                await drive(bare[name], SLICE, lambda: asked.singles("/bare"), clients, tally)
            await drive(served, SLICE, lambda: asked.singles("/search"), clients, ours)
    for name, tally in theirs.items():
        show(f"bare route on {name}, {clients} clients", tally)
    for name, tally in theirs.items():
        show(f"/search, 1 row of JSON, to {name}", ours, tally)
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
                collection.search(batches[number % 10], K, "meaning")
                theirs.latencies.append(time.perf_counter() - began)
                theirs.statuses[200] += 1
            theirs.seconds += SLICE
            theirs.work += time.process_time() - worked
    show("in process, queries/s", theirs, per=BATCH)
    show(f"/search, {BATCH} rows of .npy to Arrow", ours, theirs, per=BATCH)


async def measure_refresh(served: Server, asked: Asked, clients: int) -> None:
    """Searches while another client learns and refreshes, as often as it can."""
    tally, reports, ended = Tally(), [], False

    def keep_refreshing() -> None:
        with everhash.connect(f"http://127.0.0.1:{served.port}") as collection:
            while not ended:
                collection.learn(*Rows().draw(100))
                reports.append(collection.refresh())

    refreshing = asyncio.create_task(asyncio.to_thread(keep_refreshing))
    await drive(served, 5 * SLICE, lambda: asked.singles("/search"), clients, tally)
    ended = True
    await refreshing
    show(f"/search, {len(reports)} refreshes meanwhile", tally)
    seconds = sum(report.seconds for report in reports) / len(reports)
    print(f"a refresh of {reports[0].entries:,} entries took {seconds:.2f} s on average")


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
        with ExitStack() as stack:
            bare = {
                name: stack.enter_context(started("-c", BARE, str(probe.size), name))
                for name in ("httptools", "h11")
            }
            await measure_singles(served, bare, asked, arguments.clients, arguments.seconds)
        await measure_batches(served, path, asked, arguments.seconds)
        await measure_refresh(served, asked, arguments.clients)
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
    print(HEADING)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(arguments, folder))


if __name__ == "__main__":
    main()
