"""CIFAR-10 images: those that deep methods learn from, beside features of the same images.

The file is looked for where `everhash.bench.datasets` looks for its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from everhash.bench.datasets import CIFAR10, folders
from everhash.errors import DataMissingError, InputError

NAME = "cifar10-images"
FILE = "cifar10_images_15k_u8.npz"
SHA256 = "4a1dce3be0507c0c3b14213349a2ad7214826cd6f0e653656e4b293fa8d682b6"


@dataclass(frozen=True)
class ImageSet:
    """Images with labels, the training images first."""

    images: NDArray[np.uint8]
    """(n, 32, 32, 3)"""
    y: NDArray[np.int64]
    row: NDArray[np.int64]
    """Each image's row in the feature sets of CIFAR-10."""
    n_train: int


def path() -> Path | None:
    """Return where the file is; None if it is nowhere."""
    return next((folder / FILE for folder in folders() if (folder / FILE).is_file()), None)


def require() -> Path:
    """Return where the file is, or raise an error that says what to do."""
    found = path()
    if found is None:
        raise DataMissingError(
            f"there are no images {NAME} ({FILE}) on this machine; looked in "
            f"{', '.join(map(str, folders()))}",
            hint="set EVERHASH_DATA to the folder that has the file; it holds 500 training images "
            f"of each label and all test images of {CIFAR10}, with their rows in the feature sets",
        )
    return found


@lru_cache(maxsize=1)
def load() -> ImageSet:
    """Read the images."""
    found = require()
    with found.open("rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() != SHA256:
            raise InputError(
                f"{found} is damaged: it is not the file that the checksum is of",
                hint="get it again",
            )
    with np.load(found) as file:
        y, row = (file[name].astype(np.int64) for name in ("y", "row"))
        return ImageSet(file["images"], y, row, int(file["n_train"]))
