"""The index: labelled entries by codeword, unlabelled ones by their bits, one exact ranking."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.codes import Codes
from everhash.errors import LabelError, OptionError, UnknownIdError
from everhash.index.entries import Entry, Page, check_page
from everhash.index.entry_query import features_at, query_like
from everhash.index.features import Features
from everhash.index.hasher import Hasher
from everhash.index.ids import Ids
from everhash.index.labels import REMOVED, UNLABELLED, EntryLabels
from everhash.index.postings import Postings
from everhash.index.query import Query
from everhash.index.ranking import Codewords, Ranking
from everhash.index.refresh import RefreshReport, Steps
from everhash.index.unlabelled import Unlabelled
from everhash.learn.mapping import FrozenMapping
from everhash.matches import Matches
from everhash.stream import Labels, as_labels, as_rows
from everhash.wire.ids import Id, IdList, as_ids

CODINGS = ("home", "full")


class Incoming(NamedTuple):
    """Entries to add that were checked: nothing about them can be refused any more."""

    rows: NDArray[np.float32]
    labels: Labels
    ids: IdList


class Index:
    """Entries of one hasher, in memory, searched exactly.

    Labelled entries are ids in one posting list a label and are ranked by their label's codeword
    under the newest mapping: they never go stale. Unlabelled entries keep the k bits of their home
    cycle, the one whose best label scores highest, under the mapping of the last refresh; queries
    meet them through that same mapping.

    Distances of labelled and unlabelled entries compare directly, since both have k active bits.
    Where the method has no codewords every entry keeps its bits, and labels are names of entries.

    With `coding="full"` an unlabelled entry keeps the bits of all cycles, as in the paper, and
    distances are divided by the number of active bits.

    Args:
        hasher: what codes are made with; the index never trains it.
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
        self.hasher = hasher
        self.coding = coding
        self.keep_features = keep_features
        self.certify = certify
        self.last_refresh = RefreshReport.of_nothing(dry_run=False)
        self._features = features
        self._ids = Ids()
        self._labels = EntryLabels()
        self._postings = Postings()
        self._coded: Unlabelled | None = None
        self._removed = 0
        self._known: Codewords | None = None

    def __len__(self) -> int:
        return len(self._ids) - self._removed

    # Writing

    def add(self, X: ArrayLike, ids: Iterable[Any] | None = None, y: Any = None) -> list[Id]:
        """Add entries and return their ids. All or nothing.

        A row with a label is stored by it, a row without by its bits. A label seen for the first
        time gets its codeword here.
        """
        return self.add_checked(self.check(X, ids, y))

    def check(self, X: ArrayLike, ids: Iterable[Any] | None, y: Any) -> Incoming:
        """Refuse entries that cannot be added, before anything has changed."""
        n_features = getattr(self.hasher, "n_features_in_", None)
        rows = as_rows(X, n_features, "this index")
        labels = as_labels(y, len(rows))
        self.hasher.check_room(labels.values)
        return Incoming(rows, labels, self._ids.check(ids, len(rows)))

    def add_checked(self, incoming: Incoming) -> list[Id]:
        """Add entries that `check` let through."""
        rows, labels, ids = incoming
        self.hasher.assign(labels.values)
        coded = np.ones(len(rows), np.bool_)
        if self.hasher.assigns_codewords:
            coded[labels.rows] = False
        first = len(self._ids)
        if coded.any():
            bare = rows if coded.all() else rows[coded]
            self._coding_now().add(bare, first + np.flatnonzero(coded))
        self._ids.extend(ids)
        self._labels.grow_to(len(self._ids))
        self._post(labels, first + labels.rows)
        return list(ids) if isinstance(ids, list) else ids.tolist()

    def label(self, ids: Iterable[Any], y: Any) -> None:
        """Give entries these labels instead of what they had. All or nothing."""
        self.relabel(*self.check_labels(ids, y))

    def check_labels(self, ids: Iterable[Any], y: Any) -> tuple[NDArray[np.int64], Labels]:
        """Refuse labels that cannot be given, before anything has changed."""
        places = self.find(ids)
        labels = as_labels(y, len(places))
        if len(np.unique(labels.rows)) < len(places):
            raise LabelError("an entry cannot lose its label", hint="remove it and add it again")
        if len(np.unique(places)) < len(places):
            raise LabelError("an id stands twice", hint="give each entry its labels once")
        self.hasher.check_room(labels.values)
        return places, labels

    def relabel(self, places: NDArray[np.int64], labels: Labels) -> None:
        """Give entries labels that `check_labels` let through."""
        self.hasher.assign(labels.values)
        if self.hasher.assigns_codewords:
            self._uncode(places)
        self._unlist(places)
        self._post(labels, places[labels.rows])

    def remove(self, ids: Iterable[Any]) -> int:
        """Forget entries and return how many there were. Their ids are never used again."""
        return self.forget(np.unique(self.find(ids)))

    def forget(self, places: NDArray[np.int64]) -> int:
        """Forget the living entries at these places, each given once."""
        self._uncode(places)
        self._unlist(places)
        self._labels.clear(places, REMOVED)
        self._removed += len(places)
        return len(places)

    def _coding_now(self) -> Unlabelled:
        """Return the unlabelled entries; while there are none, those of the newest mapping."""
        coded = self._coded
        if coded is None or (len(coded) == 0 and not coded.refreshing):
            mapping = self.hasher.freeze()
            self._coded = coded = self._unlabelled_by(mapping)
        return coded

    def _unlabelled_by(self, mapping: FrozenMapping) -> Unlabelled:
        keep = self.keep_features
        return Unlabelled(mapping, self.coding, keep_features=keep, features=self._features)

    def _post(self, labels: Labels, places: NDArray[np.int64]) -> None:
        """Enter entries into the lists of their labels."""
        numbers = self.hasher.numbers(labels.values)[labels.which]
        if self.hasher.assigns_codewords:
            self._postings.append(numbers, places)
        self._labels.give(places, numbers)

    def has_code(self, labels: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which entries keep bits of their own, given what stands for their labels."""
        coded: NDArray[np.bool_] = labels == UNLABELLED
        return coded if self.hasher.assigns_codewords else labels != REMOVED

    def coded_among(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those places whose entries keep bits of their own."""
        coded: NDArray[np.int64] = places[self.has_code(self._labels.rows[places])]
        return coded

    def _uncode(self, places: NDArray[np.int64]) -> None:
        """Take entries out of the coded ones."""
        if self._coded is not None:
            self._coded.remove(self.coded_among(places))

    def _unlist(self, places: NDArray[np.int64]) -> None:
        """Take entries out of the lists of their labels."""
        for place in places.tolist() if self.hasher.assigns_codewords else ():
            for number in self._labels.of(place):
                self._postings.remove(number, place)

    def find(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Return the places of living entries; an id that none has is an error."""
        places = self._ids.places(ids)
        gone = np.flatnonzero(self._labels.rows[places] == REMOVED)
        if len(gone):
            raise UnknownIdError(self._ids.names(places[gone[:1]]).tolist()[0])
        return places

    # Reading

    def features(self, ids: Iterable[Any]) -> NDArray[np.float32]:
        """Return (n, d) features of unlabelled entries, as they are stored: in half precision."""
        return features_at(self, self.find(ids))

    def get(self, ids: Iterable[Any]) -> list[Entry]:
        """Return what is known of entries."""
        names = self.hasher.labels_ if len(self) else []
        places = self.find(ids)
        return [self._entry(place, names) for place in places.tolist()]

    @property
    def arrived(self) -> int:
        """Entries that have ever been added."""
        return len(self._ids)

    def has(self, ids: Iterable[Any]) -> NDArray[np.bool_]:
        """Return for each id whether it is taken: by an entry, or by one that was removed."""
        taken: NDArray[np.bool_] = self._ids.find(as_ids(ids)) >= 0
        return taken

    def page(
        self, start: int = 0, limit: int = 100, stop: int | None = None, *, unlabelled: bool = False
    ) -> Page:
        """Return entries in order of arrival: those from number `start` up to `stop`.

        Args:
            start: number of the first one that may be on it, counting those that were removed.
            limit: entries of the page at most.
            stop: number of the first one that may not be on it any more.
            unlabelled: only those without a label.
        """
        check_page(start, limit)
        end = self.arrived if stop is None else min(stop, self.arrived)
        places = self._labels.living(start, end, limit + 1, unlabelled=unlabelled)
        names = self.hasher.labels_ if len(self) else []
        found = [self._entry(place, names) for place in places[:limit]]
        return Page(found, places[limit] if len(places) > limit else None)

    def _entry(self, place: int, names: list[Hashable]) -> Entry:
        name = self._ids.names(np.array([place])).tolist()[0]
        labels = tuple(names[number] for number in self._labels.of(place))
        if self._coded is not None and len(self.coded_among(np.array([place]))):
            return Entry(name, labels, *self._coded.code_of(place))
        return Entry(name, labels, None, None)

    def _split(
        self, places: NDArray[np.int64], only: set[int] | None
    ) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
        """Return (place, label number) pairs of entries by codeword, and places of the coded."""
        coded = self.coded_among(places)
        listed = [
            (place, number)
            for place in np.setdiff1d(places, coded, assume_unique=True).tolist()
            for number in self._labels.of(place)
            if only is None or number in only
        ]
        if only is not None:
            wanted = [not only.isdisjoint(self._labels.of(place)) for place in coded.tolist()]
            coded = coded[np.array(wanted, np.bool_)]
        return listed, coded

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
            explain: say for each match why.
        """
        ranking = self._ranking(X, distance)
        return ranking.nearest(k, labels, ids, explain=explain)

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

        One whose features are kept is asked by them, any other by its code: a labelled one by its
        label's codeword, which only the asymmetric distance can compare across cycles.
        """
        query = query_like(self, self.find(entries), distance)
        return self._ranked(query).nearest(k, labels, ids, explain=explain)

    def search_radius(
        self, X: ArrayLike | Codes, r: float, distance: str = "hamming", *, explain: bool = False
    ) -> Matches:
        """Return all entries no farther than r, nearest first."""
        return self._ranking(X, distance).within(r, explain=explain)

    def _codewords(self) -> Codewords:
        """Return the labels' words, taken again only when there are more of them."""
        if self._known is None or len(self._known.names) - 1 != len(self.hasher.words_):
            self._known = Codewords.of(self.hasher)
        return self._known

    def _ranking(self, X: ArrayLike | Codes, distance: str) -> Ranking:
        return self._ranked(Query.of(X, self.hasher, self.mapping, distance, self.coding))

    def _ranked(self, query: Query) -> Ranking:
        coded = self._coded if self.mapping is not None else None
        return Ranking(self, query, self._postings, coded)

    # Refreshing

    def refresh(self, *, dry_run: bool = False) -> RefreshReport:
        """Bring unlabelled entries up to date with the newest mapping."""
        for _ in self.refresh_steps(dry_run=dry_run):
            pass
        return self.last_refresh

    def refresh_steps(self, *, dry_run: bool = False) -> Steps:
        """Refresh a slice at a time, yielding the share done; searches go on in between.

        They see the old codes until the last slice is done, then the new ones. `last_refresh` holds
        the report afterwards.
        """
        self.last_refresh = RefreshReport.of_nothing(dry_run)
        if self._coded is not None and len(self._coded):
            new = self.hasher.freeze()
            yield from self._coded.refresh(new, certify=self.certify, dry_run=dry_run)
            self.last_refresh = self._coded.report

    @property
    def mapping(self) -> FrozenMapping | None:
        """The mapping unlabelled entries were encoded with; None while there are none."""
        return self._coded.mapping if self._coded is not None and len(self._coded) else None

    @property
    def coded_by(self) -> FrozenMapping | None:
        """The mapping that new unlabelled entries would join, had they not to be the first."""
        return None if self._coded is None else self._coded.mapping

    def stale_bits(self) -> int:
        """Stored bits whose function has changed since: an upper bound on what is wrong."""
        return 0 if self._coded is None else self._coded.stale_bits(self.hasher.versions_)

    def sampled_flips(self, sample: int, rng: np.random.Generator) -> float:
        """Return how many stored bits an entry are wrong by now, on a sample of entries."""
        if self._coded is None:
            return 0.0
        return self._coded.sampled_flips(self.hasher.freeze(), sample, rng)

    def verify(self) -> int:
        """Encode every unlabelled entry afresh under its mapping; return how many codes differ."""
        return 0 if self._coded is None else self._coded.verify()

    def stats(self) -> dict[str, Any]:
        """Return counts an operator wants to see."""
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
