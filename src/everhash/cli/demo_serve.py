"""`everhash demo --serve`: stream the digits in over HTTP, slowly enough to watch."""

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
from everhash.cli.formatting import print_json, printable
from everhash.cli.terminal import note
from everhash.collection.collection import Collection
from everhash.errors import EverhashError

HOST, PORT, PACE = "127.0.0.1", 8765, 25.0
FIRST_ROWS = 40
"""Rows of each label that arrive label by label; after these, labels mix."""
BATCHES_A_SECOND = 5
"""Few enough for a person to see each one."""
ROWS_A_REFRESH = 300
"""Rows after which unlabelled entries are refreshed."""
SIDE, SCALE, BLACK = 8, 4, 16
"""Pixels along a side of a digit, the size of one in the image, and the value of black."""


class Scans(NamedTuple):
    """Digits in order of arrival, their labels, and which arrive without a label."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    hidden: NDArray[np.bool_]

    def take(self, rows: slice | NDArray[np.int64]) -> Scans:
        """Return some of the digits."""
        return Scans(self.X[rows], self.y[rows], self.hidden[rows])


def serve_scans(
    scans: Scans,
    make: Callable[[], Collection],
    order: np.random.Generator,
    *,
    port: int,
    pace: float,
    as_json: bool = False,
) -> None:
    """Serve a new collection and stream the scans into it, until the server is stopped.

    The stream comes through a client of the service, so that the page gets an event for each write.
    """
    from everhash.serve.app import make_app
    from everhash.serve.server import bind, run

    listening = bind(HOST, port)
    url = f"http://{HOST}:{listening.getsockname()[1]}"
    app = make_app(make)
    arriving = watchable(scans, order)
    feeder = Thread(target=_feed, args=(url, arriving, pace, app.service), daemon=True)

    def begin() -> None:
        if as_json:
            print_json({"url": url, "rows": len(scans.X)})
        else:
            typer.echo(f"open {url} and watch {len(scans.X)} digits arrive; Ctrl-C ends it")
        feeder.start()

    app.service.on_ready = begin
    note("loading …")
    run(app, listening)


def watchable(scans: Scans, rng: np.random.Generator) -> Scans:
    """Return the scans in the order of the demo: first label by label, then all mixed."""
    labels = np.unique(scans.y)
    first = np.concatenate([np.flatnonzero(scans.y == label)[:FIRST_ROWS] for label in labels])
    rest = rng.permutation(np.setdiff1d(np.arange(len(scans.y)), first))
    return scans.take(np.concatenate([first, rest]))


def _feed(url: str, scans: Scans, pace: float, service: Any) -> None:
    """Stream the scans in; print an error unless the service was stopped in between."""
    try:
        with everhash.connect(url) as collection:
            for start, stop in _paced(len(scans.X), pace):
                _ingest(collection, scans.take(slice(start, stop)))
                if start // ROWS_A_REFRESH < stop // ROWS_A_REFRESH or stop == len(scans.X):
                    collection.refresh()
    except EverhashError as error:
        if service.ready and not service.is_stopping:
            typer.echo(f"error: the stream has ended: {printable(error.told('cli'))}", err=True)


def _paced(rows: int, pace: float) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows, each when it is due."""
    size = max(1, round(pace / BATCHES_A_SECOND))
    began = perf_counter()
    for start, stop in pairwise([*range(0, rows, size), rows]):
        yield start, stop
        sleep(max(0.0, began + stop / pace - perf_counter()))


def _ingest(collection: everhash.RemoteCollection, scans: Scans) -> None:
    """Ingest scans. The payload holds the row, so that the page can search by a labelled entry."""
    labels = [None if hide else int(y) for y, hide in zip(scans.y, scans.hidden, strict=True)]
    payloads = [payload(x, int(y)) for x, y in zip(scans.X, scans.y, strict=True)]
    collection.ingest(scans.X, labels, payloads=payloads, thumbnails=[png(x) for x in scans.X])


def payload(pixels: NDArray[np.float32], digit: int) -> dict[str, Any]:
    """Return the payload of an entry: its digit and its row.

    >>> payload(np.zeros(2, np.float32), 7)
    {'digit': 7, 'vector': [0, 0]}
    """
    return {"digit": digit, "vector": pixels.astype(int).tolist()}


def is_scan(value: Any) -> bool:
    """Whether a payload is one that `payload` makes."""
    return isinstance(value, dict) and set(value) == {"digit", "vector"}


def png(pixels: NDArray[np.float32]) -> bytes:
    r"""Return a scan as a PNG image, dark on white.

    >>> png(np.zeros(64, np.float32))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    grey = (255 - 255 * pixels.reshape(SIDE, SIDE) / BLACK).astype(np.uint8)
    large = np.kron(grey, np.ones((SCALE, SCALE), np.uint8))
    side = SIDE * SCALE
    lines = b"".join(b"\0" + line.tobytes() for line in large)  # 0: no filter
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)  # 8 bits of grey
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + checksum
