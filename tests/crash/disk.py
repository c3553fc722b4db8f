"""What a disk may hold after the power was lost: a model of files, names and syncs.

A history is what a process did to the files of one folder. Until a file is synced, any part of what
was written to it may be on the disk, in any order; until the folder is synced, any of the names
that were made, moved and removed may be as they were. A sync of a file says nothing of its name.

    a write         all, none, or some of its sectors of 512 bytes; or cut at any byte; or only the
                    length it gives the file, over zeros or over whatever was on the disk there
    a truncation    done or not
    a new name, a link, a rename, a removal    done or not, each as a whole

A disk that says it has synced has synced. Bytes beside those that are written stay as they are.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

SECTOR = 512
EXHAUSTIVE = 7
"""Of so many changes, all subsets are tried."""
SAMPLES = 24
"""Subsets that are drawn where there are more."""
Folder = dict[str, bytes]
"""What is in a folder: bytes by name."""


class Write(NamedTuple):
    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    file: int
    length: int


class Extend(NamedTuple):
    """A file has become this long at least; what was written there has not come."""

    file: int
    length: int
    filler: int = 0
    """Seed of what is there instead; 0 for zeros."""


class Enter(NamedTuple):
    """A name for a file: it was made, or linked."""

    name: str
    file: int


class Leave(NamedTuple):
    name: str


class Rename(NamedTuple):
    name: str
    to: str
    file: int


class Sync(NamedTuple):
    file: int


class SyncFolder(NamedTuple):
    pass


class Begun(NamedTuple):
    """Something begins; from here on, state `state` of the model may be found."""

    state: int
    what: str


class Promised(NamedTuple):
    """It was acknowledged; from here on, no state before `state` may be found."""

    state: int


ToFile = Write | Truncate | Extend
ToFolder = Enter | Leave | Rename
Change = ToFile | ToFolder
Operation = Change | Sync | SyncFolder | Begun | Promised
FILE_CHANGES = (Write, Truncate, Extend)


@dataclass
class Contents:
    """Files by number, and their names."""

    files: dict[int, bytes] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)

    def after(self, changes: Iterable[Change]) -> Contents:
        """Return the contents after some changes, in order."""
        files, names = dict(self.files), dict(self.names)
        open_files: dict[int, bytearray] = {}
        for change in changes:
            if isinstance(change, FILE_CHANGES):
                if change.file not in open_files:
                    open_files[change.file] = bytearray(files.get(change.file, b""))
                _change_file(open_files[change.file], change)
            else:
                _change_names(names, change)
        files |= {number: bytes(data) for number, data in open_files.items()}
        return Contents(files, names)

    @property
    def folder(self) -> Folder:
        """What somebody finds there."""
        return {name: self.files.get(number, b"") for name, number in self.names.items()}


def _change_file(data: bytearray, change: ToFile) -> None:
    if isinstance(change, Truncate):
        del data[change.length :]
    end = change.offset + len(change.data) if isinstance(change, Write) else change.length
    if (missing := end - len(data)) > 0:
        filler = change.filler if isinstance(change, Extend) else 0
        data.extend(random.Random(filler).randbytes(missing) if filler else bytes(missing))
    if isinstance(change, Write):
        data[change.offset : end] = change.data


def _change_names(names: dict[str, int], change: ToFolder) -> None:
    if isinstance(change, Enter):
        names[change.name] = change.file
    else:
        names.pop(change.name, None)
    if isinstance(change, Rename):
        names[change.to] = change.file


class Disk:
    """What has been synced, and what has not."""

    def __init__(self, contents: Contents) -> None:
        self.synced, self.pending = contents, list[Change]()

    def do(self, operation: Operation) -> None:
        """Take one operation of a history."""
        if isinstance(operation, Sync | SyncFolder):
            done = [change for change in self.pending if _settles(operation, change)]
            self.pending = [change for change in self.pending if not _settles(operation, change)]
            self.synced = self.synced.after(done)
        elif not isinstance(operation, Begun | Promised):
            self.pending.append(operation)

    def losses(self, rng: random.Random) -> Iterator[Folder]:
        """Yield what the folder may hold if the power is lost now, most telling ones first."""
        for changes in choices(self.pending, rng):
            yield self.synced.after(changes).folder


def _settles(sync: Sync | SyncFolder, change: Change) -> bool:
    """Whether a change is on the disk for good after a sync."""
    if isinstance(sync, SyncFolder):
        return not isinstance(change, FILE_CHANGES)
    return isinstance(change, FILE_CHANGES) and change.file == sync.file


def choices(pending: list[Change], rng: random.Random) -> Iterator[list[Change]]:
    """Yield changes that may have reached the disk: all subsets if they are few.

    If there are more: none, all, each alone, all but each, all up to each, and some that are drawn.
    In any case also each write torn: after all before it, among all others, and alone.
    """
    n = len(pending)
    yield []
    yield list(pending)
    for place in range(n):
        yield pending[: place + 1]
        yield [pending[place]]
        yield pending[:place] + pending[place + 1 :]
    for place, change in enumerate(pending):
        if isinstance(change, Write):
            for torn in tear(change, rng):
                yield pending[:place] + torn
                yield pending[:place] + torn + pending[place + 1 :]
                yield torn
    if n <= EXHAUSTIVE:
        for kept in product((False, True), repeat=n):
            yield [change for change, keep in zip(pending, kept, strict=True) if keep]
    else:
        for _ in range(SAMPLES):
            yield drawn(pending, rng)


def drawn(pending: list[Change], rng: random.Random) -> list[Change]:
    """Return some of the changes, many or few, and some of the writes torn."""
    share, found = rng.choice((0.1, 0.5, 0.9)), list[Change]()
    for change in pending:
        if rng.random() < share:
            torn = isinstance(change, Write) and rng.random() < 0.2
            found += rng.choice(tear(change, rng)) if torn else [change]  # type: ignore[arg-type]
    return found


def tear(write: Write, rng: random.Random) -> list[list[Change]]:
    """Return ways in which a write may have reached the disk in part."""
    pieces, end = _sectors(write), write.offset + len(write.data)
    cut = rng.randrange(len(write.data)) if write.data else 0
    half = len(pieces) // 2
    return [
        [write._replace(data=write.data[:cut])],
        list(pieces[:half]),
        list(pieces[half:]),
        [piece for piece in pieces if rng.random() < 0.5],
        [Extend(write.file, end)],
        [Extend(write.file, end, filler=rng.randrange(1, 2**30))],
    ]


def _sectors(write: Write) -> list[Write]:
    """Return a write as one for each sector that it touches."""
    first = SECTOR - write.offset % SECTOR
    starts = [0, *range(first, len(write.data), SECTOR)] if write.data else []
    ends = [*starts[1:], len(write.data)]
    return [
        Write(write.file, write.offset + start, write.data[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]
