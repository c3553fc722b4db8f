"""What a search returns, as arrays and as tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.errors import InputError


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an entry matched: what the query was compared with, and which bits agree."""

    label: Any
    """The label whose codeword was compared; None if it was the entry's own bits. An entry may have
    a label and still be compared by its bits; `Matches.labels` has its label in both cases."""
    cycle: int
    """The cycle whose bits were compared; -1 if all were."""
    bits: NDArray[np.int8]
    """(width,) +1 where query and entry agree, -1 where they differ, 0 where inactive."""
    meaning: float | None = None
    """By relevance and by meaning: how likely the entry is to have the query's label, by what was
    learned alone."""


@dataclass(frozen=True, eq=False)
class Matches:
    """Entries found for each query, best first, ties to the entry added first.

    Rows are padded if fewer than k entries were found: id None (or -1), score NaN, label None.

    >>> found = Matches(
    ...     ids=np.array([["scan-7", "scan-2"], ["scan-2", None]], object),
    ...     scores=np.array([[0.9, 0.7], [0.8, np.nan]], np.float32),
    ...     likeness=np.array([[0.6, 0.5], [0.9, np.nan]], np.float32),
    ...     labels=np.array([["seven", None], [None, None]], object),
    ...     guesses=np.array([[None, "seven"], ["one", None]], object),
    ...     counts=np.array([2, 1]),
    ...     novelty=np.array([0.2, 0.4], np.float32),
    ...     by=["relevance", "relevance"],
    ... )
    >>> table = found.to_arrow()
    >>> table["query"].to_pylist(), table["rank"].to_pylist(), table["id"].to_pylist()
    ([0, 0, 1], [1, 2, 1], ['scan-7', 'scan-2', 'scan-2'])
    >>> found.to_pandas()["label"].tolist()
    ['seven', None, None]
    """

    ids: NDArray[Any]
    """(n, k)"""
    scores: NDArray[np.float32]
    """(n, k) by relevance and by meaning the probability that the entry has the query's label; by
    likeness the cosine; by "asymmetric" and "hamming" the distance, of which the smallest is the
    best."""
    likeness: NDArray[np.float32]
    """(n, k) cosine of query and entry, estimated from codes or computed from features; NaN where
    no likeness was needed."""
    labels: NDArray[Any]
    """(n, k) the label an entry was found by, or has; None for unlabelled entries."""
    guesses: NDArray[Any]
    """(n, k) the label an unlabelled entry is taken for; None for the others."""
    counts: NDArray[np.int64]
    """(n,) entries found for each query."""
    novelty: NDArray[np.float32]
    """(n,) share of the rows that came which resembled something learned more than this query does:
    near 1 for queries unlike any label. NaN for codes."""
    by: list[str]
    """(n,) the way each query was searched by."""
    explanations: list[list[Explanation]] = field(default_factory=list)
    """One list a query, if asked for."""
    payloads: list[list[Any]] = field(default_factory=list)
    """One list a query, if asked for: the payload of each entry found, None if it has none."""
    missing: list[int] = field(default_factory=list)
    """Shards of a cluster that did not answer in time: then this is a part of what there is. Empty
    unless the cluster was opened with `partial=True`."""

    def __len__(self) -> int:
        return len(self.counts)

    def why(self, query: int, rank: int) -> str:
        """Return in a sentence why a query's match, counted from 0, stands where it does."""
        likeness, score = self.likeness[query], float(self.scores[query, rank])
        reasons = []
        if self.explanations and (meaning := self.explanations[query][rank].meaning) is not None:
            label = self.labels[query, rank]
            name = self.guesses[query, rank] if label is None else label
            if name is None:
                reasons.append("no label, and nothing was learned that it could be taken for")
            else:
                reasons.append(f"{'taken for' if label is None else 'labelled'} {name}")
                reasons.append(f"what was learned gives {meaning:.2f} that both have one label")
        if np.isfinite(near := likeness[rank]):
            others = np.delete(likeness[: self.counts[query]], rank)
            farther = np.count_nonzero(others < near)
            reasons.append(f"nearer than {farther} of the {len(others)} others (cosine {near:.2f})")
        stated = f"{score:.4g}" if self.by[query] in ("asymmetric", "hamming") else f"{score:.2f}"
        return f"{stated}: {'; '.join(reasons) or 'by its distance'}"

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table` with one row a match, padding left out.

        Columns: query (from 0), rank (from 1), id, score, likeness, label (null if unlabelled),
        guess (null if labelled), novelty of the query, by, and payload, as JSON text, if payloads
        were asked for. Ids, labels and guesses keep their type if all of them are strings, whole
        numbers, numbers, booleans or bytes; otherwise each is written as JSON text, and what JSON
        does not have by its Python `str`.
        """
        pa = _imported("pyarrow", "to_arrow")
        columns = self._columns()
        for name in ("id", "label", "guess"):
            columns[name] = _arrow_column(pa, columns[name])
        if "payload" in columns:
            columns["payload"] = pa.array(_json_texts(columns["payload"]), pa.string())
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with one row a match, padding left out.

        Columns as for `to_arrow`, but label, guess and payload hold the Python objects themselves
        (dtype object, None if there is none), and so does id unless all ids are numbers.
        """
        pandas = _imported("pandas", "to_pandas")
        columns = self._columns()
        objects = [name for name in ("id", "label", "guess", "payload") if name in columns]
        for name in objects:
            values = columns[name]
            if name != "id" or not all(isinstance(value, int) for value in values):
                columns[name] = pandas.Series(values, dtype=object)
        return pandas.DataFrame(columns)

    def _columns(self) -> dict[str, Any]:
        """Return what was found column by column, one query after another."""
        there = np.arange(self.ids.shape[1]) < self.counts[:, None]
        queries, ranks = np.nonzero(there)
        columns: dict[str, Any] = {
            "query": queries,
            "rank": ranks + 1,
            "id": self.ids[there].tolist(),
            "score": self.scores[there],
            "likeness": self.likeness[there],
            "label": self.labels[there].tolist(),
            "guess": self.guesses[there].tolist(),
            "novelty": self.novelty[queries],
            "by": [self.by[query] for query in queries.tolist()],
        }
        if self.payloads:
            columns["payload"] = [payload for row in self.payloads for payload in row]
        return columns


def _imported(package: str, caller: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise InputError(f"{caller} needs {package}", hint=f"pip install {package}") from None


def _arrow_column(pa: Any, values: list[Any]) -> Any:
    """Return values of one plain type as they are, others as JSON text."""
    kinds = {type(value) for value in values if value is not None}
    if (len(kinds) == 1 and kinds <= {str, int, float, bool, bytes}) or kinds == {int, float}:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, OverflowError, UnicodeError):
            pass  # whole numbers beyond 64 bits, or text that is no Unicode
    return pa.array(_json_texts(values), pa.string())


def _json_texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else json.dumps(value, default=str) for value in values]
