"""Lower triangles of matrices, row after row, as files hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def triangle(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of a lower triangle one after the other."""
    return np.concatenate([matrix[i, : i + 1] for i in range(len(matrix))])


def square(triangle: NDArray[Any], width: int) -> NDArray[Any]:
    """Return a lower triangle as a square, in Fortran's order."""
    square = np.zeros((width, width), triangle.dtype, order="F")
    start = 0
    for row in range(width):
        square[row, : row + 1] = triangle[start : start + row + 1]
        start += row + 1
    return square
