"""Arrays, mappings and iterables of them: how labels are read, and rows are collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from everhash.errors import InputError
from everhash.sources import read
from tests.unit.sources.samples import Tensor, refused, whole


def test_rows_are_gathered_into_batches() -> None:
    source = ({"v": [i, i], "kind": "a"} for i in range(25))
    assert [len(batch.X) for batch in read(source, label="kind", rows=10)] == [10, 10, 5]


def test_an_endless_source_is_read_as_it_comes() -> None:
    def forever() -> Iterator[dict[str, Any]]:
        while True:
            yield {"v": [1.0, 2.0]}

    assert len(next(read(forever(), rows=3)).X) == 3


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


def test_arrays_and_items_have_no_columns_of_payloads(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    refused(InputError, "a.npy: .*no payloads .an .npz can", tmp_path / "a.npy", payload="text")
    for source in (
        np.ones((2, 2)),
        (np.ones((2, 2)),),
        [{"v": [1, 2], "text": "a"}],
        iter([np.ones((2, 2))]),
    ):
        refused(InputError, "payloads= and thumbnails=", source, payload="text")
        refused(InputError, "payloads= and thumbnails=", source, thumbnail="text")
