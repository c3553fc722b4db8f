"""Ids: what users call their entries. An int64 or a string each, stable, never used again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import DuplicateIdError, IdError, UnknownIdError

Id = int | str
LONGEST = 64
"""characters of an id"""


class Ids:
    """Ids in order of arrival; an entry's place in it is how the index knows it.

    While all ids are those given by default, 0, 1, 2, …, nothing is stored at all.

    >>> ids = Ids()
    >>> ids.add(None, 2), ids.add(["cat"], 1), ids.places(["cat", 1]).tolist()
    ([0, 1], ['cat'], [2, 1])
    """

    def __init__(self) -> None:
        self._count = 0
        self._next = 0
        self._named: list[Id] | None = None
        self._places: dict[Id, int] = {}

    def __len__(self) -> int:
        return self._count

    def check(self, ids: Iterable[Any] | None, n: int) -> list[Id]:
        """Return the ids that n new entries would have, or say why they cannot have them."""
        if ids is None:
            return list(range(self._next, self._next + n))
        wanted = [as_id(value) for value in ids]
        if len(wanted) != n:
            raise IdError(f"{n} rows but {len(wanted)} ids", hint="give one id a row")
        seen: set[Id] = set()
        for value in wanted:
            if value in seen or value in self:
                raise DuplicateIdError(value)
            seen.add(value)
        return wanted

    def add(self, ids: Iterable[Any] | None, n: int) -> list[Id]:
        """Give ids to n new entries and return them."""
        wanted = self.check(ids, n)
        if ids is not None and self._named is None:
            self._named = list(range(self._count))
            self._places = {value: place for place, value in enumerate(self._named)}
        if self._named is not None:
            self._places.update(zip(wanted, range(self._count, self._count + n), strict=True))
            self._named += wanted
        numbers = [value for value in wanted if isinstance(value, int)]
        self._next = max(self._next, max(numbers, default=-1) + 1)
        self._count += n
        return wanted

    def __contains__(self, value: Id) -> bool:
        if self._named is None:
            return isinstance(value, int) and 0 <= value < self._count
        return value in self._places

    def places(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Return the place of each id."""
        found = []
        for value in (as_id(value) for value in ids):
            if value not in self:
                raise UnknownIdError(value)
            found.append(value if self._named is None else self._places[value])
        return np.array(found, np.int64)

    def names(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return the ids at these places, None where a place is -1."""
        if self._named is None:
            if (places >= 0).all():
                return places
            padded = places.astype(object)
            padded[places < 0] = None
            return padded
        flat = [None if place < 0 else self._named[place] for place in places.reshape(-1).tolist()]
        if flat and all(isinstance(value, int) for value in flat):
            return np.array(flat, np.int64).reshape(places.shape)
        named = np.empty(len(flat), object)
        named[:] = flat
        return named.reshape(places.shape)


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
