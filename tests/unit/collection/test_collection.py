"""A collection: what its calls promise, and how they refuse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Collection, OnlineHasher
from everhash.collection import recorder
from everhash.errors import (
    ClosedError,
    CollectionFileError,
    DimensionError,
    DuplicateIdError,
    EverhashError,
    InputError,
    LabelError,
    LockedError,
    NotFiniteError,
    OptionError,
    ReadOnlyError,
    StoreError,
    UnknownIdError,
)
from everhash.index import refresh
from everhash.store.parts import PartKey
from everhash.store.store import Store
from tests.conftest import Stream
from tests.contracts.test_collection import assert_same


@pytest.fixture
def filled(tmp_path: Path, digits: Stream) -> Collection:
    """300 labelled and 100 unlabelled digits in a file."""
    col = everhash.create(tmp_path / "c.ever", dim=64, bits=16)
    col.ingest(digits.X[:300], digits.y[:300], [f"d{i}" for i in range(300)])
    col.add(digits.X[300:400])
    return col


def reopened(col: Collection) -> Collection:
    """What another process would find in the file now."""
    assert col._store.path is not None
    return everhash.open(col._store.path, readonly=True)


def test_what_was_ingested_is_found_again(filled: Collection, digits: Stream) -> None:
    assert len(filled) == 400
    assert "d7" in filled
    assert "no" not in filled
    assert filled.has(["d7", 300, "x"]).tolist() == [True, False, False]
    found = filled.search(digits.X[400:500], k=5, labels=range(10))
    right = found.labels[:, 0] == digits.y[400:500]
    assert right.mean() > 0.8
    assert filled.get(["d0"])[0].labels == (int(digits.y[0]),)
    entries = list(filled.entries())
    assert [entry.id for entry in entries[:2]] == ["d0", "d1"]
    assert sum(entry.code is not None for entry in entries) == 100
    assert filled.search_radius(digits.X[:1], 2).counts[0] > 0


def test_searches_return_payloads_of_what_they_find(filled: Collection, digits: Stream) -> None:
    filled.attach(["d1", "d2", 0, 50], payloads=[{"page": 1}, "two", 3, [4]])
    filled.attach(["d3", 1], thumbnails=[b"GIF89a"] * 2)
    known: dict[Any, Any] = {"d1": {"page": 1}, "d2": "two", 0: 3, 50: [4]}
    X = digits.X[:7]
    for plain, found in (
        (filled.search(X, 200), filled.search(X, 200, payloads=True)),
        (filled.search(X, 3, ids=["d1"]), filled.search(X, 3, ids=["d1"], payloads=True)),
        (filled.search_like(["d1", 0], 399), filled.search_like(["d1", 0], 399, payloads=True)),
        (filled.search_radius(X, 4), filled.search_radius(X, 4, payloads=True)),
        (filled.search_radius(X, -1), filled.search_radius(X, -1, payloads=True)),
    ):
        assert plain.payloads == []
        assert found.ids.tolist() == plain.ids.tolist()
        np.testing.assert_array_equal(found.scores, plain.scores)
        assert found.payloads == [
            [known.get(name) for name in ids[:n]]
            for ids, n in zip(found.ids.tolist(), found.counts.tolist(), strict=True)
        ]


def test_payloads_of_a_file_that_has_none(filled: Collection, digits: Stream) -> None:
    assert filled.search(digits.X[:2], 3, payloads=True).payloads == [[None] * 3] * 2
    with everhash.create(None, dim=64) as col:
        col.add(digits.X[:1], payloads=["seven"])
        assert col.search(digits.X[:2], 3, payloads=True).payloads == [["seven"]] * 2


def test_each_payload_is_read_once(
    filled: Collection, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.attach([f"d{i}" for i in range(300)], payloads=range(300))
    asked: list[int] = []
    read = Store.read_attached

    def count(store: Store, numbers: list[int]) -> dict[int, bytes]:
        asked.extend(numbers)
        return read(store, numbers)

    monkeypatch.setattr(Store, "read_attached", count)
    found = filled.search(np.repeat(digits.X[:2], 20, axis=0), 30, payloads=True)
    assert len(asked) == len(set(asked)) == len(set(found.ids.ravel().tolist()))


def test_a_reader_searches_for_payloads_in_one_state(filled: Collection, digits: Stream) -> None:
    filled.attach([f"d{i}" for i in range(300)], payloads=range(300))
    with reopened(filled) as reader:
        found = reader.search(digits.X[:1], 3, "meaning", payloads=True)
        gone = found.ids[0].tolist()
        filled.remove(gone)
        again = reader.search(digits.X[:1], 3, "meaning")
        assert again.ids.tolist() == found.ids.tolist()
        newer = reader.search(digits.X[:1], 3, "meaning", payloads=True)
        assert not set(newer.ids[0]) & set(gone), "it caught up: those it found before are gone"
        assert newer.payloads == [[int(name[1:]) for name in newer.ids[0]]]


def test_learning_indexes_nothing(tmp_path: Path, digits: Stream) -> None:
    with everhash.create(None, dim=64) as col:
        col.learn(digits.X[:50], digits.y[:50])
        assert len(col) == 0
        assert len(col.hasher.labels_) == 10


def test_entries_may_come_before_anything_was_learned(digits: Stream) -> None:
    with everhash.create(None, dim=64) as col:
        col.add(digits.X[:5])
        col.add(digits.X[5:9], y=["a", "b", "a", {"a", "b"}])
        assert col.search(digits.X[:2], 3, labels=["a"]).counts.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda col, X: col.ingest(X[:, :3], [1] * 5), DimensionError),
        (lambda col, X: col.ingest(X * np.nan, [1] * 5), NotFiniteError),
        (lambda col, X: col.ingest(X, [1] * 4), LabelError),
        (lambda col, X: col.ingest(X, [object()] * 5), InputError),
        (lambda col, X: col.ingest(X, None, ["a"] * 5), DuplicateIdError),
        (lambda col, X: col.ingest(X, None, ["d0", *"abcd"]), DuplicateIdError),
        (lambda col, X: col.ingest(X, None, ["", *"abcd"]), InputError),
        (lambda col, X: col.add(X, [1.5, 2, 3, 4, 5]), InputError),
        (lambda col, X: col.learn(X[:, :3]), DimensionError),
        (lambda col, X: col.label(["d0"], [frozenset]), InputError),
        (lambda col, X: col.label(["d0", "d0"], [1, 2]), LabelError),
        (lambda col, X: col.label(["nobody"], [1]), UnknownIdError),
        (lambda col, X: col.remove(["d1", "nobody"]), UnknownIdError),
        (lambda col, X: col.search(X, k=0), OptionError),
        (lambda col, X: col.search(X, by="cosine"), OptionError),
        (lambda col, X: col.search(X, recall="all"), OptionError),
        (lambda col, X: col.search_like(["d0"], recall=float("nan")), OptionError),
    ],
)
def test_what_is_refused_changes_nothing(
    filled: Collection, digits: Stream, call: Any, error: type[EverhashError]
) -> None:
    before = filled.stats()
    state = filled._loaded
    with pytest.raises(error):
        call(filled, digits.X[:5])
    assert filled._loaded is state, "refused before anything had changed"
    assert filled.stats() == before
    with reopened(filled) as other:
        assert_same(filled, other)
    filled.ingest(digits.X[:5], digits.y[:5])


def test_a_call_that_fails_half_way_leaves_memory_as_the_file(
    filled: Collection, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("in mid-call")

    before = filled.stats()
    with monkeypatch.context() as broken:
        broken.setattr("everhash.collection.recorder.Recorder.write_entries", fail)
        with pytest.raises(RuntimeError, match="in mid-call"):
            filled.ingest(digits.X[:5], ["new"] * 5)
    assert filled.stats() == before
    assert "new" not in filled.hasher.labels_
    with reopened(filled) as other:
        assert_same(filled, other)
    filled.ingest(digits.X[:5], ["new"] * 5)
    assert len(filled) == 405


def test_a_second_writer_and_a_writing_reader_are_refused(
    filled: Collection, digits: Stream
) -> None:
    path = filled._store.path
    assert path is not None
    with pytest.raises(LockedError, match="is being written by process"):
        everhash.open(path)
    with everhash.open(path, readonly=True) as reader:
        for call in (
            lambda: reader.ingest(digits.X[:1]),
            lambda: reader.learn(digits.X[:1]),
            lambda: reader.remove(["d0"]),
            lambda: reader.label(["d0"], [1]),
            reader.refresh,
        ):
            with pytest.raises(ReadOnlyError, match="opened for reading"):
                call()
        assert reader.refresh(dry_run=True).dry_run
        assert not reader.catch_up()
        filled.remove(["d0"])
        assert "d0" in [entry.id for entry in reader.entries()]
        assert reader.catch_up()
        assert "d0" not in [entry.id for entry in reader.entries()]
    filled.close()
    everhash.open(path).close()


def test_after_close_every_call_says_so(filled: Collection, digits: Stream) -> None:
    filled.close()
    filled.close()
    for call in (
        lambda: len(filled),
        filled.stats,
        lambda: filled.search(digits.X[:1]),
        lambda: filled.ingest(digits.X[:1]),
    ):
        with pytest.raises(ClosedError, match="is closed"):
            call()


def test_a_snapshot_of_a_live_collection_can_be_restored(
    filled: Collection, digits: Stream, tmp_path: Path
) -> None:
    filled.snapshot(tmp_path / "copy.ever")
    with everhash.open(tmp_path / "copy.ever", readonly=True) as copy:
        assert_same(filled, copy)
    filled.ingest(digits.X[:50], ["bad"] * 50)
    everhash.restore(tmp_path / "copy.ever", tmp_path / "again.ever")
    with everhash.open(tmp_path / "again.ever") as again:
        assert "bad" not in again.hasher.labels_
        again.ingest(digits.X[:2], ["good"] * 2)
    with pytest.raises(StoreError, match="is there already"):
        filled.snapshot(tmp_path / "copy.ever")


def test_a_hasher_that_has_learned_can_be_brought_along(digits: Stream) -> None:
    hasher = OnlineHasher(bits=8, labels_per_cycle=3).partial_fit(digits.X[:90], digits.y[:90])
    with everhash.create(None, hasher=hasher) as col:
        col.add(digits.X[:10], y=digits.y[:10])
        assert col.stats()["cycles"] == 4
    with pytest.raises(OptionError, match="dim is 3"):
        everhash.create(None, dim=3, hasher=hasher)


@pytest.mark.parametrize(
    "options", [{}, {"dim": 0}, {"dim": 4, "bits": 0}, {"dim": 4, "coding": "half"}]
)
def test_a_collection_that_cannot_be_is_not_made(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        everhash.create(tmp_path / "c.ever", **options)
    assert list(tmp_path.iterdir()) == []


def test_stats_are_what_an_operator_wants(filled: Collection, digits: Stream) -> None:
    assert filled.stats()["last_refresh"] is None
    filled.learn(digits.X[400:900], digits.y[400:900])
    after = filled.stats()
    assert after["stale_bits"] == 0, "a publication refreshes what it has made stale"
    assert after["last_refresh"]["entries"] == 100
    assert (after["entries"], after["labelled"], after["unlabelled"]) == (400, 300, 100)
    assert after["mapping_version"] == after["hasher_version"]
    assert (after["keep_features"], after["likeness"], after["refreshing"]) == ("all", True, False)
    assert after["bytes"] > 0


@pytest.fixture
def stale(tmp_path: Path, digits: Stream, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """300 unlabelled digits, coded by a mapping that has moved since; six slices to refresh."""
    monkeypatch.setattr(refresh, "SLICE", 50)
    monkeypatch.setattr(recorder, "BLOCK_BYTES", 8000)  # blocks of 50 entries too
    path = tmp_path / "stale.ever"
    col = everhash.create(path, dim=64, bits=16, labels_per_cycle=4, auto_refresh=False)
    col.learn(digits.X[:200], digits.y[:200])
    col.add(digits.X[300:600])
    col.learn(digits.X[600:900], digits.y[600:900])
    return col


def test_calls_between_the_steps_of_a_refresh_see_the_old_codes(
    stale: Collection, digits: Stream
) -> None:
    before, shares = stale.search(digits.X[:9], 20, "hamming"), []
    for share in stale.refresh_steps():
        shares.append(share)
        found = stale.search(digits.X[:9], 20, "hamming")
        assert found.ids.tolist() == before.ids.tolist()
        assert found.scores.tolist() == before.scores.tolist()
        with reopened(stale) as other:
            assert_same(stale, other)
    assert shares == [1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1]
    assert stale.stats()["stale_bits"] == 0
    assert stale.search(digits.X[:9], 20, "hamming").ids.tolist() != before.ids.tolist()


def test_entries_that_come_and_go_during_a_refresh_are_right_after_it(
    stale: Collection, digits: Stream
) -> None:
    rng, steps = np.random.default_rng(3), stale.refresh_steps()
    living: set[Any] = set(range(300))
    for _ in steps:
        if len(living) < 60:
            continue
        gone = rng.choice(sorted(living), 40, replace=False).tolist()  # whole blocks lose theirs
        stale.remove(gone[:20])
        stale.label(gone[20:], [3] * 20)
        living = (living - set(gone)) | set(stale.add(digits.X[900:910]))
        stale.learn(digits.X[910:915], digits.y[910:915])
    assert stale.stats()["coded"] == len(living)
    stale.refresh()
    assert everhash.verify(stale._store.path).problems == ()  # type: ignore[arg-type]
    with reopened(stale) as other:
        assert_same(stale, other)
    rebuilt = everhash.create(None, 64, hasher=stale.hasher)
    places = sorted(living)
    rebuilt.add(stale.features(places), places)
    for mine, fresh in zip(stale.get(places), rebuilt.get(places), strict=True):
        assert mine.home == fresh.home
        np.testing.assert_array_equal(mine.code, fresh.code)


def test_a_refresh_that_is_given_up_changes_nothing(stale: Collection, digits: Stream) -> None:
    before = stale.stats()
    steps = stale.refresh_steps()
    next(steps)
    with pytest.raises(OptionError, match="under way"):
        stale.refresh()
    steps.close()
    assert stale.stats() == before
    assert stale.refresh().entries == 300


def test_a_refresh_does_not_go_on_with_what_a_failed_call_undid(
    stale: Collection, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = stale.refresh_steps()
    next(steps)
    with monkeypatch.context() as broken:
        broken.setattr(recorder.Recorder, "write_entries", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stale.add(digits.X[:1])
    with pytest.raises(StoreError, match="undid the refresh"):
        next(steps)
    assert stale.refresh().entries == 300


def test_a_thread_that_holds_a_collection_is_alone_with_it(filled: Collection) -> None:
    with ThreadPoolExecutor(1) as pool:
        with filled.held():
            removing = pool.submit(filled.remove, ["d7"])
            with pytest.raises(TimeoutError):
                removing.result(0.05)
            assert filled.get(["d7"])[0].id == "d7"
        assert removing.result() == 1
    assert len(filled) == 399


def test_some_entries_by_their_number(filled: Collection) -> None:
    filled.remove(["d3"])
    assert [entry.id for entry in filled.entries(2, 6)] == ["d2", "d4", "d5"]
    assert [entry.id for entry in filled.entries(399)] == [99]
    assert (
        list(filled.entries(5, 5)) == list(filled.entries(400)) == list(filled.entries(6, 2)) == []
    )
    with pytest.raises(OptionError, match="at least 0"):
        next(filled.entries(-1))


def test_verify_names_what_is_damaged(filled: Collection) -> None:
    path = filled._store.path
    assert path is not None
    filled.close()
    assert everhash.verify(path).problems == ()
    content = bytearray(path.read_bytes())
    store = Store.open(path, readonly=True)
    features = store.read_bytes(PartKey("features", 300))
    store.close()
    at = bytes(content).index(features[200:400]) + 50
    content[at] ^= 4
    path.write_bytes(content)
    assert "features 300 is damaged" in everhash.verify(path).problems[0]
    with everhash.open(path, auto_refresh=False) as col:
        assert len(col) == 400, "labels and codes are whole; features are read when needed"
        assert (col.search(np.ones((1, 64)), 10, "meaning").counts == 10).all()
        col.learn(np.ones((400, 64)), np.arange(400) % 2)
        needed: list[Any] = [
            col.refresh,
            lambda: col.label([0], ["new"]),
            lambda: col.search(np.ones((1, 64)), by="likeness", exact=True),
            lambda: col.search(np.ones((1, 64)), exact=True),
        ]
        for call in needed:
            with pytest.raises(CollectionFileError, match="features 300 is damaged"):
                call()
        assert len(col) == 400


def test_a_call_writes_its_rows_and_not_the_sums(tmp_path: Path, digits: Stream) -> None:
    with everhash.create(tmp_path / "c.ever", 64) as col:
        col.learn(digits.X[:1100], digits.y[:1100])
        before, model = col.stats()["bytes"], len(col.hasher.to_bytes())
        for start in range(1100, 1300, 4):
            col.ingest(digits.X[start : start + 4], digits.y[start : start + 4])
        assert model > 4_000_000
        assert col.stats()["bytes"] - before < model / 4


def test_what_is_forgotten_stays_forgotten_after_reopening(tmp_path: Path, digits: Stream) -> None:
    path = tmp_path / "c.ever"
    with everhash.create(path, hasher=OnlineHasher(16, features=50), dim=64) as col:
        col.ingest(digits.X[:1100], digits.y[:1100])
        col.learn(digits.X[1100:1200], ["wrong"] * 100)
        col.forget(digits.X[1100:1200], ["wrong"] * 100)
        before, learned = col.hasher.margins(digits.X), col.stats()["learned"]
        with pytest.raises(InputError, match="cannot forget"):
            col.forget(digits.X[1100:1101], ["wrong"])
    with everhash.open(path) as col:
        np.testing.assert_array_equal(col.hasher.margins(digits.X), before)
        assert col.stats()["learned"] == learned
        assert learned["rows"] == 1100
        assert col.labels()[-1].lessons == 0
