"""How much memory the process of a service takes for requests that ask for too much."""

from __future__ import annotations

import json
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest

import everhash
from tests.conftest import missing
from tests.unit.serve.serving import ARROW, arrow, vectors
from tests.unit.serve.test_bounds import answer
from tests.unit.serve.test_commands import started
from tests.unit.serve.test_connections import ASK, flood

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
MEGABYTE = 1 << 20
DIM = 8


class Measured:
    """A service in a process of its own."""

    def __init__(self, pid: int, address: str) -> None:
        self.http = httpx.Client(base_url=address, timeout=120)
        self.port = int(address.rpartition(":")[2])
        self._pid = pid

    def peak(self) -> int:
        """Return the most megabytes that the process has had so far."""
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Measured]:
    """A service of 1,000 entries with payloads of 1.5 KB."""
    X = np.random.default_rng(0).normal(size=(1000, DIM)).astype(np.float32)
    with everhash.create(tmp_path / "shop.ever", DIM, 16) as collection:
        payloads = [{"text": "x" * 1500, "row": row} for row in range(1000)]
        collection.ingest(X, [str(row % 5) for row in range(1000)], payloads=payloads)
    with started(tmp_path / "shop.ever") as (process, address):
        measured = Measured(process.pid, address)
        with measured.http:
            rows = X[:1].tolist()
            assert measured.http.post("/search", json={"rows": rows}).status_code == 200
            yield measured


def test_two_hundred_megabytes_of_headers_take_none(service: Measured) -> None:

    before = service.peak()
    for first, more in ((ASK, b"X-A: b\r\n" * 1000), (ASK + b"X-A: ", b"a" * 65_536)):
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
            connection.sendall(first)
            flood(connection, repeat(more), 200 * MEGABYTE)
    assert service.peak() - before < 50


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open more than the thousand files that a process may by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        missing(f"a process may open only {hard} files here", "raise it: ulimit -Hn 2000")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_eleven_hundred_half_open_connections_keep_nobody_out(service: Measured) -> None:

    with ExitStack() as stack:
        for _ in range(1100):
            held = socket.create_connection(("127.0.0.1", service.port), timeout=30)
            stack.enter_context(held).sendall(ASK)
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
            connection.sendall(ASK + b"\r\n")
            assert answer(connection)[0] == 200


def test_a_long_label_that_a_thousand_rows_share_is_not_a_thousand_long_labels(
    service: Measured,
) -> None:
    text = json.dumps("a" * (4 * MEGABYTE))
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int16()), pa.array([text]))
    field = pa.field("label", column.type, metadata={b"everhash": b"json"})
    rows = vectors(np.zeros((1000, DIM)))
    table = pa.table([rows, column], schema=pa.schema([pa.field("vector", rows.type), field]))
    before = service.peak()
    for path in ("/learn", "/search"):
        sent = service.http.post(path, content=arrow(table), headers={"Content-Type": ARROW})
        assert sent.status_code == 413
    assert service.peak() - before < 150


@pytest.mark.parametrize("accept", ["application/json", ARROW])
def test_an_answer_of_gigabytes_is_refused(service: Measured, accept: str) -> None:
    asked = {"rows": np.zeros((1000, DIM)).tolist(), "k": 1000, "payloads": True}
    before = service.peak()
    refused = service.http.post("/search", json=asked, headers={"Accept": accept})
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "TooLargeError")
    assert service.peak() - before < 600
