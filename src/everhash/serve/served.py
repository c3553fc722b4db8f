"""What a service asks of the collection behind it: one in this process, or on a cluster."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Sized
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from everhash.collection.api import CollectionApi


class Known(Protocol):
    """What was learned, as far as routes need it; `OnlineHasher` documents it."""

    @property
    def n_features_in_(self) -> int:
        """Features of a row."""
        ...

    @property
    def labels_(self) -> Sequence[Hashable]:
        """Labels in order of arrival; None for those that are gone."""
        ...

    @property
    def words_(self) -> Sized:
        """As many as there ever were labels."""
        ...

    @property
    def n_cycles_(self) -> int:
        """Cycles opened so far."""
        ...

    @property
    def width_(self) -> int:
        """Bits of a code."""
        ...

    def unknown(self, labels: Iterable[Hashable]) -> list[Hashable]:
        """Return those labels that have not arrived yet."""
        ...

    def numbers(self, labels: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return each label's place in `labels_`."""
        ...


class Served(CollectionApi, Protocol):
    """A collection that can be served; `Collection` documents each call."""

    @property
    def hasher(self) -> Known:
        """What was learned."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Let calls in the block see one state, where that is possible."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no refresh is under way in the background; return whether that is so."""
        ...

    def catch_up(self) -> bool:
        """Take over what others have written; return whether there is something new."""
        ...
