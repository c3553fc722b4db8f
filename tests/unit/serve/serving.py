"""A collection to serve, and a server in a thread of the test's process."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import uvicorn.server
from numpy.typing import NDArray
from uvicorn import Server

import everhash
from everhash.collection.collection import Collection
from everhash.serve.app import make_app
from everhash.serve.server import bind, make_server
from everhash.serve.service import Service

DIM = 8
ARROW = "application/vnd.apache.arrow.stream"
NPY = "application/x-npy"
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
LABELS = ("ant", "bee", "cow")
Floats = NDArray[np.float32]
LOOKS = 0.005
"""Seconds after which a server looks again whether it is to stop; uvicorn's 0.1 are waited for
twice in every test that has a server of its own."""


def rows(n: int, seed: int = 0) -> tuple[Floats, list[str]]:
    """Return rows around three places, and the name of each one's place."""
    rng = np.random.default_rng(seed)
    places = 4 * np.random.default_rng(99).normal(size=(3, DIM))
    which = rng.integers(0, 3, n)
    return (places[which] + rng.normal(size=(n, DIM))).astype(np.float32), [
        LABELS[i] for i in which
    ]


def filled(path: Any = None, *, auto_refresh: bool = True) -> Collection:
    """Return a collection of 40 labelled entries, 0 to 39, and 20 unlabelled ones, 40 to 59."""
    collection = everhash.create(path, DIM, 16, auto_refresh=auto_refresh)
    X, y = rows(60)
    collection.ingest(X[:40], y[:40])
    collection.add(X[40:])
    return collection


class Served:
    """A service that runs, and clients of it."""

    def __init__(self, server: Server, service: Service, port: int) -> None:
        self.server, self.service, self.port = server, service, port
        self.address = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.address, timeout=120)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(path, **options)

    def post(self, path: str, told: Any = None, **options: Any) -> httpx.Response:
        return self.http.post(path, **({} if told is None else {"json": told}), **options)

    def send(self, path: str, content: bytes, kind: str, **options: Any) -> httpx.Response:
        headers = {"Content-Type": kind, **options.pop("headers", {})}
        return self.http.post(path, content=content, headers=headers, **options)

    def connect(self) -> socket.socket:
        """Return a bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


async def sleep(seconds: float) -> None:
    """What uvicorn's own loop waits by: shorter, and to no other end."""
    await asyncio.sleep(min(seconds, LOOKS))


vars(uvicorn.server)["asyncio"] = SimpleNamespace(**{**vars(asyncio), "sleep": sleep})


@contextmanager
def serving(source: Any, *, wait: bool = True, **options: Any) -> Iterator[Served]:
    """Serve a collection, or what a function opens, while the block runs."""
    listening, app = bind("127.0.0.1", 0), make_app(source, **options)
    server = make_server(app)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    until(lambda: server.started)
    served = Served(server, app.service, listening.getsockname()[1])
    try:
        until(lambda: served.service.ready or not wait)
        yield served
    finally:
        served.http.close()
        server.should_exit = True
        thread.join(120)
        assert not thread.is_alive()


def until(condition: Any, seconds: float = 120) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def npy(array: Any, **options: Any) -> bytes:
    """Return an array as np.save writes it."""
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def arrow(columns: Any, **options: Any) -> bytes:
    """Return a table, or columns of one, as an Arrow stream."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def vectors(X: Any) -> Any:
    """Return rows as a column of vectors."""
    X = np.asarray(X, np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])


def error_of(response: httpx.Response) -> dict[str, Any]:
    """Return what an answer says went wrong, after looking at its form."""
    assert response.headers["content-type"] == "application/json"
    told = response.json()
    assert set(told) == {"error"}
    error: dict[str, Any] = told["error"]
    assert set(error) - {"values"} == {"code", "message", "hint", "status", "exit"}
    assert error["status"] == response.status_code
    return error
