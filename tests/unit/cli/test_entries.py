"""`everhash label`, `unlabel` and `remove`: ids and labels typed as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import everhash
from tests.unit.cli.commands import COLUMNS, DIM, Write, answers, output, rows, stats


def test_label_and_remove_change_entries(shop: Path) -> None:
    said = "2 entries labelled new\nnew label 'new'\n"
    assert output("label", shop, "new", "sku-1", 3, 3) == said
    assert output("label", shop, "new", "sku-1", 3) == "2 entries labelled new\n"
    assert output("remove", shop, "sku-2", 4) == "2 entries removed\n"
    with everhash.open(shop, readonly=True) as collection:
        assert [entry.labels for entry in collection.get(["sku-1", 3])] == [("new",), ("new",)]
        assert len(collection) == 38


def test_a_label_that_is_nearly_a_known_one_is_announced(shop: Path) -> None:
    said = output("label", shop, "lable-1", "sku-1").splitlines()
    assert said[0] == "1 entry labelled lable-1"
    assert said[1].startswith("new label 'lable-1': known ones are near: label-1")


def test_labels_teach_unless_told_not_to(shop: Path) -> None:
    def learned() -> int:
        return int(stats(shop)["learned"]["rows"])

    before = learned()
    output("label", shop, "label-1", 3)
    assert learned() == before + 1
    assert output("unlabel", shop, 3, 4) == "1 entry unlabelled\n"
    assert learned() == before
    output("label", shop, "label-1", 3, "--no-teach")
    output("unlabel", shop, 3, "--no-teach")
    assert learned() == before
    with everhash.open(shop, readonly=True) as collection:
        assert [entry.labels for entry in collection.get([3, 4])] == [(), ()]


def test_an_id_is_free_again_after_remove(shop: Path, write: Write) -> None:
    output("remove", shop, "sku-1")
    output("ingest", shop, write("again.parquet", 1, 1), *COLUMNS)
    assert stats(shop)["entries"] == 40


def test_ids_and_labels_are_texts_before_they_are_numbers(tmp_path: Path, queries: Path) -> None:
    path = tmp_path / "mixed.ever"
    X, _ = rows(6)
    with everhash.create(path, dim=DIM) as collection:
        collection.ingest(X, [7, 8, "8", 7, 7, 2.5], ["1", 1, 2, "3", 3, -4])
    output("label", path, "7", "1", 2)
    output("remove", path, "3")
    output("label", path, "8", "--", "3", "-4")
    with everhash.open(path, readonly=True) as collection:
        labels = {entry.id: entry.labels for entry in collection.entries()}
    assert labels == {"1": (7,), 1: (8,), 2: (7,), 3: ("8",), -4: ("8",)}
    (found,) = answers("search", path, queries, "--limit", 1, "--only", "7")
    assert {match["id"] for match in found["matches"]} == {"1", 2}
    output("search", path, queries, "--only", "2.5")


def test_unknown_ids_and_labels_are_refused(shop: Path, queries: Path, refused: Any) -> None:
    before = stats(shop)
    refused(3, "label", shop, "new", "sku-1", "nobody", says="no entry has id 'nobody'")
    refused(3, "remove", shop, "sku-1", "77", says="no entry has id '77'")
    refused(
        3, "search", shop, queries, "--only", "label-9", says="label 'label-9' has not been seen"
    )
    refused(2, "remove", shop, "x" * 65, says="cannot be an id")
    output("remove", shop, "sku-5")
    refused(3, "remove", shop, "sku-5", says="no entry has id 'sku-5'")
    assert stats(shop)["entries"] == before["entries"] - 1
