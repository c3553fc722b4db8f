"""Compare features as `make_features.py` makes them with those of the shared files.

    python benchmarks/datasets/compare_features.py cifar10-gist

The whole public data is not needed: images come from cifar10_images_15k_u8.npz, texts from the
shared file of CLINC150. PCA is that of the shared file; making a set finds it anew from all rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.bench import datasets
from everhash.bench.gist import gist

Rows = NDArray[np.int64]
NEIGHBOURS = 10


def shared(file: str) -> Any:
    for folder in datasets.folders():
        if (folder / file).is_file():
            return np.load(folder / file)
    raise SystemExit(f"{file} is not on this machine")


def some_images(count: int) -> tuple[NDArray[np.uint8], Rows]:
    """Return images spread over all labels, and their rows in the feature files."""
    file = shared("cifar10_images_15k_u8.npz")
    chosen = np.linspace(0, len(file["row"]) - 1, count).astype(np.int64)
    return file["images"][chosen], file["row"][chosen]


def cifar10_gist(count: int) -> None:
    images, rows = some_images(count)
    file = shared(datasets.FILES["cifar10-gist"][0])
    compare_bytes(gist(images), file, rows)


def cifar10_cnn(count: int) -> None:
    from networks import pooled
    from PIL import Image

    images, rows = some_images(count)
    file = shared(datasets.FILES["cifar10-cnn"][0])
    parts = np.array_split(images, max(1, len(images) // 16))
    features = np.concatenate([pooled([Image.fromarray(each) for each in part]) for part in parts])
    mean, basis = (file[name].astype(np.float32) for name in ("pca_mean", "pca_basis"))
    compare_bytes((features - mean) @ basis, file, rows)


def clinc150(count: int) -> None:
    from networks import embedded

    file = shared(datasets.FILES["clinc150"][0])
    rows = np.linspace(0, len(file["y"]) - 1, count).astype(np.int64)
    ours, theirs = embedded(file["text"][rows].tolist()), file["X"][rows]
    print(
        f"equal in half precision: {(ours.astype(np.float16) == theirs).mean():.2%} of the values"
    )
    compare(ours, theirs.astype(np.float32))


def compare_bytes(ours: NDArray[np.float32], file: Any, rows: Rows) -> None:
    """Compare features rounded by the steps of the shared file."""
    steps = np.rint((ours - file["lo"]) / file["scale"]).clip(0, 255)
    off = np.abs(steps - file["q"][rows])
    print(f"equal bytes: {(off == 0).mean():.3%}, within one step: {(off <= 1).mean():.3%}")
    compare(ours, file["q"][rows] * file["scale"] + file["lo"])


def compare(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> None:
    """Compare rows one by one, and each row's nearest ones by cosine."""
    ours, theirs = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (ours, theirs))
    cosines = (ours * theirs).sum(axis=1)
    print(f"{len(ours):,} rows: cosine mean {cosines.mean():.4f}, least {cosines.min():.4f}")
    near = []
    for X in (ours, theirs):
        likeness = X @ X.T
        np.fill_diagonal(likeness, -2)
        near.append(np.argsort(-likeness, axis=1)[:, :NEIGHBOURS])
    both = [len(set(a) & set(b)) for a, b in zip(*map(np.ndarray.tolist, near), strict=True)]
    print(f"of the nearest {NEIGHBOURS}, the same: {np.mean(both) / NEIGHBOURS:.1%}")


PARTS: dict[str, Callable[[int], None]] = {
    "cifar10-gist": cifar10_gist,
    "cifar10-cnn": cifar10_cnn,
    "clinc150": clinc150,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=PARTS)
    parser.add_argument("--rows", type=int, default=1000, help="how many rows are compared")
    options = parser.parse_args()
    PARTS[options.name](options.rows)


if __name__ == "__main__":
    main()
