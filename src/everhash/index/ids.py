"""Ids: what users call their entries. An int64 or a string each, stable, never used again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import DuplicateIdError, IdError, UnknownIdError
from everhash.learn.growing import GrowingArray

Id = int | str
Counts = NDArray[np.int64]
LONGEST = 64
"""characters of an id"""
FRESH = 65_536
"""Numbers looked up in a dictionary before they are sorted in among the others."""


class Ids:
    """Ids in order of arrival; an entry's place in it is how the index knows it.

    While all ids are those given by default, 0, 1, 2, …, nothing is stored at all; numbers take 24
    bytes, and only once there is a string among them are all of them kept as Python objects.

    >>> ids = Ids()
    >>> ids.extend(ids.check(None, 2))
    >>> ids.extend(ids.check(["cat"], 1))
    >>> ids.places(["cat", 1]).tolist()
    [2, 1]
    """

    def __init__(self) -> None:
        self._count = 0
        self._next = 0
        self._numbers: Numbers | None = None
        self._names: list[Id] | None = None
        self._places: dict[Id, int] = {}

    def __len__(self) -> int:
        return self._count

    def check(self, ids: Iterable[Any] | None, n: int) -> list[Id]:
        """Return the ids that n new entries would have, or say why they cannot have them."""
        if ids is None:
            if self._next + n > 2**63:
                raise IdError("no number is left to give as an id", hint="give ids of your own")
            return list(range(self._next, self._next + n))
        wanted = as_ids(ids)
        if len(wanted) != n:
            raise IdError(f"{n} rows but {len(wanted)} ids", hint="give one id a row")
        if len(set(wanted)) < n:
            raise DuplicateIdError(Counter(wanted).most_common(1)[0][0])
        taken = self.find(wanted) >= 0
        if taken.any():
            raise DuplicateIdError(wanted[int(taken.argmax())])
        return wanted

    def extend(self, ids: list[Id] | Counts) -> None:
        """Give ids to new entries that `check` let through."""
        n, bare = len(ids), self._numbers is None and self._names is None
        if bare and list(ids) == list(range(self._count, self._count + n)):
            self._count += n
            self._next = max(self._next, self._count)
            return
        text = not isinstance(ids, np.ndarray) and any(isinstance(value, str) for value in ids)
        if text or self._names is not None:
            self._extend_names(list(ids))
        else:
            if self._numbers is None:
                self._numbers = Numbers(np.arange(self._count))
            self._numbers.extend(np.asarray(ids, np.int64))
        numbers = np.array([v for v in ids if isinstance(v, int)] if text else ids, np.int64)
        self._next = max(self._next, int(numbers.max(initial=-1)) + 1)
        self._count += n

    def _extend_names(self, ids: list[Any]) -> None:
        if self._names is None:
            numbers = self._numbers
            self._names = list(
                range(self._count) if numbers is None else numbers.values.rows.tolist()
            )
            self._places = {value: place for place, value in enumerate(self._names)}
            self._numbers = None
        plain = [value.item() if isinstance(value, np.generic) else value for value in ids]
        self._places.update(zip(plain, range(self._count, self._count + len(plain)), strict=True))
        self._names += plain

    def find(self, ids: list[Id]) -> Counts:
        """Return the place of each id, -1 where there is none."""
        if self._names is not None:
            return np.array([self._places.get(value, -1) for value in ids], np.int64)
        known = np.array([value if isinstance(value, int) else -1 for value in ids], np.int64)
        foreign = np.array([not isinstance(value, int) for value in ids], np.bool_)
        if self._numbers is None:
            places = np.where((known >= 0) & (known < self._count), known, -1)
        else:
            places = self._numbers.find(known)
        places[foreign] = -1
        return places

    def places(self, ids: Iterable[Any]) -> Counts:
        """Return the place of each id."""
        wanted = as_ids(ids)
        found = self.find(wanted)
        if (found < 0).any():
            raise UnknownIdError(wanted[int((found < 0).argmax())])
        return found

    def between(self, start: int, stop: int) -> list[Id] | Counts | None:
        """Return the ids of a range of places; None where each is its place."""
        if self._names is not None:
            return self._names[start:stop]
        return None if self._numbers is None else self._numbers.values.rows[start:stop]

    def names(self, places: Counts) -> NDArray[Any]:
        """Return the ids at these places, None where a place is -1."""
        if self._names is None:
            numbers = places if self._numbers is None else self._numbers.at(places)
            if (places >= 0).all():
                return numbers
            padded = numbers.astype(object)
            padded[places < 0] = None
            return padded
        flat = [None if place < 0 else self._names[place] for place in places.reshape(-1).tolist()]
        if flat and all(isinstance(value, int) for value in flat):
            return np.array(flat, np.int64).reshape(places.shape)
        named = np.empty(len(flat), object)
        named[:] = flat
        return named.reshape(places.shape)


class Numbers:
    """Distinct numbers in order of arrival, found by binary search; new ones by dictionary."""

    def __init__(self, values: Counts) -> None:
        self.values: GrowingArray[np.int64] = GrowingArray((), np.int64)
        self.values.replace(values)
        self._order: Counts | None = None
        self._sorted: Counts = values
        self._fresh: dict[int, int] = {}

    def extend(self, values: Counts) -> None:
        """Append numbers that are not there yet."""
        start = len(self.values)
        self.values.grow_to(start + len(values))
        self.values.rows[start:] = values
        if self._order is not None:
            self._fresh.update(zip(values.tolist(), range(start, len(self.values)), strict=True))
            if len(self._fresh) > max(FRESH, start // 4):
                self._order = None

    def find(self, wanted: Counts) -> Counts:
        """Return the place of each number, -1 where it is not there."""
        if self._order is None:  # sorted on the first question, not while numbers stream in
            self._order = np.argsort(self.values.rows, kind="stable")
            self._sorted, self._fresh = self.values.rows[self._order], {}
        if len(self._order) == 0:
            return np.array([self._fresh.get(value, -1) for value in wanted.tolist()], np.int64)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._order) - 1)
        places = np.where(self._sorted[at] == wanted, self._order[at], -1)
        if self._fresh:
            for row in np.flatnonzero(places < 0).tolist():
                places[row] = self._fresh.get(int(wanted[row]), -1)
        return places

    def at(self, places: Counts) -> Counts:
        """Return the numbers at these places; anything where a place is -1."""
        return self.values.rows[np.maximum(places, 0)]


def as_ids(values: Iterable[Any]) -> list[Id]:
    """Return ids in their plain form, or say which of them cannot be one."""
    if isinstance(values, str | bytes):
        raise IdError(f"expected a list of ids, got {values!r:.80}", hint="wrap it in a list")
    if isinstance(values, np.ndarray) and values.dtype.kind == "i" and values.ndim == 1:
        plain: list[Id] = values.tolist()
        return plain
    return [as_id(value) for value in values]


def as_id(value: Any) -> Id:
    """Return one id in its plain form, or say why it cannot be one."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str) and 1 <= len(plain) <= LONGEST:
        return plain
    if isinstance(plain, int) and not isinstance(plain, bool) and -(2**63) <= plain < 2**63:
        return plain
    raise IdError(
        f"{plain!r:.80} cannot be an id",
        hint=f"an id is an int64 or a string of 1 to {LONGEST} characters",
    )
