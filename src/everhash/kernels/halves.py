"""Rows in half precision, each scaled by its largest value, and back again.

NumPy converts an element at a time; these loops run on whole vectors. They round to nearest, ties
to even, as NumPy does: `reference.halve` is the specification.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import kernel
from everhash.kernels.reference import Floats

Bits = NDArray[np.uint16]

SMALLEST_NORMAL = np.uint32(0x38800000)
"""Bits of 2**-14 as a float; below it a half has fewer digits."""
REBIAS = np.uint32(112 << 23)
"""How much larger the exponent of a float is than that of the same half."""
HALF = np.uint32(0x3F000000)
"""Bits of 0.5: adding it makes a float round to the multiples of 2**-24 that small halves are."""


@kernel("void(f4[:, ::1], u2[:, ::1], f4[::1])", fastmath={"nnan", "nsz", "reassoc"})
def halve(X: Floats, halves: Bits, scales: Floats) -> None:
    """Write the bits of X / scales as halves, and the scales; see `reference.halve`."""
    n, d = X.shape
    scaled, small = np.empty(d, np.float32), np.empty(d, np.float32)
    scaled_bits, small_bits = scaled.view(np.uint32), small.view(np.uint32)
    for row in range(n):
        x, out = X[row], halves[row]
        largest = np.float32(0)
        for i in range(d):
            largest = max(largest, abs(x[i]))
        scale = largest if largest > 0 else np.float32(1)
        scales[row] = scale
        for i in range(d):
            scaled[i] = x[i] / scale
            small[i] = abs(scaled[i]) + np.float32(0.5)
        for i in range(d):
            sign = (scaled_bits[i] >> np.uint32(16)) & np.uint32(0x8000)
            size = scaled_bits[i] & np.uint32(0x7FFFFFFF)
            tie = (size >> np.uint32(13)) & np.uint32(1)
            normal = (size - REBIAS + np.uint32(0xFFF) + tie) >> np.uint32(13)
            value = normal if size >= SMALLEST_NORMAL else small_bits[i] - HALF
            out[i] = np.uint16(sign | value)


@kernel("void(u2[:, ::1], f4[::1], f4[:, ::1])")
def unhalve(halves: Bits, scales: Floats, out: Floats) -> None:
    """Write the rows that `halve` was given, as far as halves can hold them."""
    for row in range(halves.shape[0]):
        half, values, scale = halves[row], out[row], scales[row]
        bits = values.view(np.uint32)
        for i in range(half.size):
            wide = np.uint32(half[i])
            sign = (wide & np.uint32(0x8000)) << np.uint32(16)
            bits[i] = sign | ((wide & np.uint32(0x7FFF)) << np.uint32(13))
        for i in range(half.size):  # exact: a power of two, for small halves as well
            values[i] = values[i] * np.float32(2.0**112) * scale
