"""Parquet, Arrow and data frames: every type, and errors that name the column and the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest

from everhash.errors import FeatureTypeError, IdError, InputError, LabelError
from everhash.sources import read
from tests.unit.sources.samples import (
    GIF,
    NAMES,
    SOURCES,
    Rows,
    refused,
    same,
    sample,
    table_of,
    thumbnails,
    whole,
    write_ipc,
    write_parquet,
    written,
)


def test_an_extension_type_is_read_as_what_it_stores() -> None:
    kind = pa.fixed_shape_tensor(pa.float32(), [2])
    storage = pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))
    table = pa.table({"v": pa.ExtensionArray.from_storage(kind, storage)})
    assert whole(table).X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kind", ["arrow file", "arrow stream", "record batches", "table"])
def test_small_record_batches_are_put_together(kind: str, tmp_path: Path) -> None:
    source, options = SOURCES[kind](sample(40), tmp_path)
    batches = read(source, features=options["features"], batch_rows=20)
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
        found = whole(tmp_path / "a.arrow", label="kind", batch_rows=rows).y
        assert found == ["a", "b", "c", None, "b", "a"]


def test_slices_and_chunks_of_a_table_are_read_right() -> None:
    rows = sample(20)
    for kind in (None, pa.list_(pa.float32())):
        table = pa.concat_tables([rows.table(kind).slice(3, 5), rows.table(kind).slice(11, 2)])
        at = [*range(3, 8), 11, 12]
        expected = Rows(rows.X[at], [rows.y[i] for i in at], [rows.ids[i] for i in at])
        same(whole(table, batch_rows=3, **NAMES), expected)


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
        assert whole(source, features="v", label="kind", batch_rows=rows).y == expected
        assert whole(table, features="v", label="kind", batch_rows=rows).y == expected


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
def test_thumbnails_come_as_bytes(column: pa.Array, tmp_path: Path) -> None:
    table = table_of(pic=column)
    assert thumbnails(table, "pic") == [GIF, None]
    path = write_ipc(table, tmp_path / "a.arrow")
    assert thumbnails(path, "pic", batch_rows=1) == [GIF, None]


def test_a_struct_without_bytes_is_no_thumbnail_and_a_null_has_none() -> None:
    table = table_of(pic=pa.array([None, {"bytes": GIF}]), other=[{"path": "x.gif"}] * 2)
    assert thumbnails(table, "pic") == [None, GIF]
    refused(
        InputError,
        "column 'other': expected the bytes of an image, got struct",
        table,
        thumbnail="other",
    )


def test_thumbnails_are_the_same_from_every_kind_of_table(tmp_path: Path) -> None:
    for path in written(table_of(pic=[GIF, None, GIF] * 5), tmp_path):
        for rows in (1, 4, 100):
            assert thumbnails(path, "pic", batch_rows=rows) == [GIF, None, GIF] * 5


def test_a_text_is_no_thumbnail_and_paths_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(GIF)
    table = table_of(pic=[str(tmp_path / "a.gif")])
    for source in [table, *written(table, tmp_path)]:
        refused(
            InputError,
            "column 'pic': .*got string .*paths are not followed",
            source,
            thumbnail="pic",
        )
    (tmp_path / "a.csv").write_text("f0,pic\n1,a.gif\n")
    np.savez(tmp_path / "a.npz", X=np.ones((1, 2)), pic=np.array([GIF]))
    np.save(tmp_path / "a.npy", np.ones((1, 2)))
    for name in ("a.csv", "a.npz", "a.npy"):
        says = f"{name}: .*no column of bytes, so no thumbnails .*Parquet"
        refused(InputError, says, tmp_path / name, thumbnail="pic")


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
    refused(error, f"^{path}: .*{says}", path, batch_rows=rows, **options)
    path = str(write_ipc(table, tmp_path / "a.arrow", pa.ipc.new_stream, size=1))
    refused(error, f"^{path}: .*{says}", path, batch_rows=rows, **options)
    refused(error, f"^{says}", table, batch_rows=rows, **options)


def test_the_row_of_a_fault_is_that_of_the_file(tmp_path: Path) -> None:
    lists: list[Any] = [[1.0, 2.0]] * 100
    for fault, says in (([1.0], "got 1"), ([1.0, None], "null"), (None, "null")):
        table = pa.table({"v": [*lists, fault, *lists]})
        path = write_parquet(table, tmp_path / "a.parquet", 30)
        for rows in (1, 7, 1000):
            refused(InputError, f"row 100: .*{says}", path, batch_rows=rows)
            if fault != [1.0, None]:  # a gap in a list is NaN, which `as_rows` refuses
                refused(InputError, "row 100: ", table.to_pylist(), batch_rows=rows)
