"""Every route of the service, in one table.

Roles, limits, the OpenAPI document, the page at /docs, the list in docs/service.md and the client's
calls all come from here. `request` and `answer` name models of `everhash.serve.schemas`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from everhash.wire.examples import EXAMPLES, Example
from everhash.wire.media import ARROW, EVENTS, JSON, NPY, SQLITE

Role = Literal["read", "write", "admin"]
ROWS = (JSON, NPY, ARROW)
"""How rows may be sent."""


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
    free: bool = False
    """Whether it costs nothing, or has a limit of its own."""
    hurried: bool = True
    """Whether its answer has to be there in time."""

    @property
    def example(self) -> Example | None:
        """A request and its answer; None where an answer is no JSON, or differs each time."""
        return EXAMPLES.get(self.path)


ROUTES = (
    Route(
        *("POST", "/learn", "write"),
        "Move the mapping by rows and their labels; index nothing.",
        *("LearnRequest", "Learned", ROWS),
        writes=True,
    ),
    Route(
        *("POST", "/forget", "write"),
        "Take back rows that were learned, given as they were; entries stay as they are.",
        *("LearnRequest", "Forgotten", ROWS),
        writes=True,
    ),
    Route(
        *("POST", "/ingest", "write"),
        "Learn from rows and add them, in one transaction.",
        *("AddRequest", "Added", ROWS),
        writes=True,
    ),
    Route(
        *("POST", "/add", "write"),
        "Add entries: labelled ones by codeword, others by their bits.",
        *("AddRequest", "Added", ROWS),
        writes=True,
    ),
    Route(
        *("POST", "/upsert", "write"),
        "Add entries in place of those that have the same ids, and learn from them.",
        *("UpsertRequest", "Added", ROWS),
        writes=True,
    ),
    Route(
        *("POST", "/update", "write"),
        "Give entries other features; labels, payloads and thumbnails stay.",
        *("UpdateRequest", "Updated", ROWS),
        writes=True,
    ),
    Route(
        *("POST", "/attach", "write"),
        "Give entries payloads and thumbnails.",
        *("AttachRequest", "Attached", (JSON,)),
        writes=True,
    ),
    Route(
        *("POST", "/search", "read"),
        "Find the best entries of each query, ties to the entry added first.",
        *("SearchRequest", "SearchAnswer", ROWS),
    ),
    Route(
        *("POST", "/radius", "read"),
        "Find all entries no farther than r, or with a score of at least r, best first.",
        *("RadiusRequest", "SearchAnswer", ROWS),
    ),
    Route(
        *("POST", "/predict", "read"),
        "Name the likeliest label of each row.",
        *("PredictRequest", "Predicted", ROWS),
    ),
    Route(
        *("POST", "/get", "read"),
        "Return entries by their ids.",
        *("GetRequest", "Entries", (JSON,)),
    ),
    Route(
        *("POST", "/has", "read"),
        "Say for each id whether an entry has it.",
        *("IdsRequest", "Has", (JSON,)),
    ),
    Route(
        *("GET", "/entries", "read"),
        "List entries in order of arrival, or those that have a text or a label.",
        answer="EntriesPage",
    ),
    Route(
        *("GET", "/labels", "read"),
        "List labels in order of arrival.",
        answer="LabelsPage",
    ),
    Route(
        *("GET", "/stats", "read"),
        "Describe the collection.",
        answer="Stats",
    ),
    Route("GET", "/thumbnail", "read", "Return an entry's picture.", returns="image/*"),
    Route(
        *("POST", "/refresh", "write"),
        "Bring unlabelled entries up to date with the newest mapping.",
        answer="JobStarted",
        writes=True,
    ),
    Route(
        *("GET", "/jobs/{job}", "read"),
        "Say how far a refresh is.",
        answer="Job",
    ),
    Route(
        *("POST", "/label", "write"),
        "Give entries labels instead of what they had, and learn from it.",
        *("LabelRequest", "Labelled", (JSON,)),
        writes=True,
    ),
    Route(
        *("POST", "/unlabel", "write"),
        "Take the labels of entries away, and forget what they have taught.",
        *("UnlabelRequest", "Unlabelled", (JSON,)),
        writes=True,
    ),
    Route(
        *("POST", "/labels/rename", "write"),
        "Give a label another name.",
        *("RenameRequest", "Renamed", (JSON,)),
        writes=True,
    ),
    Route(
        *("POST", "/labels/merge", "write"),
        "Make two labels one.",
        *("MergeRequest", "Changed", (JSON,)),
        writes=True,
    ),
    Route(
        *("POST", "/labels/drop", "write"),
        "Forget a label: entries lose it, and no row is taken for it.",
        *("DropRequest", "Changed", (JSON,)),
        writes=True,
    ),
    Route(
        *("POST", "/remove", "write"),
        "Remove entries. Their ids are free again.",
        *("IdsRequest", "Removed", (JSON,)),
        writes=True,
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
        free=True,
    ),
    Route(
        *("GET", "/ready", None),
        "Say whether the collection is open.",
        answer="Ready",
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
