"""Matches on their way out, as JSON text or as an Arrow table.

JSON is put together by hand: a search is answered in microseconds, and an encoder that looks at
every value would take longer than that.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Hashable, Iterable
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.matches import Explanation, Matches
from everhash.wire.labels import label_to_json

ARROW = "application/vnd.apache.arrow.stream"


class LabelTexts(dict[Any, str]):
    """Labels as JSON text, each put into words once."""

    def __missing__(self, label: Hashable) -> str:
        if isinstance(label, str):
            text = quoted(label)
        else:
            text = json.dumps(None if label is None else label_to_json(label))
        self[label] = text
        return text


def number(value: float) -> str:
    """Return a float32 as JSON: nine digits tell every two of them apart.

    >>> number(0.5), number(float("inf"))
    ('0.5', 'null')
    """
    return f"{value:.9g}" if math.isfinite(value) else "null"


def enclosed(rows: Iterable[str], columns: int) -> bytes:
    """Return the answer that consists of these queries; a table of them is so many columns wide."""
    return f'{{"matches":[{",".join(rows)}],"columns":{columns}}}'.encode()


def row_texts(matches: Matches) -> list[str]:
    """Return the text of each query."""
    texts, rows = LabelTexts(), []
    columns = (matches.ids, matches.distances, matches.labels)
    table = zip(*(column.tolist() for column in columns), strict=True)
    counts, novelty = matches.counts.tolist(), matches.novelty.tolist()
    for row, (ids, distances, labels) in enumerate(table):
        found = [
            f'{{"id":{name if isinstance(name, int) else quoted(name)},'
            f'"distance":{number(distance)},"label":{texts[label]}}}'
            for name, distance, label in zip(
                ids[: counts[row]], distances[: counts[row]], labels[: counts[row]], strict=True
            )
        ]
        if matches.explanations:
            pairs = zip(found, matches.explanations[row], strict=True)
            found = [f"{match[:-1]},{_why(why, texts)}}}" for match, why in pairs]
        rows.append(f'{{"novelty":{number(novelty[row])},"found":[{",".join(found)}]}}')
    return rows


def _why(explanation: Explanation, texts: LabelTexts) -> str:
    bits = json.dumps(explanation.bits.tolist(), separators=(",", ":"))
    label, cycle = texts[explanation.label], explanation.cycle
    return f'"explanation":{{"label":{label},"cycle":{cycle},"bits":{bits}}}'


class Flat(NamedTuple):
    """Matches without padding, one query after another."""

    counts: NDArray[np.int64]
    """Of each query."""
    ids: NDArray[Any]
    distances: NDArray[np.float32]
    labels: NDArray[Any]
    novelty: NDArray[np.float32]
    """Of each query."""

    @classmethod
    def of(cls, matches: Matches) -> Flat:
        """Leave the padding out."""
        there = np.arange(matches.ids.shape[1]) < matches.counts[:, None]
        tables = (matches.ids, matches.distances, matches.labels)
        ids, distances, labels = (table[there] for table in tables)
        return cls(matches.counts, ids, distances, labels, matches.novelty)

    @classmethod
    def joined(cls, parts: list[Flat]) -> Flat:
        """Put queries of several searches behind each other."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def as_arrow(found: Flat, columns: int) -> bytes:
    """Return a stream with a row for each match, in order; see `docs/service.md`.

    The schema's metadata, under "everhash", says what rows cannot: how many queries there were, how
    many columns a table of matches has, how ids are written, and the novelty of all queries.
    """
    import pyarrow as pa

    kind, ids = _id_column(found.ids)
    texts, novelty = LabelTexts(), found.novelty.astype("<f4")
    labels = [None if label is None else texts[label] for label in found.labels.tolist()]
    queries = np.repeat(np.arange(len(novelty), dtype=np.int32), found.counts)
    about = {
        "queries": len(novelty),
        "columns": columns,
        "ids": kind,
        "novelty": base64.b64encode(novelty.tobytes()).decode(),
    }
    batch = pa.record_batch(
        {
            "query": pa.array(queries),
            "id": ids,
            "distance": pa.array(found.distances.astype(np.float32)),
            "label": pa.array(labels, pa.string()),
            "novelty": pa.array(novelty[queries]),
        }
    )
    schema = batch.schema.with_metadata({"everhash": json.dumps(about)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _id_column(ids: NDArray[Any]) -> tuple[str, Any]:
    """Return ids as a column, and what it holds: "int", "str", or the "json" text of each."""
    import pyarrow as pa

    if ids.dtype != object:
        return "int", pa.array(ids.astype(np.int64))
    names = ids.tolist()
    kinds = {type(name) for name in names}
    if kinds <= {int}:
        return "int", pa.array(names, pa.int64())
    if kinds == {str} and all(name.isascii() or _is_text(name) for name in names):
        return "str", pa.array(names, pa.string())
    return "json", pa.array([json.dumps(name) for name in names], pa.string())


def _is_text(name: str) -> bool:
    """Whether a string can be written as UTF-8: the library takes half surrogates too."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
