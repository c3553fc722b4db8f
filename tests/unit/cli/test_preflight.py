"""`everhash ingest` checks every row of every file before it applies the first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash import limits
from tests.unit.cli.commands import COLUMNS, DIM, GIF, Write, output, rows, stats


def last(bad: Any, good: Any) -> list[Any]:
    """Return thirty values of which the last is bad."""
    return [good] * 29 + [bad]


IDS = list(map(str, range(29)))
ROW = [1.0] * DIM


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"embedding": last(ROW[1:], ROW)}, "row 29: expected 8 features"),
        (
            {"embedding": last([float("nan")] * DIM, ROW)},
            "row 29 holds NaN, infinity.*; nothing was applied",
        ),
        (
            {"embedding": [[*ROW, 1.0]] * 30},
            "9 numbers a row taken as features, from embedding, but .*shop.ever has 8 a row "
            ".name others with --features",
        ),
        ({"embedding": ["words"] * 30}, "expected numbers"),
        ({"kind": last(float("inf"), 1.0)}, "rows from 28 on: Input y contains NaN or infinity"),
        ({"kind": last("", "a")}, r"row 1: an empty text cannot be a label \(pass None"),
        ({"sku": ["a", "b"] * 15}, "id 'a' appears twice.*; nothing was applied"),
        ({"sku": [*IDS, "sku-3"]}, "id 'sku-3' is taken.*; nothing was applied"),
        ({"sku": [*IDS, "long" * 17]}, "cannot be an id"),
        ({"sku": [*IDS, ""]}, "cannot be an id"),
        ({"sku": [*IDS, None]}, "got null"),
        ({"sku": [0.5] * 30}, "expected ids"),
        ({"text": last("x" * 4095, "a")}, "row 29: the payload takes 4097 .*; nothing was applied"),
        ({"text": last(float("inf"), 1.0)}, "column 'text', row 29: expected a JSON value"),
        (
            {"text": last("x" * 4000, "a"), "more": ["é" * 50] * 30},
            "row 29: the payload takes 4121 bytes, at most 4096",
        ),
        (
            {"pic": last(GIF + bytes(limits.THUMBNAIL), GIF)},
            "row 29: the thumbnail takes 32783 bytes, at most 32768.*; nothing was applied",
        ),
        (
            {"pic": last(b"<svg>", GIF)},
            "row 29: the thumbnail is no picture.*; nothing was applied",
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_one_bad_row_and_nothing_of_any_file_is_applied(
    columns: dict[str, list[Any]], says: str, shop: Path, write: Write, refused: Any
) -> None:
    before = stats(shop)
    options = {"text": "--payload", "more": "--payload", "pic": "--thumbnail"}
    named = [part for name in columns if name in options for part in (options[name], name)]
    new = {name: [values[0]] * 30 for name, values in columns.items() if name in options}
    files = (write("good.parquet", first=1000, **new), write("bad.parquet", first=2000, **columns))
    ended = refused(2, "ingest", shop, *files, *COLUMNS, *named, "--batch-rows", 4)
    assert re.search(rf"/bad\.parquet: .*{says}", ended.err), ended.err
    assert stats(shop) == before


@pytest.mark.parametrize("option", ["--features", "--label", "--id", "--payload", "--thumbnail"])
def test_a_column_that_is_not_there_is_refused(
    option: str, shop: Path, write: Write, refused: Any
) -> None:
    before = stats(shop)
    refused(
        2, "ingest", shop, write(first=99), *COLUMNS, option, "colour", says="no column 'colour'"
    )
    assert stats(shop) == before


def test_what_is_no_source_is_refused(shop: Path, tmp_path: Path, refused: Any) -> None:
    before = stats(shop)
    (tmp_path / "rows.txt").write_text("1 2 3")
    (tmp_path / "rows.parquet").write_text("no Parquet")
    refused(6, "ingest", shop, tmp_path / "none.npy", says="none.npy")
    refused(2, "ingest", shop, tmp_path)
    refused(2, "ingest", shop, tmp_path / "rows.txt")
    refused(2, "ingest", shop, tmp_path / "rows.parquet")
    refused(2, "search", shop, tmp_path / "rows.txt")
    refused(6, "search", shop, tmp_path / "none.npy")
    assert stats(shop) == before


def test_rows_without_any_labels_have_to_be_asked_for(
    shop: Path, queries: Path, refused: Any
) -> None:
    before = stats(shop)
    refused(2, "ingest", shop, queries, says="name their column with --label, or pass --no-learn")
    assert stats(shop) == before
    output("ingest", shop, queries, "--no-learn")
    assert stats(shop)["unlabelled"] == 14


def test_files_with_ids_and_files_without_do_not_go_together(
    shop: Path, tmp_path: Path, queries: Path, failing: Any
) -> None:
    before = stats(shop)
    np.savez(tmp_path / "ids.npz", X=rows(3)[0], ids=np.arange(20, 23))
    files = (queries, tmp_path / "ids.npz")
    ended = failing("ingest", shop, *files, "--no-learn")
    assert ended.code == 2
    taken, error = ended.err.splitlines()
    assert taken == f"taken: {files[1]}: features from X; id from ids"
    assert error == (
        f"error: {files[1]} has ids, {files[0]} has none (ingest them with two commands)"
    )
    assert stats(shop) == before
