"""Answers have an end, too."""

from __future__ import annotations

from typing import Any

import pytest

from everhash.collection.collection import Collection
from everhash.serve import limits
from tests.unit.serve.serving import ARROW, DIM, Served, error_of, serving

ROWS = [[0.5] * DIM]
ACCEPTED = [{}, {"Accept": ARROW}]


@pytest.mark.parametrize("headers", ACCEPTED, ids=["JSON", "Arrow"])
@pytest.mark.parametrize(
    ("path", "asked"),
    [("/search", {"k": 60}), ("/radius", {"r": 16}), ("/search", {"payloads": True})],
)
def test_an_answer_of_too_many_bytes_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, reading: Served, path: str, asked: Any, headers: Any
) -> None:
    told = {"rows": 40 * ROWS, **asked}
    assert reading.post(path, told, headers=headers).status_code == 200
    monkeypatch.setattr(limits, "ANSWER", 10_000)
    refused = error_of(reading.post(path, told, headers=headers))
    assert (refused["status"], refused["code"]) == (413, "TooLargeError")
    assert "10000 bytes" in refused["message"]
    assert "fewer queries" in refused["hint"]
    assert "payloads" in refused["hint"]


def test_payloads_are_read_for_some_queries_at_a_time(
    monkeypatch: pytest.MonkeyPatch, writing: Served, collection: Collection
) -> None:
    collection.attach(range(60), payloads=[{"number": number} for number in range(60)])
    asked = {"rows": 40 * ROWS, "k": 50, "payloads": True}
    whole = writing.post("/search", asked).json()
    sizes, search = [], Collection.search

    def counted(self: Collection, X: Any, *arguments: Any, **options: Any) -> Any:
        sizes.append(len(X))
        return search(self, X, *arguments, **options)

    monkeypatch.setattr(Collection, "search", counted)
    monkeypatch.setattr(limits, "PAYLOADS", 100)
    assert writing.post("/search", asked).json() == whole
    assert (sum(sizes), max(sizes)) == (40, 2)
    found = writing.post("/radius", {"rows": ROWS, "r": 16, "payloads": True})
    assert len(found.json()["matches"][0]["found"]) == 60
    monkeypatch.setattr(limits, "PAYLOADS", 50)
    refused = error_of(writing.post("/radius", {"rows": ROWS, "r": 16, "payloads": True}))
    assert (refused["status"], refused["code"]) == (413, "TooLargeError")
    assert "60 matches with payloads, at most 50" in refused["message"]


def test_codes_of_entries_are_counted_before_they_are_unpacked(
    monkeypatch: pytest.MonkeyPatch, reading: Served
) -> None:
    monkeypatch.setattr(limits, "EXPLAINED", 16 * 10)
    ids = list(range(40, 51))
    for refused in (
        reading.post("/get", {"ids": ids}),
        reading.get("/entries", params={"codes": True, "limit": 11}),
    ):
        assert error_of(refused)["status"] == 413
        assert "11 codes of 16 bits, at most 10" in error_of(refused)["message"]
    assert reading.post("/get", {"ids": ids[1:]}).status_code == 200
    assert reading.get("/entries", params={"limit": 11}).status_code == 200


def test_an_answer_in_pieces_is_the_answer_in_one(writing: Served, collection: Collection) -> None:
    asked = {"rows": 300 * ROWS, "k": 60}  # more than is sent at a time
    answer = writing.post("/search", asked)
    assert len(answer.content) == int(answer.headers["content-length"]) > 1 << 20
    assert [len(query["found"]) for query in answer.json()["matches"]] == [60] * 300
    with serving(collection) as other:
        assert other.post("/search", asked).content == answer.content
