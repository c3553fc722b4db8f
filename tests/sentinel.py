"""Memory from `np.empty` and `np.empty_like` holds a sentinel, so that a test sees its use.

Such memory often holds zeros, or what an earlier call left there: code that reads it before it
writes it mostly looks right. Here it holds NaN, -6510615555426900571 or the bytes 0xA5 instead.
Only modules of everhash get it, by a copy of the module `numpy` under the name `np`: Numba, which
compiles the kernels, has to see the real one.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

MOST_BYTES = 64 << 20
"""Larger arrays are left alone: filling them would take memory that is never used."""
COMPILED = "everhash.kernels"


def filled(array: NDArray[Any]) -> NDArray[Any]:
    """Fill an array with what no result should be: NaN, True, or bytes 0xA5."""
    if array.nbytes > MOST_BYTES:
        return array
    if array.dtype.kind in "fc":
        array.fill(np.nan)
    elif array.dtype.kind == "b":
        array.fill(True)
    elif array.dtype.kind in "iu":
        array.fill(np.frombuffer(b"\xa5" * array.dtype.itemsize, array.dtype)[0])
    return array


def _filling_numpy() -> ModuleType:
    """Return a copy of the module `numpy` whose empty arrays are filled."""
    copy = ModuleType("numpy")
    copy.__dict__.update(np.__dict__)
    empty, empty_like = np.empty, np.empty_like
    copy.__dict__["empty"] = lambda *args, **options: filled(empty(*args, **options))
    copy.__dict__["empty_like"] = lambda *args, **options: filled(empty_like(*args, **options))
    return copy


FILLING = _filling_numpy()


def fill_everywhere() -> None:
    """Give all modules of everhash that are loaded the copy, but those of compiled kernels."""
    for name, module in list(sys.modules.items()):
        mine = name.startswith("everhash") and getattr(module, "np", None) is np
        if mine and (not name.startswith(COMPILED) or name.endswith("reference")):
            module.np = FILLING  # type: ignore[attr-defined]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look again before each test: some modules are loaded when they are first used."""
    fill_everywhere()
