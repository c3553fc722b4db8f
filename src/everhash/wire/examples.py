"""A request and its answer for each route that answers with JSON.

From top to bottom they are one session with a collection of four features and eight bits, which a
test goes through.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Example(NamedTuple):
    """A request, None where it has no body, and its answer."""

    request: dict[str, Any] | None
    answer: dict[str, Any]
    status: int = 200


BOOTS, SANDAL = [0.9, 0.1, 0.3, 0.2], [0.8, -0.1, 0.2, 0.4]
HAT, CAP = [-0.2, 1.1, 0.4, 0.1], [-0.1, 0.9, 0.5, 0.3]
RECORD = {
    **{"rows": 5, "published_rows": 5, "scored_rows": 5},
    **{"accuracy": 0.8, "accuracy_now": 1.0, "log_loss": 0.823, "temperature": 0.326},
}
REPORT = {
    **{"entries": 1, "entries_touched": 0, "bits_recomputed": 0, "bits_certified": 0},
    **{"bits_flipped": 0, "homes_checked": 0, "homes_moved": 0, "seconds": 0.001, "dry_run": False},
}
LAST = {"at": "2026-11-17T05:38:21+00:00", **REPORT, "entries_touched": 1, "bits_recomputed": 8}
STATS = {
    **{"entries": 4, "arrived": 5, "labelled": 3, "unlabelled": 1, "coded": 1, "unrefreshable": 0},
    **{"labels": 2, "cycles": 1, "width": 8, "coding": "home", "keep_features": "all"},
    **{"likeness": True, "cells": 1, "recall": 1.0, "stale_bits": 0},
    **{"mapping_version": 104, "hasher_version": 104},
    **{"method": "everhash", "learned": RECORD, "dim": 4, "bits": 8, "bytes": 196608, "commit": 7},
    **{"last_refresh": LAST, "sqlite": "3.51.3", "wal_reset_bug": False, "refreshing": False},
    **{"version": "0.1.0", "readonly": False, "name": "c.ever"},
}
FIELDS = ("id", "score", "likeness", "label", "guess", "payload")


def _found(by: str, *matches: tuple[Any, ...]) -> dict[str, Any]:
    """Return an answer to the cap: what `FIELDS` names of each match, payloads if there are."""
    found = [dict(zip(FIELDS, match, strict=False)) for match in matches]
    return {"matches": [{"by": by, "novelty": 0.199, "found": found}], "columns": len(found)}


def _entry(
    name: str, labels: list[str], title: str | None = None, guess: str | None = None
) -> dict[str, Any]:
    home, payload = (None if labels else 0), (None if title is None else {"title": title})
    entry = {"id": name, "labels": labels, "home": home, "payload": payload}
    return {**entry, "thumbnail": False, "guess": guess}


def _label(label: str, entries: int, accuracy: float, word: list[int]) -> dict[str, Any]:
    counts = {"cycle": 0, "entries": entries, "lessons": entries + 1}
    return {"label": label, **counts, "accuracy": accuracy, "codeword": word}


EXAMPLES = {
    "/learn": Example(
        {"rows": [BOOTS, HAT, CAP], "labels": ["boots", "hats", "boots"]},
        {"learned": 3, "labels": 2},
    ),
    "/forget": Example({"rows": [CAP], "labels": ["boots"]}, {"forgotten": 1}),
    "/ingest": Example(
        {
            **{"rows": [BOOTS, HAT], "labels": ["boots", "hats"], "ids": ["sku-1", "sku-2"]},
            "payloads": [{"title": "red boots"}, None],
        },
        {"ids": ["sku-1", "sku-2"]},
    ),
    "/add": Example({"rows": [CAP], "ids": ["sku-3"]}, {"ids": ["sku-3"]}),
    "/upsert": Example(
        {"rows": [SANDAL], "labels": ["boots"], "ids": ["sku-4"]}, {"ids": ["sku-4"]}
    ),
    "/update": Example({"rows": [BOOTS], "ids": ["sku-1"]}, {"updated": 1}),
    "/attach": Example({"ids": ["sku-2"], "payloads": [{"title": "straw hat"}]}, {"attached": 1}),
    "/search": Example(
        {"rows": [CAP], "k": 2, "payloads": True},
        _found(
            "relevance",
            ("sku-2", 0.979, 0.966, "hats", None, {"title": "straw hat"}),
            ("sku-3", 0.938, 1.0, None, "hats", None),
        ),
    ),
    "/radius": Example(
        {"rows": [CAP], "r": 2},
        _found("hamming", ("sku-3", 0.0, None, None, "hats"), ("sku-2", 2.0, None, "hats", None)),
    ),
    "/predict": Example({"rows": [CAP]}, {"labels": ["hats"], "dtype": "<U5"}),
    "/get": Example(
        {"ids": ["sku-1", "sku-3"]},
        {
            "entries": [
                {**_entry("sku-1", ["boots"], "red boots"), "code": None},
                {**_entry("sku-3", [], guess="hats"), "code": [0, 0, 0, 0, 0, 1, 0, 1]},
            ]
        },
    ),
    "/has": Example({"ids": ["sku-1", "sku-9"]}, {"has": [True, False]}),
    "/entries": Example(
        None,
        {
            **{"total": 4, "next": None},
            "entries": [
                _entry("sku-2", ["hats"], "straw hat"),
                _entry("sku-3", [], guess="hats"),
                _entry("sku-4", ["boots"]),
                _entry("sku-1", ["boots"], "red boots"),
            ],
        },
    ),
    "/labels": Example(
        None,
        {
            "total": 2,
            "labels": [
                _label("boots", 2, 0.75, [1, -1, -1, 1, 1, -1, 1, -1]),
                _label("hats", 1, 1.0, [-1, -1, -1, 1, -1, 1, 1, 1]),
            ],
        },
    ),
    "/stats": Example(None, STATS),
    "/refresh": Example(None, {"job": "1"}, 202),
    "/jobs/{job}": Example(
        None, {"job": "1", "state": "done", "progress": 1.0, "report": REPORT, "error": None}
    ),
    "/label": Example(
        {
            "ids": ["sku-3", "sku-4"],
            "labels": ["hats", "boot"],
            "expect": [None, "boots"],
            "new": True,
        },
        {"labelled": 2, "new": [{"label": "boot", "near": ["boots"]}]},
    ),
    "/unlabel": Example({"ids": ["sku-3"]}, {"unlabelled": 1}),
    "/labels/rename": Example({"label": "hats", "to": "headwear"}, {"label": "headwear"}),
    "/labels/merge": Example({"label": "boot", "into": "boots"}, {"entries": 1}),
    "/labels/drop": Example({"label": "headwear"}, {"entries": 1}),
    "/remove": Example({"ids": ["sku-2"]}, {"removed": 1}),
    "/live": Example(None, {"live": True}),
    "/ready": Example(None, {"ready": True, "readonly": False}),
}
"""By path, in order."""
