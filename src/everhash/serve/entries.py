"""Entries, labels and stats as JSON."""

from __future__ import annotations

import json
from collections.abc import Hashable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import everhash
from everhash.collection.as_json import entry_to_json, label_info_to_json
from everhash.collection.typed import typed_ids, typed_label
from everhash.errors import OptionError, TooLargeError
from everhash.index.entries import Entry
from everhash.serve import limits
from everhash.serve.fields import read_label
from everhash.serve.served import Served
from everhash.wire.ids import Id, as_id
from everhash.wire.options import check_text

TOGETHER = 500
"""Entries whose attachments are in memory at a time: pictures are read, and not sent."""


LOOKS = 20_000
"""Entries that one request looks at for a text; other requests have their turn in between."""
COUNTED = 1000
"""Entries with a text that are counted beyond those of the first page."""


class PageRequest(NamedTuple):
    """Which entries to return; see `Collection.page`."""

    start: int
    limit: int
    stop: int | None
    unlabelled: bool
    text: str | None
    label: str | None
    as_json: bool
    """Whether the label is written in JSON."""
    codes: bool
    """Their codes too."""


def entries_page(collection: Served, page: PageRequest) -> dict[str, Any]:
    """Return entries in order of arrival, and where to go on."""
    label = None if page.label is None else label_of(collection, page.label, as_json=page.as_json)
    text = check_text(page.text)
    with collection.held():  # entries and attachments of one state
        stats = collection.stats()
        total = stats["unlabelled" if page.unlabelled else "entries"]
        if label is not None:
            total = 0 if page.unlabelled else _count(collection, label)
        end = min(stats["arrived"] if page.stop is None else page.stop, stats["arrived"])
        searched = text is not None and total > LOOKS
        stop = min(page.start + LOOKS, end) if searched else end
        if page.codes:
            _check_codes(min(page.limit, total), stats, collection)
        wanted: dict[str, Any] = {"unlabelled": page.unlabelled, "text": text, "label": label}
        found, after = collection.page(page.start, page.limit, stop, **wanted)
        if after is None and stop < end:
            after = stop
        if text is not None:
            countable = page.start == 0 and page.stop is None and stop == end
            rest = _rest(collection, after, end, wanted) if countable else None
            total = None if rest is None else len(found) + rest
        described = _describe(collection, found, codes=page.codes)
    return {"total": total, "next": after, "entries": described}


def _rest(collection: Served, start: int | None, stop: int, wanted: dict[str, Any]) -> int | None:
    """Return how many more entries have what is wanted; None if they are too many to count."""
    if start is None:
        return 0
    found, after = collection.page(start, COUNTED, stop, **wanted)
    return len(found) if after is None else None


def _count(collection: Served, label: Hashable) -> int:
    """Return how many entries have a label."""
    hasher = collection.hasher
    number = int(hasher.numbers([label])[0])
    at = sum(name is not None for name in hasher.labels_[:number])
    return collection.labels(at, at + 1)[0].entries


def label_of(collection: Served, text: str, *, as_json: bool) -> Hashable:
    """Return the label that a query string names."""
    if as_json:
        return read_label(_json(text))
    return typed_label(text, lambda label: not collection.hasher.unknown([label]))


def id_of(collection: Served, text: str, *, as_json: bool) -> Id:
    """Return the id that a query string names."""
    return as_id(_json(text) if as_json else typed_ids(collection, [text])[0])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise OptionError(
            f"{text!r:.80} is no JSON", hint="leave json=true out, or write texts in quotes"
        ) from None


def entries_of(collection: Served, ids: list[Any]) -> dict[str, Any]:
    """Return entries by their ids."""
    with collection.held():
        _check_codes(len(ids), collection.stats(), collection)
        return {"entries": _describe(collection, collection.get(ids), codes=True)}


def _check_codes(entries: int, stats: dict[str, Any], collection: Served) -> None:
    """Refuse codes of more bits than an answer may hold, before one of them is unpacked."""
    width = collection.hasher.width_ if stats["coding"] == "full" else stats["bits"]
    if entries * width > limits.EXPLAINED:
        most = limits.EXPLAINED // width
        raise TooLargeError(
            f"{entries} codes of {width} bits, at most {most} in an answer",
            hint="ask for fewer entries at a time, or list them without codes",
        )


def _describe(collection: Served, found: list[Entry], *, codes: bool) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    for start in range(0, len(found), TOGETHER):
        part = found[start : start + TOGETHER]
        attachments = collection.attachments([entry.id for entry in part])
        pairs = zip(part, attachments, strict=True)
        described += [entry_to_json(entry, attachment, code=codes) for entry, attachment in pairs]
    return described


def count_labels(collection: Served) -> int:
    """Return how many labels there are; those that were merged or dropped are gone."""
    return sum(label is not None for label in collection.hasher.labels_)


def labels_page(collection: Served, start: int, limit: int) -> dict[str, Any]:
    """Return labels in order of arrival."""
    with collection.held():
        total = count_labels(collection)
        infos = collection.labels(min(start, total), min(start + limit, total))
    return {"total": total, "labels": [label_info_to_json(info) for info in infos]}


def stats_of(collection: Served, *, readonly: bool) -> dict[str, Any]:
    """Return the stats of a collection, without the folder of its file."""
    with collection.held() if readonly else nullcontext():  # others would wait for a commit
        stats, hasher = collection.stats(), collection.hasher
        path = stats.pop("path")
        return {
            **stats,
            "labels": count_labels(collection),
            "cycles": hasher.n_cycles_,
            "width": hasher.width_,
            "version": everhash.__version__,
            "readonly": readonly,
            "name": None if path is None else Path(path).name,
        }
