"""Two collections to damage, and all that can be read from one through the public interface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import Collection, OnlineHasher
from everhash.collection.loading import fresh_about
from everhash.collection.pieces import pieces_of
from everhash.index.entries import Entry
from everhash.store.schema import PAGE_BYTES
from everhash.store.store import Store
from everhash.wire.options import WAYS

GIF = b"GIF89a" + bytes(range(60))
KINDS = {"model", "lesson", "mapping", "likeness", "entries", "change", "codes", "features"}
"""Of parts a collection has, once everything has happened to it."""
COLUMNS = ("ids", "scores", "likeness", "labels", "guesses", "novelty")
"""Of what a search finds."""


def begin(path: Path, hasher: OnlineHasher, dim: int, page_size: int = PAGE_BYTES) -> Collection:
    """Make a collection with pages of another size than `everhash.create` would."""
    model = hasher.begin(dim).to_bytes()
    options: dict[str, Any] = {"coding": "home", "keep_features": "all", "certify": True}
    options["likeness"] = True
    about = {**fresh_about(options), "model_bytes": len(model)}
    store = Store.create(path, about, pieces_of("model", model), page_size=page_size)
    return Collection(store, auto_refresh=False)


def kinds(path: Path) -> set[str]:
    """Return the kinds of parts a file holds."""
    store = Store.open(path, readonly=True)
    try:
        return {key.kind for key in store.parts}
    finally:
        store.close()


def some_rows(n: int, dim: int, labels: int, seed: int = 0) -> tuple[NDArray[np.float32], Any]:
    """Return rows around as many points as there are labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(labels, size=n)
    X = rng.standard_normal((labels, dim))[y] + rng.standard_normal((n, dim)) / 2
    return X.astype(np.float32), y.tolist()


def write_small(path: Path) -> None:
    """Write a collection with every kind of part and of entry in a few kilobytes."""
    with begin(path, OnlineHasher(2, 1, learner="sgd", replay=0), 2, page_size=512) as small:
        rows = [[1.0, 2.0], [3.0, 1.0], [0.0, 5.0], [2.0, 2.0]]
        small.ingest(rows, y=["a", {"a", "b"}, "b", None], ids=["x", "y", 7, "z"])
        small.attach(["x", "y"], payloads=[1, {"b": 2}], thumbnails=[GIF, GIF])
        small.remove(["x"])
        small.label([7], ["a"], teach=False)
        small.unlabel([7], teach=False)


def write_large(path: Path) -> None:
    """Write a collection with thousands of entries and several parts of each kind."""
    X, y = some_rows(3000, 8, 12)
    with begin(path, OnlineHasher(8, 3, learner="sgd"), 8) as large:
        large.learn(X[:500], y[:500])
        large.add(X[:1500], y=[label if i % 3 else None for i, label in enumerate(y[:1500])])
        for start in range(1500, 3000, 500):
            places = range(start, start + 500)
            large.add(X[places], ids=[f"id {i}" for i in places])
        large.ingest(X[:5], y=[{label, "several"} for label in y[:5]])
        large.learn(X[:50], y[:50])
        large.attach(range(600, 1200), payloads=[{"n": label} for label in y[600:1200]])
        large.attach(range(0, 600, 10), thumbnails=[GIF] * 60)
        large.rename_label("several", "many")
        for start in range(2):
            large.remove(range(start, 600, 50))
            large.label(range(start + 10, 600, 50), y[start : start + 12])
            large.unlabel(range(start + 20, 600, 50))
            large.upsert(X[start : start + 2], [start + 31, f"id {1500 + start}"], [y[start], None])


def reading(collection: Collection) -> dict[str, Any]:
    """Return everything that can be read from a collection, in a form that compares."""
    X = some_rows(2, collection.hasher.n_features_in_, 2, seed=9)[0]
    found = [collection.search(X, 50, by, explain=True) for by in WAYS]
    found += [collection.search(X, 50, exact=True), collection.search_radius(X, 1.5)]
    stats = collection.stats()
    ids = [entry.id for entry in collection.entries()]
    return {
        "entries": [_plain(entry) for entry in collection.entries()],
        "carried": [vars(carried) for carried in collection.attachments(ids)],
        "found": [[repr(getattr(each, name).tolist()) for name in COLUMNS] for each in found],
        "why": [
            (why.cycle, why.bits.tolist())
            for each in found
            for row in each.explanations
            for why in row
        ],
        "hasher": collection.hasher.to_bytes(),
        "refresh": replace(collection.refresh(dry_run=True), seconds=0.0),
        "stats": {name: stats[name] for name in stats if name not in ("path", "bytes")},
    }


def _plain(entry: Entry) -> tuple[Any, ...]:
    code = None if entry.code is None else entry.code.tolist()
    return repr(entry.id), entry.labels, entry.home, code, entry.guess
