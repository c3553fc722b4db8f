"""Rows, labels and ids on their way out: checked as a collection checks them, then written.

What depends on the collection is left to the service, which has the same checks. Calls are split
into as few requests as the service's limits allow.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.client.session import ApiCall, ServiceLimits, as_json
from everhash.codes import Codes
from everhash.collection.attachments import as_blobs
from everhash.collection.expecting import expected_labels
from everhash.errors import IdError, InputError, LabelError, OptionError, UnknownNameError
from everhash.index.ids import Ids
from everhash.stream import Labels, as_label, as_labels, as_rows, one_or_more
from everhash.wire.arrow import write_rows
from everhash.wire.ids import Id, as_ids, plain_ids
from everhash.wire.labels import label_to_json
from everhash.wire.media import ARROW, JSON, NPY
from everhash.wire.options import check_text

FEW = 8
"""Rows that go as JSON, which is no slower for them and which anybody can read."""
DIGITS = 24
"""Characters that a number takes in JSON, at most."""
OVERHEAD = 400
"""Bytes that an id, a label and punctuation take, about."""


class RowBatch(NamedTuple):
    """Rows to write, and what goes with each; None where nothing does."""

    rows: NDArray[np.float32]
    labels: list[Any] | None
    """As JSON has them."""
    ids: list[Id] | None
    payloads: list[str | None] | None
    """As JSON text."""
    thumbnails: list[bytes | None] | None

    def part(self, rows: slice) -> RowBatch:
        """Return some of the rows."""
        columns: Any = [None if column is None else column[rows] for column in self]
        return RowBatch(*columns)


def row_batch(
    X: ArrayLike,
    y: Any,
    ids: Iterable[Any] | None = None,
    payloads: Iterable[Any] | None = None,
    thumbnails: Iterable[bytes | None] | None = None,
) -> RowBatch:
    """Return rows that a collection may take, checked in the order in which it does."""
    rows = as_rows(X)
    n = len(rows)
    labels = as_labels(y, n)
    given = None if ids is None else plain_ids(Ids().check(ids, n, _nobody))
    texts, pictures = _attachments(payloads, thumbnails, n)
    return RowBatch(rows, None if y is None else labels_json(labels, n), given, texts, pictures)


def _nobody(places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of ids that no entry has them: that is for the service to know."""
    return np.zeros(len(places), np.bool_)


def update_batch(ids: Iterable[Any], X: ArrayLike, limits: ServiceLimits) -> RowBatch:
    """Return other rows for entries."""
    names, rows = each_once(ids, limits), as_rows(X)
    if len(names) != len(rows):
        raise IdError(f"{len(rows)} rows but {len(names)} ids", hint="give one id a row")
    return RowBatch(rows, None, names, None, None)


def learned_batch(X: ArrayLike, y: Any) -> RowBatch:
    """Return rows that may have been learned with these labels."""
    rows = as_rows(X)
    labels = as_labels(y, len(rows))
    for label in labels.values:
        known_label(label)
    return row_batch(rows, labels)


def write_calls(
    path: str, batch: RowBatch, limits: ServiceLimits, teach: bool | None
) -> Iterator[tuple[RowBatch, ApiCall]]:
    """Yield the requests that write rows, each with its part of them.

    `teach` is sent where it is not None: beside the rows, which a table has no place for.
    """
    query = None if teach is None else {"teach": bool(teach)}
    sizes = 4 * batch.rows.shape[1] + _sizes(batch.payloads, batch.thumbnails, len(batch.rows))
    for rows in slices(sizes, limits.rows, limits.body):
        some = batch.part(rows)
        text = len(some.rows) <= FEW and DIGITS * some.rows.size < limits.body // 2
        yield (
            some,
            ApiCall(path, *((_json(some), JSON) if text else (_table(some), ARROW)), query=query),
        )


def _json(batch: RowBatch) -> bytes:
    content = {"rows": batch.rows.tolist(), "labels": batch.labels, "ids": batch.ids}
    content |= attachments_json(batch.payloads, batch.thumbnails)
    return as_json({name: value for name, value in content.items() if value is not None})


def _table(batch: RowBatch) -> bytes:
    return write_rows(batch._asdict())


def slices(sizes: NDArray[np.int64], most: int, max_bytes: int) -> Iterator[slice]:
    """Yield parts of at most so many items and about half as many bytes as a body may have.

    >>> list(slices(np.array([1, 1, 9, 1]), 2, 12))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    start, n = 0, len(sizes)
    ends = np.cumsum(sizes)
    while start < max(1, n):
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + max_bytes // 2, side="right"))
        stop = min(start + most, max(start + 1, fitting))
        yield slice(start, min(stop, n))
        start = stop


# Labels, ids and attachments


def labels_json(labels: Labels, n: int) -> list[Any]:
    """Return the labels of n rows as JSON has them: one, several in a list, None for none."""
    values = [label_to_json(label) for label in labels.values]
    rows: list[list[Any]] = [[] for _ in range(n)]
    for row, which in zip(labels.rows.tolist(), labels.which.tolist(), strict=True):
        rows[row].append(values[which])
    return [None if not row else row[0] if len(row) == 1 else row for row in rows]


def expected_json(expect: Any, n: int) -> list[Any] | None:
    """Return the labels that entries are expected to have, a list for each; None for nothing."""
    expected = expected_labels(expect, n)
    if expected is None:
        return None
    return [[label_to_json(label) for label in labels] for labels in expected]


def ids_of(ids: Iterable[Any]) -> list[Id]:
    """Return ids as JSON has them."""
    return plain_ids(as_ids(ids))


def each_once(ids: Iterable[Any], limits: ServiceLimits) -> list[Id]:
    """Return ids; a service cannot tell that one stands in two requests."""
    names = ids_of(ids)
    if len(names) > limits.rows and len(set(names)) < len(names):
        raise LabelError("an id is given twice", hint="name each entry once")
    return names


def label_json(label: Any) -> Any:
    """Return a new label as JSON has it."""
    return label_to_json(as_label(label))


def attach_calls(
    ids: list[Id],
    payloads: Iterable[Any] | None,
    thumbnails: Iterable[bytes | None] | None,
    limits: ServiceLimits,
) -> Iterator[tuple[slice, dict[str, Any]]]:
    """Yield ids and what their entries get, as JSON, with the part of the ids they are."""
    texts, pictures = _attachments(payloads, thumbnails, len(ids))
    for part in slices(_sizes(texts, pictures, len(ids)), limits.rows, limits.body):
        some = texts and texts[part], pictures and pictures[part]
        yield part, {"ids": ids[part], **attachments_json(*some)}


def _attachments(
    payloads: Iterable[Any] | None, thumbnails: Iterable[bytes | None] | None, n: int
) -> tuple[list[str | None] | None, list[bytes | None] | None]:
    """Return payloads as JSON text, and thumbnails."""
    blobs = as_blobs((payloads, thumbnails), n)
    texts = [blobs[2 * row] for row in range(n)] if payloads is not None else None
    pictures = [blobs[2 * row + 1] for row in range(n)] if thumbnails is not None else None
    return None if texts is None else [t if t is None else t.decode() for t in texts], pictures


def attachments_json(
    payloads: list[str | None] | None, thumbnails: list[bytes | None] | None
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


def _sizes(
    payloads: list[str | None] | None, thumbnails: list[bytes | None] | None, n: int
) -> NDArray[np.int64]:
    """Return about how many bytes each entry takes, beside its row."""
    sizes = np.full(n, OVERHEAD, np.int64)
    if payloads is not None:
        sizes += [4 * len(text or "") for text in payloads]
    if thumbnails is not None:
        sizes += [4 * len(data or b"") // 3 for data in thumbnails]
    return sizes


# Searching


def queries_of(X: ArrayLike | Codes) -> NDArray[np.float32]:
    """Return the rows to search with."""
    if isinstance(X, Codes):
        raise OptionError("a service is not searched with codes", hint="pass the rows themselves")
    return as_rows(X)


def filters_json(labels: Iterable[Hashable] | None, ids: Iterable[Any] | None) -> dict[str, Any]:
    """Return what narrows a search, as JSON has it."""
    content: dict[str, Any] = {}
    if labels is not None:
        content["labels"] = [known_label(label) for label in one_or_more(labels)]
    if ids is not None:
        content["ids"] = ids_of(ids)
    return content


def listing_query(stop: int | None, text: str | None, label: Hashable) -> dict[str, Any]:
    """Return which entries a listing has, as the query string says it."""
    query: dict[str, Any] = {} if stop is None else {"stop": max(0, stop)}
    if (asked := check_text(text)) is not None:
        query["text"] = asked
    if label is not None:
        query |= {"label": json.dumps(known_label(label)), "json": True}
    return query


def known_label(label: Any) -> Any:
    """Return a label as JSON has it, one that an entry may have."""
    try:
        return label_to_json(as_label(label))
    except InputError:  # so no entry can have it
        raise UnknownNameError(f"label {label!r} has not been seen", hint="{say labels}") from None


def search_calls(
    path: str, rows: NDArray[np.float32], options: Mapping[str, Any], limits: ServiceLimits
) -> Iterator[ApiCall]:
    """Yield as few requests as rows fit in.

    Many rows go as an array, with what goes with them in the query string; lists of labels or ids
    have no place there, so they and their rows go as JSON.
    """
    few, explain = len(rows) <= FEW, options["explain"]
    as_text = few or explain or any(isinstance(value, list) for value in options.values())
    accept = JSON if few or explain else ARROW
    room = limits.body // 2 // (DIGITS * rows.shape[1] if as_text else rows[0].nbytes)
    step = max(1, min(limits.queries, room))
    query = {name: value for name, value in options.items() if name != "explain"}
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if as_text:
            yield ApiCall(path, as_json({"rows": part.tolist(), **options}), accept=accept)
        else:
            yield ApiCall(path, _npy(part), NPY, accept, query)


def row_calls(
    path: str, rows: NDArray[np.float32], limits: ServiceLimits
) -> Iterator[tuple[int, ApiCall]]:
    """Yield as few requests of rows alone as they fit in, each with the number of its rows."""
    step = max(1, min(limits.queries, limits.body // 2 // rows[0].nbytes))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        yield len(part), ApiCall(path, _npy(part), NPY)


def entry_search_calls(
    ids: list[Id], options: Mapping[str, Any], limits: ServiceLimits
) -> Iterator[ApiCall]:
    """Yield as few requests as ids of entries fit in."""
    accept = JSON if options["explain"] else ARROW
    for start in range(0, max(1, len(ids)), limits.queries):
        part = ids[start : start + limits.queries]
        yield ApiCall("/search", as_json({"like": part, **options}), accept=accept)


def _npy(rows: NDArray[np.float32]) -> bytes:
    sink = io.BytesIO()
    np.save(sink, rows, allow_pickle=False)
    return sink.getvalue()
