"""Small images of a few labels, which a small network learns within a second."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash.peers import deep
from everhash.peers.deep.deep_method import DeepMethod
from tests.conftest import missing

NAMES = deep.names()
SMALL = {"width": 4, "epochs": 12, "batch": 10}
NOT_HERE = {"cnnh"}
"""Differs from cnnh+ by one option: only some tests try both."""
MOST = [name for name in NAMES if name not in NOT_HERE]


def need_torch() -> Any:
    """Return PyTorch, or end the test that needs it."""
    try:
        import torch
    except ImportError:
        missing("deep methods run on PyTorch", "pip install 'everhash[deep]'")
    return torch


class Pictures(NamedTuple):
    images: NDArray[np.uint8]
    y: list[str]


def pictures(n: int = 60, seed: int = 0) -> Pictures:
    """Return red, green and blue images with noise."""
    rng = np.random.default_rng(seed)
    which = np.arange(n) % 3
    images = rng.integers(0, 120, (n, 16, 16, 3))
    images[np.arange(n), :, :, which] += 90
    return Pictures(images.astype(np.uint8), [("red", "green", "blue")[label] for label in which])


def fitted(name: str, seed: int = 0, **options: Any) -> DeepMethod:
    """Return a small network that has learned them."""
    need_torch()
    small: dict[str, Any] = {**SMALL, **options}
    return deep.get(name, bits=8, random_state=seed, **small).fit(*pictures())


@pytest.fixture(scope="session")
def learned() -> dict[str, DeepMethod]:
    """Return one of each method."""
    return {name: fitted(name) for name in NAMES}
