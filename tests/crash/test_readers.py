"""Readers and a writer: what a reader sees is the state after one commit, never a mixture.

Every commit leaves its number in what it changes, so that the state after commit c follows from c
alone. Readers compare all they see with that, while the writer goes on.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash import Attachment, Collection
from everhash.errors import UnknownIdError
from tests.crash.apart import Child, Say, apart
from tests.crash.script import DIM, PROBES, Call, check_sound, create, use_small_parts

SECONDS = float(os.environ.get("EVERHASH_STRESS_SECONDS", "20"))
"""How long the slow test takes; the quick one takes a tenth of it."""
READERS, FEW_READERS = 8, 3
MARKERS = list(range(8))
"""Entries whose label every round changes."""
ROUND = 6
"""Commits a round."""
LIFE = 12
"""Rounds that an entry lives."""
NAMED, UNNAMED = 10_000, 10_000_000
"""First ids of the labelled and of the unlabelled entries."""
SIZE = 4
"""Entries of each kind a round."""


def test_readers_see_one_commit_each_time_and_never_an_older_one(
    tmp_path: Path, thorough: bool
) -> None:
    seconds, readers = (SECONDS, READERS) if thorough else (SECONDS / 10, FEW_READERS)
    seen = apart(read_and_write, str(tmp_path), seconds, readers, seconds=seconds + 120)
    assert len(seen) == readers
    assert all(reader["checks"] > 0 and reader["commits"] > 1 for reader in seen)


def read_and_write(folder: str, seconds: float, n_readers: int) -> list[dict[str, int]]:
    """Run everybody for some seconds, and return what the readers have counted."""
    use_small_parts()
    path = Path(folder, "shared.ever")
    create(path).close()
    until = time.monotonic() + seconds
    with Child(partial(write, path, until)) as writer:
        readers = [Child(partial(read, path, until, number)) for number in range(n_readers)]
        counted = [json.loads(reader.wait()) for reader in readers]
        writer.wait()
    check_sound(path)
    return counted


def write(path: Path, until: float, say: Say) -> None:
    """Go through round after round; open the file anew from time to time."""
    calls = all_calls()
    while time.monotonic() < until:
        with everhash.open(path) as collection:
            for _ in range(30 * ROUND):
                if time.monotonic() < until:
                    next(calls).run(collection)


def all_calls() -> Iterator[Call]:
    """Commit 1 makes the markers; then commits `ROUND` r + 2 to `ROUND` r + 7 are round r."""
    yield Call("ingest", {"X": rows_of(MARKERS), "y": ["mark 0"] * 8, "ids": MARKERS})
    number = 0
    while True:
        named, unnamed = ids_of(NAMED, number), ids_of(UNNAMED, number)
        y = [f"round {number % 7}"] * SIZE
        carried = {"payloads": [number] * SIZE, "thumbnails": [picture_of(number)] * SIZE}
        yield Call("ingest", {"X": rows_of(named), "y": y, "ids": named, **carried})
        yield Call("label", {"ids": MARKERS, "y": [f"mark {number % 5}"] * len(MARKERS)})
        yield Call("add", {"X": rows_of(unnamed), "ids": unnamed})
        old = number - LIFE
        if old < 0:
            yield Call("learn", {"X": rows_of(named), "y": y})
            yield Call("learn", {"X": rows_of(named), "y": y})
        else:
            yield Call("remove", {"ids": [*ids_of(NAMED, old), *ids_of(UNNAMED, old)]})
            yield Call("compact", {})
        yield Call("refresh", {})
        number += 1


def picture_of(number: int) -> bytes:
    """Return what entries of a round carry beside its number."""
    return b"GIF89a" + str(number).encode() * 500


def rows_of(ids: list[int]) -> NDArray[np.float32]:
    """Return rows that belong to ids."""
    rows = [np.random.default_rng(name).integers(0, 17, DIM) for name in ids]
    return np.array(rows, np.float32)


def ids_of(first: int, number: int) -> list[int]:
    return [first + SIZE * number + i for i in range(SIZE)]


def expected_after(commit: int) -> dict[Any, tuple[str, ...]]:
    """Return the labels of all entries there are after so many commits."""
    if commit == 0:
        return {}
    rounds, step = divmod(commit - 1, ROUND)
    labels: dict[Any, tuple[str, ...]] = {}
    for number in range(max(0, rounds - LIFE - 1), rounds + 1):
        steps = ROUND if number < rounds else step
        gone = rounds + (step >= 4) > number + LIFE
        if not gone and steps >= 1:
            labels.update(dict.fromkeys(ids_of(NAMED, number), (f"round {number % 7}",)))
        if not gone and steps >= 3:
            labels.update(dict.fromkeys(ids_of(UNNAMED, number), ()))
    marked = rounds if step >= 2 else max(0, rounds - 1)
    return labels | dict.fromkeys(MARKERS, (f"mark {marked % 5}",))


def read(path: Path, until: float, number: int, say: Say) -> None:
    """Check what is there again and again: as it was, after catching up, or opened anew."""
    rng, last, checks, commits = random.Random(number), 0, 0, set[int]()
    collection = everhash.open(path, readonly=True)
    while time.monotonic() < until:
        choice = rng.random()
        if choice < 0.2:
            collection.close()
            collection = everhash.open(path, readonly=True)
        elif choice < 0.8:
            collection.catch_up()
        with collection.held():
            commit = check(collection)
        check_attachments(collection, list(expected_after(commit)))
        assert commit >= last, f"reader {number}: commit {commit} after {last}"
        last, checks = commit, checks + 1
        commits.add(commit)
    collection.close()
    say(json.dumps({"checks": checks, "commits": len(commits), "last": last}).encode())


def check(collection: Collection) -> int:
    """Fail unless all that is seen is the state after one commit, and return which."""
    report = collection.refresh(dry_run=True)
    commit = int(collection.stats()["commit"])
    expected = expected_after(commit)
    entries = list(collection.entries())
    assert {entry.id: entry.labels for entry in entries} == expected, f"commit {commit}"
    assert all((entry.code is None) == bool(entry.labels) for entry in entries)
    assert len(collection) == len(expected)
    if expected:
        check_searches(collection, expected)
        assert collection.has(list(expected)).all()
        check_attachments(collection, list(expected))
    assert report.entries == sum(not labels for labels in expected.values())
    if commit > 1 and (commit - 1) % ROUND == 0:  # nothing is left to do after a refresh
        assert (report.bits_flipped, report.homes_moved) == (0, 0), f"commit {commit}"
    return commit


def check_searches(collection: Collection, expected: dict[Any, tuple[str, ...]]) -> None:
    """Fail unless searches find what `get` knows."""
    found = collection.search(PROBES, min(50, len(expected)))
    for ids, labels in zip(found.ids.tolist(), found.labels.tolist(), strict=True):
        assert [entry.labels for entry in collection.get(ids)] == [expected[name] for name in ids]
        assert [() if label is None else (label,) for label in labels] == [
            expected[name] for name in ids
        ]
    (mark,) = expected[MARKERS[0]]
    marked = collection.search(PROBES, 20, labels=[mark])
    assert [sorted(ids[: len(MARKERS)]) for ids in marked.ids.tolist()] == [MARKERS] * len(PROBES)
    assert set(marked.counts.tolist()) == {len(MARKERS)}


def check_attachments(collection: Collection, ids: list[int]) -> None:
    """Fail unless entries carry what they came with; the writer may have removed some by now."""
    with suppress(UnknownIdError):
        for name, carried in zip(ids, collection.attachments(ids), strict=True):
            n, named = (name - NAMED) // SIZE, NAMED <= name < UNNAMED
            born = Attachment(n, picture_of(n)) if named else Attachment()
            assert carried == born, f"entry {name} carries {carried}"
