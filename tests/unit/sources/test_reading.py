"""Every source gives the same rows, in batches of any size, or a clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from everhash.errors import (
    DataMissingError,
    FeatureTypeError,
    IdError,
    InputError,
    LabelError,
    OptionError,
)
from everhash.sources import count_rows, read
from tests.unit.sources.samples import SOURCES, Rows, refused, same, sample, whole


@pytest.mark.parametrize("kind", SOURCES)
@given(n=st.integers(1, 30), d=st.integers(1, 4), rows=st.integers(1, 40))
@settings(max_examples=8)
def test_batches_of_any_size_put_together_are_the_whole(
    kind: str, n: int, d: int, rows: int, tmp_path: Path
) -> None:
    expected = sample(n, d)
    source, options = SOURCES[kind](expected, tmp_path)
    same(whole(source, batch_rows=rows, **options), expected)


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=5)


LABELS = {
    "strings": WORDS.map(lambda word: f"x{word}"),
    "integers": st.integers(-(2**53), 2**53),
}


@pytest.mark.parametrize("labels", LABELS)
@given(data=st.data())
@settings(max_examples=15)
def test_a_table_is_the_same_after_any_format(
    labels: str, data: st.DataObject, tmp_path: Path
) -> None:
    X = data.draw(hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.just(2)), elements=FLOATS))
    column = st.lists(LABELS[labels], min_size=len(X), max_size=len(X))
    expected = Rows(X, data.draw(column), data.draw(column))
    for kind in ("npz", "parquet fixed", "parquet lists", "arrow file", "arrow stream", "csv"):
        source, options = SOURCES[kind](expected, tmp_path)
        same(whole(source, **options), expected)


@pytest.mark.parametrize("kind", ["parquet fixed", "arrow stream", "csv", "rows", "table"])
@pytest.mark.parametrize("labels", [["a", None, "b"], [1, None, 2**53 + 1], [None, None, None]])
def test_a_null_label_is_none(kind: str, labels: list[Any], tmp_path: Path) -> None:
    expected = Rows(sample(3).X, labels, ["p", "q", "r"])
    source, options = SOURCES[kind](expected, tmp_path)
    same(whole(source, **options), expected)


NAMED = ["parquet fixed", "parquet columns", "arrow file", "csv", "table", "data frame", "rows"]


@pytest.mark.parametrize("kind", [*NAMED, "batches by name"])
def test_labels_and_ids_come_only_where_they_are_named(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](sample(5), tmp_path)
    for batch in read(source, features=options.get("features", "f*")):
        assert batch.y is None
        assert batch.ids is None


def test_large_batches_are_cut_and_empty_ones_are_skipped() -> None:
    X = np.arange(20, dtype=np.float32).reshape(10, 2)
    items = [(X[:0], []), (X, list(range(10))), (X[:0], [])]
    assert [len(batch.X) for batch in read(items, batch_rows=4)] == [4, 4, 2]


@pytest.mark.parametrize("name", ["table", "npy", "arrays", "csv"])
def test_nan_and_what_does_not_fit_are_left_to_as_rows(name: str, tmp_path: Path) -> None:
    X = np.array([[1e300, np.nan], [-np.inf, 0]])
    source: Any = X
    if name == "npy":
        np.save(tmp_path / "a.npy", X)
        source = tmp_path / "a.npy"
    elif name == "table":
        source = pa.table({"v": pa.array(list(X))})
    elif name == "csv":
        source = tmp_path / "a.csv"
        source.write_text("a,b\n1e300,NaN\n-inf,0\n")
    np.testing.assert_array_equal(whole(source).X, [[np.inf, np.nan], [-np.inf, 0]])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "u1", "i4", "i8", "u8", "?"])
@pytest.mark.parametrize("form", ["npy", "fixed", "lists", "columns", "arrays"])
def test_every_number_type_becomes_float32(kind: str, form: str, tmp_path: Path) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(kind)
    source: Any = X
    if form == "npy":
        source = tmp_path / "a.npy"
        np.save(source, X)
    elif form == "fixed":
        source = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 2)})
    elif form == "lists":
        source = pa.table({"v": pa.array(list(X))})
    elif form == "columns":
        source = pa.table({"a": X[:, 0], "b": X[:, 1]})
    options: dict[str, Any] = {"features": "a,b"} if form == "columns" else {}
    np.testing.assert_array_equal(whole(source, **options).X, X.astype(np.float32))


@pytest.mark.parametrize("kind", SOURCES)
def test_no_rows_are_no_batches(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](Rows(np.empty((0, 3), np.float32), [], []), tmp_path)
    assert len(whole(source, **options)) == 0


@pytest.mark.parametrize(
    ("source", "options", "error", "says"),
    [
        (None, {}, InputError, "got NoneType"),
        (7, {}, InputError, "got int"),
        (b"a.npy", {}, InputError, "got bytes"),
        ((), {}, InputError, "got 0 arrays"),
        (([[1]], [1], [1], [1]), {}, InputError, "got 4 arrays"),
        ((iter([]), [1]), {}, InputError, "expected a list of rows, got list_iterator"),
        (np.ones(3), {}, InputError, r"2-d .* shape \(3,\)"),
        (np.ones((2, 2, 2)), {}, InputError, r"2-d .* shape \(2, 2, 2\)"),
        (np.array([["a"]]), {}, FeatureTypeError, "must be numbers.*'a'"),
        (np.array([[1 + 2j]]), {}, InputError, "Complex data not supported"),
        (np.ones((2, 2)), {"label": "y"}, InputError, "names of columns"),
        (([[1, 2], [3]], None), {}, InputError, "row 1: expected 2 .* got 1"),
        (([[1, 2], None], None), {}, InputError, "row 1: .*None"),
        (([[1, 2], ["a", 4]], None), {}, FeatureTypeError, "must be numbers"),
        ((np.ones((2, 2)), [1]), {}, LabelError, "2 rows but 1 labels"),
        ((np.ones((2, 2)), [1, 2], [1]), {}, IdError, "2 rows but 1 ids"),
        ((np.ones((2, 2)), None, [1, None]), {}, IdError, "row 1: .*None"),
        ((np.ones((2, 2)), None, [True, 2]), {}, IdError, "row 0: .*True"),
        (["a", "b"], {}, InputError, "item 0: .*got str"),
        ([[1.0, 2.0], [3.0, 4.0]], {}, InputError, "item 0: .*got list.*as an array"),
        ([(np.ones((2, 2)), [1, 2]), 7], {}, InputError, "item 1: .*got int"),
        ([(np.ones((2, 2)), [1])], {}, LabelError, "item 0: 2 rows but 1 labels"),
        ([np.ones((2, 2)), np.ones((1, 3))], {}, InputError, "row 2: expected 2 .* got 3"),
        ([{"v": np.ones((2, 2)), "y": [1]}], {"label": "y"}, LabelError, "2 rows but 1 labels"),
        ([{"v": np.ones((2, 2))}], {"label": "y"}, InputError, "item 0: no column 'y'"),
        ([{"a": [1], "b": [1, 2]}], {"features": "a,b"}, InputError, "equal length"),
        ([{"v": [1, 2]}, {"w": [1]}], {}, InputError, "row 1: expected v, got w"),
        ([{"v": [1, 2]}, (1, 2)], {}, InputError, "row 1: expected v, got tuple"),
        ([{"v": [1, 2]}, {"v": [1]}], {}, InputError, "row 1: expected 2 .* got 1"),
        ([{"v": [1, 2], "k": "a"}], {"label": "l"}, InputError, "no column 'l' .*'v', 'k'"),
        ({"k": ["a", "b"]}, {}, InputError, "no column of numbers"),
        (np.ones((2, 2)), {"batch_rows": 0}, OptionError, "rows"),
        (np.ones((2, 2)), {"batch_rows": 2.5}, OptionError, "rows"),
    ],
)
def test_what_is_no_source_is_refused(
    source: Any, options: dict[str, Any], error: Any, says: str
) -> None:
    refused(error, says, source, **options)


def test_a_path_that_leads_nowhere_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataMissingError, match=f"no file at {tmp_path}/a.npy"):
        read(tmp_path / "a.npy")
    with pytest.raises(FileNotFoundError):
        count_rows(str(tmp_path / "a.parquet"))
    (tmp_path / "b.npy").mkdir()
    refused(InputError, "b.npy: expected a file, got a directory", tmp_path / "b.npy")
    refused(InputError, r"a name in .npy, .npz, .*, got '.txt'", str(tmp_path / "a.txt"))
    refused(InputError, "got ''", str(tmp_path / "a"))


def test_without_pyarrow_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in ("a.parquet", "a.arrow", "a.feather", "a.csv")]
    for path in paths:
        path.write_text("a,b\n1,2\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for path in paths:
        refused(InputError, r"need pyarrow.*pip install pyarrow", path)
    assert len(whole([{"v": [1, 2]}])) == 1
    assert count_rows(paths[0]) is None


def test_reading_arrays_does_not_load_pyarrow() -> None:
    code = (
        "import sys; from everhash.sources import read; list(read(([[1]], ['a'])));"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name.partition(".")[0] for name in run.stdout.split()} & {"pyarrow", "pandas"}


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_are_counted_where_that_is_cheap(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](sample(), tmp_path)
    found = count_rows(source)
    cheap = isinstance(source, Path | tuple | pa.Table | pd.DataFrame)
    assert found == (23 if cheap and kind not in ("csv", "arrow stream") else None)
    assert len(whole(source, **options)) == 23


def test_an_npz_of_other_names_and_a_damaged_file_are_not_counted(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", emb=np.ones((3, 2)))
    assert count_rows(tmp_path / "a.npz") is None
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    assert count_rows(tmp_path / "a.parquet") is None
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert count_rows(str(tmp_path / "a.npy")) == 3
