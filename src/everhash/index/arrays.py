"""Array types of the index, and the form in which kernels take arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]
"""Packed bits; see `everhash.codes.pack_bits`."""
Counts = NDArray[np.int64]
"""Places, slots, cycles, numbers of labels, and how many there are of something."""


def kernel_array(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return an array as kernels take it: contiguous, and writable although they only read it."""
    array = np.ascontiguousarray(array, dtype)
    return array if array.flags.writeable else array.copy()
