"""The learning time of each method beside the matrix products it cannot do without.

    python benchmarks/peer_products.py [--data cifar10-gist ...]

The products have the same shapes and the same order as in the method, in NumPy, without anything
else that the method does. A method that takes far longer than its own products is badly written,
and its time says nothing about the method. 32 bits, seed 0, one thread.
"""

from __future__ import annotations

import os

os.environ.update(  # before NumPy and Numba start their threads
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
)

from argparse import Namespace
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.bench import datasets
from everhash.bench.datasets import Dataset
from everhash.bench.retrieval import make, pieces, split_of
from everhash.bench.task import Task
from parts import run_parts

Floats = NDArray[np.float32]
Sizes = dict[str, Any]
"""A method's options, which decide the sizes of its matrices."""

ROUNDS, PATIENCE = 5, 3.0
"""Rounds, of which the best counts; two if they take this many seconds already."""
GRADIENT_STEPS = 25
"""Of SmartHash for each function, as counted on CIFAR-10 GIST, 2,000 rows, 32 bits."""
MAX_RATIO = 10
"""Learning time over time of the products from which on a method is marked."""
ROWS_A_LABEL = {"cifar10-gist": 200, "cifar10-cnn": 200, "clinc150": 13}


def measure(task: Task, data: Dataset) -> dict[str, Any]:
    """Time learning and products in turn; return the best of each."""
    split = split_of(task, data)
    batches = [split.stream[part] for part in pieces(len(split.stream))]
    stream = [(data.X[batch], data.y[batch]) for batch in batches]
    Z = np.random.default_rng(0).standard_normal((len(split.stream), data.X.shape[1]), np.float32)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    sizes = make(task, data).get_params()
    sizes["labels"] = len(np.unique(data.y[split.stream]))
    learning, alone, begun = np.inf, np.inf, perf_counter()
    for done in range(ROUNDS):
        if done > 1 and perf_counter() - begun > PATIENCE:
            break
        hasher, start = make(task, data), perf_counter()
        for X, y in stream:
            hasher.partial_fit(X, y)
        middle = perf_counter()
        PRODUCTS[task.method].run(Z, sizes)
        learning, alone = min(learning, middle - start), min(alone, perf_counter() - middle)
    what = PRODUCTS[task.method].what
    return {"learning": learning, "products": alone, "what": what, "stream": len(split.stream)}


def follow_words(Z: Floats, sizes: Sizes) -> None:
    _follow(Z, sizes["bits"])


def follow_classes(Z: Floats, sizes: Sizes) -> None:
    _follow(Z, sizes["labels"])


def _follow(Z: Floats, functions: int) -> None:
    W = np.zeros((functions, Z.shape[1]), np.float32)
    for z in Z:
        W += np.outer(W @ z, z)


def meet_sample(Z: Floats, sizes: Sizes) -> None:
    W = np.zeros((sizes["bits"], Z.shape[1]), np.float32)
    for i, z in enumerate(Z):
        codes = Z[: min(i, sizes["sample"])] @ W.T
        W += np.outer((codes @ (W @ z)) @ codes, z)


def solve_batches(Z: Floats, sizes: Sizes) -> None:
    bits, batch, d = sizes["bits"], sizes["batch"], Z.shape[1]
    W: NDArray[Any] = np.zeros((bits, d))
    moment = np.zeros((bits, bits))
    for start in range(0, len(Z) - batch + 1, batch):
        X = Z[start : start + batch].astype(np.float64)
        B = X @ W.T
        for bit in range(bits):
            B[:, bit] = B @ moment[bit]
        moment = B.T @ B
        gram, target = (X @ X.T, B) if batch < d else (X.T @ X, X.T @ B)
        solved = np.linalg.solve(gram + np.eye(len(gram)), target)
        W = solved.T @ X if batch < d else solved.T


def fit_sums(Z: Floats, sizes: Sizes) -> None:
    bits, batch, d = sizes["bits"], sizes["batch"], Z.shape[1]
    gram, aims = np.eye(d), np.zeros((d, bits))
    for start in range(0, len(Z) - batch + 1, batch):
        X = Z[start : start + batch].astype(np.float64)
        gram += X.T @ X
        aims += X.T @ X[:, :1].repeat(bits, axis=1)
        np.linalg.solve(gram, aims)


def correct_pairs(Z: Floats, sizes: Sizes) -> None:
    seen = _by_anchors(Z, sizes)
    W = np.zeros((sizes["bits"], seen.shape[1]), np.float32)
    for i in range(1, len(Z)):
        pair = seen[i - 1 : i + 1]
        W += (pair @ W.T).T @ pair


def _by_anchors(Z: Floats, sizes: Sizes) -> Floats:
    anchors = Z[: sizes["anchors"]]
    return np.concatenate([Z[part] @ anchors.T for part in pieces(len(Z))])


def hold_apart(Z: Floats, sizes: Sizes) -> None:
    W = np.zeros((sizes["bits"], Z.shape[1]), np.float32)
    for i in range(1, len(Z)):
        pair = Z[i - 1 : i + 1]
        W += (pair @ W.T).T @ pair + (W @ W.T) @ W


def sketch(Z: Floats, sizes: Sizes) -> None:
    bits, room, d = sizes["bits"], sizes["sketch"] or max(200, 2 * sizes["bits"]), Z.shape[1]
    W, held = np.eye(bits, d), np.zeros((0, d))
    for start in range(0, len(Z) - sizes["batch"] + 1, sizes["batch"]):
        rows = Z[start : start + sizes["batch"]]
        kept = held if len(held) + len(rows) < room else held[: room // 2]
        both = np.vstack([kept, rows, rows[:1]])
        held = np.linalg.eigh(both @ both.T)[1].T @ both
        basis = np.linalg.qr(np.vstack([held[:bits], W]).T)[0][:, :bits].T
        left, _, right = np.linalg.svd(W @ basis.T)
        W = left @ right @ basis


def relearn(Z: Floats, sizes: Sizes) -> None:
    from scipy.linalg import eigh

    seen, bits = _by_anchors(Z, sizes), sizes["bits"]
    relearned, last = bits, sizes["anchors"] - 1
    for n in range(sizes["batch"], len(Z) + 1, sizes["batch"]):
        K, codes, said = seen[:n], np.ones((bits, n), np.float32), np.ones(n, np.float32)
        gram = K.T @ K + np.eye(last + 1, dtype=np.float32)
        for _ in range(relearned):
            projected = codes @ K
            eigh(projected.T @ projected, gram, subset_by_index=[last, last])
            for _ in range(GRADIENT_STEPS):
                K @ (((codes @ said) @ codes) @ K)
        relearned = sizes["relearned"] or (bits - 1).bit_length()


class Products(NamedTuple):
    """A description, and a function that computes the products for all rows of a stream."""

    what: str
    run: Callable[[Floats, Sizes], None]


WORDS = Products("a row: W z, rank-1 update of W", follow_words)
PRODUCTS = {
    "everhash-sgd": WORDS,
    "paper": WORDS,
    "okh": Products("a row: anchors z; W x pair, rank-2 update of W", correct_pairs),
    "osh": WORDS,
    "adapthash": Products("a row: W x pair, rank-2 update, W W', W W' W", hold_apart),
    "sketchhash": Products("a batch: B B', its eigenvectors x B, QR and SVD for W", sketch),
    "mihash": Products("a row: sample x W, two of its codes x vector, rank-1 update", meet_sample),
    "hcoh": WORDS,
    "hmoh": WORDS,
    "bsodh": Products("a batch: X W, codes x moments a bit, X X', a solution", solve_batches),
    "lemon": Products("a batch: X'X, X'B, a solution", fit_sums),
    "oasis": Products("a batch: X'X, X'B, a solution", fit_sums),
    "smarthash": Products(
        "a batch: K'K; a function: eigenvector, 25 times codes, codes', K', K x vector", relearn
    ),
    "onehot": Products("a row: W z, rank-1 update, W a row a label", follow_classes),
}


def products(args: Namespace) -> None:
    """Print learning time and products of each method."""
    kernels.load_all()  # before anything is timed
    for name in args.data:
        data = datasets.load(name)
        rows = len(split_of(Task("", name, "", rows_a_label=ROWS_A_LABEL[name]), data).stream)
        print(f"\n{name}, {rows:,} rows, 32 bits, best of several in turn, milliseconds")
        print(f"{'':<12}{'learning':>10}{'products':>10}{'ratio':>8}   the products")
        for method in PRODUCTS:
            task = Task("retrieval", name, method, 32, rows_a_label=ROWS_A_LABEL[name])
            figures = measure(task, data)
            ratio = figures["learning"] / figures["products"]
            mark = f"   MORE THAN {MAX_RATIO} TIMES" if ratio > MAX_RATIO else ""
            times = f"{figures['learning'] * 1e3:10.1f}{figures['products'] * 1e3:10.1f}"
            print(f"{method:<12}{times}{ratio:8.1f}   {figures['what']}{mark}")


if __name__ == "__main__":
    run_parts(__doc__, {"products": products}, data=tuple(ROWS_A_LABEL))
