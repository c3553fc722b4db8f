"""What an index should hold and answer, by brute force from the definitions of its ways."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import OptionError
from everhash.index.cells import unit
from everhash.index.features import Pages, StoredFeatures
from everhash.index.likeness import Likeness
from everhash.index.relevance import NEAR, Pairs, relevance, usual_rows
from everhash.learn.mapping import FrozenMapping
from everhash.learn.stream_hasher import StreamHasher

Row = NDArray[np.float32]


class Scope(NamedTuple):
    """Which entries are searched, as `Index.search` takes it."""

    labels: list[Any] | None = None
    ids: list[Any] | None = None
    unlabelled: bool = False


class Expected(NamedTuple):
    """Entries in order, with their scores and cosines."""

    by: str
    names: list[Any]
    scores: Row
    likeness: Row


class Model:
    """Entries in plain Python: id -> row as it is stored, id -> labels; ids in order of arrival."""

    def __init__(self, hasher: StreamHasher, coding: str, keep: str, *, likeness: bool) -> None:
        self.hasher, self.coding, self.keep, self.likeness = hasher, coding, keep, likeness
        self.labels: dict[Any, tuple[Any, ...]] = {}
        self.rows: dict[Any, Row] = {}
        self.mapping: FrozenMapping | None = None
        self.coder = Likeness.draw(hasher.n_features_in_)

    # What happens to entries

    def add(self, names: list[Any], rows: Row, labels: list[tuple[Any, ...]]) -> None:
        self.remove([name for name in names if name in self.rows])
        stored = StoredFeatures.of(rows).rows
        self.coder.meet(stored)
        bare = not self.coded
        self.rows |= dict(zip(names, stored, strict=True))
        self.labels |= {name: of for name, of in zip(names, labels, strict=True) if of}
        self._code(bare)

    def remove(self, names: list[Any]) -> None:
        for name in names:
            del self.rows[name]
            self.labels.pop(name, None)

    def label(self, names: list[Any], label: Any) -> None:
        self.labels |= dict.fromkeys(names, (label,))

    def unlabel(self, names: list[Any]) -> None:
        bare = not self.coded
        for name in names:
            self.labels.pop(name, None)
        self._code(bare)

    def refresh(self) -> None:
        if self.coded and self.keep != "none":
            self.mapping = self.hasher.freeze()

    def compact(self) -> None:
        """Rows of removed entries do not count as first rows any more."""
        if not self.coder.settled:
            self.coder.first = self._table(list(self.rows))

    def _code(self, bare: bool) -> None:
        """While no entry has bits of its own, the next one gets them from the newest mapping."""
        if bare and self.coded:
            self.mapping = self.hasher.freeze()

    @property
    def coded(self) -> list[Any]:
        """Entries with bits of their own."""
        only_names = not self.hasher.assigns_codewords
        return [name for name in self.rows if only_names or name not in self.labels]

    @property
    def kept(self) -> set[Any]:
        """Entries whose features are kept."""
        return {"all": {*self.rows}, "unlabelled": {*self.coded}, "none": set()}[self.keep]

    # Codes and guesses

    def codes(self) -> dict[Any, tuple[int, NDArray[np.bool_]]]:
        """Home and bits of all entries that keep their own, from scratch."""
        mapping, names = self.mapping, self.coded
        if mapping is None or not names:
            return {}
        z = mapping.measure(self._table(names))
        bits = mapping.margins(z) > 0
        if self.coding == "full":
            return {name: (0, bits[i]) for i, name in enumerate(names)}
        several = len(mapping.words) and len(mapping.functions) > 1
        homes = np.zeros(len(names), np.int64)
        if several:
            homes = mapping.label_cycles[mapping.scores(z).argmax(axis=1)]
        mine = bits.reshape(len(names), -1, self.hasher.bits)[np.arange(len(names)), homes]
        return dict(zip(names, zip(homes.tolist(), mine, strict=True), strict=True))

    def guesses(self) -> dict[Any, tuple[int, int]]:
        """Number of the label each entry is taken for, and the distance of its codeword."""
        found: dict[Any, tuple[int, int]] = {}
        if self.mapping is None or not self.hasher.assigns_codewords:
            return found
        words, cycles = self.mapping.words > 0, self.mapping.label_cycles
        gone = np.array([name is None for name in self.hasher.labels_], np.bool_)[: len(words)]
        for name, (home, bits) in self.codes().items():
            table = bits.reshape(-1, self.hasher.bits)
            mine = table[cycles] if self.coding == "full" else np.tile(table, (len(words), 1))
            far = (mine != words).sum(axis=1)
            usable = ~gone if self.coding == "full" else ~gone & (cycles == home)
            if usable.any():
                far = np.where(usable, far, 2**30)
                found[name] = (int(far.argmin()), int(far.min()))
        return found

    def guessed_labels(self) -> dict[Any, Any]:
        """The label each unlabelled entry is taken for."""
        return {name: self.hasher.labels_[number] for name, (number, _) in self.guesses().items()}

    # Searching

    def inside(self, scope: Scope) -> list[Any]:
        """Entries of a scope in order of arrival."""
        wanted = {*self.rows} if scope.ids is None else {*scope.ids}
        if scope.unlabelled:
            wanted -= {*self.labels}
        if scope.labels is not None:
            having = {n for n, of in self.labels.items() if not {*scope.labels}.isdisjoint(of)}
            wanted &= having
        return [name for name in self.rows if name in wanted]

    def search(
        self, x: Row, by: str, scope: Scope, *, exact: bool = False, k: int | None = None
    ) -> Expected:
        """Return the first k entries of a scope in order, or all."""
        names = self.inside(scope)
        if by == "relevance":
            if self.likeness or self.keep == "all":
                return self._relevant(x, scope, exact, k)
            return self.search(x, "meaning", scope, exact=exact, k=k)._replace(by=by)
        if by == "likeness":
            scores = likeness = self._cosines(x, names, scope)
        elif by == "meaning":
            scores, likeness = self._chances(x, names, scope), self._likeness(x, names, exact)
        else:
            scores = self._distances(x, names, by, scope)
            likeness = np.full(len(names), np.nan, np.float32)
        best = scores if by in ("hamming", "asymmetric") else -scores
        order = np.lexsort((np.arange(len(names)), -np.nan_to_num(likeness), best))
        order = order[:k]
        names, scores, likeness = [names[i] for i in order], scores[order], likeness[order]
        if by == "meaning" and self.keep == "all":  # estimates choose, cosines are shown
            likeness = self._exact(x, names)
            order = np.lexsort((self._arrivals(names), -likeness, -scores))
            names, scores, likeness = [names[i] for i in order], scores[order], likeness[order]
        return Expected(by, names, scores, likeness)

    def _arrivals(self, names: list[Any]) -> NDArray[np.int64]:
        known = {name: i for i, name in enumerate(self.rows)}
        return np.array([known[name] for name in names], np.int64)

    def _relevant(self, x: Row, scope: Scope, exact: bool, k: int | None) -> Expected:
        """Entries found by meaning and by likeness, judged together."""
        wide = None if k is None else max(k, NEAR)
        found = self.search(x, "meaning", scope, exact=exact, k=wide)
        pool = dict(zip(found.names, found.likeness.tolist(), strict=True))
        if k is not None:
            near = self.search(x, "likeness", scope, exact=exact, k=wide)
            pool |= dict(zip(near.names, near.likeness.tolist(), strict=True))
        names = [name for name in self.rows if name in pool]
        guesses, shares = self.guesses(), self.hasher.posterior(x[None]).probabilities[0]
        own = [guesses.get(name, (-1, 0))[0] for name in names]
        for i, name in enumerate(names):
            if name in self.labels:
                own[i] = min(self._searched(name, scope), key=lambda n: (-shares[n], n))
        counts = getattr(self.hasher, "label_counts_", None)
        likeness = np.array([pool[name] for name in names], np.float32)
        pairs = Pairs(
            self._chances(x, names, scope)[None],
            likeness[None],
            np.array([[name in self.labels for name in names]], np.bool_),
            np.array([own], np.int64),
            self._arrivals(names)[None],
            usual_rows(counts),
        )
        scores = relevance(pairs)[0]
        order = np.lexsort((np.arange(len(names)), -likeness, -scores))[:k]
        ordered = [names[i] for i in order]
        return Expected("relevance", ordered, scores[order], likeness[order])

    def _chances(self, x: Row, names: list[Any], scope: Scope) -> Row:
        """The probability that each entry has the query's label."""
        shares, trust = self.hasher.posterior(x[None]).probabilities[0], self.hasher.trust_
        scores, guesses = np.zeros(len(names), np.float32), self.guesses()
        for i, name in enumerate(names):
            if name in self.labels:
                scores[i] = shares[self._searched(name, scope)].max()
            elif name in guesses:
                scores[i] = shares[guesses[name][0]] * trust[guesses[name][1]]
        return scores

    def _searched(self, name: Any, scope: Scope) -> NDArray[np.int64]:
        """The numbers of an entry's labels, of those that are searched."""
        wanted = scope.labels
        return self.hasher.numbers(n for n in self.labels[name] if wanted is None or n in wanted)

    def _likeness(self, x: Row, names: list[Any], exact: bool) -> Row:
        if exact:
            self._need_features(names)
            return self._exact(x, names)
        return self._estimates(x, names)

    def _cosines(self, x: Row, names: list[Any], scope: Scope) -> Row:
        """Cosines of the features where all of a scope are kept, else those of the codes."""
        if self.keep == "all" or (self.keep == "unlabelled" and scope.unlabelled):
            return self._exact(x, names)
        if not self.likeness:
            raise OptionError("no likeness")
        return self._estimates(x, names)

    def _need_features(self, names: list[Any]) -> None:
        if not {*names} <= self.kept:
            raise OptionError("no features")

    def _table(self, names: list[Any]) -> Row:
        return np.array([self.rows[name] for name in names], np.float32).reshape(
            -1, self.hasher.n_features_in_
        )

    def _exact(self, x: Row, names: list[Any]) -> Row:
        rows = self._table(names)
        halves = StoredFeatures.of(rows).halves.view(np.uint16)
        pages = Pages(halves, np.arange(len(rows), dtype=np.int32))
        cosines: Row = pages.cosines(unit(x[None]), np.arange(len(rows)))[0]
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1) * np.linalg.norm(x)
        np.testing.assert_allclose(cosines, rows @ x / np.maximum(lengths, 1e-9), atol=1e-5)
        return cosines

    def _estimates(self, x: Row, names: list[Any]) -> Row:
        if not self.likeness:
            return np.full(len(names), np.nan, np.float32)
        codes = self.coder.encode(self._table(names))
        found: Row = self.coder.estimates(codes, self.coder.queries(x[None]))[0]
        return found

    def _distances(self, x: Row, names: list[Any], kind: str, scope: Scope) -> Row:
        full, bits, codes = self.coding == "full", self.hasher.bits, self.codes()
        newest, codewords = self.hasher.margins(x[None])[0], self.hasher.codewords_
        if self.mapping is not None:
            older = self.mapping.margins(self.mapping.measure(x[None]))[0]
        found = []
        for name in names:
            if name in codes:
                home, code = codes[name]
                part = older if full else older.reshape(-1, bits)[home]
                far, active = _compared(part, np.where(code, 1, -1), kind), len(part)
            else:
                words = codewords[self._searched(name, scope)]
                far, active = min(_compared(newest, word, kind) for word in words), bits
            found.append(far / active if full else far)
        return np.array(found, np.float32)


def _compared(margins: Row, word: NDArray[Any], kind: str) -> float:
    if kind == "hamming":
        return float((((margins > 0) != (word > 0)) & (word != 0)).sum())
    return -float(margins.astype(np.float64) @ word)
