"""What is read from the collection, in the search thread, as JSON tells it."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from everhash.collection.attachments import Attachment, image_type
from everhash.collection.collection import Collection
from everhash.errors import UnknownNameError
from everhash.index.entries import Entry
from everhash.wire.ids import Id
from everhash.wire.labels import label_to_json

TOGETHER = 500
"""Entries whose attachments are held at a time: pictures are looked at, and not told."""


class Picture(NamedTuple):
    """An image, and a name for just these bytes."""

    data: bytes
    media_type: str
    tag: str


class Asked(NamedTuple):
    """Which entries to tell of; see `Collection.page`."""

    start: int
    limit: int
    stop: int | None
    unlabelled: bool
    codes: bool
    """Their codes too."""


def tell_entries(collection: Collection, asked: Asked) -> dict[str, Any]:
    """Return a page of entries in order of arrival, and where the next one starts."""
    start, limit, stop, unlabelled, codes = asked
    with collection.held():  # entries and what they carry from one state
        stats = collection.stats()
        found, after = collection.page(start, limit, stop, unlabelled=unlabelled)
        told = _tell(collection, found, codes=codes)
    total = stats["unlabelled" if unlabelled else "entries"]
    return {"total": total, "next": after, "entries": told}


def tell_some(collection: Collection, ids: list[Any]) -> dict[str, Any]:
    """Return what is known of entries."""
    with collection.held():
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
    with collection.held():
        total = len(collection.hasher.words_)
        infos = collection.labels(min(start, total), min(start + limit, total))
    page = [
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
    return {"total": total, "labels": page}


def picture_of(collection: Collection, name: Id) -> Picture:
    """Return the thumbnail of an entry."""
    data = collection.attachments([name])[0].thumbnail
    if data is None:
        raise UnknownNameError(f"entry {name!r} has no thumbnail", hint="POST /attach gives it one")
    tag = hashlib.sha256(data).hexdigest()[:32]
    return Picture(data, image_type(data) or "application/octet-stream", tag)
