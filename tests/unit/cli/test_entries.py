"""`everhash get`, `entries` and `remove`: entries by ids typed as text, and in order of arrival."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash.collection.as_json import entry_to_json
from tests.unit.cli.commands import COLUMNS, DIM, Write, answers, output, rows, stats


def ids_of(entries: list[dict[str, Any]]) -> list[Any]:
    return [entry["id"] for entry in entries]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Return a collection with payloads: three labelled entries and two without a label."""
    path = tmp_path / "notes.ever"
    X, _ = rows(5)
    texts = ["winter boots", "summer hats", None, {"title": "winter coat"}, ["wool", 3]]
    with everhash.create(path, dim=DIM) as collection:
        collection.ingest(X, ["a", "b", "a", None, None], list("vwxyz"), payloads=texts)
    return path


def test_get_is_what_the_library_and_the_service_say_of_entries(shop: Path) -> None:
    with everhash.open(shop, readonly=True) as collection:
        pairs = zip(collection.get(["sku-1", 3]), collection.attachments(["sku-1", 3]), strict=True)
        expected = [entry_to_json(*pair, code=True) for pair in pairs]
    assert answers("get", shop, "sku-1", 3, 3, "--code") == expected
    for entry in expected:
        del entry["code"]
    assert answers("get", shop, "sku-1", 3) == expected


def test_get_shows_labels_guesses_codes_and_payloads(notes: Path) -> None:
    heading, *lines = output("get", notes, "v", "y").splitlines()
    assert heading.split() == ["id", "label", "payload"]
    assert lines[0].split() == ["v", "a", "winter", "boots"]
    assert lines[1].split()[1] in ("~a", "~b")
    assert lines[1].endswith("winter coat")
    heading, line = output("get", notes, "y", "--code").splitlines()
    assert heading.split() == ["id", "label", "code", "payload"]
    assert set(line.split()[2]) <= {"0", "1"}
    assert len(line.split()[2]) == 32


def test_entries_are_listed_in_order_of_arrival(shop: Path) -> None:
    listed = answers("entries", shop)
    assert ids_of(listed) == [*(f"sku-{i}" for i in range(30)), *range(10)]
    assert listed[:2] == answers("get", shop, "sku-0", "sku-1")
    assert ids_of(answers("entries", shop, "--start", 28, "--limit", 3)) == ["sku-28", "sku-29", 0]
    assert ids_of(answers("entries", shop, "--unlabelled")) == list(range(10))
    assert answers("entries", shop, "--start", 40) == []
    assert output("entries", shop, "--start", 40) == "no entries\n"
    assert output("entries", shop, "--limit", 2).splitlines()[-1] == "more follow: --start 2"
    assert "more follow" not in output("entries", shop)


def test_entries_are_found_by_text_and_label(notes: Path) -> None:
    assert ids_of(answers("entries", notes, "--text", "Winter")) == ["v", "y"]
    assert ids_of(answers("entries", notes, "--label", "a")) == ["v", "x"]
    assert ids_of(answers("entries", notes, "--label", "a", "--text", "winter")) == ["v"]
    assert ids_of(answers("entries", notes, "--unlabelled", "--text", "wool")) == ["z"]
    assert output("entries", notes, "--text", "nowhere") == "no entries\n"
    assert output("entries", notes, "--text", "winter", "--limit", 1).endswith("--start 1\n")


def test_a_listing_wants_numbers_that_can_be(shop: Path, refused: Any) -> None:
    refused(2, "entries", shop, "--start", -1, says="--start must be")
    refused(2, "entries", shop, "--limit", 0, says="--limit must be")
    refused(3, "entries", shop, "--label", "lable-1", says="known ones are near: label-1")


def test_an_empty_collection_lists_nothing(tmp_path: Path) -> None:
    output("create", tmp_path / "empty.ever", "--dim", DIM)
    assert output("entries", tmp_path / "empty.ever") == "no entries\n"
    assert answers("entries", tmp_path / "empty.ever") == []


def test_a_payload_or_label_cannot_move_the_cursor(tmp_path: Path) -> None:
    path = tmp_path / "hostile.ever"
    X, _ = rows(1)
    with everhash.create(path, dim=DIM) as collection:
        collection.ingest(X, ["\x1b[2J"], ["\x1b]0;x"], payloads=["\x9b1m"])
    for printed in (output("entries", path), output("get", path, "\x1b]0;x")):
        assert not set(printed) & {"\x1b", "\x9b"}


def test_remove_frees_ids(shop: Path, write: Write) -> None:
    assert output("remove", shop, "sku-2", 4) == "2 entries removed\n"
    assert answers("remove", shop, "sku-3") == [{"removed": 1}]
    output("ingest", shop, write("again.parquet", 1, 2), *COLUMNS)
    assert stats(shop)["entries"] == 38


def test_ids_and_labels_are_texts_before_they_are_numbers(tmp_path: Path, queries: Path) -> None:
    path = tmp_path / "mixed.ever"
    X, _ = rows(6)
    with everhash.create(path, dim=DIM) as collection:
        collection.ingest(X, [7, 8, "8", 7, 7, 2.5], ["1", 1, 2, "3", 3, -4])
    output("label", path, "7", "1", 2)
    output("remove", path, "3")
    output("label", path, "8", "--", "3", "-4")
    labels = {entry["id"]: entry["labels"] for entry in answers("entries", path)}
    assert labels == {"1": [7], 1: [8], 2: [7], 3: ["8"], -4: ["8"]}
    (found,) = answers("search", path, queries, "--limit", 1, "--labels", "7")
    assert {match["id"] for match in found["found"]} == {"1", 2}
    (found,) = answers("search", path, queries, "--limit", 1, "--ids", "1", "--ids", "3")
    assert {match["id"] for match in found["found"]} == {"1", 3}
    output("search", path, queries, "--labels", "2.5")


def test_unknown_ids_and_labels_are_refused(shop: Path, queries: Path, refused: Any) -> None:
    before = stats(shop)
    refused(3, "label", shop, "label-1", "sku-1", "nobody", says="no entry has id 'nobody'")
    refused(3, "remove", shop, "sku-1", "77", says="no entry has id '77'")
    refused(3, "get", shop, "sku-1", "nobody", says="no entry has id 'nobody'")
    refused(3, "search", shop, queries, "--ids", "nobody", says="no entry has id 'nobody'")
    refused(
        3, "search", shop, queries, "--labels", "label-9", says="label 'label-9' has not been seen"
    )
    refused(2, "remove", shop, "x" * 65, says="cannot be an id")
    output("remove", shop, "sku-5")
    refused(3, "remove", shop, "sku-5", says="no entry has id 'sku-5'")
    assert stats(shop)["entries"] == before["entries"] - 1
