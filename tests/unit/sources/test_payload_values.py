"""Values of columns as JSON payloads: every Arrow type, the same from every file."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.errors import InputError
from tests.unit.sources.samples import PLAIN, payloads, refused, table_of, write_ipc, written

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
def test_a_value_becomes_json(kind: str) -> None:
    column, expected = (PLAIN | IN_MEMORY)[kind]
    for rows in (1, 2, 10):
        found = payloads(table_of(about=column), "about", batch_rows=rows)
        assert found == expected
        assert json.loads(json.dumps(found, allow_nan=False)) == expected
        assert [type(value) for value in found] == [type(value) for value in expected]


@pytest.mark.parametrize("kind", PLAIN)
def test_a_payload_is_the_same_from_every_kind_of_table(kind: str, tmp_path: Path) -> None:
    column, expected = PLAIN[kind]
    for path in written(table_of(about=column), tmp_path):
        assert payloads(path, "about", batch_rows=2) == expected, path.name


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=20)
VALUES = {
    "texts": TEXTS.map(lambda text: f"x{text}x"),  # no number, and no blank that a CSV would lose
    "integers": st.integers(-(2**53), 2**53),
    "numbers": st.floats(-1e9, 1e9, allow_nan=False, width=32).map(lambda x: round(x, 3) + 0.5),
    "booleans": st.booleans(),
}


@given(data=st.data())
@settings(max_examples=8)
def test_any_payload_is_the_same_from_every_format(data: st.DataObject, tmp_path: Path) -> None:
    n, rows = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 9))
    values: dict[str, list[Any]] = {
        name: data.draw(st.lists(one, min_size=n, max_size=n)) for name, one in VALUES.items()
    }
    table = table_of(**values)
    arrays: dict[str, Any] = {name: np.array(column) for name, column in values.items()}
    np.savez(tmp_path / "a.npz", v=np.ones((n, 2)), **arrays)
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["v", *values])
        writer.writerows(zip(range(n), *values.values(), strict=True))
    expected = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    for path in (*written(table, tmp_path), tmp_path / "a.npz", tmp_path / "a.csv"):
        found = payloads(path, list(values), batch_rows=rows)
        assert found == expected, path.name
        types = [[type(value) for value in row.values()] for row in found]
        assert types == [[type(value) for value in row.values()] for row in expected], path.name
        for name, column in values.items():
            assert payloads(path, name, batch_rows=rows) == column


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
def test_a_value_without_json_is_refused_with_its_column_and_row(kind: str, tmp_path: Path) -> None:
    column, says = FOREIGN[kind]
    table = table_of(about=column)
    path = write_ipc(table, tmp_path / "a.arrow")
    for rows in (1, 10):
        options: Any = {"features": "v", "batch_rows": rows}
        refused(InputError, f"^column 'about', row 1: .*{says}", table, payload="about", **options)
        says_where = f"^{path}: column 'about', row 1: .*{says}"
        refused(InputError, says_where, path, payload=["about"], **options)
