"""A collection on a cluster: the same calls, the same answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.cluster.answers import ADDING, read_answer
from everhash.cluster.asking import Answers, Asker
from everhash.cluster.effects import pick
from everhash.cluster.merging import (
    asks_for_something_else,
    join_queries,
    merge_found,
    merge_labels,
    merge_pages,
    merge_reports,
    merge_stats,
)
from everhash.cluster.placement import Table
from everhash.cluster.questions import (
    NEVER,
    THERE,
    Call,
    LastRefresh,
    Look,
    Named,
    ReadPage,
    Search,
)
from everhash.collection.attachments import Attachment
from everhash.collection.labels import LabelInfo
from everhash.collection.learning import LabelReport
from everhash.collection.read_calls import PAGE_ENTRIES, drawn
from everhash.errors import ClosedError, UnknownIdError
from everhash.index.entries import Entry, Page, check_page
from everhash.index.refresh import RefreshReport
from everhash.matches import Matches
from everhash.stream import as_rows
from everhash.wire.ids import Id, IdList, as_ids, plain_ids
from everhash.wire.options import check_text

Counts = NDArray[np.int64]


class ClusterCollection:
    """A collection whose entries are spread over shards; see `everhash.cluster.create` and `open`.

    It has the calls of `Collection`, which documents them, with the same answers and errors. Beside
    those a call raises `ServiceError` if the lead or a shard cannot be reached for `patience`
    seconds; a write may then have been made, as a whole.
    """

    def __init__(self, asker: Asker, name: str) -> None:
        self._asker: Asker | None = asker
        self.name = name
        self._dim: int | None = None

    @property
    def _cluster(self) -> Asker:
        if self._asker is None:
            raise ClosedError(f"{self.name} is closed", hint="{say open}")
        return self._asker

    # Writing

    def _write(self, name: str, *arguments: Any, **options: Any) -> Any:
        call = Call(name, tuple(map(drawn, arguments)), {k: drawn(v) for k, v in options.items()})
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

    def label(self, ids: Iterable[Any], y: Any, *, teach: bool = True) -> LabelReport:
        """Give entries labels, and learn from it."""
        report: LabelReport = self._write("label", ids, y, teach=teach)
        return report

    def unlabel(self, ids: Iterable[Any], *, teach: bool = True) -> int:
        """Take the labels of entries away; return how many had one."""
        return int(self._write("unlabel", ids, teach=teach))

    def rename_label(self, label: Hashable, to: Hashable) -> None:
        """Give a label another name."""
        self._write("rename_label", label, to)

    def merge_labels(self, label: Hashable, into: Hashable) -> int:
        """Make two labels one; return how many entries had the first."""
        return int(self._write("merge_labels", label, into))

    def drop_label(self, label: Hashable) -> int:
        """Forget a label; return how many entries had it."""
        return int(self._write("drop_label", label))

    # Growing

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

    # Searching

    def search(
        self,
        X: ArrayLike,
        k: int = 10,
        by: str = "meaning",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the k best entries of each query."""
        options = {"labels": drawn(labels), "unlabelled": unlabelled, "exact": exact}
        options |= {"explain": explain, "payloads": payloads}
        if by == "auto":
            return self._search_auto(X, k, drawn(ids), options)
        return self._search(Call("search", (X, k, by), options), drawn(ids), k)

    def search_like(
        self,
        like: Iterable[Any],
        k: int = 10,
        by: str = "meaning",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
        payloads: bool = False,
    ) -> Matches:
        """Return the best entries for entries, given by their ids."""
        return self.search(
            self.features(like),
            k,
            by,
            labels=labels,
            ids=ids,
            unlabelled=unlabelled,
            exact=exact,
            explain=explain,
            payloads=payloads,
        )

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
        options = {"labels": drawn(labels), "unlabelled": unlabelled, "exact": exact}
        options |= {"explain": explain, "payloads": payloads}
        if by == "auto":
            return self._search_auto(X, None, drawn(ids), options, r)
        return self._search(Call("search_radius", (X, r, by), options), drawn(ids), None)

    def _search(self, call: Call, ids: Any, k: int | None) -> Matches:
        """Search all shards, each within those of the ids that it has."""
        if ids is None:
            answers = self._cluster.read(_everywhere(Search(call)))
        else:
            wanted = as_ids(ids)
            answers = self._cluster.read(lambda table: _by_holder(table, wanted, call))
            _check_there(wanted, answers, lambda told: told.status)
        return merge_found(list(answers.by_shard.values()), k, answers.missing)

    def _search_auto(
        self, X: ArrayLike, k: int | None, ids: Any, options: dict[str, Any], r: float = 0.0
    ) -> Matches:
        """Choose by meaning or likeness for each query, as one machine does."""

        def part(rows: Any, by: str) -> Matches:
            name, number = ("search_radius", r) if k is None else ("search", k)
            return self._search(Call(name, (rows, number, by), options), ids, k)

        part(X, "auto")  # for its errors: whatever is wrong is wrong here too
        rows = as_rows(X, self.dim, "this index")
        told = self._cluster.read(_everywhere(Look(rows)))
        novel = asks_for_something_else(list(told.by_shard.values()))
        parts = [
            (np.flatnonzero(chosen), part(rows[chosen], by))
            for chosen, by in ((~novel, "meaning"), (novel, "likeness"))
            if chosen.any()
        ]
        return join_queries(parts, len(rows)) if parts else part(rows, "meaning")

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest label of each row."""
        call = Call("predict", (X,), {})
        answers = self._cluster.read(lambda table: {table.shards[0]: call})
        found: NDArray[Any] = next(iter(answers.by_shard.values()))
        return found

    # Reading

    def _each(self, name: str, *arguments: Any, **options: Any) -> list[Any]:
        """Return what a call returns on each shard."""
        call = Call(name, arguments, options)
        answers = self._cluster.read(_everywhere(call))
        return list(answers.by_shard.values())

    def _named(self, name: str, ids: Any) -> list[Any]:
        """Return what a call returns for entries, each asked of the shards that may have it."""
        wanted = as_ids(drawn(ids))
        answers = self._cluster.read(
            lambda table: {s: Named(name, pick(wanted, w)) for s, w in _holders(table, wanted)}
        )
        _check_there(wanted, answers, lambda told: told.status)
        found: list[Any] = [None] * len(wanted)
        for shard, which in _holders(answers.table, wanted):
            told = answers.by_shard[shard]
            there = which[told.status == THERE].tolist()
            for place, value in zip(there, told.values, strict=True):
                found[place] = value
        return found

    def __len__(self) -> int:
        return int(sum(part["entries"] for part in self._each("stats")))

    def __contains__(self, value: Any) -> bool:
        return bool(self.has([value])[0])

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether an entry has it."""
        wanted = as_ids(drawn(ids))
        answers = self._cluster.read(
            lambda table: {s: Named("has", pick(wanted, w)) for s, w in _holders(table, wanted)}
        )
        there: NDArray[np.bool_] = _status(wanted, answers, lambda told: told.status) == THERE
        return there

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return id, labels and code of entries."""
        return self._named("get", ids)

    def attachments(self, ids: Iterable[Any]) -> list[Attachment]:
        """Return payloads and thumbnails of entries."""
        return self._named("attachments", ids)

    def features(self, ids: Iterable[Any]) -> NDArray[np.float32]:
        """Return (n, d) features of entries, as they are stored: in half precision."""
        rows = self._named("features", ids)
        return np.array(rows, np.float32).reshape(len(rows), self.dim)

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
        check_page(start, limit)
        text = check_text(text)
        options = {"unlabelled": unlabelled, "text": text, "label": label}
        question = ReadPage(start, limit, stop, options)
        answers = self._cluster.read(_everywhere(question))
        parts = list(answers.by_shard.values())
        arrived = max((part.arrived for part in parts), default=0)
        end = arrived if stop is None else min(stop, arrived)
        return merge_pages(parts, limit, by_text=text is not None, arrived=end)

    def entries(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        text: str | None = None,
        label: Hashable = None,
    ) -> Iterator[Entry]:
        """Yield entries in order of arrival."""
        check_page(start)
        place: int | None = start
        while place is not None:
            page = self.page(place, PAGE_ENTRIES, stop, text=text, label=label)
            yield from page.entries
            place = page.next

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival."""
        return merge_labels(self._each("labels", start, stop))

    # Refreshing, and the whole

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping."""
        if dry_run:
            return merge_reports(self._each("refresh", dry_run=True))
        self._write("refresh")
        answers = self._cluster.read(_everywhere(LastRefresh()))
        return merge_reports(list(answers.by_shard.values()))

    def refresh_steps(self, *, dry_run: bool = False) -> Generator[float, None, RefreshReport]:
        """Refresh; all shards do so at once, so there is one step."""
        report = self.refresh(dry_run=dry_run)
        yield 1.0
        return report

    @property
    def dim(self) -> int:
        """Features of a row."""
        if self._dim is None:
            self._dim = int(self.stats()["dim"])
        return self._dim

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and versions, of all shards together."""
        return self._stats_of(self._cluster.read(_everywhere(Call("stats", (), {}))))

    def _stats_of(self, answers: Answers) -> dict[str, Any]:
        stats, table = merge_stats(list(answers.by_shard.values())), answers.table
        stats["path"] = self.name
        stats["commit"] = stats.pop("seq")
        del stats["table"]
        stats["shards"] = len(table.shards)
        stats["moving"] = table.target is not None
        stats["missing"] = answers.missing
        return stats

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Copy the collection as it is now to a new file."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the cluster, which goes on."""
        asker, self._asker = self._asker, None
        if asker is not None:
            asker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<everhash.ClusterCollection {self.name}>"


def _everywhere(question: Any) -> Callable[[Table], dict[int, Any]]:
    """Return that all shards are asked the same."""
    return lambda table: dict.fromkeys(table.shards, question)


def _holders(table: Table, ids: IdList) -> list[tuple[int, Counts]]:
    """Return the shards that may have some of the ids, and which; at least one shard."""
    return list(table.holders(ids).items()) or [(table.shards[0], np.empty(0, np.int64))]


def _by_holder(table: Table, ids: IdList, call: Call) -> dict[int, Any]:
    """Return that each shard searches those of the ids that it may have."""
    holders = dict(_holders(table, ids))
    nobody = np.empty(0, np.int64)
    return {s: Search(call, pick(ids, holders.get(s, nobody))) for s in table.shards}


def _status(ids: IdList, answers: Answers, of: Callable[[Any], Counts]) -> Counts:
    """Return for each id whether an entry has it, or had it, on any shard."""
    status = np.full(len(ids), NEVER)
    for shard, which in _holders(answers.table, ids):
        if shard in answers.by_shard:
            status[which] = np.maximum(status[which], of(answers.by_shard[shard]))
    return status


def _check_there(ids: IdList, answers: Answers, of: Callable[[Any], Counts]) -> None:
    """Raise for the first id that no entry has had, or else for the first that none has now."""
    status = _status(ids, answers, of)
    for missing in (status == NEVER, status != THERE):
        if missing.any() and not answers.missing:
            raise UnknownIdError(plain_ids(pick(ids, np.flatnonzero(missing)[:1]))[0])
