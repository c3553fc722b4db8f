"""Cells of a collection: made in the background, kept in the file, right after every call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import everhash
from everhash import Collection, OnlineHasher
from everhash.collection.cell_parts import CENTROIDS
from everhash.errors import CollectionFileError
from everhash.index import index
from everhash.store.parts import PartKey, about_of, pack, unpack
from everhash.store.store import Store

Floats = NDArray[np.float32]
D = 24


@pytest.fixture(autouse=True)
def few_entries_have_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LEAST", 400)


def rows(n: int, seed: int) -> Floats:
    rng, middle = np.random.default_rng(seed), np.random.default_rng(0).standard_normal((20, D))
    return (middle[rng.integers(0, 20, n)] + 0.6 * rng.standard_normal((n, D))).astype(np.float32)


QUERIES = rows(30, 99)


def made(path: Path | None, **options: Any) -> Collection:
    hasher = OnlineHasher(16, random_state=0, features=20)
    col = everhash.create(path, D, hasher=hasher, **options)
    col.add(rows(600, 1))
    return col


def answers(col: Collection, **options: Any) -> Any:
    found = col.search(QUERIES, 5, "likeness", **options)
    return found.ids.tolist(), found.scores.tolist()


def test_cells_come_by_themselves_and_are_in_the_file(tmp_path: Path) -> None:
    with made(tmp_path / "a.ever") as col:
        assert col.wait(60)
        assert col.stats()["cells"] == 24
        before = answers(col)
    with everhash.open(tmp_path / "a.ever") as col:
        assert col.stats()["cells"] == 24
        assert answers(col) == before
    assert everhash.verify(tmp_path / "a.ever").problems == ()


def test_a_refresh_makes_cells_where_nothing_goes_on_by_itself(tmp_path: Path) -> None:
    with made(tmp_path / "a.ever", auto_refresh=False) as col:
        assert col.stats()["cells"] == 1
        col.refresh()
        assert col.stats()["cells"] == 24


def test_a_writer_that_opens_a_file_without_cells_makes_them(tmp_path: Path) -> None:
    made(tmp_path / "a.ever", auto_refresh=False).close()
    with everhash.open(tmp_path / "a.ever", readonly=True) as reader:
        assert reader.stats()["cells"] == 1
        with everhash.open(tmp_path / "a.ever") as col:
            assert col.wait(60)
            assert col.stats()["cells"] == 24
        reader.catch_up()
        assert reader.stats()["cells"] == 24


def test_four_times_the_entries_have_other_cells(tmp_path: Path) -> None:
    with made(tmp_path / "a.ever") as col:
        assert col.wait(60)
        col.add(rows(1799, 2))
        assert col.wait(60)
        assert col.stats()["cells"] == 24
        col.add(rows(1, 3))
        assert col.wait(60)
        assert col.stats()["cells"] == 49
        assert answers(col, recall=1) == answers(col, exact=True)


CALLS: dict[str, Callable[[Collection], Any]] = {
    "add": lambda col: col.add(rows(100, 5)),
    "add one by one": lambda col: [col.add(rows(1, i)) for i in range(20)],
    "remove": lambda col: col.remove(range(0, 300, 2)),
    "upsert": lambda col: col.upsert(rows(50, 6), range(50), ["x"] * 50),
    "update": lambda col: col.update(range(40), rows(40, 7)),
    "label": lambda col: col.label(range(30), ["y"] * 30),
    "remove and compact": lambda col: (col.remove(range(0, 300, 2)), col.compact()),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_keeps_cells_right(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.ever"
    with made(path) as col, everhash.open(path, readonly=True) as reader:
        assert col.wait(60)
        reader.catch_up()
        CALLS[name](col)
        here = answers(col)
        assert answers(col, recall=1) == answers(col, exact=True)
        assert col.has(np.array(here[0]).reshape(-1)).all()
        reader.catch_up()
        assert answers(reader) == here, "a reader sees what the writer sees"
        col.snapshot(tmp_path / "copy.ever")
    for file in (path, tmp_path / "copy.ever"):
        assert everhash.verify(file).problems == ()
        with everhash.open(file) as again:
            assert again.stats()["cells"] == 24
            assert answers(again) == here


def test_a_commit_that_fails_leaves_the_old_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(tmp_path / "a.ever", auto_refresh=False) as col:
        before = answers(col)
        with monkeypatch.context() as patch:
            patch.setattr("everhash.collection.cell_parts.pack_centroids", _fails)
            with pytest.raises(OSError, match="no disk"):
                col.refresh()
        assert col.stats()["cells"] == 1
        assert answers(col) == before
        col.refresh()
        assert col.stats()["cells"] == 24


def _fails(*_: Any) -> bytes:
    raise OSError("no disk")


def test_verify_names_entries_in_cells_of_others(tmp_path: Path) -> None:
    with made(tmp_path / "a.ever") as col:
        assert col.wait(60)
    key = PartKey("cells", 0)
    forge(tmp_path / "a.ever", key, lambda arrays: {"numbers": (arrays["numbers"] + 1) % 24})
    (problem,) = everhash.verify(tmp_path / "a.ever").problems
    assert "600 entries are not in the cells" in problem


FORGERIES: dict[str, tuple[PartKey, Callable[[Any], Any], str]] = {
    "a cell of none": (
        PartKey("cells", 0),
        lambda a: {"numbers": a["numbers"] * 0 + 24},
        "no cent",
    ),
    "no cell": (
        PartKey("cells", 0),
        lambda a: {"numbers": a["numbers"].astype(np.int8) * 0 - 1},
        "some entries have none",
    ),
    "too few": (PartKey("cells", 0), lambda a: {"numbers": a["numbers"][:-1]}, "numbers is"),
    "text": (PartKey("cells", 0), lambda a: {"numbers": a["numbers"].astype("f4")}, "no column"),
    "a long centroid": (CENTROIDS, lambda a: {"centroids": 2 * a["centroids"]}, "unit length"),
    "a centroid of NaN": (CENTROIDS, lambda a: {"centroids": np.nan * a["centroids"]}, "unit"),
    "middles of NaN": (CENTROIDS, lambda a: {**a, "middles": np.nan * a["middles"]}, "no cosines"),
    "no centroids": (CENTROIDS, lambda a: {"centroids": a["centroids"][:0]}, "0 centroids"),
    "narrow centroids": (CENTROIDS, lambda a: {"centroids": a["centroids"][:, :5].copy()}, "is "),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_cell_is_refused(tmp_path: Path, name: str) -> None:
    with made(tmp_path / "a.ever") as col:
        assert col.wait(60)
    key, change, problem = FORGERIES[name]
    forge(tmp_path / "a.ever", key, change)
    with pytest.raises(CollectionFileError, match=problem):
        everhash.open(tmp_path / "a.ever")


@pytest.mark.parametrize(
    "about",
    [{"made_at": 0}, {"made_at": True}, {"effort": 0}, {"effort": 99}, {"recall": 2.0}],
)
def test_forged_counts_of_cells_are_refused(tmp_path: Path, about: dict[str, Any]) -> None:
    with made(tmp_path / "a.ever") as col:
        assert col.wait(60)
    store = Store.open(tmp_path / "a.ever")
    known = about_of(unpack(store.read_bytes(CENTROIDS), CENTROIDS), CENTROIDS)
    store.close()
    said = known | about
    forge(tmp_path / "a.ever", CENTROIDS, lambda a: {"centroids": a["centroids"]}, said)
    with pytest.raises(CollectionFileError, match="centroids"):
        everhash.open(tmp_path / "a.ever")


def forge(
    path: Path, key: PartKey, change: Callable[[Any], Any], about: dict[str, Any] | None = None
) -> None:
    """Write a part again with other arrays, as somebody with our code could."""
    store = Store.open(path)
    arrays = dict(unpack(store.read_bytes(key), key))
    if about is None and key == CENTROIDS:
        about = about_of(arrays, key)
    with store.transaction() as transaction:
        data = pack(change(arrays)) if about is None else pack(change(arrays), about)
        transaction.put(key, store.parts[key].rows, data)
    store.close()
