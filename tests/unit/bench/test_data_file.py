"""Any file of features and labels is a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.bench.data_file import from_file
from everhash.errors import DataMissingError, InputError, LabelError

ROWS = [
    {"v": [0.5, 1.0], "a": 1.0, "b": 2.0, "kind": "shoe"},
    {"v": [1.5, 2.0], "a": 3.0, "b": 4.0, "kind": None},
    {"v": [2.5, 3.0], "a": 5.0, "b": 6.0, "kind": "bag"},
    {"v": [3.5, 4.0], "a": 7.0, "b": 8.0, "kind": "shoe"},
    {"v": [4.5, 5.0], "a": 9.0, "b": 0.0, "kind": "bag"},
]


def write_table(folder: Path, rows: list[dict[str, object]], ending: str) -> Path:
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    path = folder / f"shop.{ending}"
    table = pa.Table.from_pylist(rows)
    if ending == "parquet":
        parquet.write_table(table, path)
    elif ending == "arrow":
        feather.write_feather(table, str(path))
    else:
        csv.write_csv(table.drop_columns(["v"]), path)
    return path


@pytest.mark.parametrize(
    ("ending", "features"),
    [("parquet", "v"), ("arrow", "v"), ("parquet", "a,b"), ("csv", "a,b"), ("csv", None)],
)
def test_any_table_is_a_set(tmp_path: Path, ending: str, features: str | None) -> None:
    data = from_file(write_table(tmp_path, ROWS, ending), features, "kind")
    expected = [row["v"] if features == "v" else [row["a"], row["b"]] for row in ROWS]
    np.testing.assert_array_equal(data.X, np.array(expected, np.float32))
    assert data.y.tolist() == [0, -1, 1, 0, 1]
    assert data.classes == ("shoe", "bag")
    assert data.name == "shop"
    assert not data.is_query.any()


@given(labels=st.lists(st.integers(-3, 3), min_size=1, max_size=40))
@settings(max_examples=40)
def test_labels_are_numbered_as_they_appear(tmp_path: Path, labels: list[int]) -> None:
    path = tmp_path / "some.npz"
    np.savez(path, emb=np.arange(len(labels), dtype=np.float32)[:, None], kind=np.array(labels))
    order = list(dict.fromkeys(labels))
    if sum(labels.count(label) > 1 for label in order) < 2:
        with pytest.raises(LabelError, match="expected at least 2 labels with 2 rows or more"):
            from_file(path, "emb", "kind")
    else:
        data = from_file(path, "emb", "kind", "mine")
        assert data.name == "mine"
        assert data.y.tolist() == [order.index(label) for label in labels]
        assert data.classes == tuple(map(str, order))


def test_labels_keep_their_numbers_from_batch_to_batch(tmp_path: Path) -> None:
    path = tmp_path / "long.npz"
    y = np.array([f"label {number}" for number in np.arange(25_000) % 7])
    np.savez(path, X=np.zeros((len(y), 1), np.float32), y=y)
    data = from_file(path, "X", "y")
    np.testing.assert_array_equal(data.y, np.arange(25_000) % 7)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"kind": None}, LabelError, "expected at least 2 labels with 2 rows or more, got 1"),
        ({"v": [float("nan"), 0.0]}, InputError, "shop.parquet: row 4 holds NaN"),
        ({"v": [1.0]}, InputError, "expected 2 features"),
    ],
)
def test_rows_that_cannot_be_used_are_named(
    tmp_path: Path, change: dict[str, object], error: type[InputError], message: str
) -> None:
    path = write_table(tmp_path, [*ROWS[:4], ROWS[4] | change], "parquet")
    with pytest.raises(error, match=message):
        from_file(path, "v", "kind")


def test_several_labels_a_row_are_refused(tmp_path: Path) -> None:
    kinds = [["shoe"], ["bag"], ["shoe", "bag"], ["bag"], ["shoe"]]
    rows = [row | {"kind": kind} for row, kind in zip(ROWS, kinds, strict=True)]
    with pytest.raises(LabelError, match=r"shop.parquet: row 2 has several labels"):
        from_file(write_table(tmp_path, rows, "parquet"), "v", "kind")


def test_a_file_that_is_not_there_or_has_no_such_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError, match="no file at"):
        from_file(tmp_path / "none.parquet", "v", "kind")
    with pytest.raises(InputError, match="no column 'sort'"):
        from_file(write_table(tmp_path, ROWS, "parquet"), "v", "sort")
    path = tmp_path / "bare.npy"
    np.save(path, np.zeros((3, 2)))
    with pytest.raises(InputError):
        from_file(path, None, "kind")
