"""Matches as tables: one row a match, values as they are or as JSON text."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import everhash
from everhash import Index, Matches, OnlineHasher
from everhash.errors import InputError
from tests.conftest import Stream

COLUMNS = ["query", "rank", "id", "score", "likeness", "label", "guess", "novelty", "by"]


def matches(
    labels: list[Any], ids: list[Any] | None = None, payloads: list[Any] | None = None
) -> Matches:
    """One query that found as many entries as there are labels, padded by one."""
    n = len(labels)
    found, named, guessed = np.full((3, 1, n + 1), None, object)
    named[0, :n], found[0, :n] = labels, range(n) if ids is None else ids
    scores = np.append(np.linspace(1, 0, n, dtype=np.float32), np.float32(np.nan))[None]
    return Matches(
        ids=found,
        scores=scores,
        likeness=scores,
        labels=named,
        guesses=guessed,
        counts=np.array([n]),
        novelty=np.array([0.25], np.float32),
        by=["relevance"],
        payloads=[] if payloads is None else [payloads],
    )


@pytest.fixture
def index(digits: Stream) -> Index:
    hasher = OnlineHasher(bits=16).partial_fit(digits.X[:300], digits.y[:300])
    index = Index(hasher)
    labels = [None if i % 2 else int(label) for i, label in enumerate(digits.y[:40])]
    index.add(digits.X[:40], [f"e{i}" for i in range(40)], labels)
    return index


def test_a_table_has_one_row_a_match(index: Index, digits: Stream) -> None:
    found = index.search(digits.X[:3], 40)
    assert {None} < set(found.guesses[0].tolist())
    found = index.search(digits.X[:3], 5)
    table, frame = found.to_arrow(), found.to_pandas()
    assert table.column_names == list(frame.columns) == COLUMNS
    for rows in (table.to_pylist(), frame.to_dict("records")):
        assert [row["query"] for row in rows] == [0] * 5 + [1] * 5 + [2] * 5
        assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5] * 3
        assert [row["id"] for row in rows] == found.ids.ravel().tolist()
        assert [row["label"] for row in rows] == found.labels.ravel().tolist()
        assert [row["guess"] for row in rows] == found.guesses.ravel().tolist()
        assert [row["by"] for row in rows] == ["relevance"] * 15
        np.testing.assert_array_equal([row["score"] for row in rows], found.scores.ravel())
        np.testing.assert_array_equal([row["likeness"] for row in rows], found.likeness.ravel())
        np.testing.assert_array_equal([row["novelty"] for row in rows], np.repeat(found.novelty, 5))
    assert table.schema.field("label").type == pa.int64()
    assert frame["label"].dtype == np.dtype(object), "whole numbers beside None stay whole"


def test_padding_is_left_out(index: Index, digits: Stream) -> None:
    found = index.search_radius(digits.X[:10], 2)
    assert len(set(found.counts.tolist())) > 1
    assert found.to_arrow().num_rows == len(found.to_pandas()) == found.counts.sum()
    assert (
        found.to_arrow().column("query").to_pylist()
        == np.repeat(np.arange(10), found.counts).tolist()
    )


def test_nothing_found_is_a_table_without_rows(digits: Stream) -> None:
    index = Index(OnlineHasher(bits=8).partial_fit(digits.X[:20], digits.y[:20]))
    found = index.search(digits.X[:2], 3)
    assert found.to_arrow().num_rows == len(found.to_pandas()) == 0
    assert found.to_arrow().column_names == list(found.to_pandas().columns) == COLUMNS


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["cat", None], pa.string()),
        ([7, -(2**63)], pa.int64()),
        ([0.5, 7, None], pa.float64()),
        ([True, False], pa.bool_()),
        ([b"\xff", None], pa.binary()),
    ],
)
def test_labels_of_one_type_keep_it(labels: list[Any], kind: pa.DataType) -> None:
    column = matches(labels).to_arrow().column("label")
    assert column.type == kind
    assert column.to_pylist() == labels


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (["cat", 7, None], ['"cat"', "7", None]),
        ([("shoe", 3), ("hat", 4)], ['["shoe", 3]', '["hat", 4]']),
        ([2**70, 1], [str(2**70), "1"]),
        (["\ud800"], ['"\\ud800"']),
        ([True, 7], ["true", "7"]),
        ([1j, "i"], ['"1j"', '"i"']),
        ([None, None], [None, None]),
    ],
)
def test_other_labels_are_json_text(labels: list[Any], texts: list[str | None]) -> None:
    found = matches(labels)
    column = found.to_arrow().column("label")
    assert column.type == pa.string()
    assert column.to_pylist() == texts
    assert found.to_pandas()["label"].tolist() == labels


def test_ids_of_two_types_are_told_apart() -> None:
    found = matches(["a", "b"], ids=[1, "1"])
    assert found.to_arrow().column("id").to_pylist() == ["1", '"1"']
    assert found.to_pandas()["id"].tolist() == [1, "1"]
    assert matches(["a", "b"]).to_arrow().schema.field("id").type == pa.int64()
    assert matches(["a", "b"]).to_pandas().dtypes["id"] == np.int64


def test_payloads_are_a_column_if_there_are_any() -> None:
    payloads = [{"title": "café"}, None]
    found = matches(["a", "b"], payloads=payloads)
    assert found.to_arrow().column_names == [*COLUMNS, "payload"]
    texts = found.to_arrow().column("payload").to_pylist()
    assert [text and json.loads(text) for text in texts] == payloads
    assert found.to_pandas()["payload"].tolist() == payloads


@pytest.mark.parametrize(("method", "package"), [("to_arrow", "pyarrow"), ("to_pandas", "pandas")])
def test_a_missing_package_is_named(
    method: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"{method} needs {package} \(pip install {package}\)"):
        getattr(matches(["a"]), method)()


def test_a_collection_returns_the_same_matches(digits: Stream) -> None:
    with everhash.create(None, dim=64, bits=8) as collection:
        collection.ingest(digits.X[:50], digits.y[:50])
        found = collection.search(digits.X[:2], 3)
    assert found.to_pandas()["id"].tolist() == found.ids.ravel().tolist()
