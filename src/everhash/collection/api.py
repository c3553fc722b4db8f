"""What every collection can do, wherever it is: in this process, behind a service, on a cluster."""

from __future__ import annotations

import os
from collections.abc import Generator, Hashable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.collection.attachments import Attachment
from everhash.collection.labels import LabelInfo
from everhash.collection.learning import LabelReport
from everhash.index.entries import Entry, Page
from everhash.index.refresh import RefreshReport
from everhash.matches import Matches
from everhash.wire.ids import Id
from everhash.wire.options import RECALL


@runtime_checkable
class CollectionApi(Protocol):
    """The calls that `Collection` and `RemoteCollection` have in common.

    Same names, same arguments, same answers, same errors; tests hold them to it call by call.
    `Collection` documents each.
    """

    # Learning and adding

    def learn(self, X: ArrayLike, y: Any = None) -> None:
        """Move the mapping by rows and their labels."""
        ...

    def forget(self, X: ArrayLike, y: Any) -> None:
        """Take back rows that were learned."""
        ...

    def add(
        self,
        X: ArrayLike,
        ids: Iterable[Any] | None = None,
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Add entries without learning from them."""
        ...

    def ingest(
        self,
        X: ArrayLike,
        y: Any = None,
        ids: Iterable[Any] | None = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Learn from rows and add them."""
        ...

    def upsert(
        self,
        X: ArrayLike,
        ids: Iterable[Any],
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
        teach: bool = True,
    ) -> list[Id]:
        """Add entries, in place of those that have the same ids."""
        ...

    def update(self, ids: Iterable[Any], X: ArrayLike, *, teach: bool = True) -> None:
        """Give entries other features."""
        ...

    def attach(
        self,
        ids: Iterable[Any],
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> None:
        """Give entries payloads or thumbnails."""
        ...

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove entries."""
        ...

    # Labels

    def label(
        self,
        ids: Iterable[Any],
        y: Any,
        *,
        teach: bool = True,
        expect: Any = None,
        new: bool = True,
    ) -> LabelReport:
        """Give entries labels, and learn from it."""
        ...

    def unlabel(self, ids: Iterable[Any], *, teach: bool = True, expect: Any = None) -> int:
        """Take the labels of entries away."""
        ...

    def rename_label(self, label: Hashable, to: Hashable) -> None:
        """Give a label another name."""
        ...

    def merge_labels(self, label: Hashable, into: Hashable) -> int:
        """Make two labels one."""
        ...

    def drop_label(self, label: Hashable, *, unused: bool = False) -> int:
        """Forget a label."""
        ...

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival."""
        ...

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest label of each row."""
        ...

    # Searching

    def search(
        self,
        X: ArrayLike,
        k: int = 10,
        by: str = "relevance",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        recall: float = RECALL,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the k best entries of each query."""
        ...

    def search_like(
        self,
        like: Iterable[Any],
        k: int = 10,
        by: str = "relevance",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        recall: float = RECALL,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the best entries for entries, given by their ids."""
        ...

    def search_radius(
        self,
        X: ArrayLike,
        r: float,
        by: str = "hamming",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return all entries no farther than r."""
        ...

    # Reading

    def __len__(self) -> int: ...

    def __contains__(self, value: Any) -> bool: ...

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether an entry has it."""
        ...

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return id, labels and code of entries."""
        ...

    def page(
        self,
        start: int = 0,
        limit: int = 100,
        stop: int | None = None,
        *,
        unlabelled: bool = False,
        text: str | None = None,
        label: Hashable = None,
    ) -> Page:
        """Return entries in order of arrival, and where to go on."""
        ...

    def entries(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        text: str | None = None,
        label: Hashable = None,
    ) -> Iterator[Entry]:
        """Yield entries in order of arrival."""
        ...

    def attachments(self, ids: Iterable[Any]) -> list[Attachment]:
        """Return payloads and thumbnails of entries."""
        ...

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping."""
        ...

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Begin a refresh and yield the share done now and then; return the report."""
        ...

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and versions."""
        ...

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now to a new file."""
        ...

    def close(self) -> None:
        """Close the collection."""
        ...
