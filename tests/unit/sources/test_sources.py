"""Where rows come from: every source gives the same rows, in bounded memory, or a clear error."""

from __future__ import annotations

import csv
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
@given(n=st.integers(1, 30), d=st.integers(1, 4), rows=st.integers(1, 40))
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


NAMED = ["parquet fixed", "parquet columns", "arrow file", "csv", "table", "data frame", "rows"]


@pytest.mark.parametrize("kind", [*NAMED, "batches by name"])
def test_labels_and_ids_come_only_where_they_are_named(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](sample(5), tmp_path)
    for batch in read(source, features=options.get("features", "f*")):
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
    options: dict[str, Any] = {"features": "a,b"} if form == "columns" else {}
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


@pytest.mark.parametrize("kind", ["arrow file", "arrow stream", "record batches", "table"])
def test_small_record_batches_are_put_together(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](sample(40), tmp_path)
    batches = read(source, features=options["features"], rows=20)
    assert [len(batch.X) for batch in batches] == [20, 20]


def test_dictionaries_may_differ_between_record_batches(tmp_path: Path) -> None:
    tables = [
        pa.table({"v": [[1.0, 2.0]] * 2, "kind": pa.array(labels).dictionary_encode()})
        for labels in (["a", "b"], ["c", None], ["b", "a"])
    ]
    with pa.ipc.new_stream(tmp_path / "a.arrow", tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    for rows in (1, 3, 10):
        found = whole(tmp_path / "a.arrow", label="kind", rows=rows).y
        assert found == ["a", "b", "c", None, "b", "a"]


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
        (
            pa.DictionaryArray.from_arrays([1, None], pa.array(["a", "b"], pa.string_view())),
            ["b", None],
        ),
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
    tags = [np.array(["a", "b"], object), np.array([], object)]
    for each in ([["a", "b"], []], tags):
        batch = {"v": [[1.0, 2.0], [3.0, 4.0]], "tags": each}
        assert whole([batch], features="v", label="tags").y == [{"a", "b"}, set()]


def test_what_cannot_be_a_label_is_left_to_as_labels() -> None:
    y = [["a", ["b"]], {"c": 1}, "d"]
    assert whole((np.ones((3, 2)), y)).y == y
    assert whole([{"v": [1.0, 2.0], "kind": each} for each in y], features="v", label="kind").y == y


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


@pytest.mark.parametrize("kind", SOURCES)
def test_no_rows_are_no_batches(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](Rows(np.empty((0, 3), np.float32), [], []), tmp_path)
    assert len(whole(source, **options)) == 0


@pytest.mark.parametrize("text", ["", "\n", "kind,f0\n"])
def test_an_empty_csv_is_no_batches(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert list(read(tmp_path / "a.csv")) == []
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
            wide = pa.table({f"f{j}": block[:, j] for j in range(d)}).append_column(
                "kind", table[1]
            )
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


POOLS: list[pa.MemoryPool] = []
"""pyarrow crashes if one goes away while something is left in it."""


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "one-group.parquet", "arrow"])
def test_only_a_part_of_a_file_is_held(kind: str, tmp_path: Path) -> None:
    n, d = 60_000, 64
    path = write_large(kind, tmp_path / f"a.{kind}", n, d)
    label = None if kind in ("npy", "npz") else "kind"
    usual = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(usual))
    pa.set_memory_pool(POOLS[-1])
    tracemalloc.start()
    try:
        assert sum(len(batch.X) for batch in read(path, label=label, rows=1000)) == n
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert peak + POOLS[-1].max_memory() < n * d * 4 / 3


PEAK = """
import sys
import pyarrow as pa
from everhash.sources import read
rows = sum(len(batch.X) for batch in read(sys.argv[1], label="kind", rows=2000))
print(rows, pa.default_memory_pool().max_memory())
"""


@pytest.mark.parametrize(("kind", "n", "d"), [("parquet", 100_000, 32), ("csv", 120_000, 64)])
def test_a_larger_file_needs_no_more_memory(kind: str, n: int, d: int, tmp_path: Path) -> None:
    """pyarrow's peak in fresh processes; of a CSV it reads up to 32 blocks of a megabyte ahead."""
    peaks = []
    for size in (n // (10 if kind == "parquet" else 2), n):
        path = write_large(kind, tmp_path / f"{size}.{kind}", size, d)
        run = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True
        )
        rows, peak = map(int, run.stdout.split())
        assert rows == size
        peaks.append(peak)
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < path.stat().st_size / 2


# What is wrong is said, with its place


def refused(error: type[InputError], says: str, source: Any, **options: Any) -> None:
    with pytest.raises(error, match=says) as caught:
        list(read(source, **options))
    assert "\n" not in str(caught.value)
    assert caught.value.message[0].islower() or caught.value.message[0] in "/0123456789X"


V = pa.array([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("columns", "options", "error", "says"),
    [
        ({"v": V}, {"label": "kind"}, InputError, "no column 'kind' .there are 'v'"),
        ({"v": V}, {"id": "sku"}, InputError, "no column 'sku'"),
        ({"v": V}, {"features": "w"}, InputError, "no column 'w'"),
        ({"v": V}, {"features": "w*"}, InputError, r"no column 'w\*'"),
        ({"a": [1, 2]}, {"features": "a,b"}, InputError, "no column 'a,b'"),
        ({"v": V, "w": V}, {}, InputError, "2 columns hold vectors: v, w .*features='v'"),
        ({"v": ["a", "b"]}, {}, InputError, "no column of numbers"),
        ({"v": ["a", "b"]}, {"features": "v"}, FeatureTypeError, "column 'v': .*got string"),
        ({"v": [["a"], ["b"]]}, {"features": "v"}, FeatureTypeError, "column 'v': .*got string"),
        ({"v": [[[1.0]], [[2.0]]]}, {"features": "v"}, FeatureTypeError, "column 'v': .*got list"),
        ({"v": V, "a": [1, 2]}, {"features": "v,a"}, FeatureTypeError, "column 'v': .*got list"),
        ({"v": [[1.0, 2.0], [3.0]]}, {}, InputError, "column 'v', row 1: expected 2 .* got 1"),
        ({"v": [[1.0, 2.0], None]}, {}, InputError, "column 'v', row 1: .*null"),
        ({"v": [[1.0, 2.0], [3.0, None]]}, {}, InputError, "column 'v', row 1: .*null"),
        ({"a": [1, 2], "b": [1, None]}, {}, InputError, "column 'b', row 1: .*null"),
        ({"v": V, "sku": [1, None]}, {"id": "sku"}, IdError, "column 'sku', row 1: .*null"),
        ({"v": V, "sku": [1.5, 2]}, {"id": "sku"}, IdError, "column 'sku': .*got double"),
        ({"v": V, "sku": [True, False]}, {"id": "sku"}, IdError, "column 'sku': .*got bool"),
        ({"v": V, "k": [{"a": 1}] * 2}, {"label": "k"}, LabelError, "column 'k': .*got struct"),
        ({"v": V, "k": [b"a", b"b"]}, {"label": "k"}, LabelError, "column 'k': .*got binary"),
    ],
)
@pytest.mark.parametrize("rows", [1, 5])
def test_a_table_that_cannot_be_used_is_named(
    columns: Any, options: dict[str, str], error: Any, says: str, rows: int, tmp_path: Path
) -> None:
    table = pa.table(columns)
    path = str(write_parquet(table, tmp_path / "a.parquet"))
    refused(error, f"^{path}: .*{says}", path, rows=rows, **options)
    path = str(write_ipc(table, tmp_path / "a.arrow", pa.ipc.new_stream, size=1))
    refused(error, f"^{path}: .*{says}", path, rows=rows, **options)
    refused(error, f"^{says}", table, rows=rows, **options)


def test_the_row_of_a_fault_is_that_of_the_file(tmp_path: Path) -> None:
    lists: list[Any] = [[1.0, 2.0]] * 100
    for fault, says in (([1.0], "got 1"), ([1.0, None], "null"), (None, "null")):
        table = pa.table({"v": [*lists, fault, *lists]})
        path = write_parquet(table, tmp_path / "a.parquet", 30)
        for rows in (1, 7, 1000):
            refused(InputError, f"row 100: .*{says}", path, rows=rows)
            refused(InputError, "row 100: ", table.to_pylist(), rows=rows)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([V, V, pa.array([1, 2])], ["v", "v", "a"])
    path = write_ipc(table, tmp_path / "a.arrow")
    refused(InputError, "2 columns are called 'v'", path, features="v")
    assert whole(path, features="a").X.tolist() == [[1], [2]]
    (tmp_path / "a.csv").write_text("a,b,a\n1,2,3\n")
    refused(InputError, "2 columns are called 'a'", tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("text", "options", "error", "says"),
    [
        ("a,b\n1,2\n3,x\n", {}, FeatureTypeError, "column 'b', row 1: .*number, got 'x'"),
        ("k,a\n1,2\n\n3,NA\n", {"label": "k"}, FeatureTypeError, "'a', row 1: .*got 'NA'"),
        ("a,b\n1,2\n3\n", {}, InputError, "row 1: expected 2 columns, got 1"),
        ("a,b\n1,2\n3,4,5\n", {"id": "a"}, InputError, "row 1: expected 2 columns, got 3"),
        ("1,2\n3,x\n", {}, FeatureTypeError, "column 'f1', row 1: .*got 'x'"),
        ("a,b\n1,2\n3,\n", {}, InputError, "column 'b', row 1: .*null"),
        ("a,b\n1,2\n,4\n", {"id": "a"}, IdError, "column 'a', row 1: .*null"),
        ("a,b\n1,2\n", {"label": "c"}, InputError, "no column 'c' .*'a', 'b'"),
        ("1,2\n3,4\n", {"features": "f0"}, InputError, "names of the columns"),
    ],
)
def test_a_csv_that_cannot_be_used_is_named(
    text: str, options: dict[str, str], error: Any, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    refused(error, f"^{path}: .*{says}", path, **options)


def test_a_csv_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"k,a\n\xff\xfe,1\n")
    refused(InputError, "row 0: .*utf8", tmp_path / "a.csv", label="k")


@pytest.mark.parametrize(
    ("arrays", "options", "error", "says"),
    [
        ({"Z": np.ones((2, 2))}, {}, InputError, "no column 'X' .*'Z'"),
        ({"X": np.ones((2, 2))}, {"label": "kind"}, InputError, "no column 'kind'"),
        ({"X": np.ones(2)}, {}, InputError, r"array 'X': expected a 2-d .* shape \(2,\)"),
        ({"X": np.array([["a"]])}, {}, FeatureTypeError, "array 'X': expected numbers .*U1"),
        ({"X": np.ones((2, 2)), "y": [1]}, {}, LabelError, "2 rows but 1 labels"),
        ({"X": np.ones((2, 2)), "y": 1}, {}, LabelError, "2 rows but 0 labels"),
        ({"X": np.ones((2, 2)), "ids": [1]}, {}, IdError, "2 rows but 1 ids"),
        ({"X": np.ones((2, 2)), "ids": [0.5, 1]}, {}, IdError, "row 0: expected an id, got 0.5"),
        ({"X": np.ones((1, limits.DIMS + 1), "i1")}, {}, LimitError, str(limits.DIMS)),
    ],
)
def test_an_npz_that_cannot_be_used_is_named(
    arrays: Any, options: dict[str, str], error: Any, says: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    refused(error, f"^{tmp_path}/a.npz: .*{says}", tmp_path / "a.npz", **options)


def test_arrays_of_an_npz_are_found_by_name(tmp_path: Path) -> None:
    rows = sample(4)
    np.savez(tmp_path / "a.npz", emb=rows.X, kind=rows.y, sku=rows.ids, y=[1])
    same(whole(tmp_path / "a.npz", features="emb", label="kind", id="sku"), rows)


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
        (np.array([["a"]]), {}, FeatureTypeError, "got <U1"),
        (np.array([[1 + 2j]]), {}, FeatureTypeError, "got complex"),
        (np.ones((2, 2)), {"label": "y"}, InputError, "names of columns"),
        (([[1, 2], [3]], None), {}, InputError, "row 1: expected 2 .* got 1"),
        (([[1, 2], [3, None]], None), {}, InputError, "row 1: .*None"),
        (([[1, 2], None], None), {}, InputError, "row 1: .*None"),
        (([[1, 2], ["a", 4]], None), {}, FeatureTypeError, "expected numbers"),
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
        (np.ones((2, 2)), {"rows": 0}, OptionError, "rows"),
        (np.ones((2, 2)), {"rows": 2.5}, OptionError, "rows"),
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
        refused(InputError, r"needs pyarrow.*pip install pyarrow", path)
    assert len(whole([{"v": [1, 2]}])) == 1
    assert count_rows(paths[0]) is None


def test_reading_arrays_does_not_load_pyarrow() -> None:
    code = (
        "import sys; from everhash.sources import read; list(read(([[1]], ['a'])));"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {name.partition(".")[0] for name in run.stdout.split()} & {"pyarrow", "pandas"}


# Damaged and hostile files


def npy_bytes(
    shape: Any, descr: str = "'<f4'", data: bytes = b"", version: bytes = b"\1\0"
) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    size = len(text) + 1
    length = size.to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + length + text.encode() + b"\n" + data


HOSTILE = {
    "huge shape": npy_bytes("(10**15, 4)".replace("10**15", str(10**15))),
    "shape beyond any integer": npy_bytes(f"({2**62}, {2**62})"),
    "negative shape": npy_bytes("(-4, -4)", data=bytes(64)),
    "one row more than there is": npy_bytes("(5, 2)", data=bytes(32)),
    "no shape": npy_bytes("None"),
    "code for a shape": npy_bytes("__import__('os').getcwd()"),
    "deep nesting": npy_bytes("(" * 5000),
    "huge header": npy_bytes(" " * 20_000 + "(1, 1)", version=b"\2\0", data=bytes(4)),
    "header longer than the file": b"\x93NUMPY\2\0\xff\xff\xff\xff{",
    "unknown version": npy_bytes("(1, 1)", version=b"\7\0"),
    "pickle": npy_bytes("(1, 1)", "'|O'", b"cos\ngetcwd\n(tR."),
    "structure": npy_bytes("(1, 1)", "[('a', '<f4')]", bytes(4)),
    "structure of objects": npy_bytes("(1, 1)", "[('a', '|O')]", bytes(8)),
    "items of no size": npy_bytes("(1000000000, 1)", "'|V0'"),
    "not an array": b"PK\3\4",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_npy_is_refused_before_anything_is_allocated(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(HOSTILE[name])
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", HOSTILE[name])
    tracemalloc.start()
    try:
        refused(InputError, "a.npy: ", tmp_path / "a.npy")
        refused(InputError, "a.npz: array 'X': ", tmp_path / "a.npz")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_what_needs_pickle_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, None]], object))
    refused(InputError, "a.npy: .*pickle.*dtype=str", tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), y=np.array(["a", None], object))
    refused(InputError, "a.npz: array 'y': .*pickle.*dtype=str", tmp_path / "a.npz")


def test_a_flipped_bit_in_an_npz_is_noticed(tmp_path: Path) -> None:
    path = write_npz(sample(), tmp_path / "a.npz")
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    refused(InputError, "a.npz: .*CRC", path)


def files(path: Path) -> dict[str, tuple[Path, dict[str, str]]]:
    """Return one file of each kind, with the columns to read."""
    rows = sample(12)
    np.save(path / "a.npy", rows.X)
    made: dict[str, tuple[Path, dict[str, str]]] = {"npy": (path / "a.npy", {})}
    for kind, make in SOURCES.items():
        (path / kind).mkdir()
        source, options = make(rows, path / kind)
        if isinstance(source, Path):
            made[kind] = source, options
    return made


def outcome(path: Path, options: dict[str, str]) -> str:
    """Read a file that may be damaged; return our error, which names it, or no text."""
    count_rows(path)
    try:
        whole(path, rows=5, **options)
    except InputError as error:
        return str(error).partition(str(path))[1]
    return ""


def test_every_truncation_is_refused_or_read(tmp_path: Path) -> None:
    for kind, (path, options) in files(tmp_path).items():
        data = path.read_bytes()
        found = []
        for size in range(0, len(data), max(len(data) // 40, 1)):
            path.write_bytes(data[:size])
            found.append(outcome(path, options) == str(path))
        assert all(found) or kind in ("csv", "arrow stream")  # these may end after any row


@given(data=st.data())
@settings(max_examples=15)
def test_any_damage_is_refused_or_read(data: st.DataObject, tmp_path_factory: Any) -> None:
    for path, options in files(tmp_path_factory.mktemp("damage")).values():
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        assert outcome(path, options) in ("", str(path))


# Counting


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
