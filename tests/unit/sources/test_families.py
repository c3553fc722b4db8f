"""Columns of numbers that nobody has named: one numbered family is taken, and nothing beside it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everhash.errors import InputError
from everhash.sources import read
from everhash.sources.families import families

Table = dict[str, list[Any]]


def e(n: int, prefix: str = "e", first: int = 0) -> Table:
    return {f"{prefix}{i}": [i / 8, 1.0] for i in range(first, first + n)}


def sources(table: Table, folder: Path) -> Iterator[Any]:
    """Yield one table in every form that has columns."""
    rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    with (folder / "a.csv").open("w", newline="") as file:
        lines = csv.DictWriter(file, list(table))
        lines.writeheader()
        lines.writerows(rows)
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pq.write_table(pa.table(table), folder / "a.parquet")
    yield from (folder / "a.csv", folder / "a.jsonl", folder / "a.parquet")
    yield from (pa.table(table), pd.DataFrame(table), rows)


def taken(source: Any, **named: Any) -> list[list[float]]:
    (batch,) = read(source, **named)
    found: list[list[float]] = batch.X.tolist()
    return found


def test_a_number_beside_numbered_features_is_asked_for_and_never_a_feature(tmp_path: Path) -> None:
    table = {"sku": ["a", "b"], **e(9), "priority": [30_000, 10_000], "kind": ["x", "y"]}
    named: Any = {"label": "kind", "id": "sku"}
    for source in sources(table, tmp_path):
        with pytest.raises(InputError, match=r"e0, e1, e2 … e8 look like .*: 'priority'") as asked:
            list(read(source, **named))
        for way in ("features='e*'", "payload='priority'", "leave the rest out"):
            assert way in str(asked.value)
        for more in ({"features": "e*"}, {"payload": "priority"}):
            assert taken(source, **named, **more) == [[i / 8 for i in range(9)], [1.0] * 9]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"timestamp": [1_700_000_000, 1_700_000_001]}, "'timestamp'"),
        ({"e9x": [1, 2]}, "'e9x'"),
        ({"flag": [0, 1], "size": [3, 4], "a": [1, 2], "b": [1, 2]}, "'flag', 'size', 'a' and 1"),
        ({"e10": [1, 2]}, "numbered with gaps"),
        (e(9, "b"), "several sets of numbered columns: e0, e1, e2 … e8; b0, b1"),
        (e(2, "part_", 7), "several sets of numbered columns"),
    ],
)
def test_whatever_numbers_stand_beside_them_are_asked_for(
    more: Table, says: str, tmp_path: Path
) -> None:
    for source in sources({**e(9), **more}, tmp_path):
        with pytest.raises(InputError, match=says):
            list(read(source))


@pytest.mark.parametrize(
    "more", [{"flag": [True, False]}, {"title": ["a", "b"]}, {"note": ["", "b"]}]
)
def test_what_is_no_number_is_left_out_beside_them(more: Table, tmp_path: Path) -> None:
    for source in sources({**more, **e(9)}, tmp_path):
        assert taken(source) == [[i / 8 for i in range(9)], [1.0] * 9]


@pytest.mark.parametrize(
    "names",
    [
        ["e2", "e0", "e1", "e3"],
        ["f_0", "f_1", "f_2"],
        ["x.1", "x.2", "x.3"],
        ["dim_000", "dim_001", "dim_002"],
        ["0", "1", "2"],
        ["pixel_0_0", "pixel_0_1", "pixel_1_0", "pixel_1_1"],
        [f"e{i}" for i in range(12)],
    ],
)
def test_a_whole_family_is_taken_in_the_order_of_its_numbers(
    names: list[str], tmp_path: Path
) -> None:
    (family,) = families(names)
    assert family.whole
    table = {name: [float(family.columns.index(name)), 0.0] for name in names}
    for source in sources(table, tmp_path):
        assert taken(source)[0] == list(range(len(names)))


def test_numbers_of_other_names_are_all_features(tmp_path: Path) -> None:
    table: Table = {"sepal_length": [5.1, 4.9], "sepal_width": [3.5, 3.0], "petal_2": [1.4, 1.3]}
    for source in sources(table, tmp_path):
        np.testing.assert_allclose(taken(source), [[5.1, 3.5, 1.4], [4.9, 3.0, 1.3]], rtol=1e-6)


def test_what_export_writes_beside_features_is_left_out(tmp_path: Path) -> None:
    table: Table = {
        "id": [7, 8],
        "home": [0, 1],
        "code": ["10", "20"],
        "guess": [1, 2],
        **e(3, "f"),
    }
    for source in sources(table, tmp_path):
        assert len(taken(source)[0]) == 3
