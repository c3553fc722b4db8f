"""Rows, labels and ids on their way out: checked as a collection checks them, then written.

What depends on the collection is left to the service: it has the same checks.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash import limits
from everhash.client.connections import JSON, Request
from everhash.client.service import Limits, as_json, with_query
from everhash.codes import Codes
from everhash.collection.attachments import Blobs, as_blobs
from everhash.errors import InputError, LimitError, OptionError, UnknownNameError
from everhash.index.ids import Ids
from everhash.stream import Labels, as_label, as_labels, as_rows
from everhash.wire.ids import Id, IdList, as_ids
from everhash.wire.labels import label_to_json
from everhash.wire.options import DISTANCES

NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.stream"
AS_JSON = {"everhash": "json"}
"""Metadata of a column whose texts are JSON."""
FEW = 8
"""Rows that go as JSON, which is no slower for them and which anybody can read."""
DIGITS = 24
"""Characters that a number takes in JSON, at most."""


class Batch(NamedTuple):
    """Rows to write, and for each of them what goes with it; None where nothing does."""

    rows: NDArray[np.float32]
    labels: list[Any] | None
    """As JSON has them."""
    ids: list[Id] | None
    payloads: list[bytes | None] | None
    """As JSON text."""
    thumbnails: list[bytes | None] | None


def batch_of(
    X: ArrayLike,
    y: Any,
    ids: Iterable[Any] | None = None,
    payloads: Iterable[Any] | None = None,
    thumbnails: Iterable[bytes | None] | None = None,
) -> Batch:
    """Return rows that a collection may take, checked in the order in which it does."""
    rows = as_rows(X)
    n = len(rows)
    labels = as_labels(y, n)
    names = None if ids is None else _plain(Ids().check(ids, n))
    blobs = as_blobs((payloads, thumbnails), n)
    return Batch(
        rows,
        None if y is None else labels_of(labels, n),
        names,
        None if payloads is None else _column(blobs, 0, n),
        None if thumbnails is None else _column(blobs, 1, n),
    )


def learned_batch_of(X: ArrayLike, y: Any) -> Batch:
    """Return rows that may have been learned with these labels."""
    rows = as_rows(X)
    labels = as_labels(y, len(rows))
    for label in labels.values:
        _known_label(label)
    return batch_of(rows, labels)


def write_request(route: str, batch: Batch, most: int) -> Request:
    """Return the request that hands rows over, as one: it has to be one transaction."""
    n = len(batch.rows)
    if n > most:
        raise LimitError(f"{n} rows, at most {most} a request", hint="split the request")
    if n > FEW:
        return Request("POST", route, _table(batch), ARROW, repeatable=False)
    content = {"rows": batch.rows.tolist(), "labels": batch.labels, "ids": batch.ids}
    content |= attached(batch.payloads, batch.thumbnails)
    body = as_json({name: value for name, value in content.items() if value is not None})
    return Request("POST", route, body, repeatable=False)


def attach_content(
    names: list[Id], payloads: Iterable[Any] | None, thumbnails: Iterable[bytes | None] | None
) -> dict[str, Any]:
    """Return ids and what their entries are to carry, as JSON has it."""
    n, blobs = len(names), as_blobs((payloads, thumbnails), len(names))
    texts = None if payloads is None else _column(blobs, 0, n)
    pictures = None if thumbnails is None else _column(blobs, 1, n)
    return {"ids": names, **attached(texts, pictures)}


def attached(
    payloads: list[bytes | None] | None, thumbnails: list[bytes | None] | None
) -> dict[str, Any]:
    """Return payloads and thumbnails as JSON has them, those that were given."""
    content: dict[str, Any] = {}
    if payloads is not None:
        content["payloads"] = [None if text is None else json.loads(text) for text in payloads]
    if thumbnails is not None:
        content["thumbnails"] = [
            None if data is None else base64.b64encode(data).decode() for data in thumbnails
        ]
    return content


def _column(blobs: Blobs, kind: int, n: int) -> list[bytes | None]:
    return [blobs[2 * row + kind] for row in range(n)]


def _table(batch: Batch) -> bytes:
    """Return rows as a stream of Arrow's."""
    import pyarrow as pa

    flat = pa.array(batch.rows.reshape(-1))
    vectors = pa.FixedSizeListArray.from_arrays(flat, batch.rows.shape[1])
    columns = {pa.field("vector", vectors.type): vectors}
    if batch.ids is not None and all(isinstance(name, int) for name in batch.ids):
        columns[pa.field("id", pa.int64())] = pa.array(batch.ids, pa.int64())
    elif batch.ids is not None:
        columns[pa.field("id", pa.string(), metadata=AS_JSON)] = _texts(batch.ids)
    if batch.labels is not None:
        columns[pa.field("label", pa.string(), metadata=AS_JSON)] = _texts(batch.labels)
    if batch.payloads is not None:
        texts = [None if text is None else text.decode() for text in batch.payloads]
        columns[pa.field("payload", pa.string())] = pa.array(texts, pa.string())
    if batch.thumbnails is not None:
        columns[pa.field("thumbnail", pa.binary())] = pa.array(batch.thumbnails, pa.binary())
    table = pa.record_batch(list(columns.values()), schema=pa.schema(list(columns)))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    return sink.getvalue()


def _texts(values: list[Any]) -> Any:
    """Return a column of JSON texts."""
    import pyarrow as pa

    return pa.array([None if v is None else json.dumps(v) for v in values], pa.string())


# Labels and ids


def labels_of(labels: Labels, n: int) -> list[Any]:
    """Return the labels of n rows as JSON has them: one, several in a list, None for none."""
    values = [label_to_json(label) for label in labels.values]
    rows: list[list[Any]] = [[] for _ in range(n)]
    for row, which in zip(labels.rows.tolist(), labels.which.tolist(), strict=True):
        rows[row].append(values[which])
    return [None if not row else row[0] if len(row) == 1 else row for row in rows]


def plain_ids(ids: Iterable[Any]) -> list[Id]:
    """Return ids as JSON has them."""
    return _plain(as_ids(ids))


def _plain(ids: IdList) -> list[Id]:
    return ids.tolist() if isinstance(ids, np.ndarray) else ids


# Searching


def queries_of(X: ArrayLike | Codes, distance: Any) -> NDArray[np.float32]:
    """Return the rows to search with."""
    if distance not in DISTANCES:
        raise OptionError(f"distance {distance!r} is unknown", hint=f"choose from {DISTANCES}")
    if isinstance(X, Codes):
        raise OptionError("a service is not searched with codes", hint="pass the rows themselves")
    return as_rows(X)


def check_k(k: Any) -> int:
    """Return how many entries a query asks for; see `Ranking.nearest`."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise OptionError(f"k must be a whole number of at least 1, got {k!r}")
    if k > limits.RESULTS:
        raise LimitError(f"k = {k}, at most {limits.RESULTS} are supported")
    return int(k)


def check_radius(r: Any) -> float:
    """Return a radius that JSON can write; see `Ranking.within`."""
    if not isinstance(r, int | float | np.number) or np.isnan(r):
        raise OptionError(f"r must be a number, got {r!r}")
    farthest = float(np.finfo(np.float32).max)  # no distance is larger
    return float(np.clip(float(r), -farthest, farthest))


def filters_of(labels: Iterable[Hashable] | None, ids: Iterable[Any] | None) -> dict[str, Any]:
    """Return what narrows a search, as JSON has it."""
    content: dict[str, Any] = {}
    if labels is not None:
        content["labels"] = [_known_label(label) for label in labels]
    if ids is not None:
        content["within"] = plain_ids(ids)
    return content


def _known_label(label: Any) -> Any:
    try:
        return label_to_json(as_label(label))
    except InputError:  # so no entry can have it
        raise UnknownNameError(
            f"label {label!r} has not been seen", hint="labels_ lists those that have"
        ) from None


def searches(
    route: str, rows: NDArray[np.float32], options: Mapping[str, Any], most: Limits
) -> Iterator[Request]:
    """Go through as few requests as rows fit in.

    Many rows go as an array, with what goes with them in the route's query; lists of labels or ids
    have no place there, so they and their rows go as JSON.
    """
    few, explain = len(rows) <= FEW, options["explain"]
    plain = {name: value for name, value in options.items() if name != "explain"}
    as_text = few or explain or any(isinstance(value, list) for value in options.values())
    accept = JSON if few or explain else ARROW
    room = most.body // 2 // (DIGITS * rows.shape[1] if as_text else rows[0].nbytes)
    step = max(1, min(most.queries, room))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if as_text:
            yield Request("POST", route, as_json({"rows": part.tolist(), **options}), accept=accept)
        else:
            yield Request("POST", with_query(route, plain), _array(part), NPY, accept)


def searches_like(names: list[Id], options: Mapping[str, Any], most: Limits) -> Iterator[Request]:
    """Go through as few requests as ids of entries fit in."""
    accept = JSON if options["explain"] else ARROW
    for start in range(0, max(1, len(names)), most.queries):
        part = names[start : start + most.queries]
        yield Request("POST", "/search", as_json({"ids": part, **options}), accept=accept)


def _array(rows: NDArray[np.float32]) -> bytes:
    sink = io.BytesIO()
    np.save(sink, rows, allow_pickle=False)
    return sink.getvalue()
