"""One example of each request and its answer, for the OpenAPI document.

They are one session with a collection of four features and eight bits, from top to bottom: a test
goes through it and holds the answers against these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

BOOTS, HAT, CAP = [0.9, 0.1, 0.3, 0.2], [-0.2, 1.1, 0.4, 0.1], [-0.1, 0.9, 0.5, 0.3]


class Example(NamedTuple):
    """What is sent, None where there is no body, and what comes back."""

    request: dict[str, Any] | None
    answer: dict[str, Any]
    status: int = 200


def _told(name: str, labels: list[str], home: int | None, title: str | None) -> dict[str, Any]:
    payload = None if title is None else {"title": title}
    return {"id": name, "labels": labels, "home": home, "payload": payload, "thumbnail": False}


def _found(*entries: tuple[str, float, str | None]) -> dict[str, Any]:
    """Return an answer to the cap: ids, distances and labels."""
    found = [dict(zip(("id", "distance", "label"), entry, strict=True)) for entry in entries]
    return {"matches": [{"novelty": -3.659, "found": found}], "columns": len(found)}


RECORD = {
    **{"rows": 4, "published_rows": 4, "scored_rows": 3},
    **{"accuracy": 0.667, "log_loss": 7.469, "temperature": 0.455},
}
REPORT = {
    **{"entries": 1, "entries_touched": 0, "bits_recomputed": 0, "bits_certified": 0},
    **{"bits_flipped": 0, "homes_checked": 0, "homes_moved": 0, "seconds": 0.001, "dry_run": False},
}
EXAMPLES: dict[str, Example] = {
    "/learn": Example(
        {"rows": [BOOTS, HAT, CAP], "labels": ["boots", "hats", "boots"]},
        {"learned": 3, "labels": 2},
    ),
    "/forget": Example({"rows": [CAP], "labels": ["boots"]}, {"forgotten": 1}),
    "/ingest": Example(
        {
            "rows": [BOOTS, HAT],
            "labels": ["boots", "hats"],
            "ids": ["sku-1", "sku-2"],
            "payloads": [{"title": "red boots"}, None],
        },
        {"ids": ["sku-1", "sku-2"]},
    ),
    "/add": Example({"rows": [CAP], "ids": ["sku-3"]}, {"ids": ["sku-3"]}),
    "/attach": Example({"ids": ["sku-2"], "payloads": [{"title": "straw hat"}]}, {"attached": 1}),
    "/search": Example(
        {"rows": [CAP], "k": 2}, _found(("sku-2", -3.659, "hats"), ("sku-3", -3.659, None))
    ),
    "/radius": Example({"rows": [CAP], "r": 2}, _found(("sku-3", 0, None), ("sku-2", 2, "hats"))),
    "/get": Example(
        {"ids": ["sku-1", "sku-3"]},
        {
            "entries": [
                {**_told("sku-1", ["boots"], None, "red boots"), "code": None},
                {**_told("sku-3", [], 0, None), "code": [0, 0, 0, 0, 0, 1, 0, 1]},
            ]
        },
    ),
    "/has": Example({"ids": ["sku-1", "sku-9"]}, {"has": [True, False]}),
    "/entries": Example(
        None,
        {
            "total": 3,
            "next": None,
            "entries": [
                _told("sku-1", ["boots"], None, "red boots"),
                _told("sku-2", ["hats"], None, "straw hat"),
                _told("sku-3", [], 0, None),
            ],
        },
    ),
    "/labels": Example(
        None,
        {
            "total": 2,
            "labels": [
                {
                    **{"label": label, "cycle": 0, "entries": 1, "lessons": 2},
                    **{"accuracy": accuracy, "codeword": word},
                }
                for label, accuracy, word in (
                    ("boots", 0.5, [1, -1, -1, 1, 1, -1, 1, -1]),
                    ("hats", 1.0, [-1, -1, -1, 1, -1, 1, 1, 1]),
                )
            ],
        },
    ),
    "/stats": Example(
        None,
        {
            **{"entries": 3, "arrived": 3, "labelled": 2, "unlabelled": 1, "coded": 1},
            **{"read_only": 0, "labels": 2, "cycles": 1, "width": 8, "coding": "home"},
            **{"stale_bits": 0, "mapping_version": 80, "hasher_version": 80},
            **{"method": "everhash", "learned": RECORD, "dim": 4, "bits": 8},
            **{"bytes": 163840, "commit": 5},
            **{"last_refresh": None, "version": "0.1.0", "readonly": False},
        },
    ),
    "/live": Example(None, {"live": True}),
    "/ready": Example(None, {"ready": True}),
    "/refresh": Example(None, {"job": "1"}, 202),
    "/jobs/{job}": Example(
        None, {"job": "1", "state": "done", "progress": 1.0, "report": REPORT, "error": None}
    ),
    "/label": Example({"ids": ["sku-3"], "labels": ["hats"]}, {"labelled": 1}),
    "/remove": Example({"ids": ["sku-2"]}, {"removed": 1}),
}
PROBLEM = {
    "error": {
        "code": "DimensionError",
        "message": "X has 3 features, but OnlineHasher is expecting 4 features as input",
        "hint": "embed the data as before, or start a new one",
        "status": 422,
        "exit": 2,
        "values": {"expected": 4, "got": 3},
    }
}
"""What /search answers to a row that is too short."""
