"""Input of the deep methods: images, checked before anything learns from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import FeatureTypeError, InputError, NotFiniteError

Images = NDArray[np.uint8] | NDArray[np.float32]
"""(n, height, width, 3), from 0 to 255 or from 0 to 1."""
STEP, LEAST, MOST = 8, 16, 512
"""Sides are a multiple of the first: networks halve them three times."""
WANTED = "expected images as an array (n, height, width, 3) of uint8, or of floats from 0 to 1"


def as_images(images: ArrayLike, sides: tuple[int, int] | None = None) -> Images:
    """Return images as an array, or raise an error that says what is wrong.

    Args:
        images: (n, height, width, 3) uint8, or floats from 0 to 1.
        sides: height and width that they must have; any that networks can halve if None.

    >>> as_images(np.zeros((2, 32, 32, 3), np.uint8)).shape
    (2, 32, 32, 3)
    """
    table = _as_array(images)
    if table.ndim != 4 or table.shape[-1] != 3:
        raise InputError(
            f"{WANTED}, got shape {table.shape}", hint="colours come last; repeat grey three times"
        )
    if len(table) == 0:
        raise InputError(f"{WANTED}, got none", hint="skip empty batches")
    _check_sides((table.shape[1], table.shape[2]), sides)
    if table.dtype == np.uint8:
        return np.ascontiguousarray(table, np.uint8)
    _check_range(table)
    return np.ascontiguousarray(table, np.float32)


def _as_array(images: ArrayLike) -> NDArray[Any]:
    try:
        table = np.asarray(images)
    except ValueError:
        raise InputError(
            f"{WANTED}, got images of several shapes", hint="scale them to one size"
        ) from None
    if table.dtype != np.uint8 and table.dtype.kind != "f":
        raise FeatureTypeError(
            f"{WANTED}, got {table.dtype}", hint="convert them: images.astype(np.uint8)"
        )
    return table


def _check_sides(got: tuple[int, int], wanted: tuple[int, int] | None) -> None:
    if wanted is not None and got != wanted:
        raise InputError(
            f"expected images of {wanted[0]} x {wanted[1]}, as were learned, got {got[0]} x "
            f"{got[1]}",
            hint="scale them to the size of those",
        )
    if any(side % STEP or not LEAST <= side <= MOST for side in got):
        raise InputError(
            f"expected sides that are multiples of {STEP} from {LEAST} to {MOST}, got "
            f"{got[0]} x {got[1]}",
            hint="scale or pad the images",
        )


def _check_range(table: NDArray[Any]) -> None:
    flat = table.reshape(len(table), -1)
    finite = np.isfinite(flat).all(axis=1)
    if not finite.all():
        raise NotFiniteError(row=int(np.argmin(finite)))
    if flat.min() < 0 or flat.max() > 1:
        raise InputError(
            f"{WANTED}, got floats from {flat.min():g} to {flat.max():g}",
            hint="divide them by 255, or pass uint8",
        )


def in_unit_range(images: Images) -> NDArray[np.float32]:
    """Return images as floats from 0 to 1.

    >>> in_unit_range(np.full((1, 16, 16, 3), 255, np.uint8)).max().item()
    1.0
    """
    if images.dtype == np.uint8:
        return images.astype(np.float32) / np.float32(255)
    return images.astype(np.float32, copy=False)
