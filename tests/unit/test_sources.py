"""Where rows come from: every source gives the same rows, in bounded memory, or says what is wrong."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from everhash import limits
from everhash.errors import (
    DataMissingError,
    FeatureTypeError,
    IdError,
    InputError,
    LabelError,
    LimitError,
    OptionError,
)
from everhash.sources import Batch, count_rows, read

Floats = NDArray[np.float32]
NAMES = {"features": "v", "label": "kind", "id": "sku"}


class Tensor:
    """Looks like a torch tensor: no __array__, and .numpy() only once detached and on the host."""

    def __init__(self, values: Any, ready: bool = False) -> None:
        self.values = np.asarray(values)
        self.ready = ready
        self.ndim, self.dtype = self.values.ndim, f"torch.{self.values.dtype}"

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: Any) -> Tensor:
        return Tensor(self.values[at])

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.values, ready=True)

    def numpy(self) -> NDArray[Any]:
        if not self.ready:
            raise RuntimeError("can't convert a tensor that requires grad")
        return self.values

    def tolist(self) -> Any:
        return self.values.tolist()


class Rows:
    """Features, labels and ids, and how to write them down."""

    def __init__(self, X: Floats, y: list[Any], ids: list[Any]) -> None:
        self.X, self.y, self.ids = X, y, ids

    def __len__(self) -> int:
        return len(self.X)

    def cut(self, size: int) -> Iterator[tuple[Floats, list[Any], list[Any]]]:
        for i in range(0, len(self), size):
            yield self.X[i : i + size], self.y[i : i + size], self.ids[i : i + size]

    def table(self, vectors: pa.DataType | None = None) -> pa.Table:
        n, d = self.X.shape
        v = pa.FixedSizeListArray.from_arrays(pa.array(self.X.ravel()), d)
        v = v if vectors is None else pa.array(self.X.tolist(), vectors)
        return pa.table({"sku": self.ids, "v": v, "price": np.ones(n), "kind": self.y})

    def wide(self) -> pa.Table:
        columns = {f"f{j}": self.X[:, j] for j in range(self.X.shape[1])}
        return pa.table({"kind": self.y, **columns, "sku": self.ids})


def sample(n: int = 23, d: int = 3) -> Rows:
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    return Rows(X, [f"k{i % 4}" for i in range(n)], [3 * i - 7 for i in range(n)])


def write_ipc(table: pa.Table, path: Path, make: Any = pa.ipc.new_file, size: int = 4) -> Path:
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=size)
    return path


def write_parquet(table: pa.Table, path: Path, size: int = 4) -> Path:
    pq.write_table(table, path, row_group_size=size)
    return path


def write_csv(rows: Rows, path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["kind", *(f"f{j}" for j in range(rows.X.shape[1])), "sku"])
        for x, label, name in zip(rows.X, rows.y, rows.ids, strict=True):
            writer.writerow(["" if label is None else label, *(repr(float(v)) for v in x), name])
    return path


def write_npz(rows: Rows, path: Path, save: Any = np.savez, order: Any = "C") -> Path:
    save(path, X=np.asarray(rows.X, order=order), y=rows.y, ids=rows.ids)
    return path


WIDE = {"features": "f*", "label": "kind", "id": "sku"}
Source = Callable[[Rows, Path], tuple[Any, dict[str, str]]]
SOURCES: dict[str, Source] = {
    "npz": lambda r, p: (write_npz(r, p / "a.npz"), {}),
    "npz compressed": lambda r, p: (write_npz(r, p / "a.npz", np.savez_compressed), {}),
    "npz by columns": lambda r, p: (write_npz(r, p / "a.npz", order="F"), {}),
    "parquet fixed": lambda r, p: (write_parquet(r.table(), p / "a.parquet"), NAMES),
    "parquet lists": lambda r, p: (
        write_parquet(r.table(pa.list_(pa.float32())), p / "a.parquet"),
        NAMES,
    ),
    "parquet large lists": lambda r, p: (
        write_parquet(r.table(pa.large_list(pa.float64())), p / "a.parquet", 100),
        NAMES,
    ),
    "parquet columns": lambda r, p: (write_parquet(r.wide(), p / "a.parquet"), WIDE),
    "arrow file": lambda r, p: (write_ipc(r.table(), p / "a.arrow"), NAMES),
    "arrow stream": lambda r, p: (write_ipc(r.wide(), p / "a.arrow", pa.ipc.new_stream), WIDE),
    "feather": lambda r, p: (
        pa.feather.write_feather(r.table(pa.list_(pa.float32())), str(p / "a.feather"))
        or p / "a.feather",
        NAMES,
    ),
    "csv": lambda r, p: (write_csv(r, p / "a.csv"), {"label": "kind", "id": "sku"}),
    "arrays": lambda r, p: ((r.X, r.y, r.ids), {}),
    "lists": lambda r, p: ((r.X.tolist(), r.y, r.ids), {}),
    "tensors": lambda r, p: ((Tensor(r.X), r.y, Tensor(r.ids)), {}),
    "table": lambda r, p: (r.table(), NAMES),
    "record batches": lambda r, p: (r.table().to_reader(5), NAMES),
    "data frame": lambda r, p: (r.wide().to_pandas(), WIDE),
    "batches": lambda r, p: (r.cut(5), {}),
    "batches as lists": lambda r, p: ([[Tensor(X), y, ids] for X, y, ids in r.cut(5)], {}),
    "batches by name": lambda r, p: (
        [{"v": X, "kind": y, "sku": ids} for X, y, ids in r.cut(5)],
        NAMES,
    ),
    "tensors by name": lambda r, p: (
        ({"sku": Tensor(ids), "v": Tensor(X), "kind": y} for X, y, ids in r.cut(5)),
        {"label": "kind", "id": "sku"},
    ),
    "tables": lambda r, p: (
        [r.table().slice(i, 6) for i in range(0, len(r), 6)],
        NAMES,
    ),
    "rows": lambda r, p: (r.table().to_pylist(), NAMES),
    "rows of numbers": lambda r, p: (iter(r.wide().to_pylist()), WIDE),
    "one mapping": lambda r, p: ({"v": r.X, "kind": r.y, "sku": r.ids}, NAMES),
}


def whole(source: Any, **options: Any) -> Rows:
    """Read a source to its end, and put the batches together."""
    batches = list(read(source, **options))
    for batch in batches:
        assert isinstance(batch, Batch)
        assert batch.X.dtype == np.float32
        assert batch.X.flags.c_contiguous
        assert 0 < len(batch.X) <= options.get("rows", 10_000)
        assert batch.y is None or len(batch.y) == len(batch.X)
        assert batch.ids is None or len(batch.ids) == len(batch.X)
    X = np.concatenate([batch.X for batch in batches]) if batches else np.empty((0, 0), np.float32)
    y = [label for batch in batches if batch.y is not None for label in batch.y]
    return Rows(X, y, [name for batch in batches for name in batch.ids or []])


def same(read_rows: Rows, rows: Rows) -> None:
    np.testing.assert_array_equal(read_rows.X, rows.X)
    assert read_rows.y == rows.y
    assert read_rows.ids == rows.ids


# Every source gives the same rows


@pytest.mark.parametrize("kind", SOURCES)
@given(n=st.integers(1, 30), d=st.integers(2, 4), rows=st.integers(1, 40))
@settings(max_examples=8)
def test_batches_of_any_size_put_together_are_the_whole(
    kind: str, n: int, d: int, rows: int, tmp_path: Path
) -> None:
    expected = sample(n, d)
    source, options = SOURCES[kind](expected, tmp_path)
    same(whole(source, rows=rows, **options), expected)


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


@pytest.mark.parametrize("kind", SOURCES)
def test_nothing_but_features_means_no_labels_and_no_ids(kind: str, tmp_path: Path) -> None:
    expected = sample(5)
    source, options = SOURCES[kind](expected, tmp_path)
    if not options:
        pytest.skip("gives what it has")
    for batch in read(source, features=options.get("features", "f*" if kind == "csv" else "v")):
        assert batch.y is None
        assert batch.ids is None


def test_a_batch_is_what_ingest_takes(tmp_path: Path) -> None:
    assert Batch._fields == ("X", "y", "ids")
    rows = sample(4)
    same(whole(read(write_npz(rows, tmp_path / "a.npz"), rows=3)), rows)


def test_large_batches_are_cut_and_empty_ones_are_skipped() -> None:
    X = np.arange(20, dtype=np.float32).reshape(10, 2)
    items = [(X[:0], []), (X, list(range(10))), (X[:0], [])]
    assert [len(batch.X) for batch in read(items, rows=4)] == [4, 4, 2]


def test_rows_are_gathered_into_batches() -> None:
    source = ({"v": [i, i], "kind": "a"} for i in range(25))
    assert [len(batch.X) for batch in read(source, label="kind", rows=10)] == [10, 10, 5]


def test_an_endless_source_is_read_as_it_comes() -> None:
    def forever() -> Iterator[dict[str, Any]]:
        while True:
            yield {"v": [1.0, 2.0]}

    assert len(next(read(forever(), rows=3)).X) == 3


# Features


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
    options = {"features": "a,b"} if form == "columns" else {}
    np.testing.assert_array_equal(whole(source, **options).X, X.astype(np.float32))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">i2"])
def test_npy_of_any_order_and_byte_order(order: Any, dtype: str, tmp_path: Path) -> None:
    X = np.arange(12).reshape(6, 2).astype(dtype, order=order)
    np.save(tmp_path / "a.NPY.npy", X)
    np.testing.assert_array_equal(whole(tmp_path / "a.NPY.npy", rows=4).X, X)


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


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("f*", [1, 2, 3]),
        ("f10,f2", [2, 3]),
        ("f2, f10", [3, 2]),
        ("f[12]", [1, 3]),
        ("g,f1*", [4, 1, 2]),
        ("f2", [3]),
        ("odd,name", [5]),
        ("fid,g", [0, 4]),
    ],
)
def test_features_are_named_by_list_glob_or_name(features: str, expected: list[int]) -> None:
    names = ["fid", "f1", "f10", "f2", "g", "odd,name"]
    table = pa.table({name: [j] for j, name in enumerate(names)})
    assert whole(table, features=features, id="fid").X.tolist() == [expected]
    assert whole([dict(table.to_pylist()[0])], features=features, id="fid").X.tolist() == [expected]


def test_the_only_vectors_are_the_features_by_default() -> None:
    table = pa.table({"n": [7], "v": [[1.0, 2.0]], "tags": [["a"]], "name": ["x"]})
    assert whole(table).X.tolist() == [[1, 2]]
    assert whole(table.to_pylist()).X.tolist() == [[1, 2]]
    assert whole([table.to_pydict()]).X.tolist() == [[1, 2]]


def test_all_numbers_but_label_and_id_are_the_features_by_default() -> None:
    table = pa.table({"sku": [7], "a": [1], "name": ["x"], "b": [2.5], "kind": [3], "ok": [True]})
    for source in (table, table.to_pylist(), [table.to_pydict()]):
        rows = whole(source, label="kind", id="sku")
        assert rows.X.tolist() == [[1, 2.5]]
        assert (rows.y, rows.ids) == ([3], [7])


def test_an_index_that_pandas_stored_is_no_feature(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=pd.Index([9, 5], name="sku"))
    frame.to_parquet(tmp_path / "a.parquet")
    frame.reset_index(drop=True).iloc[::-1].to_csv(tmp_path / "a.csv")
    assert whole(frame).X.tolist() == [[1, 3], [2, 4]]
    assert whole(frame, id="sku").ids == [9, 5]
    assert whole(tmp_path / "a.parquet").X.tolist() == [[1, 3], [2, 4]]
    assert whole(tmp_path / "a.csv").X.tolist() == [[2, 4], [1, 3]]


def test_an_extension_type_is_read_as_what_it_stores() -> None:
    kind = pa.fixed_shape_tensor(pa.float32(), [2])
    storage = pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))
    table = pa.table({"v": pa.ExtensionArray.from_storage(kind, storage)})
    assert whole(table).X.tolist() == [[1, 2], [3, 4]]


def test_slices_and_chunks_of_a_table_are_read_right() -> None:
    rows = sample(20)
    for kind in (None, pa.list_(pa.float32())):
        table = pa.concat_tables([rows.table(kind).slice(3, 5), rows.table(kind).slice(11, 2)])
        at = [*range(3, 8), 11, 12]
        expected = Rows(rows.X[at], [rows.y[i] for i in at], [rows.ids[i] for i in at])
        same(whole(table, rows=3, **NAMES), expected)


# Labels and ids


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["a", "b"]), ["a", "b"]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
        (pa.array(["b", None]).dictionary_encode(), ["b", None]),
        (pa.array([2, 1], pa.int8()).dictionary_encode(), [2, 1]),
        (pa.array([2**63, 1], pa.uint64()), [2**63, 1]),
        (pa.array([2**53 + 1, None]), [2**53 + 1, None]),
        (pa.array([True, False]), [True, False]),
        (pa.array([True, None]), [True, None]),
        (pa.array([2.5, None]), [2.5, None]),
        (pa.nulls(2), [None, None]),
        (pa.array([["a", "b"], []]), [{"a", "b"}, set()]),
        (pa.array([[1, 1], None], pa.large_list(pa.int16())), [{1}, None]),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)), [{1, 2}, {3, 4}]),
    ],
)
def test_labels_of_every_type(column: pa.Array, expected: list[Any], tmp_path: Path) -> None:
    table = pa.table({"v": [[1.0], [2.0]], "kind": column})
    source = write_ipc(table, tmp_path / "a.arrow", size=1)
    for rows in (1, 2):
        assert whole(source, features="v", label="kind", rows=rows).y == expected
        assert whole(table, features="v", label="kind", rows=rows).y == expected


def test_several_labels_of_a_mapping_are_a_set() -> None:
    rows = [{"v": [1.0, 2.0], "tags": ["a", "b"]}, {"v": [3.0, 4.0], "tags": []}]
    assert whole(rows, features="v", label="tags").y == [{"a", "b"}, set()]
    batch = {"v": [[1.0, 2.0], [3.0, 4.0]], "tags": [["a", "b"], []]}
    assert whole([batch], features="v", label="tags").y == [{"a", "b"}, set()]


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.array([3, 1]), [3, 1]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array(["a", None], object), ["a", None]),
        (Tensor([3, 1]), [3, 1]),
        ([Tensor(3), np.int64(1)], [3, 1]),
        (("a", {"b", "c"}), ["a", {"b", "c"}]),
        (pd.Series(["a", None]), ["a", None]),
        (pd.Series([1.0, np.nan]), [1.0, None]),
        (pd.Series([7, 8], index=[5, 0]), [7, 8]),
        (None, []),
    ],
)
def test_labels_beside_an_array(y: Any, expected: list[Any]) -> None:
    X = np.ones((2, 3))
    assert whole((X, y)).y == expected
    assert whole([(X, y)]).y == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["-1", "0"], [-1, 0]),
        (["1.0", ""], [1, None]),
        (["1", "x"], ["1", "x"]),
        (["007", "1"], ["007", "1"]),
        (["1.50", "1.5"], ["1.50", "1.5"]),
        (["1" * 20, "1"], ["1" * 20, "1"]),
        (["NA", "nan"], ["NA", "nan"]),
        (["true", "False"], ["true", "False"]),
        (["", ""], [None, None]),
        (['"a,b"', '"c\nd"'], ["a,b", "c\nd"]),
        (["ü", "e"], ["ü", "e"]),
    ],
)
def test_labels_of_a_csv_are_integers_only_if_all_are(
    cells: list[str], expected: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeffkind,f0\n" + "".join(f"{cell},1\n" for cell in cells), encoding="utf-8")
    assert whole(path, label="kind").y == expected


def test_a_csv_column_keeps_its_type_from_beginning_to_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    wide = "1" * 400
    with path.open("w") as file:
        file.write("id,f0,text\n")
        file.writelines(f"{i},0,{wide}\n" for i in range(30_000))
        file.write("last,0,x\n")
    ids = whole(path, features="f0", id="id").ids
    assert ids[:2] == ["0", "1"]
    assert ids[-1] == "last"


@pytest.mark.parametrize("first", ["0.5,1,2", "1,2,3", "nan,1e5,-3"])
def test_a_csv_without_names_is_all_features(first: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n4,5,6\n")
    assert whole(path).X.shape == (2, 3)
    assert whole(path).X[1].tolist() == [4, 5, 6]
    with pytest.raises(InputError, match=r"expected the names of the columns .*header"):
        whole(path, label="kind")


def test_the_numbers_pandas_writes_as_a_header_are_no_row(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3))
    for index in (True, False):
        frame.to_csv(tmp_path / "a.csv", index=index)
        assert whole(tmp_path / "a.csv").X.tolist() == [[0, 1, 2], [3, 4, 5]]


# Empty sources


@pytest.mark.parametrize(
    "kind", [kind for kind in SOURCES if kind not in ("tables", "csv", "feather", "lists")]
)
def test_no_rows_are_no_batches(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](Rows(np.empty((0, 3), np.float32), [], []), tmp_path)
    assert list(read(source, **options)) == []


@pytest.mark.parametrize("text", ["", "\n", "kind,f0\n"])
def test_an_empty_csv_is_no_batches(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert list(read(tmp_path / "a.csv", label="kind" if "kind" in text else None)) == []


def test_an_empty_npy_is_no_batches(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.empty((0, 5)))
    assert list(read(tmp_path / "a.npy")) == []
    assert count_rows(tmp_path / "a.npy") == 0


# Memory


def write_large(kind: str, path: Path, n: int, d: int) -> Path:
    """Write n rows, never holding many of them."""
    block = np.random.default_rng(0).normal(size=(1000, d)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), d)
    table = pa.table({"v": values, "kind": ["cat"] * 1000, "sku": range(1000)})
    if kind == "npy":
        np.save(path, np.tile(block, (n // 1000, 1)))
    elif kind == "npz":
        np.savez(path, X=np.tile(block, (n // 1000, 1)), y=np.zeros(n), ids=np.arange(n))
    elif kind == "csv":
        with path.open("wb") as file:
            wide = pa.table({f"f{j}": block[:, j] for j in range(d)}).append_column("kind", table[1])
            for i in range(n // 1000):
                options = pa.csv.WriteOptions(include_header=i == 0)
                pa.csv.write_csv(wide, file, options)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            for _ in range(n // 1000):
                writer.write_table(table)
    else:
        size = 1000 if kind == "parquet" else n
        with pq.ParquetWriter(path, table.schema) as writer:
            for _ in range(n // size):
                writer.write_table(pa.concat_tables([table] * (size // 1000)), row_group_size=size)
    return path


@pytest.fixture
def arrow_pool() -> Iterator[pa.MemoryPool]:
    """A pool that counts what pyarrow allocates during a test."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    yield pool
    pa.set_memory_pool(before)


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "one-group.parquet", "arrow", "csv"])
def test_memory_does_not_grow_with_the_file(
    kind: str, tmp_path: Path, arrow_pool: pa.MemoryPool
) -> None:
    n, d = 60_000, 64
    path = write_large(kind, tmp_path / f"a.{kind}", n, d)
    label = None if kind in ("npy", "npz") else "kind"
    before = arrow_pool.bytes_allocated()
    assert path.stat().st_size > 5_000_000
    tracemalloc.start()
    try:
        most = seen = 0
        for batch in read(path, label=label, rows=1000):
            seen += len(batch.X)
            most = max(most, arrow_pool.bytes_allocated())
        _, python = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == n
    held = n * d * 4
    assert python < held / 3
    assert arrow_pool.max_memory() - before < held
    assert most - before < held


def test_a_parquet_file_ten_times_as_large_needs_no_more_memory(tmp_path: Path) -> None:
    peaks = []
    for n in (20_000, 200_000):
        path = write_large("parquet", tmp_path / f"{n}.parquet", n, 32)
        code = (
            "import pyarrow as pa, sys; from everhash.sources import read\n"
            "rows = sum(len(batch.X) for batch in read(sys.argv[1], label='kind', rows=2000))\n"
            "print(rows, pa.default_memory_pool().max_memory())"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        )
        rows, peak = map(int, run.stdout.split())
        assert rows == n
        peaks.append(peak)
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 200_000 * 32 * 4 / 5
