"""Opening a collection loads what opening needs; entries are grouped when somebody asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import everhash
from everhash.index.postings import Postings
from everhash.learn.row_memory import FIRST_ROWS

ROWS = FIRST_ROWS + 300
X = np.random.default_rng(0).standard_normal((ROWS, 8)).astype(np.float32)
Y = [i % 7 if i < FIRST_ROWS + 100 else None for i in range(ROWS)]

OPEN = """
import json, sys
import everhash

with everhash.open(sys.argv[1], readonly=sys.argv[2] == "readonly") as collection:
    n = len(collection)
    print(json.dumps([n, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A collection of more rows than are kept, so that its model holds sums."""
    path = tmp_path / "opened.ever"
    with everhash.create(path, 8) as collection:
        collection.ingest(X, Y)
    return path


@pytest.mark.parametrize("how", ["readonly", "writing"])
def test_opening_imports_neither_compiler_nor_scipy(path: Path, how: str) -> None:
    command = [sys.executable, "-c", OPEN, str(path), how]
    n, loaded = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert n == ROWS
    assert not {"numba", "llvmlite", "scipy", "sklearn"} & set(loaded)


def found(collection: everhash.Collection) -> list[list[object]]:
    matches = collection.search(X[:50], by="meaning")
    return [matches.ids.tolist(), matches.scores.tolist(), matches.guesses.tolist()]


def test_a_write_before_the_first_search_finds_what_a_search_before_it_does(path: Path) -> None:
    answers = []
    for first in (True, False):
        copy = path.with_name(f"{first}.ever")
        everhash.restore(path, copy)
        with everhash.open(copy) as collection:
            if first:
                found(collection)
            collection.remove([0, ROWS - 1])
            collection.label([ROWS - 2], [3], teach=False)
            collection.unlabel([1], teach=False)
            collection.add(X[:20] + 1, y=[0] * 10 + [None] * 10)
            answers.append(found(collection))
            answers[-1].append([info.entries for info in collection.labels()])
    assert answers[0] == answers[1]


def test_labels_that_go_before_the_first_search_are_no_guesses(path: Path) -> None:
    with everhash.open(path) as collection:
        collection.drop_label(3)
        assert 3 not in {guess for row in collection.search(X[-200:]).guesses for guess in row}


def test_groups_that_could_not_be_made_are_made_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with everhash.open(path, readonly=True) as collection:
        expected = found(collection)
    append, calls = Postings.append, []

    def fail_once(self: Postings, *args: object) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise MemoryError
        append(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Postings, "append", fail_once)
    with everhash.open(path, readonly=True) as collection:
        with pytest.raises(MemoryError):
            found(collection)
        assert found(collection) == expected
