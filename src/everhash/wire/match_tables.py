"""Matches over HTTP as an Arrow table; the service writes it, the client reads it.

An answer is not to be trusted: whatever has another form raises, most often a ValueError.
"""

from __future__ import annotations

import base64
import json
import struct
from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.matches import Matches
from everhash.wire.arrow import BATCH, SCHEMA, messages_in
from everhash.wire.ids import is_unicode
from everhash.wire.labels import label_to_json
from everhash.wire.matches import (
    FlatMatches,
    id_array,
    missing_to_json,
    objects,
    read_label,
    read_missing,
)
from everhash.wire.options import check_by
from everhash.wire.values import read_count, read_list

ID_TYPES = {"int": "int64", "str": "string", "json": "string"}
"""How a table writes ids, and the type of their column."""
COLUMN_TYPES = {
    "query": "int32",
    "score": "float",
    "likeness": "float",
    "label": "string",
    "guess": "string",
    "novelty": "float",
}
"""The columns of a table beside ids and payloads."""
PLAIN_BYTES = 32
"""Of a match in all columns, beside the texts in them."""


class MatchTable:
    """Matches of one search after another, on their way into one table."""

    def __init__(self) -> None:
        self._parts: list[FlatMatches] = []
        self._payloads: list[str] | None = None

    def add(self, matches: Matches) -> int:
        """Add the matches of a search; return how many bytes the table grows by, about."""
        payloads = [json.dumps(payload) for row in matches.payloads for payload in row]
        part = FlatMatches.of(replace(matches, payloads=[]))
        self._parts.append(part)
        if matches.payloads:
            self._payloads = [*(self._payloads or ()), *payloads]
        columns = (part.ids, part.labels, part.guesses)
        return sum(map(_weight, columns)) + sum(map(len, payloads)) + PLAIN_BYTES * len(part.ids)

    def to_arrow(self) -> bytes:
        """Return the table."""
        return to_arrow(FlatMatches.joined(self._parts), self._payloads)


def _weight(column: NDArray[Any]) -> int:
    """Return how many characters the values of a column have as texts, about."""
    counts = Counter(column.tolist())
    return sum(n * len(ascii(value)) for value, n in counts.items())


def to_arrow(found: FlatMatches, payloads: list[str] | None) -> bytes:
    """Return a stream with a row for each match, in order; see `docs/service.md`.

    Payloads are JSON texts, None where nobody asked for them.

    The schema's metadata, under "everhash", has what rows cannot: the number of queries, the number
    of columns of a table of matches, how ids are written, for all queries their novelty and the way
    they were searched by, and the shards of a cluster that did not answer, if any.
    """
    import pyarrow as pa

    id_type, ids = _id_column(found.ids)
    novelty = found.novelty.astype("<f4")
    queries = np.repeat(np.arange(len(novelty), dtype=np.int32), found.counts)
    about = {
        "queries": len(novelty),
        "columns": found.columns,
        "ids": id_type,
        "novelty": base64.b64encode(novelty.tobytes()).decode(),
        "by": found.by,
        **missing_to_json(found.missing),
    }
    columns = {
        "query": pa.array(queries),
        "id": ids,
        "score": pa.array(found.scores.astype(np.float32)),
        "likeness": pa.array(found.likeness.astype(np.float32)),
        "label": _label_column(found.labels),
        "guess": _label_column(found.guesses),
        "novelty": pa.array(novelty[queries]),
    }
    if payloads is not None:
        columns["payload"] = pa.array(payloads, pa.string())
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    schema = batch.schema.with_metadata({"everhash": json.dumps(about)})
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _label_column(labels: NDArray[Any]) -> Any:
    """Return labels as JSON texts, null for none."""
    import pyarrow as pa

    values = labels.tolist()
    texts = {label: json.dumps(label_to_json(label)) for label in set(values) - {None}}
    return pa.array([texts.get(label) for label in values], pa.string())


def _id_column(ids: NDArray[Any]) -> tuple[str, Any]:
    """Return how ids are written, a key of `ID_TYPES`, and their column."""
    import pyarrow as pa

    if ids.dtype != object:
        return "int", pa.array(ids.astype(np.int64))
    values = ids.tolist()
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return "int", pa.array(values, pa.int64())
    if kinds == {str} and all(map(is_unicode, values)):
        return "str", pa.array(values, pa.string())
    return "json", pa.array([json.dumps(value) for value in values], pa.string())


def from_arrow(body: bytes, n: int, k: int | None, *, payloads: bool) -> FlatMatches:
    """Read the matches of at most n queries."""
    batch = _batch(body, None if k is None else n * k, payloads=payloads)
    about = json.loads(batch.schema.metadata[b"everhash"])
    queries = batch.column("query").to_numpy()
    novelty = np.frombuffer(base64.b64decode(about["novelty"], validate=True), "<f4")
    by = [check_by(way) for way in read_list(about["by"], len(novelty))]
    if not read_count(about["queries"]) == len(novelty) <= n:
        raise ValueError("another number of queries")
    if (np.diff(queries) < 0).any() or queries.max(initial=-1) >= len(novelty):
        raise ValueError("matches in another order, or of a query that was not asked")
    counts = np.bincount(queries, minlength=len(novelty))
    return FlatMatches(
        counts=counts,
        ids=_read_ids(batch.column("id"), about["ids"]),
        scores=batch.column("score").to_numpy().astype(np.float32),
        likeness=batch.column("likeness").to_numpy().astype(np.float32),
        labels=_read_labels(batch.column("label")),
        guesses=_read_labels(batch.column("guess")),
        novelty=novelty.astype(np.float32),
        by=by,
        explanations=[],
        payloads=_read_payloads(batch.column("payload"), counts) if payloads else [],
        columns=read_count(about["columns"]),
        missing=read_missing(about),
    )


def _batch(body: bytes, max_rows: int | None, *, payloads: bool) -> Any:
    """Return the one record batch that a service writes: plain columns, not compressed."""
    import pyarrow as pa

    expected = dict(COLUMN_TYPES, **{"payload": "string"} if payloads else {})
    try:
        heads = list(islice(messages_in(body), 3))
        if [head.kind for head in heads] != [SCHEMA, BATCH] or heads[1].compressed:
            raise ValueError("more than a table, or a compressed one")
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            types = {field.name: str(field.type) for field in stream.schema}
            id_type = types.pop("id", None)
            if types != expected or id_type not in ID_TYPES.values():
                raise ValueError("other columns")
            if len(stream.schema) != len(expected) + 1:
                raise ValueError("other columns, or one that stands twice")
            batch = stream.read_next_batch()
        if max_rows is not None and batch.num_rows > max_rows:
            raise ValueError("more matches than were asked for")
        batch.validate(full=True)
    except (pa.ArrowException, OSError, struct.error) as error:
        raise ValueError(str(error)) from None
    return batch


def _read_ids(column: Any, id_type: str) -> NDArray[Any]:
    if str(column.type) != ID_TYPES[id_type]:
        raise ValueError("ids of another type")
    if id_type == "int":
        numbers: NDArray[Any] = column.to_numpy().astype(np.int64, casting="safe")
        return numbers
    values = column.to_pylist()
    return id_array([json.loads(text) for text in values] if id_type == "json" else values)


def _read_labels(column: Any) -> NDArray[Any]:
    texts = column.to_pylist()
    labels = {text: None if text is None else read_label(json.loads(text)) for text in set(texts)}
    return objects([labels[text] for text in texts])


def _read_payloads(column: Any, counts: NDArray[np.int64]) -> list[list[Any]]:
    values = iter([json.loads(text) for text in column.to_pylist()])
    return [list(islice(values, int(count))) for count in counts]
