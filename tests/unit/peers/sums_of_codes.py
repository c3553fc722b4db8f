"""What the tests of LEMON and OASIS share: a stream of batches, and forged files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.learn import seeds
from everhash.learn.model_format import pack_model, unpack_model
from everhash.peers.method import Method

Doubles = NDArray[np.float64]
Labels = NDArray[np.int64]
BATCH, FEATURES, SEED = 19, 7, 4


def batches_of_rows(n_batches: int) -> Iterator[tuple[NDArray[np.float32], Labels]]:
    """Rows of unit length near the direction of their label; labels come, go, and come anew."""
    rng = np.random.default_rng(3)
    for batch in range(n_batches):
        labels = np.arange(BATCH) % (3 + batch // 2)
        labels = np.resize(labels[labels != batch % 3], BATCH)
        X = rng.standard_normal((BATCH, FEATURES)) / 2 + 2 * np.eye(FEATURES)[labels]
        yield (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), labels


def drawn_codes(batch: int, bits: int) -> Doubles:
    """Return the codes from which a batch starts."""
    rng = seeds.generator(SEED, seeds.WORDS, batch)
    return rng.choice(np.array([-1.0, 1.0]), (BATCH, bits))


def ridge_fit(X: Doubles, B: Doubles, ridge: float) -> Doubles:
    """Return (bits, d) functions fitted to all rows at once."""
    return np.asarray(np.linalg.solve(X.T @ X + ridge * np.eye(X.shape[1]), X.T @ B).T)


def write_forged(path: Path, hasher: Method, name: str, forged: Any) -> None:
    """Write the hasher's file with another array in the place of one of its own."""
    text, arrays = unpack_model(hasher.to_bytes(), "")
    path.write_bytes(pack_model(json.loads(text), {**arrays, name: np.asarray(forged)}))
