"""The index: entries with and without labels, searched by meaning, likeness or distance."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everhash.codes import Codes
from everhash.errors import OptionError
from everhash.index.arrays import Counts
from everhash.index.clustering import GROWTH, LEAST, Clustering
from everhash.index.columns import UNLABELLED
from everhash.index.explain import explain_hits
from everhash.index.export import Exporting
from everhash.index.features import Features
from everhash.index.hasher import Hasher, generation_of
from everhash.index.refresh import RefreshReport, Steps
from everhash.index.ways import prepare
from everhash.index.ways.query import EntryQuery, Query
from everhash.index.ways.way import Found, Scope, Way
from everhash.matches import Matches
from everhash.stream import one_or_more
from everhash.wire.options import RECALL, check_by, check_k, check_radius, check_recall

CODINGS = ("home", "full")


class Index(Exporting):
    """Entries of one hasher, in memory, searched exactly.

    A labelled entry is known by its label, and never goes stale. An unlabelled entry keeps the k
    bits of its home cycle, the one whose best label scores highest, as computed by the mapping of
    the last refresh; it is taken for the label whose codeword is nearest to them. Every entry has a
    likeness code, which tells entries of a label apart and never goes stale.

    If the method has no codewords, every entry keeps its bits, and labels are only names.

    With `coding="full"` an unlabelled entry keeps the bits of all cycles, as in the paper, and
    distances are divided by the number of active bits.

    Args:
        hasher: makes the codes: an `OnlineHasher`, a method of `peers`, or any other `Hasher`. The
            index never trains it.
        coding: "home" or "full".
        keep_features: whose features to keep, in half precision: of "all" entries, of "unlabelled"
            ones, so that they can be refreshed, or of "none".
        likeness: keep a likeness code for each entry: a bit a dimension, and 8 bytes.
        certify: let a refresh skip bits and homes that provably have not changed.
        features: where features are kept; in memory if None.
    """

    def __init__(
        self,
        hasher: Hasher,
        *,
        coding: str = "home",
        keep_features: str = "all",
        likeness: bool = True,
        certify: bool = True,
        features: Features | None = None,
    ) -> None:
        if coding not in CODINGS:
            raise OptionError(f"coding {coding!r} is unknown", hint="choose from home, full")
        super().__init__(
            hasher,
            coding=coding,
            keep_features=keep_features,
            likeness=likeness,
            features=features,
        )
        self.certify = certify
        self.last_refresh = RefreshReport.of_nothing(dry_run=False)

    # Searching

    def search(
        self,
        X: ArrayLike | Codes,
        k: int = 10,
        by: str = "relevance",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        recall: float = RECALL,
        explain: bool = False,
    ) -> Matches:
        """Return the k best entries of each query, ties to the entry added first.

        Args:
            X: (n, d) rows, or packed codes of the current mapping (by="hamming" only).
            k: how many, at most 1,000.
            by: "relevance" ranks by the probability that an entry has the query's label, by what
                was learned and by what is near; "meaning" by what was learned alone, then by
                likeness; "likeness" by cosine; "asymmetric" and "hamming" by the distance of codes.
            labels: only entries with one of these labels, or with this one.
            ids: only these entries, or this one.
            unlabelled: only entries without a label.
            exact: read the features of all entries that could matter, instead of trusting codes.
            recall: share of the true nearest entries that a search by likeness finds on average,
                and one by relevance beside those of the likeliest labels; above 0 and at most 1.
                It looks into as many cells as that takes; 1 finds all of them. `exact=True` is at
                least as thorough and compares features of every entry.
            explain: explain each match.
        """
        query = Query(self, X, exact=exact, recall=check_recall(recall))
        return self._nearest(query, k, by, self._scope(labels, ids, unlabelled), explain)

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
    ) -> Matches:
        """Return the best entries for entries, given by their ids; see `search`.

        An entry whose features are kept is searched by them, any other by its labels and bits.
        """
        recall = check_recall(recall)
        query = EntryQuery(self, self.find(like), exact=exact, recall=recall)
        return self._nearest(query, k, by, self._scope(labels, ids, unlabelled), explain)

    def search_radius(
        self,
        X: ArrayLike | Codes,
        r: float,
        by: str = "hamming",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        unlabelled: bool = False,
        exact: bool = False,
        explain: bool = False,
    ) -> Matches:
        """Return all entries no farther than r, nearest first.

        By relevance, meaning and likeness, all whose probability or cosine is at least r.
        """
        query = Query(self, X, exact=exact, recall=1.0)  # all that are near enough
        way = prepare(check_by(by), query)
        found = way.within(check_radius(r), self._scope(labels, ids, unlabelled))
        return self._matches(query, way, found, explain=explain)

    def _nearest(self, query: Query, k: int, by: str, scope: Scope, explain: bool) -> Matches:
        k = check_k(k)
        way = prepare(check_by(by), query)
        found = way.nearest(k, scope).widened(k)
        return self._matches(query, way, found, explain=explain)

    def _scope(
        self, labels: Iterable[Hashable] | None, ids: Iterable[Any] | None, unlabelled: bool
    ) -> Scope:
        return Scope(
            None if labels is None else self.hasher.numbers(one_or_more(labels)),
            None if ids is None else np.unique(self.find(ids)),
            unlabelled,
        )

    def _matches(self, query: Query, way: Way, found: Found, *, explain: bool) -> Matches:
        names = self.codewords.names
        guesses = np.full(found.numbers.shape, -1)
        if (unlabelled := found.numbers < 0).any():
            guesses[unlabelled] = self._guess_of(found.places[unlabelled])
        return Matches(
            ids=self.names_at(found.places),
            scores=found.scores,
            likeness=found.likeness,
            labels=names[found.numbers],
            guesses=names[guesses],
            counts=np.count_nonzero(found.places >= 0, axis=1),
            novelty=way.novelty,
            by=way.used(),
            explanations=self._explained(query, way, found) if explain else [],
        )

    def _guess_of(self, places: Counts) -> Counts:
        """Return the number of the label each entry is taken for; -1 also for place -1."""
        if len(self._table) == 0:
            return np.full(places.shape, -1)
        return np.where(places < 0, -1, self.guess_column[places]).astype(np.int64)

    def _explained(self, query: Query, way: Way, found: Found) -> Any:
        by = way.name if way.name == "hamming" else "asymmetric"
        return explain_hits(self, query.encoded(by), found, way.meant(found))

    # Refreshing

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring coded entries up to date with the newest mapping."""
        for _ in self.refresh_steps(dry_run=dry_run):
            pass
        return self.last_refresh

    def refresh_steps(self, *, dry_run: bool = False) -> Steps:
        """Refresh a slice at a time, yielding the share done; searches may run in between.

        They see the old codes until the last slice is done, then the new ones. `last_refresh` has
        the report afterwards.
        """
        self.last_refresh = RefreshReport.of_nothing(dry_run)
        if self._coded is not None and len(self._coded):
            new = self.hasher.freeze()
            yield from self._coded.refresh(new, certify=self.certify, dry_run=dry_run)
            self.last_refresh = self._coded.report
            if not dry_run:
                self.guess_again()

    @property
    def cells_due(self) -> bool:
        """Whether there are enough entries for cells, or many more than when they were made."""
        if self.keep_features != "all" or self._coder is None or not self._coder.settled:
            return False
        least = LEAST if self._cells is None else GROWTH * self._cells.made_at
        return len(self) >= max(least, LEAST)

    def cell_steps(self) -> Steps:
        """Make cells a slice at a time, yielding the share done; searches may run in between.

        They see the old cells until all entries are in new ones. Nothing changes if entries are
        given other numbers meanwhile.
        """
        self._clustering = clustering = Clustering(self)
        try:
            yield from clustering.steps()
            if clustering.done:
                self._cells = clustering.cells
        finally:
            self._clustering = None

    @property
    def refresh_due(self) -> bool:
        """Whether all functions were solved anew since coded entries were encoded."""
        mapping, keep = self.mapping, self.keep_features != "none"
        return keep and mapping is not None and mapping.generation != generation_of(self.hasher)

    def stale_bits(self) -> int:
        """Return how many stored bits have a changed function; at most so many are wrong."""
        return 0 if self._coded is None else self._coded.stale_bits(self.hasher.versions_)

    def sampled_flips(self, sample: int, rng: np.random.Generator) -> float:
        """Return how many stored bits of an entry are wrong now: the mean over a sample."""
        if self._coded is None:
            return 0.0
        return self._coded.sampled_flips(self.hasher.freeze(), sample, rng)

    def verify(self) -> int:
        """Encode every coded entry again by its mapping; return how many codes differ."""
        return 0 if self._coded is None else self._coded.verify()

    def stats(self) -> dict[str, Any]:
        """Return counts of entries, labels and bits.

        `coded` entries keep bits of their own: the unlabelled ones, or all if the method has no
        codewords. Without features they are `unrefreshable`.
        """
        coded, mapping = len(self._coded or ()), self.mapping
        unlabelled = int((self.label_column == UNLABELLED).sum())
        names = [name for name in self.hasher.labels_ if name is not None] if len(self) else []
        return {
            "entries": len(self),
            "arrived": self.arrived,
            "labelled": len(self) - unlabelled,
            "unlabelled": unlabelled,
            "coded": coded,
            "unrefreshable": coded if self.keep_features == "none" else 0,
            "labels": len(names),
            "cycles": self.hasher.n_cycles_ if len(self) else 0,
            "width": self.hasher.width_ if len(self) else 0,
            "coding": self.coding,
            "keep_features": self.keep_features,
            "likeness": self.likeness,
            "cells": 1 if self._cells is None else len(self._cells),
            "recall": 1.0 if self._cells is None else self._cells.recall,
            "stale_bits": self.stale_bits(),
            "mapping_version": None if mapping is None else mapping.version,
            "hasher_version": self.hasher.version_ if len(self) else None,
        }
