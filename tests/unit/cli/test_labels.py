"""`everhash labels`, `label`, `unlabel`, `rename-label`, `merge-labels` and `drop-label`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import everhash
from everhash.collection.as_json import label_info_to_json
from tests.unit.cli.commands import DIM, answers, cells, output, rows, stats


def entries_of(shop: Path) -> dict[Any, int]:
    (listed,) = answers("labels", shop)
    return {info["label"]: info["entries"] for info in listed["labels"]}


def test_labels_are_listed_as_the_library_has_them(shop: Path) -> None:
    with everhash.open(shop, readonly=True) as collection:
        expected = collection.labels()
    (listed,) = answers("labels", shop)
    assert listed == {"total": 3, "labels": [label_info_to_json(info) for info in expected]}
    printed = cells(output("labels", shop))
    assert [row[:2] for row in printed] == [[str(i.label), str(i.entries)] for i in expected]


def test_label_gives_entries_a_label_that_is_known(shop: Path) -> None:
    assert output("label", shop, "label-1", "sku-1", 3, 3) == "2 entries labelled label-1\n"
    assert answers("label", shop, "label-2", 3) == [{"labelled": 1, "new": []}]
    assert [entry["labels"] for entry in answers("get", shop, "sku-1", 3)] == [
        ["label-1"],
        ["label-2"],
    ]


def test_a_label_is_new_only_if_it_is_said_to_be(shop: Path, refused: Any) -> None:
    before = shop.read_bytes()
    hint = "(known ones are near: label-1; --new makes a new label"
    refused(3, "label", shop, "lable-1", "sku-1", says=f"'lable-1' has not been seen {hint}")
    refused(3, "label", shop, "far", "sku-1", says="has not been seen (--new makes a new label")
    assert shop.read_bytes() == before
    said = output("label", shop, "lable-1", "sku-1", "--new").splitlines()
    assert said[0] == "1 entry labelled lable-1"
    assert said[1].startswith("new label 'lable-1': known ones are near: label-1")
    assert answers("label", shop, "far", "sku-1", "--new") == [
        {"labelled": 1, "new": [{"label": "far", "near": []}]}
    ]
    assert output("label", shop, "far", "sku-2", "--new") == "1 entry labelled far\n"
    assert entries_of(shop)["far"] == 2


def test_labels_change_only_as_expected(shop: Path, refused: Any) -> None:
    output("label", shop, "label-1", "sku-1")
    said = "entry 'sku-1' has 'label-1', expected "
    refused(10, "label", shop, "label-2", "sku-1", "--expect", "label-0", says=f"{said}'label-0'")
    refused(10, "unlabel", shop, "sku-1", "--expect", "", says=f"{said}no label")
    both = ("--expect", "label-1", "--expect", "label-0")
    refused(10, "unlabel", shop, "sku-1", *both, says=f"{said}'label-0' and 'label-1'")
    output("label", shop, "label-2", "sku-1", "--expect", "label-1")
    output("unlabel", shop, "sku-1", "--expect", "label-2")
    output("label", shop, "label-0", "sku-1", "--expect", "")
    assert [entry["labels"] for entry in answers("get", shop, "sku-1")] == [["label-0"]]


def test_a_label_in_use_is_not_dropped_as_unused(shop: Path, refused: Any) -> None:
    refused(2, "drop-label", shop, "label-2", "--unused", says="'label-2' is in use: entries ")
    assert "label-2" in entries_of(shop)


def test_labels_teach_unless_told_not_to(shop: Path) -> None:
    def learned() -> int:
        return int(stats(shop)["learned"]["rows"])

    before = learned()
    output("label", shop, "label-1", 3)
    assert learned() == before + 1
    assert output("unlabel", shop, 3, 4) == "1 entry unlabelled\n"
    assert learned() == before
    output("label", shop, "label-1", 3, "--no-teach")
    assert answers("unlabel", shop, 3, "--no-teach") == [{"unlabelled": 1}]
    assert learned() == before
    assert [entry["labels"] for entry in answers("get", shop, 3, 4)] == [[], []]


def test_labels_are_renamed_merged_and_dropped(shop: Path) -> None:
    before = entries_of(shop)
    assert output("rename-label", shop, "label-0", "zero") == "label label-0 is zero now\n"
    n = before["label-1"]
    assert output("merge-labels", shop, "label-1", "zero") == (
        f"{n} entries labelled zero instead of label-1\n"
    )
    assert entries_of(shop) == {"zero": before["label-0"] + n, "label-2": before["label-2"]}
    n = before["label-2"]
    assert output("drop-label", shop, "label-2") == f"label label-2 dropped: {n} entries had it\n"
    assert set(entries_of(shop)) == {"zero"}
    assert output("verify", shop).startswith("ok: 40 entries")


def test_changes_of_labels_are_told_as_the_service_tells_them(shop: Path) -> None:
    before = entries_of(shop)
    assert answers("rename-label", shop, "label-0", "zero") == [{"label": "zero"}]
    assert answers("merge-labels", shop, "label-1", "zero") == [{"entries": before["label-1"]}]
    assert answers("drop-label", shop, "label-2") == [{"entries": before["label-2"]}]


def test_labels_that_cannot_be_changed_are_refused(shop: Path, refused: Any) -> None:
    before = entries_of(shop)
    refused(3, "rename-label", shop, "label-9", "new", says="'label-9' has not been seen")
    refused(3, "merge-labels", shop, "label-1", "label-9", says="'label-9' has not been seen")
    refused(3, "drop-label", shop, "label-9", says="'label-9' has not been seen")
    refused(2, "rename-label", shop, "label-1", "label-2", says="is there already")
    refused(2, "rename-label", shop, "label-1", "", says="an empty text cannot be a label")
    assert entries_of(shop) == before


def test_numbers_are_known_by_their_digits(tmp_path: Path, refused: Any) -> None:
    path = tmp_path / "numbers.ever"
    X, _ = rows(6)
    with everhash.create(path, dim=DIM) as collection:
        collection.ingest(X, [7, 8, 9, 7, 8, 9])
    output("merge-labels", path, "7", "8")
    refused(2, "rename-label", path, "8", "9", says="is there already")
    assert entries_of(path) == {8: 4, 9: 2}
