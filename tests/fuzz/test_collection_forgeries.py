"""Files made to do harm, with every checksum right: refused, quickly, and at no great expense."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import everhash
from everhash.errors import CollectionFileError
from everhash.store.parts import PartKey
from tests.fuzz import (
    hostile_attached,
    hostile_codes,
    hostile_entries,
    hostile_files,
    hostile_heads,
    hostile_lessons,
    hostile_likeness,
)
from tests.fuzz.flipping import read_all
from tests.fuzz.forging import Forgery, pack, write_victim
from tests.fuzz.hostile_files import FILES, HARMLESS
from tests.fuzz.hostile_heads import Case
from tests.fuzz.samples import GIF, reading

ROOT = Path(__file__).resolve().parents[2]
Report = dict[str, dict[str, Any]]
Ask = Callable[[Path], Report]
CASES: dict[str, Case] = {
    **hostile_heads.NO_HEADS,
    **hostile_heads.LYING_HEADS,
    **hostile_entries.LABELS,
    **hostile_entries.IDS,
    **hostile_entries.CHANGES,
    **hostile_attached.ATTACHED,
    **hostile_codes.CODES,
    **hostile_codes.FEATURES,
    **hostile_codes.MAPPINGS,
    **{f"likeness: {name}": case for name, case in hostile_likeness.LIKENESS.items()},
    **hostile_lessons.LESSONS,
    **hostile_lessons.MODELS,
    **hostile_lessons.GROWING,
    **hostile_lessons.BUFFERS,
    **hostile_files.SCHEMAS,
    **hostile_files.TYPES,
}


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good file."""
    path = tmp_path_factory.mktemp("victim") / "good"
    write_victim(path)
    return path


@pytest.fixture(scope="module")
def ask(victim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Have a process of its own open files, under a limit of memory; see `judging`."""
    good = tmp_path_factory.mktemp("good") / "good"
    shutil.copy(victim, good)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.judging", str(good)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},  # an arena a thread would count as memory
    )

    def question(path: Path) -> Report:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"crashed or hung on {path.name}: {process.stderr.read()}"
        report: Report = json.loads(answer)
        return report

    yield question
    process.communicate()


def state_of(path: Path) -> Any:
    return path.read_bytes() if path.is_file() else None


def refused(report: Report, kind: str, says: str) -> None:
    """By `open` or by what `verify` finds: with a typed error, in a second, and for that reason."""
    heard = [line for found in report.values() for line in found["says"]]
    assert heard, "nobody noticed"
    assert any(re.search(says, line) for line in heard), heard
    for name, found in report.items():
        assert found.get("error") in (None, kind), f"{name}: {heard}"
        assert found["seconds"] < 1, f"{name} worked for {found['seconds']} s"
    assert report["verify"]["says"], f"opening says {heard}, verify does not"


@pytest.mark.parametrize("name", CASES)
def test_a_forged_file_is_refused_or_named_by_verify(
    name: str, victim: Path, ask: Ask, tmp_path: Path
) -> None:
    edit, says = CASES[name]
    forgery = Forgery(victim)
    edit(forgery)
    path = forgery.write(tmp_path / "forged")
    before = state_of(path)
    report = ask(path)
    refused(report, "CollectionFileError", says)
    assert "error" not in report["verify"]
    assert state_of(path) == before


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_collection_is_refused_and_left_alone(
    name: str, victim: Path, ask: Ask, tmp_path: Path
) -> None:
    make, kind, says = FILES[name]
    path = tmp_path / "file"
    make(path, victim)
    before = state_of(path)
    refused(ask(path), kind, says)
    assert state_of(path) == before
    assert {left.name for left in tmp_path.iterdir()} <= {"file", "file-wal", "file-shm"}


def work_on(collection: everhash.Collection) -> dict[str, Any]:
    """Do a little of everything, and return what can be read afterwards."""
    collection.ingest([[1.0, 2.0, 3.0]] * 3, y=["a", None, "newer"], ids=["x", "y", "z"])
    first, second, *_ = [entry.id for entry in collection.entries()]
    collection.remove([first])
    collection.label([second], ["b"])
    collection.unlabel([second])
    collection.upsert([[3.0, 2.0, 1.0]] * 2, ["x", "w"], ["b", None])
    collection.rename_label("newer", "newest")
    collection.compact()
    collection.attach([second, "x"], payloads=[None, "x"], thumbnails=[GIF, None])
    collection.refresh()
    return reading(collection)


@pytest.mark.parametrize("name", HARMLESS)
def test_an_odd_file_that_is_good_reads_as_ever_and_can_be_written_to(
    name: str, victim: Path, tmp_path: Path
) -> None:
    good, path = tmp_path / "good", tmp_path / "odd"
    shutil.copy(victim, good)
    HARMLESS[name](path, good)
    assert everhash.verify(path).problems == ()
    assert read_all(path) == read_all(good)
    with everhash.open(path) as odd, everhash.open(good) as usual:
        found, expected = work_on(odd), work_on(usual)
    for report in (found, expected):
        del report["stats"]["last_refresh"]
    assert found == expected
    assert everhash.verify(path).problems == ()


# Malice at random: whatever is accepted can be worked with


def some_array(old: NDArray[Any]) -> st.SearchStrategy[NDArray[Any]]:
    """Return arrays that might stand in the place of one, some of them plausible."""
    small = None if old.dtype.kind == "f" else st.integers(0, 12)
    one_more = (len(old) + 1, *old.shape[1:])
    return (
        hnp.arrays(old.dtype, old.shape)
        | hnp.arrays(old.dtype, old.shape, elements=small)
        | hnp.arrays(old.dtype, st.sampled_from([one_more, (*old.shape, 1), old.shape[:-1]]))
        | hnp.arrays(st.sampled_from([np.int8, np.uint8, np.float32, np.int64]), old.shape)
        | st.permutations(range(len(old))).map(lambda order: old[np.array(order, np.int64)])
    )


def some_edit(data: st.DataObject, forgery: Forgery) -> None:
    """Change an array, a count, a name, or put a part in the place of another."""
    key, other = (data.draw(st.sampled_from(sorted(forgery.parts))) for _ in range(2))
    what = data.draw(st.sampled_from(["array", "array", "array", "head", "name", "part", "rows"]))
    if what == "array" and key.kind != "model":
        arrays = forgery.arrays(key)
        name = data.draw(st.sampled_from(sorted(arrays)))
        forgery.put(key, pack({**arrays, name: data.draw(some_array(arrays[name]))}))
    elif what == "head":
        counts = sorted(name for name, value in forgery.head.items() if type(value) is int)
        number = st.integers(-1, 14) | st.integers()
        forgery.head[data.draw(st.sampled_from(counts))] = data.draw(number)
    elif what == "name":
        forgery.rename(key, PartKey(key.kind, data.draw(st.integers(-1, 14))))
    elif what == "part":
        forgery.put(key, forgery.parts[other].data, forgery.parts[other].rows)
    elif what == "rows":
        forgery.put(key, forgery.parts[key].data, data.draw(st.integers(-1, 14)))


@given(data=st.data())
@settings(max_examples=50)
def test_any_forgery_is_refused_or_named_or_can_be_worked_with(
    data: st.DataObject, victim: Path, tmp_path: Path
) -> None:
    check_any_forgery(data, victim, tmp_path)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=300)
def test_many_forgeries_are_refused_or_named_or_can_be_worked_with(
    data: st.DataObject, victim: Path, tmp_path: Path
) -> None:
    check_any_forgery(data, victim, tmp_path)


def check_any_forgery(data: st.DataObject, victim: Path, tmp_path: Path) -> None:
    forgery = Forgery(victim)
    for _ in range(data.draw(st.integers(1, 2))):
        some_edit(data, forgery)
    for left in tmp_path.glob("forged*"):
        left.unlink()
    path = forgery.write(tmp_path / "forged")
    problems = everhash.verify(path).problems
    try:
        with everhash.open(path) as collection:
            if not problems:
                before = work_on(collection)
    except CollectionFileError:
        assert problems
    if not problems:
        after = read_all(path)
        assert {**before, "refresh": None} == {**after, "refresh": None}
        assert everhash.verify(path).problems == ()
