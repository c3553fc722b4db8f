"""The calls of a collection on a cluster that read entries, labels and counts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everhash.cluster.asking import Answers, Asker
from everhash.cluster.merging import merge_labels, merge_pages, merge_stats
from everhash.cluster.moved import Counts, pick
from everhash.cluster.placement import Table
from everhash.cluster.questions import Call, Named, ReadPage
from everhash.collection.attachments import Attachment
from everhash.collection.labels import LabelInfo
from everhash.collection.read_calls import PAGE_ENTRIES, drawn
from everhash.errors import ClosedError, UnknownIdError
from everhash.index.entries import Entry, Page, check_page
from everhash.wire.ids import IdList, as_ids, plain_ids
from everhash.wire.options import check_text


class ReadCalls:
    """Reading what shards have, by their state after one write."""

    def __init__(self, asker: Asker, name: str) -> None:
        self._asker: Asker | None = asker
        self.name = name
        self._dim: int | None = None

    @property
    def _cluster(self) -> Asker:
        if self._asker is None:
            raise ClosedError(f"{self.name} is closed", hint="{say open}")
        return self._asker

    def _each(self, name: str, *arguments: Any, **options: Any) -> list[Any]:
        """Return what a call returns on each shard."""
        call = Call(name, arguments, options)
        answers = self._cluster.read(everywhere(call))
        return list(answers.by_shard.values())

    def _named(self, name: str, ids: Any) -> list[Any]:
        """Return what a call returns for entries, each asked of the shards that may have it."""
        wanted = as_ids(drawn(ids))
        answers = self._cluster.read(
            lambda table: {s: Named(name, pick(wanted, w)) for s, w in holders(table, wanted)}
        )
        check_there(wanted, answers, answers.by_shard)
        found: list[Any] = [None] * len(wanted)
        for shard, which in holders(answers.table, wanted):
            if (told := answers.by_shard.get(shard)) is not None:
                for place, value in zip(which[told.there].tolist(), told.values, strict=True):
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
            lambda table: {s: Named("has", pick(wanted, w)) for s, w in holders(table, wanted)}
        )
        return found_among(wanted, answers, answers.by_shard)

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
        check_page(start, limit, stop)
        text = check_text(text)
        options = {"unlabelled": unlabelled, "text": text, "label": label}
        question = ReadPage(start, limit, stop, options)
        answers = self._cluster.read(everywhere(question))
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
        check_page(start, stop=stop)
        place: int | None = start
        while place is not None:
            page = self.page(place, PAGE_ENTRIES, stop, text=text, label=label)
            yield from page.entries
            place = page.next

    def labels(self, start: int = 0, stop: int | None = None) -> list[LabelInfo]:
        """Return labels in order of arrival."""
        return merge_labels(self._each("labels", start, stop))

    @property
    def dim(self) -> int:
        """Features of a row."""
        if self._dim is None:
            self._dim = int(self.stats()["dim"])
        return self._dim

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and versions, of all shards together."""
        return self._stats_of(self._cluster.read(everywhere(Call("stats", (), {}))))

    def _stats_of(self, answers: Answers) -> dict[str, Any]:
        stats, table = merge_stats(list(answers.by_shard.values())), answers.table
        stats["path"] = self.name
        stats["commit"] = stats.pop("seq")
        del stats["table"]
        stats["shards"] = len(table.shards)
        stats["moving"] = table.target is not None
        stats["missing"] = answers.missing
        return stats

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


def everywhere(question: Any) -> Callable[[Table], dict[int, Any]]:
    """Return that all shards are asked the same."""
    return lambda table: dict.fromkeys(table.shards, question)


def holders(table: Table, ids: IdList) -> list[tuple[int, Counts]]:
    """Return the shards that may have some of the ids, and which; at least one shard."""
    return list(table.holders(ids).items()) or [(table.shards[0], np.empty(0, np.int64))]


def found_among(ids: IdList, answers: Answers, told: dict[int, Any]) -> NDArray[np.bool_]:
    """Return for each id whether a shard has it, by what they have told."""
    found = np.zeros(len(ids), np.bool_)
    for shard, which in holders(answers.table, ids):
        if shard in told:
            found[which] |= told[shard].there
    return found


def check_there(ids: IdList, answers: Answers, told: dict[int, Any]) -> None:
    """Raise for the first id that no entry has."""
    missing = np.flatnonzero(~found_among(ids, answers, told))
    if len(missing) and not answers.missing:
        raise UnknownIdError(plain_ids(pick(ids, missing[:1]))[0])
