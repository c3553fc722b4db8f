"""The power is lost at every point of a recorded history, and what is left is looked at."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.crash.disk import (
    Begun,
    Change,
    Contents,
    Disk,
    Folder,
    Operation,
    Promised,
    Sync,
    SyncFolder,
    Write,
    choices,
)
from tests.crash.recording import Ignores, Recorder, never, write_folder

ABSENT, DAMAGED = -1, -2
"""Found in place of a state: there is no file, or everhash says that it is damaged."""
BACK, CLOSING = "write the log back", ("close", "close after a loss")
"""What is being done when the log is written back to the file, in any call but those that close."""
EVERY = 6
"""One of so many states is looked at in full, and the first of each state of the model."""
Counts = Counter[tuple[str, str]]


class Case(Protocol):
    """Something that is done to files, and what must be there afterwards."""

    setting: str

    def prepare(self, folder: Path) -> None:
        """Put into a folder what is there before, on the disk."""

    def run(self, recorder: Recorder, folder: Path) -> None:
        """Do it, and tell the recorder what begins and what is acknowledged."""

    def look(self, folder: Path, *, full: bool) -> int:
        """Return which state of the model a folder has; raise if it has none of them.

        `full`: by everything that can be observed, and by the next write.
        """


class Point(NamedTuple):
    """A moment of a history at which the power is lost."""

    number: int
    what: str
    promised: int
    begun: int
    synced: Contents
    pending: list[Change]


class Loss(NamedTuple):
    """A point, and the changes that had reached the disk by then."""

    point: Point
    reached: list[Change]

    @property
    def folder(self) -> Folder:
        return self.point.synced.after(self.reached).folder


@dataclass
class Outcome:
    """What came of losses, by setting and by what was being done."""

    losses: Counts = field(default_factory=Counter)
    """States of the disk that were compared with what was promised."""
    opened: Counts = field(default_factory=Counter)
    """Of these, states that had not come up before in their case, each opened."""
    in_full: Counts = field(default_factory=Counter)
    damaged: Counts = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def as_json(self) -> dict[str, Any]:
        """Return what travels between processes."""
        return {
            name: value if isinstance(value, list) else [[*key, n] for key, n in value.items()]
            for name, value in vars(self).items()
        }

    @classmethod
    def of(cls, value: dict[str, Any]) -> Outcome:
        """Return what has travelled."""
        counts = {
            name: Counter({(row[0], row[1]): row[2] for row in rows})
            for name, rows in value.items()
            if name != "violations"
        }
        return cls(**counts, violations=value["violations"])


def points(history: list[Operation], start: Contents) -> Iterator[Point]:
    """Yield the moments that matter: before each sync, after each promise, between two things.

    Whatever may be on the disk between two of them may be so at the later one too, with no more
    promised.
    """
    disk, what, promised, begun = Disk(start), "", ABSENT, ABSENT
    news = back = False
    for number, operation in enumerate([*history, Begun(ABSENT, "")]):
        if isinstance(operation, Promised):
            promised, news = operation.state, True
        if news and what and isinstance(operation, Sync | SyncFolder | Promised | Begun):
            doing = BACK if back and what not in CLOSING else what
            yield Point(number, doing, promised, begun, disk.synced, list(disk.pending))
            news = False
        if isinstance(operation, Begun):
            what, begun, back = operation.what, operation.state, False
        disk.do(operation)
        back = back or (isinstance(operation, Write) and _is_collection(disk, operation.file))
        news = news or not isinstance(operation, Promised)


def _is_collection(disk: Disk, file: int) -> bool:
    """Whether a file is one that logs are written back to."""
    return any(name.endswith(".ever") for name, one in disk.synced.names.items() if one == file)


def ordered(found: Iterable[Point], rng: random.Random) -> dict[str, list[Loss]]:
    """Return losses by what was being done: nothing or all that was pending first, then any."""
    first: dict[str, list[Loss]] = {}
    others: dict[str, list[Loss]] = {}
    for point in found:
        for place, reached in enumerate(choices(point.pending, rng)):
            kind = first if place < 2 else others
            kind.setdefault(point.what, []).append(Loss(point, reached))
    for losses in (*first.values(), *others.values()):
        rng.shuffle(losses)
    return {what: losses + others.get(what, []) for what, losses in first.items()}


class Judge:
    """Looks at what losses leave."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._case, self._folder = case, folder
        self.outcome = Outcome()
        self._found: dict[bytes, int | str] = {}
        self._in_full = set[int]()
        folder.mkdir()

    def try_loss(self, loss: Loss) -> int | None:
        """Open what a loss leaves; return which state it is if that was promised."""
        folder, point = loss.folder, loss.point
        key, count = digest(folder), (self._case.setting, point.what)
        self.outcome.losses[count] += 1
        if key not in self._found:
            self.outcome.opened[count] += 1
            self._found[key] = self._open(folder, len(self._found) % EVERY == 0, count)
        found = self._found[key]
        if found == DAMAGED and self._case.setting == "none":
            self.outcome.damaged[count] += 1
            return None
        if isinstance(found, int) and point.promised <= found <= point.begun:
            return found
        said = found if isinstance(found, str) else f"state {found} was found"
        wanted = f"states {point.promised} to {point.begun} are allowed"
        where = f"{', '.join(count)}, lost before operation {point.number}"
        self.outcome.violations.append(f"{where}: {said}; {wanted}")
        return None

    def _open(self, folder: Folder, full: bool, count: tuple[str, str]) -> int | str:
        """Return what there is, or say why nothing was expected to be so."""
        try:
            write_folder(self._folder, folder)
            found = self._case.look(self._folder, full=False)
            if found != DAMAGED and (full or found not in self._in_full):
                self._in_full.add(found)
                self.outcome.in_full[count] += 1
                write_folder(self._folder, folder)
                assert self._case.look(self._folder, full=True) == found, "found two states"
        except Exception as error:  # whatever comes, nobody should have met it
            return f"{type(error).__name__}: {error}"
        return found


def digest(folder: Folder) -> bytes:
    """Return a key that tells contents of a folder apart."""
    total = hashlib.sha1(usedforsecurity=False)
    for name in sorted(folder):
        total.update(f"{name} {len(folder[name])} ".encode())
        total.update(folder[name])
    return total.digest()


class Lost(NamedTuple):
    """What came of a case, and some of what was left: a state of the model and a folder."""

    outcome: Outcome
    left: list[tuple[int, Folder]]


def lose(
    recorder: Recorder,
    case: Case,
    folder: Path,
    most: int,
    rng: random.Random,
    ignores: Ignores = never,
    *,
    enough: float = math.inf,
) -> Lost:
    """Run a case once, and lose the power at every point of it.

    Args:
        recorder: is below SQLite.
        case: what is run.
        folder: to be made, for files.
        most: different states to open, of each thing that the case does.
        rng: draws states.
        ignores: operations that the disk ignores: a planted fault.
        enough: violations after which no more are looked for.
    """
    live = folder / "live"
    live.mkdir(parents=True)
    case.prepare(live)
    with recorder.recording(live, ignores):
        case.run(recorder, live)
    judge, left = Judge(case, folder / "lost"), []
    for what, losses in ordered(points(recorder.history, recorder.start), rng).items():
        for loss in losses:
            opened = judge.outcome.opened[case.setting, what]
            if opened == most or len(judge.outcome.violations) >= enough:
                break
            found = judge.try_loss(loss)
            if found is not None and any(name.endswith("-wal") for name in loss.folder):
                left.append((found, loss.folder))
    return Lost(judge.outcome, left)
