"""Ways to compute margins: our kernel, BLAS, and BLAS in blocks of one size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from everhash import kernels

Floats = NDArray[np.float32]
BLOCK = 64
ORDERED = 300
"""Rows whose order is changed."""


def make_rows(rows: int, d: int, k: int, cycles: int) -> tuple[Floats, Floats]:
    """Return random rows and hash functions."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((rows, d), np.float32)
    return Z, rng.standard_normal((cycles, k, d), np.float32)


def by_kernel(Z: Floats, functions: Floats) -> Floats:
    """Return margins by our kernel, which depend only on the row and the function."""
    out = np.empty((len(Z), functions.shape[0] * functions.shape[1]), np.float32)
    kernels.load().margins_into(Z, functions, out)
    return out


def by_blas(Z: Floats, functions: Floats) -> Floats:
    """Return margins by one matrix product."""
    return Z @ functions.reshape(-1, functions.shape[2]).T


def by_blocks(Z: Floats, functions: Floats) -> Floats:
    """Return margins by matrix products of one shape, the last one padded."""
    padded = np.zeros((-(-len(Z) // BLOCK) * BLOCK, Z.shape[1]), np.float32)
    padded[: len(Z)] = Z
    blocks = [by_blas(padded[at : at + BLOCK], functions) for at in range(0, len(padded), BLOCK)]
    return np.vstack(blocks)[: len(Z)]


def moved(encode: Callable[[Floats, Floats], Floats], Z: Floats, functions: Floats) -> int:
    """Return how many rows have other margins when the order of the rows is changed."""
    rows = Z[:ORDERED]
    order = np.random.default_rng(1).permutation(len(rows))
    before, after = encode(rows, functions)[order], encode(rows[order], functions)
    return int((before != after).any(axis=1).sum())


def encoders(Z: Floats, functions: Floats) -> dict[str, Callable[[], object]]:
    """Return both contestants, by name."""
    kernels.load_all()
    return {"everhash": lambda: by_kernel(Z, functions), "BLAS": lambda: by_blas(Z, functions)}
