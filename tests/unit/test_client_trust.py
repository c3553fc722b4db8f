"""A client believes nothing of a service that lies, and does not wait for one that never ends."""

from __future__ import annotations

import base64
import itertools
import json
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import everhash
from everhash.client.answers import found_in_table
from everhash.errors import ServiceError
from tests.unit.scripted_service import LIMITS, Scripted, answer, scripted

ROW = np.zeros((1, 3), np.float32)
MANY = np.zeros((9, 3), np.float32)
NUMBERS = pa.array(range(9), pa.int32())
FOUND: dict[str, Any] = {"matches": [{"novelty": 0.5, "found": []}], "columns": 0}


def remote(service: Scripted, **options: Any) -> everhash.RemoteCollection:
    return everhash.connect(service.url, **{"timeout": 5, **options})


# Tables of matches


def test_a_radius_has_as_many_columns_as_it_found() -> None:
    with scripted(radius=answer({**FOUND, "columns": 1})) as service, remote(service) as col:
        with pytest.raises(ServiceError, match="unknown form"):
            col.search_radius(ROW, 1)
        service.answers["/radius"] = answer(FOUND)
        assert col.search_radius(ROW, 1).ids.shape == (1, 0)


def table(
    content: dict[str, Any] | None = None, compression: str | None = None, **about: Any
) -> bytes:
    """Return a table of nine queries that found an entry each, or of something like it."""
    novelty = base64.b64encode(bytes(36)).decode()
    told = {"queries": 9, "columns": 1, "ids": "int", "novelty": novelty, **about}
    columns = {
        "query": NUMBERS,
        "id": NUMBERS.cast(pa.int64()),
        "distance": NUMBERS.cast(pa.float32()),
        "label": pa.array(['"a"'] * 9, pa.string()),
        "novelty": NUMBERS.cast(pa.float32()),
    }
    batch = pa.record_batch(columns | (content or {}))
    schema = batch.schema.with_metadata({"everhash": json.dumps(told)})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def search_many(body: bytes) -> everhash.Matches:
    limits = answer({**LIMITS, "queries": 100})
    said = answer(body, kind="application/vnd.apache.arrow.stream")
    with scripted(search=said, limits=limits) as service, remote(service) as col:
        return col.search(MANY)


def test_a_table_is_read() -> None:
    found = search_many(table())
    assert found.ids.tolist() == [[number] for number in range(9)]
    assert found.labels.tolist() == [["a"]] * 9


def queries(*numbers: int) -> bytes:
    return table({"query": pa.array(numbers, pa.int32())})


FALSE = {
    "nothing": b"",
    "no table": b"no table",
    "a damaged head": b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x01" * 64,
    "half a table": table()[:-200],
    "two tables": table()[:-8] + table(),
    "a query far behind the last": queries(*range(8), 2**31 - 1),
    "a query behind the last": queries(*range(8), 9),
    "a query before the first": queries(-1, *range(8)),
    "many columns": table(columns=2**31 - 1),
    "more columns than asked for": table(columns=11),
    "no column": table(columns=0),
    "half a column": table(columns=1.5),
    "more queries": table(queries=10, novelty=base64.b64encode(bytes(40)).decode()),
    "queries in words": table(queries="9"),
    "another column": table({"more": NUMBERS}),
    "labels that are numbers": table({"label": NUMBERS}),
    "labels of no type": table({"label": pa.nulls(9)}),
    "labels that are no JSON": table({"label": pa.array(["a"] * 9)}),
    "ids of another type": table(ids="str"),
    "ids of no known type": table(ids="?"),
}


@pytest.mark.parametrize("body", FALSE.values(), ids=FALSE)
def test_a_false_table_is_an_error(body: bytes) -> None:
    with pytest.raises(ServiceError, match="unknown form"):
        search_many(body)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_compressed_table_is_not_unpacked(compression: str) -> None:
    n = 1_000_000
    zeros = pa.array(np.zeros(n, np.int32))
    columns = {"query": zeros, "id": zeros.cast(pa.int64()), "label": pa.nulls(n, pa.string())}
    columns |= {name: zeros.cast(pa.float32()) for name in ("distance", "novelty")}
    refused_unread(table(columns, compression))


def test_a_dictionary_of_labels_is_not_read() -> None:
    label = pa.array(['"' + "x" * (1 << 20) + '"'])
    which = pa.array([0] * 9, pa.int8())
    refused_unread(table({"label": pa.DictionaryArray.from_arrays(which, label)}))


def test_more_matches_than_asked_for_are_not_read() -> None:
    n = 91
    numbers = pa.array(np.arange(n, dtype=np.int32) // 11)
    columns = {"query": numbers, "id": numbers.cast(pa.int64())}
    columns |= {name: numbers.cast(pa.float32()) for name in ("distance", "novelty")}
    refused_unread(table({**columns, "label": pa.nulls(n, pa.string())}, columns=10))


def refused_unread(body: bytes) -> None:
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(watched)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"a table|other columns|more matches"):
            found_in_table(body, n=9, k=10)
        assert tracemalloc.get_traced_memory()[1] + watched.max_memory() < 1 << 16
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    with pytest.raises(ServiceError, match="unknown form"):
        search_many(body)


# Answers that do not end

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def dripping(start: bytes, drop: bytes) -> Iterator[bytes]:
    """Say something, and something more every now and then; in the end, so that no test hangs."""
    yield start
    for _ in range(200):
        time.sleep(0.05)
        yield drop


SLOW = {
    "a body": (HEAD + b"Content-Length: 9999\r\n\r\n", b" "),
    "a body in chunks": (CHUNKED, b"1\r\n \r\n"),
    "the head of a chunk": (CHUNKED, b"0"),
    "what comes behind the last chunk": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"a: b\r\n"),
    "a body until the end": (HEAD + b"Connection: close\r\n\r\n", b" "),
    "a status": (b"HTTP/1.1 20", b"0"),
    "a header": (HEAD + b"a: ", b"b"),
    "headers": (HEAD, b"a: b\r\n"),
    "a wait": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize(("start", "drop"), SLOW.values(), ids=SLOW)
def test_an_answer_that_drips_is_not_waited_for(start: bytes, drop: bytes) -> None:
    with scripted() as service, remote(service, timeout=0.3) as col:
        service.answers["/stats"] = lambda: dripping(start, drop)
        began = time.monotonic()
        with pytest.raises(ServiceError, match=r"no answer within|too slowly") as caught:
            len(col)
        assert 0.3 <= time.monotonic() - began < 2
        assert "timeout" in caught.value.hint
        service.answers["/stats"] = answer({"entries": 1})
        assert len(col) == 1


FLOODS = {
    "waits": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers of waits": (b"", b"HTTP/1.1 100 Continue\r\n" + b"a: b\r\n" * 90 + b"\r\n"),
    "what comes behind the last chunk": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"a: b\r\n" * 999),
    "a chunk of less than nothing": (CHUNKED + b"-1\r\n", b" " * 9999),
    "a chunk of much less than nothing": (CHUNKED + b"-9\r\n", b" " * 9999),
}


@pytest.mark.parametrize(("start", "drop"), FLOODS.values(), ids=FLOODS)
def test_an_answer_without_end_is_an_error(
    start: bytes, drop: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everhash.client.connections.MOST", 1 << 20)
    with scripted() as service, remote(service) as col:
        service.answers["/stats"] = lambda: itertools.chain([start], itertools.repeat(drop, 99_999))
        with pytest.raises(ServiceError):
            len(col)
        service.answers["/stats"] = answer({"entries": 1})
        assert len(col) == 1


def test_an_honest_answer_may_be_slow_and_say_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everhash.client.arriving.SLOWEST", 1000)
    wait = b"HTTP/1.1 100 Continue\r\n\r\n"
    body = json.dumps({"entries": 1}).encode().ljust(2000)
    head = HEAD + b"Content-Length: 2000\r\n\r\n"

    def said() -> Iterator[bytes]:
        yield from (wait, wait, head)
        for start in range(0, 2000, 200):
            time.sleep(0.1)
            yield body[start : start + 200]

    with scripted() as service, remote(service, timeout=0.4) as col:
        service.answers["/stats"] = said
        assert len(col) == 1
        assert service.connections == 1
        service.answers["/stats"] = answer({"entries": 2})
        assert len(col) == 2


def test_a_snapshot_may_take_its_time_but_says_how_long_it_is(tmp_path: Path) -> None:
    body = b"SQLite format 3\0" + b"x" * 84
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.sqlite3\r\n"

    def said() -> Iterator[bytes]:
        yield head + b"Content-Length: 100\r\n\r\n"
        for start in range(0, 100, 10):
            time.sleep(0.05)
            yield body[start : start + 10]

    with scripted() as service, remote(service, timeout=0.2) as col:
        service.answers["/snapshot"] = said
        col.snapshot(tmp_path / "copy.ever")
        assert (tmp_path / "copy.ever").read_bytes() == body
        service.answers["/snapshot"] = head + b"Transfer-Encoding: chunked\r\n\r\n64\r\n" + body
        with pytest.raises(ServiceError, match="does not say how long"):
            col.snapshot(tmp_path / "endless.ever")
        assert not (tmp_path / "endless.ever").exists()
