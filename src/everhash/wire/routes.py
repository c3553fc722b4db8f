"""Every route of the service, in one table.

Roles, limits, the OpenAPI document, the page at /docs, the list in docs/service.md and the client's
calls all come from here. `request` and `answer` name models of `everhash.serve.schemas`; the
examples of all rows, from top to bottom, are one session with a collection of four features and
eight bits, which a test goes through.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from everhash.wire.media import ARROW, EVENTS, JSON, NPY, SQLITE

Role = Literal["read", "write", "admin"]
ROWS = (JSON, NPY, ARROW)
"""How rows may be sent."""


class Example(NamedTuple):
    """A request, None where it has no body, and its answer."""

    request: dict[str, Any] | None
    answer: dict[str, Any]
    status: int = 200


class Route(NamedTuple):
    """What is known of a route."""

    method: str
    path: str
    role: Role | None
    """What a key has to allow; None where no key is needed."""
    summary: str
    request: str | None = None
    answer: str | None = None
    takes: tuple[str, ...] = ()
    """Media types of its body; no other body is read."""
    returns: str = JSON
    writes: bool = False
    example: Example | None = None
    free: bool = False
    """Whether it costs nothing, or has a limit of its own."""
    hurried: bool = True
    """Whether its answer has to be there in time."""


BOOTS, HAT, CAP = [0.9, 0.1, 0.3, 0.2], [-0.2, 1.1, 0.4, 0.1], [-0.1, 0.9, 0.5, 0.3]
RECORD = {
    **{"rows": 4, "published_rows": 4, "scored_rows": 3},
    **{"accuracy": 0.667, "log_loss": 7.469, "temperature": 0.455},
}
REPORT = {
    **{"entries": 1, "entries_touched": 0, "bits_recomputed": 0, "bits_certified": 0},
    **{"bits_flipped": 0, "homes_checked": 0, "homes_moved": 0, "seconds": 0.001, "dry_run": False},
}
STATS = {
    **{"entries": 3, "arrived": 3, "labelled": 2, "unlabelled": 1, "coded": 1, "read_only": 0},
    **{"labels": 2, "cycles": 1, "width": 8, "coding": "home", "stale_bits": 0},
    **{"mapping_version": 80, "hasher_version": 80, "method": "everhash", "learned": RECORD},
    **{"dim": 4, "bits": 8, "bytes": 163840, "commit": 5, "last_refresh": None},
    **{"version": "0.1.0", "readonly": False},
}


def _entry(name: str, labels: list[str], home: int | None, title: str | None) -> dict[str, Any]:
    payload = None if title is None else {"title": title}
    return {"id": name, "labels": labels, "home": home, "payload": payload, "thumbnail": False}


def _found(*matches: tuple[str, float, str | None]) -> dict[str, Any]:
    """Return an answer to the cap: ids, distances and labels."""
    found = [dict(zip(("id", "distance", "label"), match, strict=True)) for match in matches]
    return {"matches": [{"novelty": -3.659, "found": found}], "columns": len(found)}


def _label(label: str, accuracy: float, word: list[int]) -> dict[str, Any]:
    counts = {"cycle": 0, "entries": 1, "lessons": 2}
    return {"label": label, **counts, "accuracy": accuracy, "codeword": word}


ROUTES = (
    Route(
        *("POST", "/learn", "write"),
        "Move the mapping by rows and their labels; index nothing.",
        *("LearnRequest", "Learned", ROWS),
        writes=True,
        example=Example(
            {"rows": [BOOTS, HAT, CAP], "labels": ["boots", "hats", "boots"]},
            {"learned": 3, "labels": 2},
        ),
    ),
    Route(
        *("POST", "/forget", "write"),
        "Take back rows that were learned, given as they were; entries stay as they are.",
        *("LearnRequest", "Forgotten", ROWS),
        writes=True,
        example=Example({"rows": [CAP], "labels": ["boots"]}, {"forgotten": 1}),
    ),
    Route(
        *("POST", "/ingest", "write"),
        "Learn from rows and add them, in one transaction.",
        *("AddRequest", "Added", ROWS),
        writes=True,
        example=Example(
            {
                **{"rows": [BOOTS, HAT], "labels": ["boots", "hats"], "ids": ["sku-1", "sku-2"]},
                "payloads": [{"title": "red boots"}, None],
            },
            {"ids": ["sku-1", "sku-2"]},
        ),
    ),
    Route(
        *("POST", "/add", "write"),
        "Add entries: labelled ones by codeword, others by their bits.",
        *("AddRequest", "Added", ROWS),
        writes=True,
        example=Example({"rows": [CAP], "ids": ["sku-3"]}, {"ids": ["sku-3"]}),
    ),
    Route(
        *("POST", "/attach", "write"),
        "Give entries payloads and thumbnails.",
        *("AttachRequest", "Attached", (JSON,)),
        writes=True,
        example=Example({"ids": ["sku-2"], "payloads": [{"title": "straw hat"}]}, {"attached": 1}),
    ),
    Route(
        *("POST", "/search", "read"),
        "Find the nearest entries of each query, ties to the entry added first.",
        *("SearchRequest", "SearchAnswer", ROWS),
        example=Example(
            {"rows": [CAP], "k": 2}, _found(("sku-2", -3.659, "hats"), ("sku-3", -3.659, None))
        ),
    ),
    Route(
        *("POST", "/radius", "read"),
        "Find all entries no farther than r, nearest first.",
        *("RadiusRequest", "SearchAnswer", ROWS),
        example=Example(
            {"rows": [CAP], "r": 2}, _found(("sku-3", 0.0, None), ("sku-2", 2.0, "hats"))
        ),
    ),
    Route(
        *("POST", "/get", "read"),
        "Return entries by their ids.",
        *("GetRequest", "Entries", (JSON,)),
        example=Example(
            {"ids": ["sku-1", "sku-3"]},
            {
                "entries": [
                    {**_entry("sku-1", ["boots"], None, "red boots"), "code": None},
                    {**_entry("sku-3", [], 0, None), "code": [0, 0, 0, 0, 0, 1, 0, 1]},
                ]
            },
        ),
    ),
    Route(
        *("POST", "/has", "read"),
        "Say for each id whether an entry has it, or had it before it was removed.",
        *("IdsRequest", "Has", (JSON,)),
        example=Example({"ids": ["sku-1", "sku-9"]}, {"has": [True, False]}),
    ),
    Route(
        *("GET", "/entries", "read"),
        "List entries in order of arrival.",
        answer="EntriesPage",
        example=Example(
            None,
            {
                **{"total": 3, "next": None},
                "entries": [
                    _entry("sku-1", ["boots"], None, "red boots"),
                    _entry("sku-2", ["hats"], None, "straw hat"),
                    _entry("sku-3", [], 0, None),
                ],
            },
        ),
    ),
    Route(
        *("GET", "/labels", "read"),
        "List labels in order of arrival.",
        answer="LabelsPage",
        example=Example(
            None,
            {
                "total": 2,
                "labels": [
                    _label("boots", 0.5, [1, -1, -1, 1, 1, -1, 1, -1]),
                    _label("hats", 1.0, [-1, -1, -1, 1, -1, 1, 1, 1]),
                ],
            },
        ),
    ),
    Route(
        *("GET", "/stats", "read"),
        "Describe the collection.",
        answer="Stats",
        example=Example(None, STATS),
    ),
    Route("GET", "/thumbnail", "read", "Return an entry's picture.", returns="image/*"),
    Route(
        *("POST", "/refresh", "write"),
        "Bring unlabelled entries up to date with the newest mapping.",
        answer="JobStarted",
        writes=True,
        example=Example(None, {"job": "1"}, 202),
    ),
    Route(
        *("GET", "/jobs/{job}", "read"),
        "Say how far a refresh is.",
        answer="Job",
        example=Example(
            None, {"job": "1", "state": "done", "progress": 1.0, "report": REPORT, "error": None}
        ),
    ),
    Route(
        *("POST", "/label", "write"),
        "Give entries labels instead of what they had.",
        *("LabelRequest", "Labelled", (JSON,)),
        writes=True,
        example=Example({"ids": ["sku-3"], "labels": ["hats"]}, {"labelled": 1}),
    ),
    Route(
        *("POST", "/remove", "write"),
        "Remove entries. Their ids are never used again.",
        *("IdsRequest", "Removed", (JSON,)),
        writes=True,
        example=Example({"ids": ["sku-2"]}, {"removed": 1}),
    ),
    Route("GET", "/events", "read", "Send events as they happen.", returns=EVENTS, free=True),
    Route(
        *("GET", "/snapshot", "admin"),
        "Send a compact copy of the collection's file as it is now.",
        returns=SQLITE,
        hurried=False,
    ),
    Route("GET", "/metrics", "read", "Return counters for Prometheus.", returns="text/plain"),
    Route(
        *("GET", "/live", None),
        "Say that the process answers.",
        answer="Live",
        example=Example(None, {"live": True}),
        free=True,
    ),
    Route(
        *("GET", "/ready", None),
        "Say whether the collection is open.",
        answer="Ready",
        example=Example(None, {"ready": True}),
        free=True,
    ),
    Route("GET", "/limits", None, "Say how large requests may get.", answer="Limits", free=True),
    Route("GET", "/openapi.json", None, "Describe all routes for programs."),
    Route("GET", "/docs", None, "Describe all routes for people.", returns="text/html"),
    Route("GET", "/", None, "The page.", returns="text/html"),
    Route("GET", "/static", None, "Files of the page.", returns="*/*"),
)
BY_PATH = {route.path: route for route in ROUTES}
DESCRIBED = tuple(route for route in ROUTES if route.path not in ("/", "/static"))
"""Routes that programs call; the others are the page."""


def route_of(path: str) -> Route | None:
    """Return the route a path belongs to.

    >>> [getattr(route_of(path), "path", None) for path in ("/search", "/jobs/7", "/nope")]
    ['/search', '/jobs/{job}', None]
    """
    if path in BY_PATH:
        return BY_PATH[path]
    if path.startswith("/jobs/"):
        return BY_PATH["/jobs/{job}"]
    return BY_PATH["/static"] if path.startswith("/static/") else None
