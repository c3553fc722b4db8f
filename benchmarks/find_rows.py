"""Synthetic rows for `find_speed.py`, and the collections and FAISS indexes that hold them.

Rows are synthetic from here on. 1,000 labels stand in 100 groups: a label's centre is its group's
plus half of one of its own, a row is the centre plus noise whose spectrum falls as 1/sqrt(i), as
that of embeddings does. The scale of the noise was chosen so that about .8 of the ten nearest of
200,000 rows by cosine have the query's label, as on CLINC150; of 1 M rows, which are denser, it is
more. Of the settings that were tried, those with a flatter spectrum had meaning behind cosine: how
right answers are is measured on real data, by `everhash bench run found`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import everhash
from everhash import Collection, OnlineHasher

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
Search = Callable[[Floats], Counts]
DIM, BITS, K, CALL, SEED = 384, 32, 10, 10_000, 0
GROUPS, OWN, NOISE = 100, 0.5, 1.3
HIDDEN = 0.3
"""Share of entries without a label."""
CELLS = 1024
"""Of FAISS's inverted files."""


class Rows:
    """Rows of some labels; the same seed and calls give the same rows."""

    def __init__(self, labels: int, seed: int = SEED) -> None:
        self._rng = rng = np.random.default_rng(seed)
        groups = rng.standard_normal((GROUPS, DIM), np.float32)
        own = rng.standard_normal((labels, DIM), np.float32)
        self._centres = groups[np.arange(labels) % GROUPS] + np.float32(OWN) * own
        falling = np.arange(1, DIM + 1, dtype=np.float32) ** -0.5
        scale = np.float32(NOISE) * falling / np.sqrt((falling**2).mean())
        axes, _ = np.linalg.qr(rng.standard_normal((DIM, DIM), np.float32))
        self._noise = scale[:, None] * axes  # features are no axes of the noise, as in embeddings

    def draw(self, n: int) -> tuple[Floats, Counts]:
        """Return n rows and their labels."""
        y = self._rng.integers(0, len(self._centres), n)
        noise = self._rng.standard_normal((n, DIM), np.float32)
        return self._centres[y] + noise @ self._noise, y

    def calls(self, n: int) -> Iterator[tuple[Floats, Counts, list[int | None]]]:
        """Yield n rows in calls: rows, true labels, and the labels that are given."""
        for start in range(0, n, CALL):
            X, y = self.draw(min(CALL, n - start))
            hidden = self._rng.random(len(y)) < HIDDEN
            given = [
                None if hide else label for label, hide in zip(y.tolist(), hidden, strict=True)
            ]
            yield X, y, given


def taught(path: Path | None, rows: Rows, n: int, *, features: int, keep: str) -> Collection:
    """Return an empty collection that has learned n rows."""
    hasher = OnlineHasher(BITS, features=features, random_state=SEED)
    collection = everhash.create(path, DIM, hasher=hasher, keep_features=keep, durability="none")
    for start in range(0, n, CALL):
        X, y = rows.draw(min(CALL, n - start))
        collection.learn(X, y.tolist())
    return collection


def unit(X: Floats) -> Floats:
    """Return rows at unit length."""
    scaled: Floats = X / np.linalg.norm(X, axis=1, keepdims=True)
    return scaled


def indexes(sample: Floats, *, hnsw: bool) -> dict[str, Any]:
    """Return empty FAISS indexes, trained on a sample of rows at unit length."""
    product = faiss.METRIC_INNER_PRODUCT
    made: dict[str, Any] = {
        "IndexFlatIP": faiss.IndexFlatIP(DIM),
        "IndexIVFFlat": faiss.IndexIVFFlat(faiss.IndexFlatIP(DIM), DIM, CELLS, product),
        "IndexRaBitQ": faiss.IndexRaBitQ(DIM, product),
        "IndexIVFRaBitQ": faiss.IndexIVFRaBitQ(faiss.IndexFlatIP(DIM), DIM, CELLS, product),
    }
    if hnsw:
        made["IndexHNSWFlat"] = faiss.IndexHNSWFlat(DIM, 32, product)
    for index in made.values():
        index.train(sample)
    return made


SWEEPS = {
    "IndexIVFFlat": ("nprobe", (1, 4, 16, 64)),
    "IndexIVFRaBitQ": ("nprobe", (1, 4, 16, 64)),
    "IndexHNSWFlat": ("efSearch", (16, 32, 64, 128, 256)),
}


def searches(made: dict[str, Any]) -> dict[str, Search]:
    """Return a search for each FAISS index and setting."""
    found: dict[str, Search] = {}
    for name, index in made.items():
        option, values = SWEEPS.get(name, ("", (0,)))
        for value in values:
            found[f"{name} {option}={value}" if option else name] = _search(index, option, value)
    return found


def _search(index: Any, option: str, value: int) -> Search:
    def search(queries: Floats) -> Counts:
        if option == "nprobe":
            index.nprobe = value
        elif option == "efSearch":
            index.hnsw.efSearch = value
        places: Counts = index.search(unit(queries), K)[1]
        return places

    return search


def by(collection: Collection, way: str) -> Search:
    """Return the search of a collection; entries are numbered in order of arrival."""
    return lambda queries: collection.search(queries, K, way).ids.astype(np.int64)
