"""Products of finite float32 matrices that raise no false alarm.

OpenBLAS has a kernel of its own for (n, 5) times (5,) on processors with AVX-512 (seen in 0.3.31,
which NumPy 2.4 brings). Where n leaves 2 or 3 when divided by 4 it also computes with a part of
the stack that it has not filled. It drops what comes of that, but if an earlier function has left
the bits of a signalling NaN there, the processor notes an invalid operation, and NumPy warns of an
"invalid value encountered in matmul" among finite numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def product(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """Return A @ B of finite numbers, where A may have five columns and B one.

    An overflow still warns.

    >>> product(np.ones((2, 5), np.float32), np.arange(5, dtype=np.float32)).tolist()
    [10.0, 10.0]
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(A @ B)
