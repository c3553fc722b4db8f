"""Which columns are features, labels, ids and payloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest

from everhash.errors import InputError
from everhash.sources import read
from tests.unit.sources.samples import (
    labels_of,
    payloads,
    refused,
    sample,
    table_of,
    whole,
    write_ipc,
    written,
)


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


def test_a_column_may_have_two_uses(tmp_path: Path) -> None:
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


def test_numbers_of_payloads_are_no_features_unless_named() -> None:
    table = pa.table({"f0": [1.0], "f1": [2.0], "free": [3.0]})
    for features in (None, "f*"):
        (batch,) = read(table, features=features, payload="free")
        assert batch.X.tolist() == [[1, 2]]
    (batch,) = read(table, features="f0,free", payload=["free", "f0"])
    assert batch.X.tolist() == [[1, 3]]
    assert batch.payloads == [{"free": 3, "f0": 1}]


def test_vectors_may_be_features_and_payload_and_both_are_exact() -> None:
    """The page searches by the vector in an entry's payload."""
    rows = sample(5)
    (batch,) = read(rows.table(), payload=["v", "price"])
    assert batch.payloads is not None
    np.testing.assert_array_equal(batch.X, rows.X)
    np.testing.assert_array_equal(
        np.array([each["v"] for each in batch.payloads], np.float32), rows.X
    )


@pytest.mark.parametrize(
    "option", [{"payload": "nope"}, {"payload": ["nope"]}, {"thumbnail": "nope"}]
)
def test_a_column_that_is_not_there_is_refused(option: Any, tmp_path: Path) -> None:
    table = table_of(text=["a"])
    for source in [table, *written(table, tmp_path)]:
        refused(InputError, "no column 'nope' .there are 'v', 'text'", source, **option)
    if "payload" in option:
        np.savez(tmp_path / "a.npz", X=np.ones((1, 2)), text=["a"])
        refused(
            InputError,
            "a.npz: no column 'nope' .there are 'X', 'text'",
            tmp_path / "a.npz",
            **option,
        )
        (tmp_path / "a.csv").write_text("v,text\n1,a\n")
        refused(
            InputError,
            "a.csv: no column 'nope' .there are 'v', 'text'",
            tmp_path / "a.csv",
            **option,
        )


V = pa.array([[1.0, 2.0], [3.0, 4.0]])


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([V, V, pa.array([1, 2])], ["v", "v", "a"])
    path = write_ipc(table, tmp_path / "a.arrow")
    refused(InputError, "2 columns are called 'v'", path, features="v")
    assert whole(path, features="a").X.tolist() == [[1], [2]]
    (tmp_path / "a.csv").write_text("a,b,a\n1,2,3\n")
    refused(InputError, "2 columns are called 'a'", tmp_path / "a.csv")
    twice = pa.Table.from_arrays([V, pa.array(["a", "b"]), pa.array(["c", "d"])], ["v", "t", "t"])
    refused(InputError, "2 columns are called 't'", twice, payload="t")


def test_columns_that_are_not_named_are_not_read(tmp_path: Path) -> None:
    """A column that cannot be read does not matter then."""
    offsets, data = pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, data])
    table = table_of(bad=bad, text=["a"])
    for path in written(table, tmp_path):
        assert payloads(path, "text") == ["a"]
        refused(InputError, f"^{path}: .*(?i:utf)", path, payload="bad")
