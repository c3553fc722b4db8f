"""A reader that catches up over several commits at once sees what the writer sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Collection, OnlineHasher
from everhash.wire.options import WAYS
from tests.conftest import Stream

Write = Callable[[Collection, Stream], Any]


def unlabel_beside_new_entries(col: Collection, digits: Stream) -> None:
    """The only entry with bits of its own leaves before another comes, but after a new one."""
    col.add(digits.X[70:71], ["g"])
    col.label(["e"], [3], teach=False)
    col.unlabel([5], teach=False)


def unlabel_before_the_last_leaves(col: Collection, digits: Stream) -> None:
    col.unlabel([5], teach=False)
    col.label(["e"], [3], teach=False)


def unlabel_and_remove(col: Collection, digits: Stream) -> None:
    """The features of entry 5 are gone when the reader learns that it lost its label."""
    col.unlabel([5], teach=False)
    col.remove(range(30))


def label_and_merge(col: Collection, digits: Stream) -> None:
    """The label that entry 5 got first is gone when the reader learns of it."""
    col.label([5], ["x"], teach=False)
    col.merge_labels("x", into=3)


def label_and_drop(col: Collection, digits: Stream) -> None:
    col.label([5, 6], ["x", {"x", 3}], teach=False)
    col.drop_label("x")


def unlabel_twice(col: Collection, digits: Stream) -> None:
    col.unlabel([5], teach=False)
    col.label([5], [3], teach=False)
    col.unlabel([5], teach=False)


def label_and_unlabel(col: Collection, digits: Stream) -> None:
    col.label(["e"], [3], teach=False)
    col.unlabel(["e"], teach=False)


def remove_and_add_again(col: Collection, digits: Stream) -> None:
    col.remove([5, "e"])
    col.add(digits.X[70:72], [5, "e"], [None, 4])


def replace_and_label(col: Collection, digits: Stream) -> None:
    col.upsert(digits.X[70:72], [5, "e"], [None, 4], teach=False)
    col.label([5], [7], teach=False)


def compact(col: Collection, digits: Stream) -> None:
    col.remove([1, 2, 3])
    col.compact()
    col.label(["e"], [3], teach=False)


WRITES: list[Write] = [
    unlabel_beside_new_entries,
    unlabel_before_the_last_leaves,
    unlabel_and_remove,
    label_and_merge,
    label_and_drop,
    unlabel_twice,
    label_and_unlabel,
    remove_and_add_again,
    replace_and_label,
    compact,
]


@pytest.mark.parametrize("teach", [False, True], ids=["old mapping", "new mapping"])
@pytest.mark.parametrize("write", WRITES)
def test_a_reader_sees_what_the_writer_sees(
    tmp_path: Path, digits: Stream, write: Write, teach: bool
) -> None:
    path = tmp_path / "c.ever"
    hasher = OnlineHasher(16, features=100)
    with everhash.create(path, 64, hasher=hasher, auto_refresh=False) as col:
        col.ingest(digits.X[:60], digits.y[:60])
        col.add(digits.X[60:61], ["e"])
        if teach:  # from here on the entry's bits are those of an older mapping
            col.learn(digits.X[100:700], digits.y[100:700])
        with everhash.open(path, readonly=True) as reader:
            write(col, digits)
            reader.catch_up()
            assert_same(col, reader)
            col.ingest(digits.X[80:90], digits.y[80:90])
            reader.catch_up()
            assert_same(col, reader)
        with everhash.open(path, readonly=True) as again:
            assert_same(col, again)
    assert everhash.verify(path).problems == ()


def assert_same(col: Collection, reader: Collection) -> None:
    for mine, theirs in zip(col.entries(), reader.entries(), strict=True):
        assert (mine.id, mine.labels, mine.guess) == (theirs.id, theirs.labels, theirs.guess)
        np.testing.assert_array_equal(mine.code, theirs.code)
    for by in WAYS:
        a, b = (c.search(np.eye(4, 64, dtype=np.float32), 9, by) for c in (col, reader))
        np.testing.assert_array_equal(a.ids, b.ids)
        np.testing.assert_array_equal(a.scores, b.scores)
