"""Finding entries by a text in their id or payload, some entries at a time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from everhash.collection.attachments import places_with_text
from everhash.errors import StoreError
from everhash.index.index import Index
from everhash.store.store import Store
from everhash.wire.ids import Id

LOOKS = 1000
"""Entries whose payloads are read at a time; other calls have their turn in between."""


@dataclass
class Wanted:
    """Which entries a listing has; see `Collection.page`."""

    stop: int | None
    text: str | None
    label: Hashable
    unlabelled: bool = False
    _numbering: object = None
    """That of the first entries; see `Index.numbering`."""

    def check_numbers(self, index: Index) -> None:
        """Raise if the listing has begun by other numbers than entries have now."""
        self._numbering = self._numbering or index.numbering
        if index.numbering is not self._numbering:
            raise StoreError(
                "the collection was compacted meanwhile, which gave entries other numbers",
                hint="begin again",
            )


class Looked(NamedTuple):
    """Entries to look at, in order of arrival."""

    places: list[int]
    ids: list[Id]
    end: int
    """Number of the first entry that is not in the listing any more."""

    @classmethod
    def at(cls, index: Index, start: int, wanted: Wanted) -> Looked:
        """Return the next entries that may be wanted."""
        stop, label, unlabelled = wanted.stop, wanted.label, wanted.unlabelled
        places = index.places_from(start, LOOKS, stop, unlabelled=unlabelled, label=label)
        ids = index.names_at(np.array(places, np.int64)).tolist()
        return cls(places, ids, index.arrived if stop is None else min(stop, index.arrived))

    def having(self, text: str, store: Store) -> list[int]:
        """Return the places of those that have a text in their id or payload."""
        folded, number = text.casefold(), text.strip()
        having = set(places_with_text(store, self.places, text))
        return [
            place
            for place, name in zip(self.places, self.ids, strict=True)
            if place in having
            or (folded in name.casefold() if isinstance(name, str) else str(name) == number)
        ]

    def next(self, found: list[int], limit: int) -> int | None:
        """Return where to go on after those that were found; None if nothing is left."""
        if len(found) == limit:
            after = found[-1] + 1
        else:
            after = self.places[-1] + 1 if len(self.places) == LOOKS else self.end
        return after if after < self.end else None
