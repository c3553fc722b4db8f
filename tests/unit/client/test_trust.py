"""A client believes nothing of a service that lies, and does not wait for one that never ends."""

from __future__ import annotations

import base64
import itertools
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import everhash
from everhash.errors import ServiceError
from everhash.wire.match_tables import from_arrow
from tests.unit.client.scripted_service import LIMITS, Last, Scripted, answer, scripted

ROW = np.zeros((1, 3), np.float32)
MANY = np.zeros((9, 3), np.float32)
NUMBERS = pa.array(range(9), pa.int32())
FOUND: dict[str, Any] = {"matches": [{"by": "meaning", "novelty": 0.5, "found": []}], "columns": 0}


def remote(service: Scripted, **options: Any) -> everhash.RemoteCollection:
    return everhash.connect(service.url, **{"timeout": 60, **options})


# Tables of matches

FLOATS = ("score", "likeness", "novelty")


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
    told = {"queries": 9, "columns": 1, "ids": "int", "novelty": novelty}
    told |= {"by": ["meaning"] * 9, **about}
    columns = {
        "query": NUMBERS,
        "id": NUMBERS.cast(pa.int64()),
        "score": NUMBERS.cast(pa.float32()),
        "likeness": pa.array([float("nan")] * 9, pa.float32()),
        "label": pa.array(['"a"'] * 9, pa.string()),
        "guess": pa.array([None, *['"b"'] * 8], pa.string()),
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
    assert found.guesses.tolist() == [[None], *[["b"]] * 8]
    assert found.by == ["meaning"] * 9
    assert np.isnan(found.likeness).all()


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
    "more queries": table(
        queries=10, novelty=base64.b64encode(bytes(40)).decode(), by=["meaning"] * 10
    ),
    "an unknown way": table(by=["meaning"] * 8 + ["magic"]),
    "ways that are no list": table(by="meaning"),
    "too few ways": table(by=["meaning"] * 8),
    "a score that is missing": table({"score": pa.array([None] * 9, pa.float32())}),
    "guesses that are no JSON": table({"guess": pa.array(["a"] * 9)}),
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
    columns = {
        "query": zeros,
        "id": zeros.cast(pa.int64()),
        **dict.fromkeys(("label", "guess"), pa.nulls(n, pa.string())),
    }
    columns |= {name: zeros.cast(pa.float32()) for name in FLOATS}
    refused_unread(table(columns, compression))


def test_a_dictionary_of_labels_is_not_read() -> None:
    label = pa.array(['"' + "x" * (1 << 20) + '"'])
    which = pa.array([0] * 9, pa.int8())
    refused_unread(table({"label": pa.DictionaryArray.from_arrays(which, label)}))


def test_more_matches_than_asked_for_are_not_read() -> None:
    n = 91
    numbers = pa.array(np.arange(n, dtype=np.int32) // 11)
    columns = {"query": numbers, "id": numbers.cast(pa.int64())}
    columns |= {name: numbers.cast(pa.float32()) for name in FLOATS}
    refused_unread(
        table(
            {**columns, **dict.fromkeys(("label", "guess"), pa.nulls(n, pa.string()))}, columns=10
        )
    )


def refused_unread(body: bytes) -> None:
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(watched)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"a table|other columns|more matches"):
            from_arrow(body, n=9, k=10, payloads=False)
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
    with scripted() as service, remote(service, timeout=0.6) as col:
        service.answers["/stats"] = lambda: dripping(start, drop)
        began = time.monotonic()
        with pytest.raises(ServiceError, match=r"no answer within|too slowly") as caught:
            len(col)
        assert 0.6 <= time.monotonic() - began < 9  # it would drip for ten seconds
        assert "timeout=" in str(caught.value)
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
    monkeypatch.setattr("everhash.client.session.MAX_ANSWER", 1 << 20)
    with scripted() as service, remote(service) as col:
        service.answers["/stats"] = lambda: itertools.chain([start], itertools.repeat(drop, 99_999))
        with pytest.raises(ServiceError):
            len(col)
        service.answers["/stats"] = answer({"entries": 1})
        assert len(col) == 1


def test_an_honest_answer_may_be_slow_and_say_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everhash.client.deadline.BYTES_A_SECOND", 1000)
    wait = b"HTTP/1.1 100 Continue\r\n\r\n"
    body = json.dumps({"entries": 1}).encode().ljust(2000)
    head = HEAD + b"Content-Length: 2000\r\n\r\n"

    def said() -> Iterator[bytes]:
        yield from (wait, wait, head)
        for start in range(0, 2000, 200):
            time.sleep(0.1)
            yield body[start : start + 200]

    with scripted() as service, remote(service, timeout=0.8) as col:
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


# Pages


def label_told(label: Any) -> dict[str, Any]:
    counts = {"cycle": 0, "entries": 1, "lessons": 1}
    return {"label": label, **counts, "accuracy": 0.5, "codeword": [1, -1]}


def test_labels_come_page_by_page() -> None:
    pages = [{"total": 3, "labels": [label_told(name) for name in ("a", 1)]}]
    pages.append({"total": 4, "labels": [label_told(name) for name in (True, {"tuple": [1]})]})
    said = (answer(page) for page in pages)
    with scripted(labels=lambda: next(said)) as service, remote(service) as col:
        infos = col.labels()
        assert [info.label for info in infos] == ["a", 1, True, (1,)]
        assert {info.accuracy for info in infos} == {0.5}


@pytest.mark.parametrize(
    "page",
    [
        {"total": 10**9, "labels": [label_told("a")]},
        {"total": 2, "labels": [label_told("a")] * 2},
        {"total": 1, "labels": [label_told("a"), label_told("b")]},
        {"total": -1, "labels": []},
        {"total": 5, "labels": []},
        {"total": "1", "labels": [label_told("a")]},
        {"total": 1, "labels": [label_told({"bytes": 7})]},
        {"total": 1, "labels": [{**label_told("a"), "entries": -1}]},
        {"total": 1, "labels": [{**label_told("a"), "cycle": "0"}]},
        {"total": 1, "labels": [{**label_told("a"), "lessons": 0.5}]},
        *(
            {"total": 1, "labels": [{**label_told("a"), "accuracy": accuracy}]}
            for accuracy in (-0.1, 1.1, "0.5", True, [0.5])
        ),
        {"total": 1, "labels": [{**label_told("a"), "codeword": [1, 2]}]},
        {"total": 1, "labels": [{**label_told("a"), "codeword": [[1]]}]},
        {"total": 1, "labels": [{**label_told("a"), "codeword": ["1"]}]},
    ],
)
def test_false_pages_of_labels_are_an_error(page: dict[str, Any]) -> None:
    with scripted() as service, remote(service) as col:
        service.answers["/labels"] = answer(page)
        with pytest.raises(ServiceError, match="unknown form"):
            col.labels()


@pytest.mark.parametrize("step", [0, 1, 999, 2**31])
def test_empty_pages_of_entries_go_on_fast_or_not_at_all(step: int) -> None:
    def said() -> bytes:
        start = int(service.asked[-1].partition("start=")[2].partition("&")[0])
        return answer({"total": 5, "next": start + step, "entries": []})

    with scripted() as service, remote(service) as col:
        service.answers["/entries"] = said
        entries = col.entries(7)
        with pytest.raises(ServiceError, match="unknown form"):
            next(entries)


# Counts and types

ENTRY = {
    **{"id": 1, "labels": ["a"], "home": None, "code": None, "payload": 5, "thumbnail": False},
    "guess": None,
}
REPORT: dict[str, Any] = {
    **dict.fromkeys(("entries", "entries_touched", "bits_recomputed", "bits_certified"), 3),
    **dict.fromkeys(("bits_flipped", "homes_checked", "homes_moved"), 0),
    **{"seconds": 0.5, "dry_run": True},
}


RECORD: dict[str, Any] = {
    **{"rows": 4, "published_rows": 3, "scored_rows": 2},
    **{"accuracy": 0.5, "accuracy_now": 0.75, "log_loss": 0.25, "temperature": 0.125},
}


def test_true_answers_are_believed() -> None:
    routes: dict[str, Any] = {
        "stats": answer({"entries": 5, "learned": RECORD}),
        "has": answer({"has": [True]}),
        "get": answer({"entries": [ENTRY]}),
        "add": answer({"ids": [1]}),
        "remove": answer({"removed": 1}),
        "refresh": answer(REPORT),
        "label": answer({"labelled": 1, "new": [{"label": "a", "near": ["b"]}]}),
        "unlabel": answer({"unlabelled": 1}),
        "labels/merge": answer({"entries": 7}),
        "predict": answer({"labels": ["a"], "dtype": "<U3"}),
    }
    with scripted(**routes) as service, remote(service) as col:
        assert len(col) == 5
        report = col.label([1], ["a"])
        assert (report.labelled, report.new[0].label, report.new[0].near) == (1, "a", ("b",))
        assert col.unlabel([1]) == 1
        assert col.merge_labels("a", "b") == 7
        assert col.predict(ROW).tolist() == ["a"]
        assert col.stats()["learned"] == RECORD
        assert col.has([1]).tolist() == [True]
        assert col.get([1])[0].labels == ("a",)
        assert col.attachments([1])[0].payload == 5
        assert col.add(ROW) == col.add(ROW, [1]) == [1]
        assert col.remove([1]) == 1
        assert col.refresh(dry_run=True).seconds == 0.5


@pytest.mark.parametrize(
    "told", [None, {**RECORD, "accuracy": None, "accuracy_now": None, "log_loss": None}]
)
def test_a_record_may_know_nothing_yet(told: Any) -> None:
    with scripted() as service, remote(service) as col:
        service.answers["/stats"] = answer({"entries": 5, "learned": told})
        assert col.stats()["learned"] == told


UNTRUE: list[tuple[str, tuple[Any, ...], str, Any]] = [
    ("label", ([1], ["a"]), "label", {"labelled": 2, "new": []}),
    ("label", ([1], ["a"]), "label", {"labelled": 1}),
    ("label", ([1], ["a"]), "label", {"labelled": 1, "new": [{"label": "a"}]}),
    ("label", ([1], ["a"]), "label", {"labelled": 1, "new": [{"label": [], "near": []}]}),
    ("label", ([1], ["a"]), "label", {"labelled": 1, "new": [{"label": 1, "near": "ab"}]}),
    ("unlabel", ([1],), "unlabel", {"unlabelled": 2}),
    ("unlabel", ([1],), "unlabel", {"unlabelled": True}),
    ("merge_labels", ("a", "b"), "labels/merge", {"entries": -1}),
    ("drop_label", ("a",), "labels/drop", {}),
    ("upsert", (ROW, [1]), "upsert", {"ids": [2]}),
    ("predict", (ROW,), "predict", {"labels": [], "dtype": "object"}),
    ("predict", (ROW,), "predict", {"labels": ["a"], "dtype": "int64"}),
    ("predict", (ROW,), "predict", {"labels": ["a"], "dtype": "<U99999"}),
    ("predict", (ROW,), "predict", {"labels": ["a"], "dtype": "V9"}),
    ("predict", (ROW,), "predict", {"labels": ["a"], "dtype": None}),
    ("predict", (ROW,), "predict", {"labels": [None], "dtype": "object"}),
    ("predict", (ROW,), "predict", {"labels": ["a"]}),
]


@pytest.mark.parametrize(("call", "arguments", "route", "said"), UNTRUE)
def test_untrue_answers_to_changes_are_errors(
    call: str, arguments: tuple[Any, ...], route: str, said: Any
) -> None:
    with scripted() as service, remote(service) as col:
        service.answers[f"/{route}"] = answer(said)
        with pytest.raises(ServiceError, match="unknown form"):
            getattr(col, call)(*arguments)


FALSE_RECORDS: list[Any] = [
    *([], "x", 7, {}),
    *({**RECORD, name: None} for name in RECORD if "accuracy" not in name and name != "log_loss"),
    *({**RECORD, name: -1} for name in RECORD),
    *({**RECORD, name: "1"} for name in RECORD),
    *({**RECORD, name: True} for name in RECORD),
    *(
        {**RECORD, "accuracy": 1.5},
        {**RECORD, "accuracy_now": 1.5},
        {**RECORD, "log_loss": 10**400},
        {**RECORD, "rows": 0.5},
    ),
]


@pytest.mark.parametrize("told", FALSE_RECORDS)
def test_false_records_are_an_error(told: Any) -> None:
    with scripted() as service, remote(service) as col:
        service.answers["/stats"] = answer({"entries": 5, "learned": told})
        with pytest.raises(ServiceError, match="an answer of an unknown form"):
            col.stats()


Call = Callable[[everhash.RemoteCollection], Any]
CALLS: dict[str, Call] = {
    "stats": len,
    "has": lambda col: col.has([1]),
    "get": lambda col: col.get([1]),
    "add": lambda col: col.add(ROW, [1]),
    "ingest": lambda col: col.ingest(np.zeros((2, 3))),
    "remove": lambda col: col.remove([1]),
    "refresh": lambda col: col.refresh(dry_run=True),
}


def lies(route: str, field: str, *values: Any) -> list[tuple[str, Any]]:
    true = REPORT if route == "refresh" else {}
    return [(route, {**true, field: value}) for value in values]


LIES: list[tuple[str, Any]] = [
    *lies("stats", "entries", -5, 10**30, 1.0, True, None, "5", [5]),
    *lies("has", "has", ["a"], "a", {"a": 1}, [1], [None], [True, True], []),
    *lies("add", "ids", [1, 2, 3], [], "1", [2], [True], ["1"], {"1": 1}),
    *lies("ingest", "ids", [1], [1, 1], "ab", [1, 2, 3]),
    *lies("remove", "removed", -1, 2, "1", 0.5, True),
    *(("refresh", {**REPORT, name: None}) for name in REPORT),
    *lies("refresh", "entries", [], "x", -1, 0.5, True, 10**30),
    *lies("refresh", "seconds", "evil", -1.0, True, 10**400),
    *lies("refresh", "dry_run", 7, "true"),
    ("get", {"entries": [{**ENTRY, "id": 7}]}),
    ("get", {"entries": [{**ENTRY, "id": "1"}]}),
    ("get", {"entries": [{**ENTRY, "labels": "ab"}]}),
    ("get", {"entries": [{**ENTRY, "home": "0"}]}),
    ("get", {"entries": [{**ENTRY, "code": [[1]]}]}),
    ("get", {"entries": [{**ENTRY, "code": "1"}]}),
    ("get", {"entries": {"a": ENTRY}}),
    ("get", {"entries": []}),
]


def test_attachments_are_of_the_entries_asked_for() -> None:
    for change in ({"id": 7}, {"thumbnail": 1}):
        said = answer({"entries": [ENTRY | change]})
        with scripted(get=said) as service, remote(service) as col:
            with pytest.raises(ServiceError, match="unknown form"):
                col.attachments([1])
            assert len(col) == 0


@pytest.mark.parametrize(("route", "told"), LIES)
def test_answers_of_other_types_or_counts_are_an_error(route: str, told: Any) -> None:
    with scripted() as service, remote(service) as col:
        service.answers[f"/{route}"] = answer(told)
        with pytest.raises(ServiceError, match="an answer of an unknown form"):
            CALLS[route](col)


@pytest.mark.parametrize("limit", [True, 1.5, "7", 10**30])
def test_false_limits_are_an_error(limit: Any) -> None:
    said = answer({**LIMITS, "queries": limit})
    with scripted(limits=said) as service, pytest.raises(ServiceError, match="unknown form"):
        remote(service)


@pytest.mark.parametrize("progress", ["nan", "0.5", None, True, -0.1, 1.1, 10**400, [0.5]])
def test_a_job_tells_the_share_done(progress: Any) -> None:
    running = answer({"state": "running", "progress": progress})
    with scripted(refresh=answer({"job": "7"}, "202 Begun")) as service, remote(service) as col:
        service.answers["/jobs/7"] = running
        with pytest.raises(ServiceError, match="unknown form"):
            next(col.refresh_steps())


# What is shown of a lie


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://evil/\x1b[31m\x9b2J\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: a\x1b[31mb\r\nContent-Length: 0\r\n\r\n",
        b"\x1b[31m evil\r\n",
    ],
)
def test_nothing_in_a_head_moves_the_cursor(said: bytes) -> None:
    with scripted() as service, remote(service) as col:
        service.answers["/stats"] = Last(said)
        with pytest.raises(ServiceError) as caught:
            len(col)
    assert str(caught.value).isprintable()
