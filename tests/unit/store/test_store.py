"""The store: parts come back as they were put, and nothing else does."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load

from everhash.errors import (
    ClosedError,
    CollectionFileError,
    DiskFullError,
    LockedError,
    OptionError,
    ReadOnlyError,
    StoreError,
)
from everhash.store.durability import read_durability
from everhash.store.parts import TYPES, PartKey, about_of, pack, unpack
from everhash.store.store import Store

ARRAYS = st.sampled_from(sorted(TYPES)).flatmap(
    lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=1, max_dims=3, min_side=0))
)


@given(arrays=st.dictionaries(st.text(min_size=1, max_size=8), ARRAYS, max_size=5))
def test_safetensors_reads_what_was_packed(arrays: dict[str, Any]) -> None:
    arrays.pop("__metadata__", None)
    packed = pack(arrays)
    found = load(packed)
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    again = unpack(pack({**arrays, "x": np.arange(3)}, {"a": [1]}), PartKey("k", 0))
    assert about_of(again, PartKey("k", 0)) == {"a": [1]}


def make(path: Path | None, **options: Any) -> Store:
    return Store.create(path, {"n": 0}, {PartKey("first", 0): b"one"}, **options)


@pytest.mark.parametrize("filed", [True, False])
def test_a_transaction_is_there_after_it_and_not_if_it_fails(tmp_path: Path, filed: bool) -> None:
    store = make(tmp_path / "s" if filed else None)
    with store.transaction() as change:
        change.put(PartKey("x", 1), 2, b"two")
        change.about["n"] = 1
    before = dict(store.parts)
    with pytest.raises(ZeroDivisionError):
        _change_and_fail(store)
    assert store.parts == before
    assert (store.read_bytes(PartKey("x", 1)), store.read_bytes(PartKey("first", 0))) == (
        b"two",
        b"one",
    )
    store.close()
    if filed:
        again = Store.open(tmp_path / "s")
        assert (again.parts, again.about["n"], again.commit) == (before, 1, 1)
        again.close()
        assert [path.name for path in tmp_path.iterdir()] == ["s"], "nothing is left beside it"


def _change_and_fail(store: Store) -> None:
    with store.transaction() as change:
        change.put(PartKey("x", 1), 9, b"nine")
        change.delete(PartKey("first", 0))
        raise ZeroDivisionError


def test_a_reader_keeps_its_state_while_the_writer_goes_on(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    reader = Store.open(tmp_path / "s", readonly=True)
    with reader.reading():
        reader.load_listing()
        with store.transaction() as change:
            change.put(PartKey("first", 0), 0, b"newer")
        assert reader.read_bytes(PartKey("first", 0)) == b"one"
    with reader.reading():
        reader.load_listing()
        assert reader.read_bytes(PartKey("first", 0)) == b"newer"
    with pytest.raises(ReadOnlyError), reader.transaction():
        pass
    reader.close()
    store.close()
    with pytest.raises(ClosedError, match="closed"):
        store.read_bytes(PartKey("first", 0))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    with pytest.raises(LockedError, match="is being written by process"):
        Store.open(tmp_path / "s")
    with pytest.raises(StoreError, match="is there already"):
        make(tmp_path / "s")
    store.close()
    Store.open(tmp_path / "s").close()


def test_space_is_given_back(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    with store.transaction() as change:
        for i in range(40):
            change.put(PartKey("x", i), 0, bytes(1_000_000))
    with store.transaction() as change:
        for i in range(40):
            change.delete(PartKey("x", i))
    store.close()
    assert (tmp_path / "s").stat().st_size < 1_000_000


def test_a_copy_holds_the_same(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    store.copy_to(tmp_path / "copy")
    with pytest.raises(StoreError, match="is there already"):
        store.copy_to(tmp_path / "copy")
    with pytest.raises(StoreError):
        store.copy_to(tmp_path / "nowhere" / "copy")
    copy = Store.open(tmp_path / "copy")
    assert copy.parts == store.parts
    copy.close()
    store.close()


def test_a_copy_is_of_the_last_commit_whoever_is_writing(tmp_path: Path) -> None:
    store = make(tmp_path / "s")
    with store.transaction() as change:
        change.put(PartKey("x", 1), 2, b"two")
        store.copy_to(tmp_path / "during")
    store.copy_to(tmp_path / "after")
    for name, parts in (("during", 1), ("after", 2)):
        copy = Store.open(tmp_path / name, readonly=True)
        assert len(copy.parts) == parts
        assert copy.about["file"] != store.about["file"], "no log of the original is applied to it"
        copy.close()
    reader = Store.open(tmp_path / "s", readonly=True)
    store.close()
    reader.copy_to(tmp_path / "read")
    reader.close()
    with pytest.raises(ClosedError, match="is closed"):
        reader.copy_to(tmp_path / "closed")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["after", "during", "read", "s"], "nothing is left beside them"


def test_a_full_disk_has_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path / "s")
    pages = store.run("PRAGMA page_count").fetchone()[0]
    store.run(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFullError, match="the disk is full"), store.transaction() as change:
        change.put(PartKey("x", 1), 0, bytes(1_000_000))
    for code, error in ((errno.ENOSPC, DiskFullError), (errno.EACCES, StoreError)):

        def refuse(*_: Any, code: int = code) -> NoReturn:
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patched:
            patched.setattr(os, "link", refuse)
            with pytest.raises(StoreError) as caught:
                store.copy_to(tmp_path / "copy")
        assert type(caught.value) is error
    store.close()


def test_a_system_without_flock_keeps_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows; a store in memory needs no lock."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(StoreError, match="this system has no flock"):
        make(tmp_path / "s")
    assert list(tmp_path.iterdir()) == []
    make(None).close()


@pytest.mark.parametrize("durability", ["commit", "interval:20ms", "interval:1s", "none"])
def test_every_durability_keeps_what_was_committed(tmp_path: Path, durability: str) -> None:
    store = make(tmp_path / "s", durability=durability)
    for i in range(5):
        with store.transaction() as change:
            change.put(PartKey("x", i), 0, b"data")
    store.close()
    again = Store.open(tmp_path / "s", readonly=True)
    assert len(again.parts) == 6
    again.close()


@pytest.mark.parametrize("text", ["", "fsync", "interval", "interval:0ms", "interval:1h", 7, None])
def test_unknown_durability_is_refused(tmp_path: Path, text: Any) -> None:
    with pytest.raises(OptionError, match="interval:100ms"):
        read_durability(text)
    with pytest.raises(OptionError):
        make(tmp_path / "s", durability=text)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_collection_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello" * 1000)
    with pytest.raises(CollectionFileError, match="is no everhash collection"):
        Store.open(tmp_path / "text")
    with pytest.raises(StoreError, match="is a folder"):
        Store.open(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"create\(\) makes one"):
        Store.open(tmp_path / "missing")
    with pytest.raises(StoreError, match="cannot be written"):
        make(tmp_path / "no" / "folder")
