"""Media types of bodies, and a header that more than one side needs."""

from __future__ import annotations

JSON = "application/json"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
SQLITE = "application/vnd.sqlite3"
EVENTS = "text/event-stream"
PLACE = "Everhash-Place"
"""The header that says where messages are read: a place of `everhash.places`."""


def media_type(content_type: str) -> str:
    """Return the type that a Content-Type header names, without its parameters.

    >>> media_type("Application/JSON; charset=utf-8")
    'application/json'
    """
    return content_type.partition(";")[0].strip().lower()
