"""The index: labelled entries by codeword, unlabelled ones by their bits, one exact ranking."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everhash.codes import Codes
from everhash.errors import OptionError
from everhash.index.entry_query import query_like
from everhash.index.features import Features
from everhash.index.hasher import Hasher
from everhash.index.labels import UNLABELLED
from everhash.index.queries import EncodedQueries
from everhash.index.ranking import Codewords, Ranking
from everhash.index.refresh import RefreshReport, Steps
from everhash.index.stored import StoredEntries
from everhash.learn.mapping import FrozenMapping
from everhash.matches import Matches

CODINGS = ("home", "full")


class Index(StoredEntries):
    """Entries of one hasher, in memory, searched exactly.

    Labelled entries are ids in one posting list a label and are ranked by their label's codeword
    under the newest mapping: they never go stale. Unlabelled entries keep the k bits of their home
    cycle, the one whose best label scores highest, as computed by the mapping of the last refresh;
    queries are compared with them under that same mapping.

    Distances of labelled and unlabelled entries compare directly, since both have k active bits.
    If the method has no codewords, every entry keeps its bits, and labels are only names.

    With `coding="full"` an unlabelled entry keeps the bits of all cycles, as in the paper, and
    distances are divided by the number of active bits.

    Args:
        hasher: makes the codes: an `OnlineHasher`, a method of `peers`, or any other `Hasher`. The
            index never trains it.
        coding: "home" or "full".
        keep_features: keep features (half precision) so that entries can be refreshed. Without them
            codes are read-only and stay with the mapping they were made with.
        certify: let a refresh skip bits and homes that provably have not changed.
        features: where features are kept; in memory if None.
    """

    def __init__(
        self,
        hasher: Hasher,
        *,
        coding: str = "home",
        keep_features: bool = True,
        certify: bool = True,
        features: Features | None = None,
    ) -> None:
        if coding not in CODINGS:
            raise OptionError(f"coding {coding!r} is unknown", hint="choose from home, full")
        super().__init__(hasher, coding=coding, keep_features=keep_features, features=features)
        self.certify = certify
        self.last_refresh = RefreshReport.of_nothing(dry_run=False)
        self._known: Codewords | None = None

    # Searching

    def search(
        self,
        X: ArrayLike | Codes,
        k: int = 10,
        distance: str = "asymmetric",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        explain: bool = False,
    ) -> Matches:
        """Return the k nearest entries of each query, ties to the entry added first.

        Args:
            X: (n, d) rows, or packed codes of the current mapping (Hamming distance only).
            k: how many, at most 1,000.
            distance: "asymmetric" (the query's margins count) or "hamming".
            labels: only entries with one of these labels.
            ids: only these entries.
            explain: explain each match.
        """
        return self._ranking(X, distance).nearest(k, labels, ids, explain=explain)

    def search_like(
        self,
        entries: Iterable[Any],
        k: int = 10,
        distance: str = "asymmetric",
        *,
        labels: Iterable[Hashable] | None = None,
        ids: Iterable[Any] | None = None,
        explain: bool = False,
    ) -> Matches:
        """Return the k nearest entries of entries, given by their ids; see `search`.

        An entry whose features are kept is searched by them, any other by its code: a labelled one
        by its label's codeword, which only the asymmetric distance can compare across cycles.
        """
        queries = query_like(self, self.find(entries), distance)
        return self._ranked(queries).nearest(k, labels, ids, explain=explain)

    def search_radius(
        self, X: ArrayLike | Codes, r: float, distance: str = "hamming", *, explain: bool = False
    ) -> Matches:
        """Return all entries no farther than r, nearest first."""
        return self._ranking(X, distance).within(r, explain=explain)

    def _ranking(self, X: ArrayLike | Codes, distance: str) -> Ranking:
        return self._ranked(EncodedQueries.of(X, self.hasher, self.mapping, distance, self.coding))

    def _ranked(self, queries: EncodedQueries) -> Ranking:
        coded = self._coded if self.mapping is not None else None
        return Ranking(self, queries, self._codewords(), coded)

    def _codewords(self) -> Codewords:
        """Return the labels' codewords, read again only if there are more labels than before."""
        if self._known is None or len(self._known.names) - 1 != len(self.hasher.words_):
            self._known = Codewords.of(self.hasher)
        return self._known

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

    @property
    def mapping(self) -> FrozenMapping | None:
        """The mapping that coded entries were encoded by; None while there are none."""
        return self._coded.mapping if self._coded is not None and len(self._coded) else None

    @property
    def coded_by(self) -> FrozenMapping | None:
        """The mapping of the last coded entries, even if all of them were removed."""
        return None if self._coded is None else self._coded.mapping

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
        codewords. Without features they are `read_only`.
        """
        coded, mapping = len(self._coded or ()), self.mapping
        unlabelled = int((self._labels.rows == UNLABELLED).sum())
        return {
            "entries": len(self),
            "arrived": self.arrived,
            "labelled": len(self) - unlabelled,
            "unlabelled": unlabelled,
            "coded": coded,
            "read_only": 0 if self.keep_features else coded,
            "labels": len(self.hasher.labels_) if len(self) else 0,
            "cycles": self.hasher.n_cycles_ if len(self) else 0,
            "width": self.hasher.width_ if len(self) else 0,
            "coding": self.coding,
            "stale_bits": self.stale_bits(),
            "mapping_version": None if mapping is None else mapping.version,
            "hasher_version": self.hasher.version_ if len(self) else None,
        }
