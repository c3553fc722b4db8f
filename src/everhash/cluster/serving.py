"""A cluster as a service needs it: with what was learned at hand, and news of other writers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.cluster.collection import ClusterCollection
from everhash.cluster.questions import All, Call
from everhash.errors import UnknownNameError

LABELS_AND_STATS = All((Call("labels", (), {}), Call("stats", (), {})))


@dataclass(frozen=True)
class Learned:
    """What a cluster has learned, as far as routes need it; `OnlineHasher` has the same names."""

    labels_: list[Hashable]
    n_features_in_: int
    n_cycles_: int
    width_: int

    @property
    def words_(self) -> list[Hashable]:
        """As many as there are labels."""
        return self.labels_

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {label: number for number, label in enumerate(self.labels_)}

    def unknown(self, labels: Iterable[Hashable]) -> list[Hashable]:
        """Return those labels that have not arrived yet."""
        return [label for label in labels if label not in self._numbers]

    def numbers(self, labels: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return each label's place in `labels_`."""
        wanted = list(labels)
        for label in self.unknown(wanted):
            raise UnknownNameError(f"label {label!r} has not been seen", hint="{say labels}")
        return np.array([self._numbers[label] for label in wanted], np.int64)


class ServedCluster(ClusterCollection):
    """A collection on a cluster, to be served.

    Args:
        collection: to serve.
        storage: the cluster's folder, which stats call its path.
    """

    def __init__(self, collection: ClusterCollection, storage: Path) -> None:
        super().__init__(collection._cluster, collection.name)
        self._storage = storage
        self._learned: tuple[int, Learned] | None = None
        self._commit: int | None = None

    @property
    def hasher(self) -> Learned:
        """What was learned; asked for again after each write that this client knows of."""
        asker = self._cluster
        if self._learned is None or self._learned[0] != asker.seq:
            told = asker.read(lambda table: {table.shards[0]: LABELS_AND_STATS})
            self._learned = asker.seq, _learned(*next(iter(told.by_shard.values())))
        return self._learned[1]

    def held(self) -> AbstractContextManager[None]:
        """Hold nothing: each call sees one write, and others go on in between."""
        return nullcontext()

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - nothing is waited for
        """Return that no refresh is under way in the background: shards refresh within a write."""
        return True

    def catch_up(self) -> bool:
        """Return whether somebody has written since the last time."""
        before, self._commit = self._commit, self.stats()["commit"]
        return before != self._commit

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and versions; the path is that of the storage."""
        return {**super().stats(), "path": str(self._storage)}


def _learned(labels: list[Any], stats: dict[str, Any]) -> Learned:
    """Return what one shard says of labels and codes; a shard without entries counts no cycles."""
    cycles = stats["cycles"] or 1 + max((info.cycle for info in labels), default=0)
    names = [info.label for info in labels]
    return Learned(names, stats["dim"], cycles, cycles * stats["bits"])
