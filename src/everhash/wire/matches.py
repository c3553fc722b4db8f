"""Matches over HTTP, as JSON or as an Arrow table; the service writes them, the client reads them.

An answer is not to be trusted: whatever has another form raises, most often a ValueError, and the
client says so in one place.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from everhash.matches import Explanation, Matches
from everhash.wire.arrow import BATCH, SCHEMA, messages_in
from everhash.wire.ids import as_id
from everhash.wire.labels import label_from_json, label_to_json
from everhash.wire.values import read_count, read_signs

T = TypeVar("T")
ID_TYPES = {"int": "int64", "str": "string", "json": "string"}
"""How a table writes ids, and the type of their column."""


@dataclass(frozen=True, eq=False)
class FlatMatches:
    """Matches without padding, one query after another."""

    counts: NDArray[np.int64]
    """Of each query."""
    ids: NDArray[Any]
    distances: NDArray[np.float32]
    labels: NDArray[Any]
    novelty: NDArray[np.float32]
    """Of each query."""
    explanations: list[list[Explanation]]
    payloads: list[list[Any]]
    columns: int
    """Of the table they come from, which may be wider than any query has matches."""

    @classmethod
    def of(cls, matches: Matches) -> FlatMatches:
        """Leave the padding out."""
        there = np.arange(matches.ids.shape[1]) < matches.counts[:, None]
        return cls(
            counts=matches.counts,
            ids=matches.ids[there],
            distances=matches.distances[there],
            labels=matches.labels[there],
            novelty=matches.novelty,
            explanations=matches.explanations,
            payloads=matches.payloads,
            columns=matches.ids.shape[1],
        )

    @classmethod
    def joined(cls, parts: list[FlatMatches]) -> FlatMatches:
        """Put the queries of several searches one after another."""
        columns: dict[str, Any] = {}
        for field in fields(cls):
            values = [getattr(part, field.name) for part in parts]
            if field.name == "columns":
                columns[field.name] = max(values)
            elif isinstance(values[0], list):
                columns[field.name] = [row for part in values for row in part]
            else:
                columns[field.name] = np.concatenate(values)
        return cls(**columns)

    def padded(self, n: int, k: int | None) -> Matches:
        """Return the table of n queries, padded as a search pads it.

        It has at most k columns; without k, as many as were found for some query.
        """
        longest = self.counts.max()
        if len(self.counts) != n or not longest <= self.columns <= (longest if k is None else k):
            raise ValueError("another number of queries or columns")
        there = np.arange(self.columns) < self.counts[:, None]
        ids = _filled(there, None, self.ids)
        return Matches(
            ids=ids.astype(np.int64) if self.ids.dtype == np.int64 and there.all() else ids,
            distances=_filled(there, np.float32(np.inf), self.distances),
            labels=_filled(there, None, self.labels),
            counts=self.counts,
            novelty=self.novelty,
            explanations=self.explanations,
            payloads=self.payloads,
        )


def _filled(there: NDArray[np.bool_], padding: Any, values: NDArray[Any]) -> NDArray[Any]:
    table = np.full(there.shape, padding)
    table[there] = values
    return table


# As JSON


def to_json(matches: Matches) -> list[dict[str, Any]]:
    """Return what JSON says of each query."""
    columns = zip(
        matches.ids.tolist(), matches.distances.tolist(), matches.labels.tolist(), strict=True
    )
    counts, novelty = matches.counts.tolist(), matches.novelty.tolist()
    queries = []
    for row, (ids, distances, labels) in enumerate(columns):
        found = [
            {
                "id": ids[i],
                "distance": distances[i],
                "label": labels[i] if type(labels[i]) is str else _label_to_json(labels[i]),
            }
            for i in range(counts[row])
        ]
        if matches.payloads:
            for match, payload in zip(found, matches.payloads[row], strict=True):
                match["payload"] = payload
        if matches.explanations:
            for match, explanation in zip(found, matches.explanations[row], strict=True):
                match["explanation"] = _explanation_to_json(explanation)
        said = novelty[row] if math.isfinite(novelty[row]) else None  # which JSON cannot write
        queries.append({"novelty": said, "found": found})
    return queries


def _label_to_json(label: Any) -> Any:
    return None if label is None else label_to_json(label)


def _explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    label, bits = _label_to_json(explanation.label), explanation.bits.tolist()
    return {"label": label, "cycle": explanation.cycle, "bits": bits}


def from_json(answer: dict[str, Any], *, explain: bool, payloads: bool) -> FlatMatches:
    """Read matches; NaN stands for a novelty that JSON cannot write."""
    matches = answer["matches"]
    found = [item for match in matches for item in match["found"]]
    return FlatMatches(
        counts=np.array([len(match["found"]) for match in matches], np.int64),
        ids=_id_array([item["id"] for item in found]),
        distances=_floats([item["distance"] for item in found], np.inf),
        labels=_objects([_label(item["label"]) for item in found]),
        novelty=_floats([match["novelty"] for match in matches], np.nan),
        explanations=_of_each(matches, "explanation", _explanation) if explain else [],
        payloads=_of_each(matches, "payload", lambda payload: payload) if payloads else [],
        columns=read_count(answer["columns"]),
    )


def _of_each(matches: list[Any], field: str, read: Callable[[Any], T]) -> list[list[T]]:
    return [[read(item[field]) for item in match["found"]] for match in matches]


def _explanation(value: dict[str, Any]) -> Explanation:
    return Explanation(
        _label(value["label"]), read_count(value["cycle"], least=-1), read_signs(value["bits"])
    )


def _label(value: Any) -> Any:
    return None if value is None else label_from_json(value)


def _floats(values: list[Any], missing: float) -> NDArray[np.float32]:
    return np.array([missing if value is None else value for value in values], np.float32)


def _objects(values: list[Any]) -> NDArray[Any]:
    """Return a column of objects, of tuples too: np.array would make a table of them."""
    return np.fromiter(values, object, len(values))


def _id_array(values: list[Any]) -> NDArray[Any]:
    ids = [as_id(value) for value in values]
    return np.array(ids, np.int64) if all(isinstance(i, int) for i in ids) else _objects(ids)


# As an Arrow table


def to_arrow(found: FlatMatches) -> bytes:
    """Return a stream with a row for each match, in order; see `docs/service.md`.

    The schema's metadata, under "everhash", has what rows cannot: the number of queries, the number
    of columns of a table of matches, how ids are written, and the novelty of all queries.
    """
    import pyarrow as pa

    id_type, ids = _id_column(found.ids)
    labels = found.labels.tolist()
    texts: dict[Any, str | None] = {
        label: json.dumps(label_to_json(label)) for label in set(labels) - {None}
    }
    novelty = found.novelty.astype("<f4")
    queries = np.repeat(np.arange(len(novelty), dtype=np.int32), found.counts)
    about = {
        "queries": len(novelty),
        "columns": found.columns,
        "ids": id_type,
        "novelty": base64.b64encode(novelty.tobytes()).decode(),
    }
    columns = {
        "query": pa.array(queries),
        "id": ids,
        "distance": pa.array(found.distances.astype(np.float32)),
        "label": pa.array([texts.get(label) for label in labels], pa.string()),
        "novelty": pa.array(novelty[queries]),
    }
    if found.payloads:
        texts_of = [json.dumps(payload) for row in found.payloads for payload in row]
        columns["payload"] = pa.array(texts_of, pa.string())
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    schema = batch.schema.with_metadata({"everhash": json.dumps(about)})
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


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


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8; Python's may have half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def from_arrow(body: bytes, n: int, k: int | None, *, payloads: bool) -> FlatMatches:
    """Read the matches of at most n queries."""
    batch = _batch(body, None if k is None else n * k, payloads=payloads)
    about = json.loads(batch.schema.metadata[b"everhash"])
    queries = batch.column("query").to_numpy()
    texts = batch.column("label").to_pylist()
    labels = {text: None if text is None else _label(json.loads(text)) for text in set(texts)}
    novelty = np.frombuffer(base64.b64decode(about["novelty"], validate=True), "<f4")
    if not read_count(about["queries"]) == len(novelty) <= n:
        raise ValueError("another number of queries")
    if (np.diff(queries) < 0).any() or queries.max(initial=0) >= len(novelty):
        raise ValueError("matches in another order, or of a query that was not asked")
    counts = np.bincount(queries, minlength=len(novelty))
    return FlatMatches(
        counts=counts,
        ids=_read_ids(batch.column("id"), about["ids"]),
        distances=batch.column("distance").to_numpy().astype(np.float32),
        labels=_objects([labels[text] for text in texts]),
        novelty=novelty.astype(np.float32),
        explanations=[],
        payloads=_read_payloads(batch.column("payload"), counts) if payloads else [],
        columns=read_count(about["columns"]),
    )


def _batch(body: bytes, max_rows: int | None, *, payloads: bool) -> Any:
    """Return the one record batch that a service writes: plain columns, not compressed."""
    import pyarrow as pa

    expected = {"query": "int32", "distance": "float", "label": "string", "novelty": "float"}
    expected |= {"payload": "string"} if payloads else {}
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
    return _id_array([json.loads(text) for text in values] if id_type == "json" else values)


def _read_payloads(column: Any, counts: NDArray[np.int64]) -> list[list[Any]]:
    values = iter([json.loads(text) for text in column.to_pylist()])
    return [list(islice(values, int(count))) for count in counts]
