"""Collections that look unlike the demo's: many labels, texts instead of pictures, hostile ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import everhash

DIM = 24
LABELS = 300
MARKUP = "<script>window.ran = 1</script>"
IMAGE = "<img src=x onerror='window.ran = 1'>"
NAMES = (
    MARKUP,
    IMAGE,
    "a label that goes on and on until it is far too long for its place",
    "日本",
)


def centres() -> NDArray[np.float32]:
    """Return where the labels lie."""
    return np.random.default_rng(0).normal(size=(LABELS, DIM)).astype(np.float32)


def label_of(number: int) -> str:
    """Return the name of a label."""
    return NAMES[number] if number < len(NAMES) else f"kind {number}"


def make_shop(file: Path) -> None:
    """Make a collection of three entries a label, one of them unlabelled, ids of both kinds."""
    rng = np.random.default_rng(1)
    numbers = np.repeat(np.arange(LABELS), 3)
    X = centres()[numbers] + rng.normal(scale=0.2, size=(len(numbers), DIM)).astype(np.float32)
    with everhash.create(
        file, dim=DIM, bits=32, labels_per_cycle=20, keep_features="unlabelled"
    ) as shop:
        for i in range(0, len(X), 90):
            of = range(i, min(i + 90, len(X)))
            shop.ingest(
                X[of],
                [None if row % 3 == 2 else label_of(int(numbers[row])) for row in of],
                ids=[f"{IMAGE} {row}" if row % 2 else row for row in of],
                payloads=[{"text": f"{MARKUP} about {row}"} if row % 3 else None for row in of],
            )
        shop.refresh()
