"""The ids of entries: an int64 or a string each, stable, free again after a removal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import DuplicateIdError, IdError, UnknownIdError
from everhash.index.arrays import Bools, Counts
from everhash.learn.growing import GrowingArray
from everhash.wire.ids import Id, IdList, as_ids, plain_ids


class Ids:
    """Ids in order of arrival; the position of an id is its entry's place.

    An id that was given again after a removal is found at its newest place. Default ids go on after
    the largest number there ever was, so none of them comes again by itself.

    While all ids are the default ones, 0, 1, 2, …, nothing is stored; other numbers take 24 bytes
    each. From the first string on, all ids are kept as Python objects.

    >>> ids = Ids()
    >>> ids.extend(ids.check(None, 2, np.isfinite))
    >>> ids.extend(ids.check(["cat"], 1, np.isfinite))
    >>> ids.places(["cat", 1]).tolist()
    [2, 1]
    """

    def __init__(self) -> None:
        self._count = 0
        self.next = 0
        """The next default id."""
        self._numbers: Numbers | None = None
        self._names: list[Id] | None = None
        self._places: dict[Id, int] = {}

    def __len__(self) -> int:
        return self._count

    def check(self, ids: Iterable[Any] | None, n: int, living: Callable[[Counts], Bools]) -> IdList:
        """Return the ids that n new entries would get; raise if they cannot have these.

        `living` says which places have an entry that is not removed.
        """
        if ids is None:
            if self.next + n > 2**63:
                raise IdError(
                    "no default id is left: the largest int64 is taken", hint="give ids of your own"
                )
            return np.arange(self.next, self.next + n)
        wanted = as_ids(ids)
        if len(wanted) != n:
            raise IdError(f"{n} rows but {len(wanted)} ids", hint="give one id a row")
        if not _distinct(wanted):
            raise DuplicateIdError(Counter(plain_ids(wanted)).most_common(1)[0][0], twice=True)
        places = self.find(wanted)
        taken = (places >= 0) & living(places)
        if taken.any():
            raise DuplicateIdError(plain_ids(wanted)[int(taken.argmax())])
        return wanted

    def extend(self, ids: IdList) -> None:
        """Give new entries the ids that `check` returned."""
        n, numbers = len(ids), ids if isinstance(ids, np.ndarray) else None
        bare = self._numbers is None and self._names is None
        if bare and numbers is not None and _consecutive(numbers, self._count):
            self.next = max(self.next, self._count + n)
        elif numbers is not None and self._names is None:
            if self._numbers is None:
                self._numbers = Numbers()
                self._numbers.extend(np.arange(self._count))
            self._numbers.extend(numbers)
            self.next = max(self.next, int(numbers.max(initial=-1)) + 1)
        else:
            self._extend_names(plain_ids(ids))
        self._count += n

    def _extend_names(self, ids: list[Id]) -> None:
        if self._names is None:
            known = range(self._count) if self._numbers is None else self._numbers.values.rows
            self._names = [int(value) for value in known]
            self._places = {value: place for place, value in enumerate(self._names)}
            self._numbers = None
        self._places.update(zip(ids, range(self._count, self._count + len(ids)), strict=True))
        self._names += ids
        if set(map(type, ids)) != {str}:  # which is soon known, where ids are many
            numbers = (value for value in ids if isinstance(value, int))
            self.next = max(self.next, max(numbers, default=-1) + 1)

    def find(self, ids: IdList) -> Counts:
        """Return the place of each id, -1 if it is unknown."""
        if self._names is not None:
            places = self._places
            return np.array([places.get(value, -1) for value in plain_ids(ids)], np.int64)
        if not isinstance(ids, np.ndarray):
            whole = np.array([isinstance(value, int) for value in ids], np.bool_)
            found = np.full(len(ids), -1, np.int64)
            found[whole] = self.find(np.array([v for v in ids if isinstance(v, int)], np.int64))
            return found
        if self._numbers is not None:
            return self._numbers.find(ids)
        return np.where((ids >= 0) & (ids < self._count), ids, -1)

    def never_came_again(self) -> bool:
        """Whether every id was given once only; False where it would take long to tell."""
        if self._names is not None:
            return len(self._places) == self._count
        return self._numbers is None or self._numbers.never_came_again()

    def places(self, ids: Iterable[Any]) -> Counts:
        """Return the place of each id; raise if one is unknown."""
        wanted = as_ids(ids)
        found = self.find(wanted)
        if (found < 0).any():
            raise UnknownIdError(plain_ids(wanted)[int((found < 0).argmax())])
        return found

    def between(self, start: int, stop: int) -> IdList | None:
        """Return the ids of a range of places; None if each id is its place."""
        if self._names is not None:
            return self._names[start:stop]
        return None if self._numbers is None else self._numbers.values.rows[start:stop]

    def at(self, places: Counts) -> IdList:
        """Return the ids at these places."""
        if self._names is not None:
            return [self._names[place] for place in places.tolist()]
        return places if self._numbers is None else self._numbers.values.rows[places]

    def names(self, places: Counts) -> NDArray[Any]:
        """Return the ids at these places, None for place -1."""
        if self._names is None:
            values = None if self._numbers is None else self._numbers.values.rows
            numbers = places if values is None else values[np.maximum(places, 0)]
            if (places >= 0).all():
                return numbers
            padded = numbers.astype(object)
            padded[places < 0] = None
            return padded
        flat = [None if place < 0 else self._names[place] for place in places.reshape(-1).tolist()]
        if all(isinstance(value, int) for value in flat):
            return np.array(flat, np.int64).reshape(places.shape)
        named = np.empty(len(flat), object)
        named[:] = flat
        return named.reshape(places.shape)


class Run(NamedTuple):
    """Numbers in ascending order, and their places."""

    numbers: Counts
    places: Counts

    @classmethod
    def of(cls, numbers: Counts, places: Counts) -> Run:
        """Sort by number; the stable sort merges two sorted runs in linear time."""
        order = np.argsort(numbers, kind="stable")
        return cls(numbers[order], places[order])


class Numbers:
    """Numbers in order of arrival, found by binary search in a few sorted runs.

    A number that is there twice is found at its newest place: runs are in order of arrival, and so
    are equal numbers inside a run.
    """

    def __init__(self) -> None:
        self.values: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self._runs: list[Run] = []

    def extend(self, values: Counts) -> None:
        """Append numbers."""
        start = len(self.values)
        self.values.grow_to(start + len(values))
        self.values.rows[start:] = values
        self._runs.append(Run.of(values, np.arange(start, start + len(values))))
        while len(self._runs) > 1 and len(self._runs[-2].places) < 2 * len(self._runs[-1].places):
            last, before = self._runs.pop(), self._runs.pop()
            pairs = zip(before, last, strict=True)
            self._runs.append(Run.of(*(np.concatenate(pair) for pair in pairs)))

    def never_came_again(self) -> bool:
        """Whether every number is there once only; False if that is not seen at once."""
        numbers = [run.numbers for run in self._runs if len(run.numbers)]
        apart = all(below[-1] < above[0] for below, above in pairwise(numbers))
        return apart and all((np.diff(run) > 0).all() for run in numbers)

    def find(self, wanted: Counts) -> Counts:
        """Return the place of each number, -1 if it is unknown."""
        places = np.full(len(wanted), -1, np.int64)
        low, high = wanted.min(initial=2**63 - 1), wanted.max(initial=-(2**63))
        for numbers, where in self._runs:
            if len(numbers) and numbers[0] <= high and low <= numbers[-1]:
                at = np.maximum(np.searchsorted(numbers, wanted, side="right") - 1, 0)
                places = np.where(numbers[at] == wanted, where[at], places)
        return places


def _distinct(ids: IdList) -> bool:
    if not isinstance(ids, np.ndarray):
        return len(set(ids)) == len(ids)
    steps = np.diff(ids)
    return bool((steps > 0).all()) or bool((np.diff(np.sort(ids)) != 0).all())


def _consecutive(numbers: Counts, start: int) -> bool:
    return bool((numbers == np.arange(start, start + len(numbers))).all())
