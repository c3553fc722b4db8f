"""GET /entries with a text or a label: a request looks at some entries, and says where to go on."""

from __future__ import annotations

from typing import Any

import pytest

from everhash.collection.collection import Collection
from tests.unit.serve.serving import Served, error_of


def ids_of(answer: dict[str, Any]) -> list[Any]:
    return [entry["id"] for entry in answer["entries"]]


def test_a_label_lists_its_entries(reading: Served, stored: Collection) -> None:
    expected = [entry.id for entry in stored.entries() if "ant" in entry.labels]
    answer = reading.get("/entries", params={"label": "ant"}).json()
    assert (ids_of(answer), answer["total"], answer["next"]) == (expected, len(expected), None)
    first = reading.get("/entries", params={"label": '"ant"', "json": "true", "limit": 1}).json()
    assert (ids_of(first), first["next"]) == (expected[:1], expected[1])
    none = reading.get("/entries", params={"label": "ant", "unlabelled": "true"}).json()
    assert (ids_of(none), none["total"]) == ([], 0)
    error = error_of(reading.get("/entries", params={"label": "nobody"}))
    assert (error["status"], error["code"]) == (404, "UnknownNameError")


def test_a_label_that_is_a_number_needs_no_quotes(writing: Served) -> None:
    writing.post(
        "/label", {"ids": [1, 2, 3, 4], "labels": [7, 2.5, 8, "8"], "teach": False, "new": True}
    )
    for label, expected in (("7", [1]), ("2.5", [2]), ("8", [4])):
        assert ids_of(writing.get("/entries", params={"label": label}).json()) == expected
    assert ids_of(writing.get("/entries", params={"label": "8", "json": "true"}).json()) == [3]


def test_a_request_looks_at_some_entries_and_says_where_to_go_on(
    writing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everhash.serve.entries.LOOKS", 25)
    writing.post("/attach", {"ids": [3, 24, 51], "payloads": ["a Boot", {"x": ["boots"]}, "boot"]})
    requests: list[Any] = []
    place: int | None = 0
    while place is not None:
        answer = writing.get("/entries", params={"text": "BOOT", "start": place}).json()
        assert answer["total"] is None
        requests.append((ids_of(answer), answer["next"]))
        place = answer["next"]
    assert requests == [([3, 24], 25), ([], 50), ([51], None)]
    short = writing.get("/entries", params={"text": "boot", "limit": 1, "stop": 20}).json()
    assert (ids_of(short), short["next"]) == ([3], 4)
    labelled = writing.get("/entries", params={"text": "boot", "label": "ant"}).json()
    assert labelled["next"] is None  # so few have the label that all are looked at


def test_entries_with_a_text_are_counted_where_all_were_looked_at(
    writing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = list(range(0, 60, 2))
    writing.post("/attach", {"ids": ids, "payloads": [f"boot {i}" for i in ids]})

    def told(**params: Any) -> tuple[int, int | None, int | None]:
        answer = writing.get("/entries", params={"text": "boot", **params}).json()
        return len(answer["entries"]), answer["total"], answer["next"]

    assert told(limit=7) == (7, 30, 13)
    assert told(limit=7, start=13) == (7, None, 27)
    assert told(limit=30) == (30, 30, 59)
    assert told(limit=7, stop=50) == (7, None, 13)
    assert told(limit=100) == (30, 30, None)
    assert told(limit=3, unlabelled=True) == (3, 10, 45)
    monkeypatch.setattr("everhash.serve.entries.COUNTED", 10)
    assert told(limit=7) == (7, None, 13)


def test_an_empty_text_is_none(reading: Served) -> None:
    everything, empty = (reading.get("/entries", params=p).json() for p in ({}, {"text": ""}))
    assert everything == empty


def test_a_number_is_found_by_the_whole_of_it(reading: Served) -> None:
    assert ids_of(reading.get("/entries", params={"text": "4"}).json()) == [4]
