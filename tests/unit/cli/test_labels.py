"""`everhash labels`, `rename-label`, `merge-labels` and `drop-label`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import everhash
from tests.unit.cli.commands import DIM, answers, cells, output, rows


def entries_of(shop: Path) -> dict[Any, int]:
    (listed,) = answers("labels", shop)
    return {info["label"]: info["entries"] for info in listed}


def test_labels_are_listed_as_the_library_has_them(shop: Path) -> None:
    with everhash.open(shop, readonly=True) as collection:
        expected = collection.labels()
    (listed,) = answers("labels", shop)
    assert listed == [
        {
            "label": info.label,
            "entries": info.entries,
            "lessons": info.lessons,
            "accuracy": info.accuracy,
        }
        for info in expected
    ]
    printed = cells(output("labels", shop))
    assert [row[:2] for row in printed] == [[str(i.label), str(i.entries)] for i in expected]


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
