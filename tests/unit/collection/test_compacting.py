"""Removed entries can be dropped for good, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import everhash
from everhash import Collection
from everhash.collection import writing
from everhash.errors import StoreError
from everhash.index import refresh
from everhash.wire.options import WAYS

ALL, TRUTH = load_digits(return_X_y=True)
ALL = ALL.astype(np.float32)


def fill(col: Collection, *, teach: bool = True) -> None:
    """Entries of all kinds, most of them replaced or removed."""
    several = [{int(label), "odd"} if label % 2 else int(label) for label in TRUTH[:200]]
    labels: list[Any] = [None if i % 3 == 0 else label for i, label in enumerate(several)]
    payloads = [{"row": i} if i % 2 else None for i in range(200)]
    col.ingest(ALL[:200], labels, payloads=payloads)
    for turn in range(1, 4):
        rows = slice(200 * turn, 200 * turn + 200)
        renewed = [None if i % 4 == 0 else int(label) for i, label in enumerate(TRUTH[rows])]
        carried = [{"turn": turn} if i % 5 else None for i in range(150)]
        col.upsert(ALL[rows][:150], range(150), renewed[:150], payloads=carried, teach=teach)
    col.remove(range(0, 200, 9))
    col.add(ALL[1000:1003], ["a", "b", -7])


def assert_alike(one: Collection, other: Collection, *, features: bool = True) -> None:
    ids = [entry.id for entry in one.entries()]
    assert ids == [entry.id for entry in other.entries()]
    if features:
        np.testing.assert_array_equal(one.features(ids), other.features(ids))
    assert one.attachments(ids) == other.attachments(ids)
    for mine, theirs in zip(one.get(ids), other.get(ids), strict=True):
        assert (mine.labels, mine.home, mine.guess) == (theirs.labels, theirs.home, theirs.guess)
    for by in WAYS:
        a, b = (col.search(ALL[1500:1540], 6, by, payloads=True) for col in (one, other))
        for name in ("ids", "scores", "likeness", "labels", "guesses"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert a.payloads == b.payloads


@pytest.mark.parametrize("keep", ["all", "unlabelled", "none"])
def test_compacting_changes_nothing_but_places(tmp_path: Path, keep: str) -> None:
    path = tmp_path / "c.ever"
    kept, filed = (everhash.create(at, 64, 12, keep_features=keep) for at in (None, path))
    with kept, filed, everhash.open(path, readonly=True) as reader:
        for col in (kept, filed):
            fill(col, teach=keep == "all")  # what was taught cannot be replaced without features
        gone = filed.stats()["arrived"] - len(filed)
        assert filed.compact() == gone > 0
        assert filed.compact() == 0
        assert filed.stats()["arrived"] == len(filed) == len(kept)
        reader.catch_up()
        for col in (filed, reader):
            assert_alike(kept, col, features=keep == "all")
        assert kept.add(ALL[:3]) == filed.add(ALL[:3]), "default ids go on"
    assert everhash.verify(path).problems == ()
    with everhash.open(path) as again:
        numbers = [entry.id for entry in again.entries() if isinstance(entry.id, int)]
        assert again.add(ALL[3:4]) == [max(numbers) + 1]


def test_opening_drops_places_that_are_mostly_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MANY_REMOVED", 50)
    path = tmp_path / "c.ever"
    with everhash.create(None, 64, 12) as kept, everhash.create(path, 64, 12) as filed:
        fill(kept)
        fill(filed)
        assert filed.stats()["arrived"] > 2 * len(filed)
        filed.close()
        with everhash.open(path, readonly=True) as reader:
            assert reader.stats()["arrived"] > len(reader), "a reader changes nothing"
        with everhash.open(path) as again:
            assert again.stats()["arrived"] == len(again)
            assert_alike(kept, again)


def test_compacting_ends_a_refresh_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "SLICE", 16)
    with everhash.create(None, 64, 12, auto_refresh=False) as col:
        fill(col)
        steps = col.refresh_steps()
        next(steps)
        col.compact()
        with pytest.raises(StoreError, match="moved"):
            list(steps)
        assert col.refresh().entries == col.stats()["coded"]
        assert col.stats()["stale_bits"] == 0


def test_likeness_stays_with_its_entries_though_few_have_come(
    tmp_path: Path,
) -> None:
    """Codes of the first rows are made again once there are enough of them."""
    with everhash.create(tmp_path / "c.ever", 64) as col:
        col.add(ALL[:6])
        col.remove([1, 2, 3])
        col.compact()
    with everhash.open(tmp_path / "c.ever") as col:
        col.add(ALL[6:30])
    assert everhash.verify(tmp_path / "c.ever").problems == ()
