"""What people find: answers of a collection that was filled and is searched by its public calls.

`unlabelled`: a share of the entries has no label. `unseen`: a quarter of the labels is never
learned; their entries have no label, and half of the queries ask for them. In both the stream is
ingested in order, 100 rows a call; its rows are all the entries there are.

`strict`: the stream is learned, 100 rows a call; entries are other rows, and none has a label.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import everhash
from everhash.bench.baselines import Classifier
from everhash.bench.costs.codes import load_faiss
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split, hide_labels
from everhash.bench.retrieval import pieces, split_of
from everhash.bench.task import Task
from everhash.collection.collection import Collection
from everhash.errors import InputError, OptionError
from everhash.extras import install_hint
from everhash.matches import Matches
from everhash.metrics import average_precision

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]
K = 10
AT_ONCE = 100
"""Queries whose whole rankings are in memory at a time."""
WAYS = {"relevance": -2.0, "meaning": -2.0, "likeness": -2.0, "asymmetric": np.inf}
"""Ways of searching, and the radius that reaches every entry."""
TIE = 1e-6
"""Cosines that differ by less are equal: FAISS sums them in another order."""


class Asked(NamedTuple):
    """Entries in order of arrival and queries, with their true labels."""

    X: Floats
    y: Labels
    given: list[int | None]
    """The labels that the collection is told."""
    queries: Floats
    wanted: Labels


class Figures(NamedTuple):
    """One value a query."""

    first: NDArray[np.float64]
    """Whether the first answer has the query's label."""
    ten: NDArray[np.float64]
    """Share of the first ten that have it."""
    map: NDArray[np.float64]
    """Average precision of the whole ranking, averaged over the orders of ties."""

    def means(self, chosen: Any = slice(None)) -> dict[str, float]:
        """Return the means over queries."""
        return {name: float(column[chosen].mean()) for name, column in self._asdict().items()}


def measure(task: Task, data: Dataset) -> dict[str, Any]:
    """Return the figures of a task."""
    measures = {"unlabelled": _unlabelled, "unseen": _unseen, "strict": _strict}
    if task.protocol not in measures:
        raise OptionError(
            f"no protocol {task.protocol!r} for what is found",
            hint=f"expected one of: {', '.join(measures)}",
        )
    if load_faiss() is None:
        raise InputError("answers are compared with those of FAISS", hint=install_hint("bench"))
    return measures[task.protocol](task, data)


def _unlabelled(task: Task, data: Dataset) -> dict[str, Any]:
    """Return the figures of each way of searching where a share of the entries has no label."""
    split = split_of(task, data)
    hidden = np.random.default_rng(task.seed).random(len(split.stream)) < task.share
    asked = asked_of(data, split, hidden)
    taught = asked.X[~hidden], asked.y[~hidden]
    with filled(task, asked) as collection:
        return {**_sizes(asked), **_compared(collection, asked, taught, task.dataset)}


def _strict(task: Task, data: Dataset) -> dict[str, Any]:
    """Return the figures of each way of searching where no entry has a label."""
    split = split_of(task, data)
    X, y = data.X[split.stream], data.y[split.stream]
    others = split.entries[~np.isin(split.entries, split.stream)]
    asked = asked_of(data, split._replace(stream=others), np.ones(len(others), np.bool_))
    with empty(task, X.shape[1]) as collection:
        for part in pieces(len(X)):
            collection.learn(X[part], y[part].tolist())
        collection.add(asked.X)
        compared = _compared(collection, asked, (X, y), task.dataset)
    return {**_sizes(asked), "stream": len(X), **compared}


def _compared(
    collection: Collection, asked: Asked, taught: tuple[Floats, Labels], dataset: str
) -> dict[str, Any]:
    """Return the figures of each way of searching, beside cosine and logistic regression."""
    per_query = {by: judged(collection, asked, by) for by in WAYS}
    per_query["cosine"] = by_cosine(asked)
    ways = {by: figures.means() for by, figures in per_query.items()}
    model = Classifier.fitted(*taught, dataset)
    right = model.predict(asked.queries) == asked.wanted
    ways["logistic"] = {"first": float(right.mean())}
    return {"ways": ways}


def _unseen(task: Task, data: Dataset) -> dict[str, Any]:
    """Return the figures where half of the queries have labels that were never learned.

    A share of the other entries has no label either: having none says nothing about an entry.
    """
    split = split_of(_seen(task), data)
    known = np.isin(data.y, data.y[hide_labels(data.y, split, task.seed).stream])
    hidden = np.random.default_rng(task.seed).random(len(split.stream)) < task.share
    asked = asked_of(data, half_known(split, known), hidden | ~known[split.stream])
    novel = ~np.isin(asked.wanted, data.y[split.stream[known[split.stream]]])
    with filled(task, asked) as collection:
        per_query = {by: judged(collection, asked, by) for by in WAYS}
        differing = differences(collection, asked)
    per_query["cosine"] = by_cosine(asked)
    part = Asked(asked.X, asked.y, asked.given, asked.queries[novel], asked.wanted[novel])
    return {
        **_sizes(asked),
        "ways": {by: figures.means() for by, figures in per_query.items()},
        "novel": {by: figures.means(novel) for by, figures in per_query.items()},
        "differing": differing,
        "codes": codes_only(task, part),
    }


def _seen(task: Task) -> Task:
    """Return the task with a split that hides nothing."""
    return Task(**{**vars(task), "protocol": "strict"})


def asked_of(data: Dataset, split: Split, hidden: NDArray[np.bool_]) -> Asked:
    """Return the stream as entries; the collection is not told the labels of hidden ones."""
    y = data.y[split.stream]
    given = [None if hide else label for label, hide in zip(y.tolist(), hidden, strict=True)]
    return Asked(data.X[split.stream], y, given, data.X[split.queries], data.y[split.queries])


def half_known(split: Split, known: NDArray[np.bool_]) -> Split:
    """Return the split with equally many queries of known and of other labels."""
    of_known = known[split.queries]
    each = min(int(of_known.sum()), int((~of_known).sum()))
    some = (split.queries[of_known][:each], split.queries[~of_known][:each])
    return Split(split.stream, split.entries, np.concatenate(some))


def filled(task: Task, asked: Asked, keep_features: str = "all") -> Collection:
    """Return a collection in memory that has ingested the entries in order."""
    collection = empty(task, asked.X.shape[1], keep_features)
    for part in pieces(len(asked.X)):
        collection.ingest(asked.X[part], [asked.given[i] for i in part.tolist()])
    collection.wait()
    return collection


def empty(task: Task, dim: int, keep_features: str = "all") -> Collection:
    """Return a collection in memory, with the options of a task."""
    return everhash.create(
        None,
        dim,
        task.bits,
        random_state=task.seed,
        method=task.method,
        keep_features=keep_features,
    )


def judged(collection: Collection, asked: Asked, by: str, *, unlabelled: bool = False) -> Figures:
    """Return how right the answers of a way of searching are."""
    first, ten, whole = [], [], []
    for part in _parts(len(asked.queries)):
        queries, wanted = asked.queries[part], asked.wanted[part, None]
        best = collection.search(queries, K, by, unlabelled=unlabelled)
        right = asked.y[best.ids.astype(np.int64)] == wanted
        first.append(right[:, 0])
        ten.append(right.mean(axis=1))
        ranking = collection.search_radius(queries, WAYS[by], by, unlabelled=unlabelled)
        relevant = asked.y[ranking.ids.astype(np.int64)] == wanted
        whole.append(average_precision(ranks(ranking), relevant))
    return Figures(*(np.concatenate(column).astype(np.float64) for column in (first, ten, whole)))


def ranks(ranking: Matches) -> NDArray[np.int64]:
    """Return (n, m) dense ranks: entries of equal score and likeness are tied."""
    likeness = np.nan_to_num(ranking.likeness)
    moved = (np.diff(ranking.scores, axis=1) != 0) | (np.diff(likeness, axis=1) != 0)
    steps: NDArray[np.int64] = np.cumsum(moved, axis=1)
    return np.pad(steps, ((0, 0), (1, 0)))


def by_cosine(asked: Asked) -> Figures:
    """Return how right the answers of FAISS are, by cosine of the features as they came."""
    right = asked.y[flat_answers(asked.X, asked.queries)[:, :K]] == asked.wanted[:, None]
    entries, queries = _unit(asked.X), _unit(asked.queries)
    whole = [
        average_precision(-(queries[part] @ entries.T), asked.wanted[part, None] == asked.y)
        for part in _parts(len(queries))
    ]
    first, ten = right[:, 0].astype(np.float64), right.mean(axis=1)
    return Figures(first, ten, np.concatenate(whole))


def flat_answers(X: Floats, queries: Floats) -> NDArray[np.int64]:
    """Return the nearest entries by FAISS IndexFlatIP on rows of unit length."""
    index = load_faiss().IndexFlatIP(X.shape[1])
    index.add(_unit(X))
    places: NDArray[np.int64] = index.search(_unit(queries), K)[1]
    return places


def differences(collection: Collection, asked: Asked) -> dict[str, int]:
    """Return how many answers by likeness differ from those of FAISS, ties aside.

    `stored`: FAISS has the rows as the collection keeps them, in half precision. `original`: as
    they came.
    """
    found = collection.search(asked.queries, K, "likeness").ids.astype(np.int64)
    rows = {"stored": collection.features(range(len(asked.X))), "original": asked.X}
    counts = {"answers": int(found.size)}
    for name, X in rows.items():
        places = flat_answers(X, asked.queries)
        queries, entries = (_unit(part.astype(np.float64)) for part in (asked.queries, X))
        gap = (entries[found] - entries[places]) @ queries[:, :, None]
        counts[name] = int((np.abs(gap) > TIE).sum())
    return counts


def codes_only(task: Task, asked: Asked) -> dict[str, float]:
    """Return mAP of labels never learned, by likeness codes alone and by cosine.

    `among`: only entries of such labels are ranked. `all`: with those of learned labels.
    """
    hidden = np.array([label is None for label in asked.given])
    with filled(task, asked, "none") as collection:
        among = judged(collection, asked, "likeness", unlabelled=True)
        everywhere = judged(collection, asked, "likeness")
    alone = asked._replace(X=asked.X[hidden], y=asked.y[hidden])
    pairs = {"among": (among, by_cosine(alone)), "all": (everywhere, by_cosine(asked))}
    return {
        f"{where}_{name}": figures.means()["map"]
        for where, both in pairs.items()
        for name, figures in zip(("codes", "cosine"), both, strict=True)
    }


def _sizes(asked: Asked) -> dict[str, int]:
    taught = sum(label is not None for label in asked.given)
    return {"stream": taught, "ranked": len(asked.X), "asked": len(asked.queries)}


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[Any] = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + AT_ONCE) for start in range(0, n, AT_ONCE))
