"""Columns that rows carry: payloads as JSON has them, pictures as bytes, or a clear error."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.errors import InputError
from everhash.sources import Batch, npy, read, tables

GIF = b"GIF89a" + bytes(9)
DAY = datetime(2024, 5, 1, 10, 30, tzinfo=UTC)


def table_of(**columns: Any) -> pa.Table:
    """Return a table with a column of vectors `v` before these."""
    n = len(next(iter(columns.values())))
    return pa.table({"v": [[float(i), 1.0] for i in range(n)], **columns})


def write_arrow(table: pa.Table, path: Path, make: Any = pa.ipc.new_file, size: int = 4) -> Path:
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=size)
    return path


def written(table: pa.Table, folder: Path) -> list[Path]:
    """Return one file of each kind of table."""
    files = [folder / f"a.{ending}" for ending in ("parquet", "arrow", "stream.arrow", "feather")]
    pq.write_table(table, files[0], row_group_size=4)
    write_arrow(table, files[1])
    write_arrow(table, files[2], pa.ipc.new_stream)
    pa.feather.write_feather(table, str(files[3]))
    return files


def payloads(source: Any, payload: Any, **options: Any) -> list[Any]:
    """Read a source to its end and return the payloads of its rows."""
    found = []
    for batch in read(source, payload=payload, **{"features": "v", **options}):
        assert isinstance(batch, Batch)
        assert batch.thumbnails is None
        assert batch.payloads is not None
        assert len(batch.payloads) == len(batch.X)
        found += batch.payloads
    return found


def labels_of(batch: Batch) -> list[Any]:
    assert batch.y is not None
    return list(batch.y)


def thumbnails(source: Any, thumbnail: str, **options: Any) -> list[Any]:
    found = []
    for batch in read(source, thumbnail=thumbnail, **{"features": "v", **options}):
        assert batch.payloads is None
        assert batch.thumbnails is not None
        assert len(batch.thumbnails) == len(batch.X)
        found += batch.thumbnails
    return found


def refused(says: str, source: Any, **options: Any) -> None:
    with pytest.raises(InputError, match=says) as caught:
        list(read(source, **options))
    assert "\n" not in str(caught.value)
    assert caught.value.hint


# What JSON has comes as it is, dates as text, gaps as none

PLAIN: dict[str, tuple[pa.Array, list[Any]]] = {
    "texts": (pa.array(["a", None, ""]), ["a", None, ""]),
    "large texts": (pa.array(["é", None], pa.large_string()), ["é", None]),
    "few texts": (pa.array(["b", "a", None, "b"]).dictionary_encode(), ["b", "a", None, "b"]),
    "integers": (pa.array([1, None, 2**63 - 1]), [1, None, 2**63 - 1]),
    "unsigned": (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
    "booleans": (pa.array([True, False, None]), [True, False, None]),
    "nothing": (pa.nulls(2), [None, None]),
    "floats": (pa.array([0.1, None, float("nan"), -1e300]), [0.1, None, None, -1e300]),
    "floats of 32 bits": (pa.array([0.1, None], pa.float32()), [0.1, None]),
    "floats of 16 bits": (pa.array([0.1], pa.float16()), [0.1]),
    "decimals": (pa.array([Decimal("12.50"), None, Decimal("-0.01")]), ["12.50", None, "-0.01"]),
    "dates": (pa.array([date(2024, 5, 1), None]), ["2024-05-01", None]),
    "dates far away": (pa.array([2**31 - 1], pa.int32()).view(pa.date32()), ["5881580-07-11"]),
    "dates of 64 bits": (pa.array([date(1960, 1, 2)], pa.date64()), ["1960-01-02"]),
    "times": (pa.array([time(7, 5), time(7, 5, 0, 250_000)]), ["07:05:00", "07:05:00.25"]),
    "moments": (pa.array([DAY.replace(tzinfo=None), None]), ["2024-05-01T10:30:00", None]),
    "instants": (pa.array([DAY], pa.timestamp("ms", "Europe/Berlin")), ["2024-05-01T10:30:00Z"]),
    "nanoseconds": (
        pa.array([1, 10**9], pa.timestamp("ns")),
        ["1970-01-01T00:00:00.000000001", "1970-01-01T00:00:01"],
    ),
    "lists": (pa.array([["a", None], [], None]), [["a", None], [], None]),
    "vectors": (pa.array([[0.1, float("nan")]], pa.list_(pa.float32(), 2)), [[0.1, None]]),
    "structs": (
        pa.array([{"a": 1, "b": {"c": ["x"]}}, None, {"a": None, "b": {"c": None}}]),
        [{"a": 1, "b": {"c": ["x"]}}, None, {"a": None, "b": {"c": None}}],
    ),
    "structs with dates": (pa.array([{"on": [DAY.date()]}]), [{"on": ["2024-05-01"]}]),
    "maps": (
        pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int8())),
        [{"a": 1, "b": None}, None, {}],
    ),
}
IN_MEMORY: dict[str, tuple[pa.Array, list[Any]]] = {
    "text views": (pa.array(["a", None], pa.string_view()), ["a", None]),
    "few text views": (
        pa.DictionaryArray.from_arrays([1, None], pa.array(["a", "b"], pa.string_view())),
        ["b", None],
    ),
    "list views": (pa.array([[1], None], pa.list_view(pa.int8())), [[1], None]),
    "uuids": (pa.array([UUID(int=7).bytes, None], pa.uuid()), [str(UUID(int=7)), None]),
    "tensors": (
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2]], pa.list_(pa.int8(), 2))
        ),
        [[1, 2]],
    ),
    "slices": (pa.array([["a"], None, ["b", "c"], []]).slice(2), [["b", "c"], []]),
}


@pytest.mark.parametrize("kind", [*PLAIN, *IN_MEMORY])
def test_a_value_is_carried_as_json_has_it(kind: str) -> None:
    column, expected = (PLAIN | IN_MEMORY)[kind]
    for rows in (1, 2, 10):
        found = payloads(table_of(about=column), "about", rows=rows)
        assert found == expected
        assert json.loads(json.dumps(found, allow_nan=False)) == expected
        assert [type(value) for value in found] == [type(value) for value in expected]


@pytest.mark.parametrize("kind", PLAIN)
def test_it_is_the_same_in_every_kind_of_file(kind: str, tmp_path: Path) -> None:
    column, expected = PLAIN[kind]
    for path in written(table_of(about=column), tmp_path):
        assert payloads(path, "about", rows=2) == expected, path.name


def test_several_columns_are_an_object_without_gaps() -> None:
    table = table_of(
        text=["a", None, None], price=[1.5, 2.5, None], on=[date(2024, 5, 1)] + [None] * 2
    )
    named = ["price", "text", "on"]
    found = payloads(table, named)
    assert found == [{"price": 1.5, "text": "a", "on": "2024-05-01"}, {"price": 2.5}, None]
    assert list(found[0]) == named
    assert payloads(table, ["text"]) == [{"text": "a"}, None, None]
    assert payloads(table, ["text", "text"]) == payloads(table, ["text"])


def test_a_column_may_be_carried_and_used_at_once(tmp_path: Path) -> None:
    table = table_of(kind=["a", "b"], sku=[7, 9], ok=[True, False])
    for path in [table, *written(table, tmp_path)]:
        (batch,) = read(
            path, features="v", label="kind", id="sku", payload=["v", "kind", "sku", "ok"]
        )
        assert batch.payloads == [
            {"v": [0, 1], "kind": "a", "sku": 7, "ok": True},
            {"v": [1, 1], "kind": "b", "sku": 9, "ok": False},
        ]
        assert (labels_of(batch), batch.ids) == (["a", "b"], [7, 9])


def test_numbers_that_are_carried_are_no_features_unless_named() -> None:
    table = pa.table({"f0": [1.0], "f1": [2.0], "free": [3.0]})
    for features in (None, "f*"):
        (batch,) = read(table, features=features, payload="free")
        assert batch.X.tolist() == [[1, 2]]
    (batch,) = read(table, features="f0,free", payload=["free", "f0"])
    assert batch.X.tolist() == [[1, 3]]
    assert batch.payloads == [{"free": 3, "f0": 1}]


def test_vectors_that_are_carried_are_still_the_features() -> None:
    (batch,) = read(pa.table({"vector": [[1.0, 2.0]], "n": [3]}), payload=["vector", "n"])
    assert batch.X.tolist() == [[1, 2]]


def test_a_batch_is_still_what_ingest_takes() -> None:
    (batch,) = read(table_of(text=["a", "b", "c"], pic=[GIF] * 3), payload="text", thumbnail="pic")
    X, y, ids = batch
    assert (len(X), y, ids) == (3, None, None)
    assert (batch.payloads, batch.thumbnails) == (["a", "b", "c"], [GIF] * 3)
    (plain,) = read(table_of(text=["a"]))
    assert (plain.payloads, plain.thumbnails) == (None, None)


@given(n=st.integers(1, 20), rows=st.integers(1, 25), data=st.data())
@settings(max_examples=20)
def test_some_rows_of_a_batch_keep_what_is_theirs(n: int, rows: int, data: st.DataObject) -> None:
    table = table_of(i=list(range(n)), kind=[f"k{i}" for i in range(n)], pic=[GIF] * n)
    seen = 0
    for batch in read(
        table, features="v", label="kind", id="i", payload="i", thumbnail="pic", rows=rows
    ):
        which = data.draw(st.lists(st.integers(0, len(batch.X) - 1), unique=True))
        some = batch.part(np.array(which, np.int64))
        assert some.X[:, 0].tolist() == some.payloads == some.ids
        assert some.y == [f"k{i}" for i in some.ids or ()]
        assert some.thumbnails == [GIF] * len(which)
        assert batch.payloads == list(range(seen, seen + len(batch.X)))
        seen += len(batch.X)
    assert seen == n


# Pictures


@pytest.mark.parametrize(
    "column",
    [
        pa.array([GIF, None]),
        pa.array([GIF, None], pa.large_binary()),
        pa.array([GIF, None], pa.binary(15)),
        pa.array([GIF, None], pa.binary_view()),
        pa.array([GIF, None]).dictionary_encode(),
        pa.array([{"bytes": GIF, "path": "x.gif"}, {"bytes": None, "path": "/etc/passwd"}]),
    ],
    ids=lambda column: str(column.type).split("<")[0],
)
def test_pictures_come_as_bytes(column: pa.Array, tmp_path: Path) -> None:
    table = table_of(pic=column)
    assert thumbnails(table, "pic") == [GIF, None]
    path = write_arrow(table, tmp_path / "a.arrow")
    assert thumbnails(path, "pic", rows=1) == [GIF, None]


def test_a_struct_without_bytes_is_no_picture_and_one_that_is_null_has_none() -> None:
    table = table_of(pic=pa.array([None, {"bytes": GIF}]), other=[{"path": "x.gif"}] * 2)
    assert thumbnails(table, "pic") == [None, GIF]
    refused("column 'other': expected a picture's bytes, got struct", table, thumbnail="other")


def test_pictures_are_the_same_in_every_kind_of_file(tmp_path: Path) -> None:
    for path in written(table_of(pic=[GIF, None, GIF] * 5), tmp_path):
        for rows in (1, 4, 100):
            assert thumbnails(path, "pic", rows=rows) == [GIF, None, GIF] * 5


def test_a_text_is_no_picture_and_no_path_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(GIF)
    table = table_of(pic=[str(tmp_path / "a.gif")])
    for source in [table, *written(table, tmp_path)]:
        refused("column 'pic': .*got string .*no path is followed", source, thumbnail="pic")
    (tmp_path / "a.csv").write_text("f0,pic\n1,a.gif\n")
    refused("a.csv: .*no column of bytes.*Parquet", tmp_path / "a.csv", thumbnail="pic")
    np.savez(tmp_path / "a.npz", X=np.ones((1, 2)), pic=np.array([GIF]))
    refused("a.npz: .*no column of bytes.*Parquet", tmp_path / "a.npz", thumbnail="pic")
    np.save(tmp_path / "a.npy", np.ones((1, 2)))
    refused("a.npy: .*no column of bytes.*Parquet", tmp_path / "a.npy", thumbnail="pic")


# CSV and NumPy's files


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a", "", "b c"], ["a", None, "b c"]),
        (['"a,b"', '"c\nd"', '"é ""quoted"""'], ["a,b", "c\nd", 'é "quoted"']),
        (["1", "", "-20"], [1, None, -20]),
        (["1.0", "", "2"], [1, None, 2]),
        (["12.50", "0.25", "1e-3"], [12.5, 0.25, 0.001]),
        (["007", "1", "2"], ["007", "1", "2"]),
        (["true", "False", ""], [True, False, None]),
        (["true", "1", "no"], ["true", "1", "no"]),
        (["NaN", "1.5", "inf"], ["NaN", "1.5", "inf"]),
        (["1" * 20, "1", "2"], ["1" * 20, "1", "2"]),
        (["2024-05-01", "2024-05-02", "x"], ["2024-05-01", "2024-05-02", "x"]),
    ],
)
def test_a_csv_gives_numbers_booleans_and_texts(
    cells: list[str], expected: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    lines = (f"{cell},{i}\n" for i, cell in enumerate(cells))
    path.write_text("about,v\n" + "".join(lines), encoding="utf-8")
    found = payloads(path, "about", rows=2)
    assert found == expected
    bools = [type(value) is bool for value in found]
    assert bools == [type(value) is bool for value in expected]


def test_what_a_csv_column_is_for_besides_decides_its_type(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("kind,sku,f0,f1\n1.5,7,0.1,2\n2.5,9,0.2,3\n")
    (batch,) = read(path, features="f0,f1", label="kind", id="sku", payload=["kind", "sku", "f0"])
    assert batch.payloads is not None
    assert batch.payloads[0] == {"kind": "1.5", "sku": 7, "f0": 0.1}
    assert labels_of(batch) == ["1.5", "2.5"]
    assert batch.X.tolist() == np.array([[0.1, 2], [0.2, 3]], np.float32).tolist()


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array(["a", "é", ""]), ["a", "é", ""]),
        (np.array([1, 2, 3], ">i2"), [1, 2, 3]),
        (np.array([0.1, np.nan, 2], np.float32), [0.1, None, 2]),
        (np.array([True, False, True]), [True, False, True]),
        (
            np.array(["2024-05-01", "NaT", "2024-05-03"], "M8[D]"),
            ["2024-05-01", None, "2024-05-03"],
        ),
        (np.array(["2024-05-01T10:30"] * 3, "M8[s]"), ["2024-05-01T10:30:00"] * 3),
        (np.array([["a", "b"]] * 3), [["a", "b"]] * 3),
        (np.arange(12).reshape(3, 2, 2), [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]),
        (np.asfortranarray([[1, 2], [3, 4], [5, 6]]), [[1, 2], [3, 4], [5, 6]]),
    ],
    ids=str,
)
def test_an_npz_gives_its_arrays(array: Any, expected: list[Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)), about=array, n=[7, 8, 9])
    for rows in (1, 2, 10):
        found = payloads(tmp_path / "a.npz", "about", features=None, rows=rows)
        assert found == expected
        both = payloads(tmp_path / "a.npz", ["n", "about"], features=None, rows=rows)
        assert both[0] == {"n": 7, "about": expected[0]}


def test_arrays_of_an_npz_are_carried_and_used_at_once(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), y=["a", "b"], ids=[7, 9])
    (batch,) = read(tmp_path / "a.npz", payload=["y", "ids"])
    assert batch.payloads == [{"y": "a", "ids": 7}, {"y": "b", "ids": 9}]
    assert (labels_of(batch), batch.ids) == (["a", "b"], [7, 9])


# What is wrong is said, with its place

FOREIGN: dict[str, tuple[pa.Array, str]] = {
    "infinity": (pa.array([1.0, float("inf")]), "got infinity"),
    "infinity in a list": (pa.array([[1.0], [float("-inf")]]), "got infinity"),
    "durations": (pa.array([None, 5], pa.duration("s")), r"got duration\[s\]"),
    "bytes": (pa.array([None, b"a"]), "got binary"),
    "bytes in a struct": (pa.array([None, {"a": b"a"}]), "got binary"),
    "maps of numbers": (pa.array([[], [(1, 2)]], pa.map_(pa.int8(), pa.int8())), "got a key"),
    "maps with a key twice": (
        pa.array([[], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8())),
        "'a' twice",
    ),
    "fields of one name": (
        pa.StructArray.from_arrays(
            [pa.array([1, 2]), pa.array([1, 2])], ["a", "a"], mask=pa.array([True, False])
        ),
        "'a' twice",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_json_does_not_have_is_refused_with_its_column_and_row(
    kind: str, tmp_path: Path
) -> None:
    column, says = FOREIGN[kind]
    table = table_of(about=column)
    path = write_arrow(table, tmp_path / "a.arrow")
    for rows in (1, 10):
        options: Any = {"features": "v", "rows": rows}
        refused(f"^column 'about', row 1: .*{says}", table, payload="about", **options)
        says_where = f"^{path}: column 'about', row 1: .*{says}"
        refused(says_where, path, payload=["about"], **options)


@pytest.mark.parametrize(
    "option", [{"payload": "nope"}, {"payload": ["nope"]}, {"thumbnail": "nope"}]
)
def test_a_column_that_is_not_there_is_refused(option: Any, tmp_path: Path) -> None:
    table = table_of(text=["a"])
    for source in [table, *written(table, tmp_path)]:
        refused("no column 'nope' .there are 'v', 'text'", source, **option)
    if "payload" in option:
        np.savez(tmp_path / "a.npz", X=np.ones((1, 2)), text=["a"])
        refused("a.npz: no column 'nope' .there are 'X', 'text'", tmp_path / "a.npz", **option)
        (tmp_path / "a.csv").write_text("v,text\n1,a\n")
        refused("a.csv: no column 'nope' .there are 'v', 'text'", tmp_path / "a.csv", **option)


def test_two_columns_of_one_name_are_refused() -> None:
    columns = [pa.array([[1.0]]), pa.array(["a"]), pa.array(["b"])]
    table = pa.Table.from_arrays(columns, ["v", "text", "text"])
    refused("2 columns are called 'text'", table, payload="text")


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.array(["a"]), "2 rows but 1 values of 'about'"),
        (np.array("a"), "2 rows but 0 values of 'about'"),
        (np.array([b"a", b"b"]), "array 'about': expected texts, numbers.* got |S1"),
        (np.array([1j, 2j]), "array 'about': .* got complex128"),
        (np.array([1, 2], "m8[s]"), "array 'about': .* got timedelta"),
        (np.empty((2, 0)), "array 'about': .* shape"),
        (np.array([1, np.inf]), "column 'about', row 1: .*got infinity"),
        (np.array(["a", None], object), "array 'about': .*pickle"),
    ],
    ids=str,
)
def test_an_array_that_cannot_be_carried_is_named(array: Any, says: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), about=array)
    refused(f"a.npz: .*{says}", tmp_path / "a.npz", payload="about")


def test_arrays_and_items_have_no_columns_to_carry(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    refused("a.npy: .*no payloads .an .npz can", tmp_path / "a.npy", payload="text")
    for source in (
        np.ones((2, 2)),
        (np.ones((2, 2)),),
        [{"v": [1, 2], "text": "a"}],
        iter([np.ones((2, 2))]),
    ):
        refused("payloads= and thumbnails=", source, payload="text")
        refused("payloads= and thumbnails=", source, thumbnail="text")


# Memory

POOLS: list[pa.MemoryPool] = []
"""pyarrow crashes if one goes away while something is left in it."""


def test_heavy_columns_are_never_held_for_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "WEIGHT", 1_000_000)
    monkeypatch.setattr(tables, "PIECE", 10)
    document, n = "x" * 50_000, 400
    schema = table_of(text=["a"]).schema
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for i in range(n):
            writer.write_table(pa.table({"v": [[float(i), 1.0]], "text": [document]}, schema))
    usual = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(usual))
    pa.set_memory_pool(POOLS[-1])
    tracemalloc.start()
    try:
        sizes = [len(b.X) for b in read(tmp_path / "a.parquet", payload="text", rows=1000)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    assert sum(sizes) == n
    assert max(sizes) <= 30
    assert peak + POOLS[-1].max_memory() < n * len(document) / 3


def test_heavy_record_batches_and_arrays_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tables, npy):
        monkeypatch.setattr(module, "WEIGHT", 1_000_000)
    texts = ["x" * 50_000] * 45
    table = table_of(text=texts)
    np.savez(tmp_path / "a.npz", X=np.ones((45, 2)), text=texts)
    for path in (table, write_arrow(table, tmp_path / "a.arrow", size=45), tmp_path / "a.npz"):
        sizes = [len(batch.X) for batch in read(path, payload="text")]
        assert sum(sizes) == 45
        assert max(sizes) <= 20
        assert [len(batch.X) for batch in read(path)] == [45]


def test_light_columns_do_not_make_batches_smaller(tmp_path: Path) -> None:
    for path in written(table_of(text=["some words"] * 3000), tmp_path):
        assert [len(batch.X) for batch in read(path, payload="text", rows=1500)] == [1500, 1500]


def test_columns_that_nobody_asked_for_are_not_read(tmp_path: Path) -> None:
    """A column that cannot be read does not matter while nobody asks for it."""
    offsets, data = pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, data])
    table = table_of(bad=bad, text=["a"])
    for path in written(table, tmp_path):
        assert payloads(path, "text") == ["a"]
        refused(f"^{path}: .*(?i:utf)", path, payload="bad")


# Damage


def test_offsets_that_lead_astray_are_not_followed(tmp_path: Path) -> None:
    """What a column weighs is asked only after that, or pyarrow would read anywhere."""
    deep = [[[i] for i in range(77)], [[i] for i in range(63)]]
    path = write_arrow(table_of(deep=deep), tmp_path / "a.arrow")
    offsets, astray = (np.array([0, 77, end], np.int32).tobytes() for end in (140, 2**30))
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, astray))
    refused(f"^{path}: ", path, features="v", payload="deep")


def outcome(path: Path, columns: list[str]) -> str:
    """Read a file that may be damaged; return our error, which names it, or no text."""
    try:
        for batch in read(path, features="v", payload=columns, rows=4):
            json.dumps(batch.payloads, allow_nan=False)
    except InputError as error:
        return str(error).partition(str(path))[1]
    return ""


@given(data=st.data())
@settings(max_examples=25)
def test_any_damage_is_refused_or_read(data: st.DataObject, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("damage")
    columns = {
        name: pa.concat_arrays([column] * 6).slice(0, 6) for name, (column, _) in PLAIN.items()
    }
    for path in written(table_of(**columns), folder):
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        assert outcome(path, list(columns)) in ("", str(path))
