"""What is read from the collection, in the search thread, as JSON tells it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from everhash.collection.attachments import Attachment, image_type
from everhash.collection.collection import Collection
from everhash.errors import InputError, UnknownIdError, UnknownNameError
from everhash.index.ids import Id
from everhash.index.index import Entry
from everhash.learn.model_format import label_to_json
from everhash.serve.errors import RefusedError

SCAN = 16_384
"""Places looked at for one page: a page may be short, and the next one goes on behind it."""
TOGETHER = 500
"""Entries whose attachments are held at a time: pictures are looked at, and not told."""
TRIES = 5
"""Looks at entries that another request may remove in between."""


class Picture(NamedTuple):
    """An image, and a name for just these bytes."""

    data: bytes
    media_type: str
    tag: str


@dataclass(frozen=True)
class Page:
    """Which entries to tell of: those from number `start` up to `stop`, at most so many."""

    start: int
    limit: int
    stop: int | None
    unlabelled: bool
    """Only those without a label."""
    codes: bool
    """Their codes too."""


def tell_entries(collection: Collection, page: Page) -> dict[str, Any]:
    """Return a page of entries in order of arrival, and where the next one starts."""
    for _ in range(TRIES):
        total, entries, after = _look(collection, page)
        try:
            told = _tell(collection, entries, codes=page.codes)
        except UnknownIdError:  # removed by the writer a moment ago
            continue
        return {"total": total, "next": after, "entries": told}
    raise RefusedError(503, InputError("entries go as fast as they are read", hint="try again"))


def _look(collection: Collection, page: Page) -> tuple[int, list[Entry], int | None]:
    with collection.held():  # all of the page from one state
        stats = collection.stats()
        stop = min(stats["arrived"], stats["arrived"] if page.stop is None else page.stop)
        end, place, found = min(stop, page.start + SCAN), page.start, list[Entry]()
        while place < end and len(found) < page.limit:
            step = min(end, place + page.limit - len(found))
            entries = collection.entries(place, step)
            found += [entry for entry in entries if not (page.unlabelled and entry.labels)]
            place = step
    total = stats["unlabelled" if page.unlabelled else "entries"]
    return total, found, place if place < stop else None


def tell_some(collection: Collection, ids: list[Any]) -> dict[str, Any]:
    """Return what is known of entries."""
    return {"entries": _tell(collection, collection.get(ids), codes=True)}


def tell_has(collection: Collection, ids: list[Any]) -> dict[str, Any]:
    """Return which ids are taken."""
    return {"has": collection.has(ids).tolist()}


def _tell(collection: Collection, entries: list[Entry], *, codes: bool) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for start in range(0, len(entries), TOGETHER):
        some = entries[start : start + TOGETHER]
        carried = collection.attachments([entry.id for entry in some])
        pairs = zip(some, carried, strict=True)
        told += [_entry(entry, attachment, codes=codes) for entry, attachment in pairs]
    return told


def _entry(entry: Entry, attachment: Attachment, *, codes: bool) -> dict[str, Any]:
    told = {
        "id": entry.id,
        "labels": [label_to_json(label) for label in entry.labels],
        "home": entry.home,
        "payload": attachment.payload,
        "thumbnail": attachment.thumbnail is not None,
    }
    code = None if entry.code is None else entry.code.astype(np.int8).tolist()
    return {**told, "code": code} if codes else told


def tell_labels(collection: Collection, start: int, limit: int) -> dict[str, Any]:
    """Return a page of labels in order of arrival."""
    labels = collection.labels()
    page = [
        {
            "label": label_to_json(info.label),
            "cycle": info.cycle,
            "entries": info.entries,
            "lessons": info.lessons,
            "codeword": None if info.codeword is None else info.codeword.tolist(),
        }
        for info in islice(labels, start, start + limit)
    ]
    return {"total": len(labels), "labels": page}


def picture_of(collection: Collection, name: Id) -> Picture:
    """Return the thumbnail of an entry."""
    data = collection.attachments([name])[0].thumbnail
    if data is None:
        raise UnknownNameError(f"entry {name!r} has no thumbnail", hint="POST /attach gives it one")
    tag = hashlib.sha256(data).hexdigest()[:32]
    return Picture(data, image_type(data) or "application/octet-stream", tag)
