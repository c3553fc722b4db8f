"""What changes the collection, in the writer thread, and what listeners hear of it."""

from __future__ import annotations

from collections.abc import Hashable
from time import perf_counter
from typing import Any

from numpy.typing import NDArray

from everhash.collection.collection import Collection
from everhash.errors import LimitError
from everhash.serve import limits
from everhash.serve.events import FIRST, NEW_LABELS, Event
from everhash.serve.service import Done
from everhash.stream import Labels, as_labels
from everhash.wire.labels import label_to_json

Rows = NDArray[Any]


def learn(collection: Collection, rows: Rows, labels: list[Any] | None) -> Done:
    """Move the mapping; index nothing."""
    y, new = _checked(collection, labels, len(rows))
    began = perf_counter()
    collection.learn(rows, y)
    told = _learned(len(rows), new, perf_counter() - began)
    return Done({"learned": len(rows), "labels": len(collection.hasher.words_)}, [told])


def forget(collection: Collection, rows: Rows, labels: list[Any] | None) -> Done:
    """Take back rows that were learned."""
    collection.forget(rows, labels)
    told = {"rows": len(rows)}
    return Done({"forgotten": len(rows)}, [("forgotten", told)])


def add(
    collection: Collection,
    rows: Rows,
    labels: list[Any] | None,
    ids: list[Any] | None,
    attached: dict[str, list[Any]],
) -> Done:
    """Add entries."""
    y, _ = _checked(collection, labels, len(rows))
    given = collection.add(rows, ids, y, **attached)
    return Done({"ids": given}, [_some("added", given)])


def ingest(
    collection: Collection,
    rows: Rows,
    labels: list[Any] | None,
    ids: list[Any] | None,
    attached: dict[str, list[Any]],
) -> Done:
    """Learn from rows and add them."""
    y, new = _checked(collection, labels, len(rows))
    began = perf_counter()
    given = collection.ingest(rows, y, ids, **attached)
    learned = _learned(len(rows), new, perf_counter() - began)
    return Done({"ids": given}, [learned, _some("added", given)])


def attach(collection: Collection, ids: list[Any], attached: dict[str, list[Any]]) -> Done:
    """Give entries payloads and thumbnails."""
    collection.attach(ids, **attached)
    return Done({"attached": len(ids)}, [])


def label(collection: Collection, ids: list[Any], labels: list[Any]) -> Done:
    """Give entries labels instead of what they had."""
    y, new = _checked(collection, labels, len(ids))
    collection.label(ids, y)
    kind, told = _some("labelled", ids)
    return Done({"labelled": len(ids)}, [(kind, {**told, "new_labels": _told(new)})])


def remove(collection: Collection, ids: list[Any]) -> Done:
    """Forget entries."""
    removed = collection.remove(ids)
    return Done({"removed": removed}, [_some("removed", ids)])


def _checked(
    collection: Collection, labels: list[Any] | None, n: int
) -> tuple[Labels, list[Hashable]]:
    """Return labels, and those never seen before, if there are not too many of them."""
    hasher, y = collection.hasher, as_labels(labels, n)
    new = hasher.unknown(y.values)
    if len(new) > limits.NEW_LABELS:
        raise LimitError(
            f"{len(new)} labels never seen before, at most {limits.NEW_LABELS} a request",
            hint="are these labels, or ids?",
        )
    if new and len(hasher.words_) + len(new) > limits.LABELS:
        raise LimitError(
            f"{len(hasher.words_)} labels and {len(new)} more, at most {limits.LABELS} are served",
            hint="the library takes more",
        )
    return y, new


def _learned(rows: int, new: list[Hashable], seconds: float) -> Event:
    return "learned", {"rows": rows, "new_labels": _told(new), "seconds": round(seconds, 6)}


def _told(new: list[Hashable]) -> list[Any]:
    return [label_to_json(label) for label in new[:NEW_LABELS]]


def _some(kind: str, ids: list[Any]) -> Event:
    return kind, {"ids": ids[:FIRST], "count": len(ids)}
