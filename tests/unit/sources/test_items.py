"""Arrays, mappings and iterables of them: how labels are read, and rows are collected."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash.errors import InputError, LabelError
from everhash.sources import read
from tests.unit.sources.samples import GIF, Tensor, refused, whole


def test_rows_are_gathered_into_batches() -> None:
    source = ({"v": [i, i], "kind": "a"} for i in range(25))
    assert [len(batch.X) for batch in read(source, label="kind", batch_rows=10)] == [10, 10, 5]


def test_an_endless_source_is_read_as_it_comes() -> None:
    def forever() -> Iterator[dict[str, Any]]:
        while True:
            yield {"v": [1.0, 2.0]}

    assert len(next(read(forever(), batch_rows=3)).X) == 3


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


def test_arrays_have_no_columns_of_payloads(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    refused(InputError, "a.npy: .*no payloads .an .npz can", tmp_path / "a.npy", payload="text")
    for source in (np.ones((2, 2)), (np.ones((2, 2)),)):
        refused(InputError, "arrays have no names", source, payload="text")
        refused(InputError, "arrays have no names", iter([source]), thumbnail="text")


def test_rows_and_mappings_have_payloads_and_thumbnails() -> None:
    rows = [
        {"v": [1, 2], "text": "a", "on": date(2024, 5, 1), "pic": GIF},
        {"v": [3, 4], "text": float("nan"), "on": None, "pic": None},
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for source in (rows, iter(rows), columns, [columns]):
        (batch,) = read(source, payload=["text", "on"], thumbnail="pic")
        assert batch.X.tolist() == [[1, 2], [3, 4]]
        assert batch.payloads == [{"text": "a", "on": "2024-05-01"}, None]
        assert batch.thumbnails == [GIF, None]
    refused(InputError, "column 'pic': expected JSON values, got a bytes", rows, payload="pic")


ARRAYS: dict[str, Any] = {
    "X": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "y": ["a", None, "b"],
    "ids": ["p", "q", "r"],
    "payloads": [{"n": 1}, None, 3],
    "thumbnails": [GIF, None, GIF],
}


@given(st.sets(st.sampled_from(list(ARRAYS)[1:])), st.integers(1, 4))
def test_a_mapping_of_arrays_is_used_whole(names: set[str], rows: int) -> None:
    source = {name: ARRAYS[name] for name in ("X", *names)}
    for given_as in (source, [source]):
        batches = list(read(given_as, batch_rows=rows))
        assert np.concatenate([batch.X for batch in batches]).tolist() == ARRAYS["X"]
        for name in list(ARRAYS)[1:]:
            found = [getattr(batch, name) for batch in batches]
            joined = None if found[0] is None else [each for part in found for each in part]
            assert joined == source.get(name)


def test_a_mapping_with_other_names_is_refused_by_name() -> None:
    refused(InputError, "no use for 'labels', 'z'", {"X": [[1]], "labels": ["a"], "z": 1})
    refused(LabelError, "1 rows but 2 labels", {"X": [[1]], "y": ["a", "b"]})
    refused(InputError, "1 rows but 2 payloads", {"X": [[1]], "payloads": [1, 2]})
    refused(InputError, "expected a list of payloads, got int", {"X": [[1]], "payloads": 7})


def test_a_column_of_vectors_is_a_source() -> None:
    frame = pd.DataFrame({"embedding": [[1.0, 2.0], [3.0, 4.0]], "kind": ["a", None]})
    for source in (
        frame,
        (frame["embedding"], frame["kind"]),
        {"X": frame["embedding"], "y": frame["kind"]},
    ):
        rows = whole(source, **({"label": "kind"} if source is frame else {}))
        assert rows.X.tolist() == [[1, 2], [3, 4]]
        assert rows.y == ["a", None]
    assert whole(frame["embedding"]).X.tolist() == [[1, 2], [3, 4]]
