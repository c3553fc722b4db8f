"""`everhash demo --serve`: the digits stream in over HTTP, at a pace one can watch."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Thread
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

import everhash
from everhash.cli.formatting import shown
from everhash.collection.collection import Collection
from everhash.errors import EverhashError

HOST, PORT, PACE = "127.0.0.1", 8765, 25.0
FIRST = 40
"""Rows of each label that come before those of the next; then labels mix."""
BATCHES = 5
"""Batches a second, of which a person sees each."""
REFRESH = 300
"""Rows after which unlabelled entries are brought up to date."""
SIDE, SCALE, DARKEST = 8, 4, 16
"""Pixels along a side of a digit, how large one becomes, and the value of black."""


class Scans(NamedTuple):
    """Digits in order of arrival, and whether each comes without its label."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    hidden: NDArray[np.bool_]

    def those(self, rows: slice | NDArray[np.int64]) -> Scans:
        """Return some of them."""
        return Scans(self.X[rows], self.y[rows], self.hidden[rows])


def serve_scans(
    scans: Scans, make: Callable[[], Collection], *, seed: int, port: int, pace: float
) -> None:
    """Serve a new collection and stream the scans into it; return when somebody stops it.

    The stream comes from a client of the service, so that whoever watches hears of every write.
    """
    from everhash.serve.app import make_app
    from everhash.serve.server import bind, run

    listening = bind(HOST, port)
    url = f"http://{HOST}:{listening.getsockname()[1]}"
    app = make_app(make)
    arriving = watchable(scans, np.random.default_rng(seed))
    feeder = Thread(target=_feed, args=(url, arriving, pace, app.service), daemon=True)
    typer.echo(f"open {url} and watch {len(scans.X)} digits arrive; Ctrl-C ends it")
    feeder.start()
    run(app, listening)


def watchable(scans: Scans, rng: np.random.Generator) -> Scans:
    """Return the scans in an order that has something to see: label by label, then all mixed."""
    labels = np.unique(scans.y)
    first = np.concatenate([np.flatnonzero(scans.y == label)[:FIRST] for label in labels])
    rest = rng.permutation(np.setdiff1d(np.arange(len(scans.y)), first))
    return scans.those(np.concatenate([first, rest]))


def _feed(url: str, scans: Scans, pace: float, service: Any) -> None:
    """Stream the scans in, and stay silent about a service that was stopped meanwhile."""
    try:
        with everhash.connect(url) as collection:
            for start, stop in _in_time(len(scans.X), pace):
                _enter(collection, scans.those(slice(start, stop)))
                if start // REFRESH < stop // REFRESH or stop == len(scans.X):
                    collection.refresh()
    except EverhashError as error:
        if service.ready:
            typer.echo(f"error: the stream has ended: {shown(error)}", err=True)


def _in_time(rows: int, pace: float) -> Iterator[tuple[int, int]]:
    """Go through ranges of rows, each when its time has come."""
    size = max(1, round(pace / BATCHES))
    began = perf_counter()
    for start, stop in pairwise([*range(0, rows, size), rows]):
        yield start, stop
        sleep(max(0.0, began + stop / pace - perf_counter()))


def _enter(collection: everhash.RemoteCollection, scans: Scans) -> None:
    """Ingest scans. An entry carries its row, so that it can be searched by once it is labelled."""
    labels = [None if hide else int(y) for y, hide in zip(scans.y, scans.hidden, strict=True)]
    payloads = [payload(x, int(y)) for x, y in zip(scans.X, scans.y, strict=True)]
    collection.ingest(scans.X, labels, payloads=payloads, thumbnails=[png(x) for x in scans.X])


def payload(pixels: NDArray[np.float32], digit: int) -> dict[str, Any]:
    """Return what an entry carries besides its picture.

    >>> payload(np.zeros(2, np.float32), 7)
    {'digit': 7, 'vector': [0, 0]}
    """
    return {"digit": digit, "vector": pixels.astype(int).tolist()}


def is_scan(carried: Any) -> bool:
    """Whether an entry's payload is one of ours."""
    return isinstance(carried, dict) and set(carried) == {"digit", "vector"}


def png(pixels: NDArray[np.float32]) -> bytes:
    r"""Return a scan as a picture, dark on white.

    >>> png(np.zeros(64, np.float32))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    grey = (255 - 255 * pixels.reshape(SIDE, SIDE) / DARKEST).astype(np.uint8)
    large = np.kron(grey, np.ones((SCALE, SCALE), np.uint8))
    side = SIDE * SCALE
    lines = b"".join(b"\0" + line.tobytes() for line in large)  # 0: no filter
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)  # 8 bits of grey
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + checksum
