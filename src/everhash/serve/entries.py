"""Entries and labels as JSON, read in the search thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from everhash.collection.attachments import Attachment
from everhash.collection.collection import Collection
from everhash.index.entries import Entry
from everhash.wire.labels import label_to_json

TOGETHER = 500
"""Entries whose attachments are in memory at a time: pictures are read, and not sent."""


class PageRequest(NamedTuple):
    """Which entries to return; see `Collection.page`."""

    start: int
    limit: int
    stop: int | None
    unlabelled: bool
    codes: bool
    """Their codes too."""


def entries_page(collection: Collection, page: PageRequest) -> dict[str, Any]:
    """Return entries in order of arrival, and where the next page starts."""
    start, limit, stop, unlabelled, codes = page
    with collection.held():  # entries and attachments of one state
        stats = collection.stats()
        found, after = collection.page(start, limit, stop, unlabelled=unlabelled)
        described = _describe(collection, found, codes=codes)
    total = stats["unlabelled" if unlabelled else "entries"]
    return {"total": total, "next": after, "entries": described}


def entries_of(collection: Collection, ids: list[Any]) -> dict[str, Any]:
    """Return entries by their ids."""
    with collection.held():
        return {"entries": _describe(collection, collection.get(ids), codes=True)}


def _describe(collection: Collection, found: list[Entry], *, codes: bool) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    for start in range(0, len(found), TOGETHER):
        part = found[start : start + TOGETHER]
        attachments = collection.attachments([entry.id for entry in part])
        pairs = zip(part, attachments, strict=True)
        described += [_entry(entry, attachment, codes=codes) for entry, attachment in pairs]
    return described


def _entry(entry: Entry, attachment: Attachment, *, codes: bool) -> dict[str, Any]:
    described = {
        "id": entry.id,
        "labels": [label_to_json(label) for label in entry.labels],
        "home": entry.home,
        "payload": attachment.payload,
        "thumbnail": attachment.thumbnail is not None,
        "guess": None if entry.guess is None else label_to_json(entry.guess),
    }
    code = None if entry.code is None else entry.code.astype(np.int8).tolist()
    return {**described, "code": code} if codes else described


def count_labels(collection: Collection) -> int:
    """Return how many labels there are; those that were merged or dropped are gone."""
    return sum(label is not None for label in collection.hasher.labels_)


def labels_page(collection: Collection, start: int, limit: int) -> dict[str, Any]:
    """Return labels in order of arrival."""
    with collection.held():
        total = count_labels(collection)
        infos = collection.labels(min(start, total), min(start + limit, total))
    labels = [
        {
            "label": label_to_json(info.label),
            "cycle": info.cycle,
            "entries": info.entries,
            "lessons": info.lessons,
            "accuracy": info.accuracy,
            "codeword": None if info.codeword is None else info.codeword.tolist(),
        }
        for info in infos
    ]
    return {"total": total, "labels": labels}
