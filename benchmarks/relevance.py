"""Make the trees that judge relevance, and show how they fare on sets that they have not seen.

    python benchmarks/relevance.py --out docs/results   # leave one set out: the page
    python benchmarks/relevance.py --write              # fit on all sets: the file of the product

A collection is filled by public calls in situations from one labelled row a label to all labelled,
half of the labels unknown, and no entry labelled. The pairs that a search would judge are described
by `everhash.index.relevance.features`; the trees learn which have the same label.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sklearn.ensemble import HistGradientBoostingClassifier

import everhash
from everhash.bench import datasets
from everhash.bench.machine import describe_machine
from everhash.index.relevance import FILE, RISING, Pairs, features
from everhash.index.ways.query import Query
from everhash.index.ways.relevance import ByRelevance
from everhash.index.ways.way import Scope

SETS = (
    *("digits", "clinc150", "cifar10-cnn", "caltech256-cnn", "fashion-mnist"),
    *("cifar10-gist", "caltech256-gist"),
)
GIVEN = {
    "1 + 30": (1, 30),
    "2 + 30": (2, 30),
    "5 + 30": (5, 30),
    "10 + 30": (10, 30),
    "28 + 12": (28, 12),
    "40 + 0": (40, 0),
}
"""Rows of each label that have it, and that do not."""
HALF, NONE = "half unknown", "none labelled"
SITUATIONS = (*GIVEN, HALF, NONE)
ROWS = 40
"""Rows of each label, in all, where `GIVEN` does not say."""
QUERIES, TAUGHT_BY = 600, 300
"""Queries of each collection, and those of them that trees learn from."""
AT_ONCE = 100
HOW = "python benchmarks/relevance.py --out docs/results"
OTHERS = ("likeness", "meaning")
BY = (*OTHERS, "relevance")
K = 10
TREES: dict[str, Any] = {
    "max_iter": 120,
    "max_leaf_nodes": 16,
    "learning_rate": 0.08,
    "min_samples_leaf": 200,
    "l2_regularization": 1.0,
    "early_stopping": False,
    "random_state": 0,
}
Floats = NDArray[np.float32]


class Judged(NamedTuple):
    """One collection and its queries."""

    name: str
    situation: str
    rows: Floats
    """(q, m, f) what trees are asked about each pair."""
    right: NDArray[np.bool_]
    """(q, m) whether it has the query's label."""
    there: NDArray[np.bool_]
    cosines: Floats
    """(q, m) which decide between equal ones."""
    others: dict[str, tuple[float, float]]
    """Share right, first and among ten, by cosine and by meaning."""


class Filled(NamedTuple):
    """Which rows are entries, which of them have labels, and which are only learned."""

    learned: NDArray[np.int64]
    entries: NDArray[np.int64]
    given: list[int | None]


class Compared(NamedTuple):
    """One set in one situation: shares right, first and among ten, by each way of searching."""

    name: str
    situation: str
    figures: dict[str, tuple[float, float]]
    error: float

    @property
    def gap(self) -> tuple[float, float]:
        """How much better relevance is than the better of the others."""
        first, ten = (
            self.figures["relevance"][i] - max(self.figures[by][i] for by in OTHERS) for i in (0, 1)
        )
        return first, ten


def chosen(y: NDArray[Any], pool: NDArray[Any], situation: str, rng: Any) -> Filled:
    """Return the entries of a situation, in random order."""
    labels = np.unique(y[pool])
    known = set(rng.permutation(labels)[: len(labels) // 2].tolist())
    learned: list[int] = []
    entries: list[int] = []
    given: list[int | None] = []
    for label in labels.tolist():
        mine = rng.permutation(pool[y[pool] == label]).tolist()
        if situation in GIVEN:
            some, more = GIVEN[situation]
            part, named = mine[: some + more], some
        elif situation == HALF:
            part, named = mine[:ROWS], ROWS // 2 if label in known else 0
        else:
            learned += mine[:ROWS]
            part, named = mine[ROWS : 2 * ROWS], 0
        entries += part
        given += [label if i < named else None for i in range(len(part))]
    order = rng.permutation(len(entries))
    return Filled(
        rng.permutation(np.array(learned, np.int64)),
        np.array(entries)[order],
        [given[i] for i in order.tolist()],
    )


def judge(name: str, situation: str, seed: int) -> Judged:
    """Fill a collection and describe the pairs of its queries."""
    data, rng = datasets.load(name), np.random.default_rng(seed)
    named = np.flatnonzero(data.y >= 0)
    asked = named[data.is_query[named]]
    if not len(asked):
        asked = rng.choice(named, min(2000, len(named) // 3), replace=False)
    pool = np.setdiff1d(named, asked)
    asked = rng.choice(asked, min(QUERIES, len(asked)), replace=False)
    filled = chosen(data.y, pool, situation, rng)
    with everhash.create(None, data.X.shape[1], random_state=seed) as col:
        for part in _parts(len(filled.learned)):
            col.learn(data.X[filled.learned[part]], data.y[filled.learned[part]].tolist())
        for part in _parts(len(filled.entries)):
            col.ingest(data.X[filled.entries[part]], filled.given[part])
        col.wait()
        wanted, true = data.y[asked][:, None], data.y[filled.entries]
        others = {}
        for by in OTHERS:
            right = true[col.search(data.X[asked], K, by).ids.astype(np.int64)] == wanted
            others[by] = float(right[:, 0].mean()), float(right.mean())
        pairs = _pairs(col, data.X[asked])
    there = pairs.places >= 0
    right = (true[pairs.places] == wanted) & there
    return Judged(name, situation, features(pairs), right, there, pairs.likeness, others)


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + AT_ONCE) for start in range(0, n, AT_ONCE))


def _pairs(col: everhash.Collection, X: Floats) -> Pairs:
    with col._in_memory() as state:
        index = state.index
        way = ByRelevance(Query(index, X, exact=False, recall=0.98))
        return way.pairs(way.pool(K, Scope()))


def fitted(judged: list[Judged]) -> HistGradientBoostingClassifier:
    """Return trees that have learned from these collections."""
    parts = [
        (each.rows[:TAUGHT_BY], each.right[:TAUGHT_BY], each.there[:TAUGHT_BY]) for each in judged
    ]
    X = np.concatenate([rows[there] for rows, _, there in parts])
    y = np.concatenate([right[there] for _, right, there in parts])
    rising = [int(i in RISING) for i in range(X.shape[1])]
    return HistGradientBoostingClassifier(monotonic_cst=rising, **TREES).fit(X, y)


def scored(trees: HistGradientBoostingClassifier, one: Judged) -> tuple[float, float, Floats]:
    """Return the share right of the first answer and of ten, and the probabilities of all pairs."""
    scores = np.full(one.there.shape, -np.inf)
    scores[one.there] = trees.predict_proba(one.rows[one.there])[:, 1]
    order = np.lexsort((-one.cosines, -scores), axis=1)[:, :K]
    right = np.take_along_axis(one.right, order, axis=1)
    return float(right[:, 0].mean()), float(right.mean()), scores


def as_arrays(trees: HistGradientBoostingClassifier) -> dict[str, NDArray[Any]]:
    """Return trees as `kernels.forest` takes them; the first one is a leaf, where all begin."""
    nodes: list[tuple[int, float, int]] = [(0, float(trees._baseline_prediction[0, 0]), 0)]
    roots = [0]
    for (tree,) in trees._predictors:
        roots.append(len(nodes))
        _append(nodes, tree.nodes, 0)
    features, numbers, rights = zip(*nodes, strict=True)
    return {
        "features": np.array(features, np.int32),
        "numbers": np.array(numbers, np.float32),
        "rights": np.array(rights, np.int32),
        "roots": np.array(roots, np.int32),
    }


def _append(nodes: list[tuple[int, float, int]], tree: Any, place: int) -> None:
    """Append a node and those below it, the left ones first."""
    node = tree[place]
    if node["is_leaf"]:
        nodes.append((0, float(node["value"]), 0))
        return
    mine = len(nodes)
    nodes.append((int(node["feature_idx"]), float(node["num_threshold"]), 0))
    _append(nodes, tree, int(node["left"]))
    nodes[mine] = (*nodes[mine][:2], len(nodes))
    _append(nodes, tree, int(node["right"]))


def collections(seeds: int) -> list[Judged]:
    """Return all sets in all situations."""
    judged = []
    for name in SETS:
        for situation in SITUATIONS:
            judged += [judge(name, situation, seed) for seed in range(seeds)]
        print(name, flush=True)
    return judged


def compared(judged: list[Judged]) -> list[Compared]:
    """Return how trees fare on each set that have learned from the others."""
    found = []
    for name in SETS:
        trees = fitted([one for one in judged if one.name != name])
        for situation in SITUATIONS:
            mine = [one for one in judged if (one.name, one.situation) == (name, situation)]
            ours = [scored(trees, one) for one in mine]
            stated = np.concatenate(
                [scores[one.there] for one, (*_, scores) in zip(mine, ours, strict=True)]
            )
            right = np.concatenate([one.right[one.there] for one in mine])
            figures = {"relevance": _mean([each[:2] for each in ours])}
            figures |= {by: _mean([one.others[by] for one in mine]) for by in OTHERS}
            found.append(Compared(name, situation, figures, float(stated.mean() - right.mean())))
            print(found[-1], flush=True)
    return found


def _mean(shares: list[tuple[float, float]]) -> tuple[float, float]:
    first, ten = np.mean(shares, axis=0).tolist()
    return first, ten


def page(found: list[Compared], seeds: int) -> str:
    """Return the page of the results."""
    gaps = np.array([one.gap for one in found])
    (first, ten), (worst_first, worst_ten) = gaps.mean(axis=0), gaps.min(axis=0)
    lines = [
        f"| {one.name} | {one.situation} | {' | '.join(_both(one.figures[by]) for by in BY)} | "
        f"{one.gap[0]:+.3f} / {one.gap[1]:+.3f} | {one.error:+.3f} |"
        for one in found
    ]
    return f"""<!-- made by: {HOW} -->
# Relevance on sets that it has not seen

A search by relevance, the default, judges what was found by meaning and by likeness with boosted
trees. They have learned from the sets of this page; here each set is searched with trees that have
learned from the other six alone.

{describe_machine()}. Seeds: 0 to {seeds - 1}; {QUERIES} queries a seed at most.

Situations: labelled + unlabelled rows of each label; half of the labels unknown, with
{ROWS // 2} labelled and {ROWS // 2} unlabelled rows of each known one; or {ROWS} rows of each label
learned, and {ROWS} others, unlabelled, as entries.

Shares right: the first answer / the first ten. Gap: to the better of likeness, which is what a
vector store finds, and meaning. Error: relevance stated on average, less the share right, over all
pairs that were judged.

| set | situation | {" | ".join(BY)} | gap | error |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}

Mean gap {first:+.4f} / {ten:+.4f}, the worst {worst_first:+.3f} / {worst_ten:+.3f}.
"""


def _both(shares: tuple[float, float]) -> str:
    return f"{shares[0]:.3f} / {shares[1]:.3f}"


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    judged = collections(options.seeds)
    if options.write:
        save_file(as_arrays(fitted(judged)), FILE)
    if options.out:
        text = page(compared(judged), options.seeds)
        (options.out / "relevance.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
