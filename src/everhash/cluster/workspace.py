"""Where the lead decides a write: the calls of a collection, on just the entries that it concerns.

The entries that a write names are fetched from their shards into a small index, and the call is
made on it, with the checks, the messages and the learning that it has in a collection on one
machine. What it has changed is then told to the shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np

from everhash.cluster.moved import NOBODY, Labelling, Moved
from everhash.collection.attachments import KINDS, Blobs
from everhash.collection.changeset import Changeset
from everhash.collection.collection import Collection
from everhash.collection.formats import Lesson
from everhash.collection.loading import Loaded
from everhash.collection.writing import WriteCall
from everhash.index.arrays import Bools, Counts, Floats
from everhash.index.columns import REMOVED, UNLABELLED
from everhash.index.features import StoredFeatures
from everhash.index.hasher import generation_of
from everhash.index.index import Index
from everhash.learn.following import Solved
from everhash.learn.hasher import OnlineHasher
from everhash.wire.ids import IdList


class ConcernedEntries(Index):
    """An index without codes: entries that a write concerns, and those that it adds."""

    def __init__(self, hasher: OnlineHasher) -> None:
        super().__init__(hasher, likeness=False)
        self.coded_at: int | None = None
        """The functions' generation when the write first made an entry one without a label."""

    def _code(self, rows: Floats, places: Counts, coded: Bools) -> None:  # noqa: ARG002
        self._code_again(places)

    def _code_again(self, places: Counts) -> None:
        if self.coded_at is None and len(places):
            self.coded_at = generation_of(self.hasher)

    def fill(self, known: Moved, next_id: int) -> None:
        """Take in the entries that are there, in order of arrival."""
        if len(known):
            self.add_checked(known.checked(self.hasher.labels_), taught=known.labels.taught)
        self.coded_at = None
        self.continue_ids(next_id)

    def labelling(self, places: Counts) -> Labelling:
        """Return the labels that entries have now."""
        return Labelling(*self.label_pairs(places), self.taught_column[places].copy())

    def ids_at(self, places: Counts) -> IdList:
        """Return the ids of the entries at these places."""
        return self._ids.at(places)

    def stored_at(self, places: Counts) -> StoredFeatures:
        """Return features as they are stored, of ascending places."""
        return self._features.read(places)


class Outcome(NamedTuple):
    """What a call has returned, and what it has changed among the entries it concerns."""

    result: Any
    changes: Changeset | None
    """None if it has changed nothing."""
    known: int
    """Entries that were there before; the others were added."""
    entries: ConcernedEntries

    def joined(self) -> int:
        """Return how many entries have no label that were not there, or had one."""
        cleared = self.unlabelled(self.relabelled)
        return cleared + self.unlabelled(self.added)

    @property
    def removed(self) -> Counts:
        """Places of entries that were removed or replaced."""
        return np.flatnonzero(self.entries.label_column[: self.known] == REMOVED)

    @property
    def relabelled(self) -> Counts:
        """Places of entries that have other labels."""
        changes = [] if self.changes is None else self.changes.changes
        touched = [change.places for change in changes if not change.removed]
        places: Counts = np.unique(np.concatenate([NOBODY, *touched]))
        return self._living(places)

    def _living(self, places: Counts) -> Counts:
        living: Counts = places[self.entries.label_column[places] != REMOVED]
        return living

    @property
    def added(self) -> Counts:
        """Places of entries that are new."""
        return np.arange(self.known, self.entries.arrived)

    @property
    def lessons(self) -> list[Lesson]:
        """What was learned and forgotten."""
        lessons: list[Lesson | Solved] = [] if self.changes is None else self.changes.lessons
        return [lesson for lesson in lessons if isinstance(lesson, Lesson)]

    def signs(self) -> Counts:
        """(n,) how often the row of each entry was learned, less how often it was forgotten."""
        signs = np.zeros(self.entries.arrived, np.int64)
        for lesson in self.lessons:
            if lesson.places is not None:
                count = np.unique(lesson.labels.rows)  # only rows with labels are learned
                np.add.at(signs, lesson.places[count], -1 if lesson.forget else 1)
        return signs

    def blobs(self, places: Counts) -> Blobs:
        """Return what entries get attached, as if their places were 0, 1, 2 and so on."""
        attached = {} if self.changes is None else self.changes.attached
        where = {place: i for i, place in enumerate(places.tolist())}
        return {
            KINDS * where[n // KINDS] + n % KINDS: data
            for n, data in attached.items()
            if n // KINDS in where
        }

    def attached(self) -> Counts:
        """Return the places of old entries that get something attached, or lose it."""
        attached = {} if self.changes is None else self.changes.attached
        places = np.unique(np.array([n // KINDS for n in attached], np.int64))
        return self._living(places[places < self.known])

    def unlabelled(self, places: Counts) -> int:
        """Return how many of these entries have no label."""
        return int((self.entries.label_column[places] == UNLABELLED).sum())


class Workspace(Collection):
    """Makes one call on the entries that it concerns."""

    def __init__(self, hasher: OnlineHasher, known: Moved, next_id: int) -> None:
        self._entries = ConcernedEntries(hasher)
        self._entries.fill(known, next_id)
        self._known = len(known)
        self._changes: Changeset | None = None
        self._store = cast("Any", _Carried(known.blobs))
        self._auto_refresh = False

    @property
    def begun(self) -> bool:
        """Whether the hasher may have changed."""
        return self._changes is not None

    def make(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Outcome:
        """Make a call; errors leave everything as it was, unless it has begun to change."""
        result = getattr(self, name)(*arguments, **options)
        return Outcome(result, self._changes, self._known, self._entries)

    @contextmanager
    def _writing(self, *, refreshing: bool = False) -> Iterator[WriteCall]:  # noqa: ARG002
        saved = cast("Any", SimpleNamespace(hasher_is_saved=True))
        features = cast("Any", None)
        state = Loaded(self._hasher, self._entries, saved, features)
        call = WriteCall(state)
        try:
            yield call
        finally:
            self._changes = call.changes

    @property
    def _hasher(self) -> OnlineHasher:
        return cast("OnlineHasher", self._entries.hasher)


class _Carried:
    """What the concerned entries have attached, read as if from a file."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    def read_attached(self, numbers: list[int]) -> dict[int, bytes]:
        """Return the blobs with these numbers."""
        found = {number: self._blobs.get(number) for number in numbers}
        return {number: data for number, data in found.items() if data is not None}
