"""Ways to learn one stream: our kernel, NumPy, scikit-learn, and the bare matrix product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.kernels.reference import HINGE

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
Words = NDArray[np.int8]
LABELS = 10


def make_stream(rows: int, d: int) -> tuple[Floats, Counts]:
    """Return unit rows around a centre for each label; about a third of the bits err."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, LABELS, rows)
    X = 0.15 * rng.standard_normal((LABELS, d))[y] + rng.standard_normal((rows, d))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y


def make_words(k: int) -> Words:
    """Return a random codeword for each label."""
    return np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (LABELS, k))


def learn_compiled(Z: Floats, y: Counts, words: Words, *, mean: bool) -> Floats:
    """Learn with our kernel; return the last iterates. `mean` averages the weights as well."""
    k, d = words.shape[1], Z.shape[1]
    last: Floats = np.zeros((1, k, d), np.float32)
    counts = [np.zeros((1, k), np.int64), np.zeros((1, k), np.int64)]
    rounds = [np.zeros(1, np.int64), np.zeros(1, np.int64)]
    kernels.load().learn(
        Z,
        y,
        np.zeros(len(Z), np.bool_),
        words,
        LABELS,
        last,
        last.copy() if mean else np.empty((0, k, d), np.float32),
        *counts,
        *rounds,
        1.0,
        False,
        HINGE,
    )
    return last.reshape(k, d)


def learn_numpy(Z: Floats, y: Counts, words: Words) -> Floats:
    """Learn with a loop over rows that updates the erring functions by one outer product."""
    W = np.zeros((words.shape[1], Z.shape[1]), np.float32)
    for z, word in zip(Z, words[y].astype(np.float32), strict=True):
        wrong = word * (W @ z) < 1
        W[wrong] += np.outer(word[wrong], z)
    return W


def learn_sklearn(Z: Floats, y: Counts, words: Words) -> Floats:
    """Learn with scikit-learn's SGDClassifier, one for each bit, in blocks of 1,000 rows."""
    from sklearn.linear_model import SGDClassifier

    W = np.zeros((words.shape[1], Z.shape[1]), np.float32)
    for bit in range(len(W)):
        model = SGDClassifier(
            loss="hinge",
            penalty=None,
            alpha=0.0,
            learning_rate="constant",
            eta0=1.0,
            fit_intercept=False,
            shuffle=False,
        )
        for start in range(0, len(Z), 1000):
            part = slice(start, start + 1000)
            model.partial_fit(Z[part], words[y[part], bit], classes=np.array([-1, 1], np.int8))
        W[bit] = model.coef_[0]
    return W


def learners(rows: int, d: int, k: int) -> dict[str, Callable[[], object]]:
    """Return all contestants; GEMM computes only the margins, and no learner can be faster."""
    Z, y = make_stream(rows, d)
    words, W = make_words(k), np.zeros((k, d), np.float32)
    kernels.load_all()
    return {
        "everhash": lambda: learn_compiled(Z, y, words, mean=False),
        "+ mean": lambda: learn_compiled(Z, y, words, mean=True),
        "NumPy": lambda: learn_numpy(Z, y, words),
        "scikit-learn": lambda: learn_sklearn(Z, y, words),
        "GEMM": lambda: Z @ W.T,
    }
