"""A collection on a cluster: the same calls, the same answers."""

from __future__ import annotations

import os
from collections.abc import Generator, Hashable, Iterable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from everhash.cluster.answers import ADDING, read_answer
from everhash.cluster.merging import merge_reports
from everhash.cluster.placement import Table
from everhash.cluster.questions import Call, LastRefresh
from everhash.cluster.read_calls import everywhere
from everhash.cluster.search_calls import SearchCalls
from everhash.cluster.snapshot import take_snapshot
from everhash.collection.learning import LabelReport
from everhash.collection.read_calls import drawn
from everhash.index.refresh import RefreshReport
from everhash.wire.ids import Id, as_ids, plain_ids


class ClusterCollection(SearchCalls):
    """A collection whose entries are spread over shards; see `everhash.cluster.create` and `open`.

    It has the calls of `Collection`, which documents them, with the same answers and errors. Beside
    those a call raises `ServiceError` if the lead or a shard cannot be reached for `patience`
    seconds; a write may then have been made, as a whole.
    """

    def _write(self, name: str, *arguments: Any, **options: Any) -> Any:
        given = {k: drawn(v) for k, v in options.items()}
        if "thumbnails" in given:
            given["thumbnails"] = _sendable(given["thumbnails"])
        call = Call(name, tuple(map(drawn, arguments)), given)
        answer = read_answer(call, self._cluster.write(call))
        if name in ADDING and answer is None:
            return plain_ids(as_ids(options["ids"]))
        return answer

    def learn(self, X: ArrayLike, y: Any = None) -> None:
        """Move the mapping by rows and their labels; index nothing."""
        self._write("learn", X, y)

    def forget(self, X: ArrayLike, y: Any) -> None:
        """Take back rows that were learned."""
        self._write("forget", X, y)

    def add(
        self,
        X: ArrayLike,
        ids: Iterable[Any] | None = None,
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Add entries without learning from them; return their ids."""
        ids = drawn(ids)
        attached = {"payloads": payloads, "thumbnails": thumbnails}
        found: list[Id] = self._write("add", X, ids=ids, y=y, **attached)
        return found

    def ingest(
        self,
        X: ArrayLike,
        y: Any = None,
        ids: Iterable[Any] | None = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Learn from rows and add them; return their ids."""
        ids = drawn(ids)
        attached = {"payloads": payloads, "thumbnails": thumbnails}
        found: list[Id] = self._write("ingest", X, ids=ids, y=y, **attached)
        return found

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
        """Add entries, in place of those that have the same ids; return the ids."""
        ids = drawn(ids)
        attached = {"payloads": payloads, "thumbnails": thumbnails, "teach": teach}
        found: list[Id] = self._write("upsert", X, ids=ids, y=y, **attached)
        return found

    def update(self, ids: Iterable[Any], X: ArrayLike, *, teach: bool = True) -> None:
        """Give entries other features."""
        self._write("update", ids, X, teach=teach)

    def attach(
        self,
        ids: Iterable[Any],
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> None:
        """Give entries payloads or thumbnails."""
        self._write("attach", ids, payloads=payloads, thumbnails=thumbnails)

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove entries and return how many there were."""
        return int(self._write("remove", ids))

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
        report: LabelReport = self._write("label", ids, y, teach=teach, expect=expect, new=new)
        return report

    def unlabel(self, ids: Iterable[Any], *, teach: bool = True, expect: Any = None) -> int:
        """Take the labels of entries away; return how many had one."""
        return int(self._write("unlabel", ids, teach=teach, expect=expect))

    def rename_label(self, label: Hashable, to: Hashable) -> None:
        """Give a label another name."""
        self._write("rename_label", label, to)

    def merge_labels(self, label: Hashable, into: Hashable) -> int:
        """Make two labels one; return how many entries had the first."""
        return int(self._write("merge_labels", label, into))

    def drop_label(self, label: Hashable, *, unused: bool = False) -> int:
        """Forget a label; return how many entries had it."""
        return int(self._write("drop_label", label, unused=unused))

    def grow(self, shards: int) -> Generator[int, None, None]:
        """Add shards, up to so many, and move entries to them; yield how many have moved so far.

        Searches and writes go on. Whoever calls `rebalance` goes on where this was left.
        """
        self._write("grow", shards)
        return self.rebalance()

    def rebalance(self, step: int = 1000) -> Generator[int, None, None]:
        """Move entries to the shards that were added, some at a time; yield how many have moved."""
        moved = 0
        while self._table().target is not None:
            answer = self._write("move", step)
            moved += answer["moved"]
            yield moved

    def _table(self) -> Table:
        self._cluster.forget_table()
        return self._cluster.table()

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping."""
        if dry_run:
            return merge_reports(self._each("refresh", dry_run=True))
        self._write("refresh")
        answers = self._cluster.read(everywhere(LastRefresh()))
        return merge_reports(list(answers.by_shard.values()))

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Refresh; all shards do so at once, so there is one step."""
        report = self.refresh(dry_run=dry_run)
        yield 1.0
        return report

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now to a new file, which `everhash.open` opens.

        All entries pass through the memory of this process; writes wait until they are read.
        """
        take_snapshot(self._cluster, Path(path))


def _sendable(thumbnails: Any) -> Any:
    """Return thumbnails as they can be sent: a view of memory of this process cannot."""
    if isinstance(thumbnails, list | tuple):
        return [_sendable(one) for one in thumbnails]
    return bytes(thumbnails) if isinstance(thumbnails, memoryview) else thumbnails
