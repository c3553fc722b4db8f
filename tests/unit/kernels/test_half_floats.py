"""Halves as floats: both ways of converting them equal NumPy's."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.kernels.likeness.half_floats import by_bits, by_instruction, half_float

HALVES = np.arange(1 << 16, dtype=np.uint16)
FINITE = HALVES[np.isfinite(HALVES.view(np.float16))]
WAYS = [by_bits, by_instruction] if half_float is by_instruction else [by_bits]


@pytest.mark.parametrize("way", WAYS, ids=["bits", "instruction"][: len(WAYS)])
def test_every_finite_half_is_converted_as_numpy_does(way: Any) -> None:
    def converted(halves: NDArray[np.uint16], out: NDArray[np.float32]) -> None:
        for i in range(halves.size):
            out[i] = way(halves[i])

    compiled: Any = numba.njit(converted)
    out = np.empty(len(FINITE), np.float32)
    compiled(FINITE, out)
    expected = FINITE.view(np.float16).astype(np.float32)
    assert (out.view(np.uint32) == expected.view(np.uint32)).all()
