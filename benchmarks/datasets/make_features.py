"""Make the features of a benchmark's data set from public data.

    python benchmarks/datasets/make_features.py clinc150 --source ~/Downloads

The folder of --source has the set's archive as its authors publish it; `everhash bench run` finds
what is written to --out there, or where EVERHASH_DATA points. Files have `_made` in their names:
they hold what the shared files hold, but not to the last bit, so no checksum is held against them.
docs/bench.md says how near they are. requirements.txt beside this file says what to install.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from published import SPLITS, read_caltech256, read_clinc150

from everhash.bench import archives, datasets
from everhash.bench.gist import Quantised, gist
from everhash.errors import EverhashError, InputError

Floats = NDArray[np.float32]
Arrays = dict[str, Any]
"""What a file holds, by name."""
DIMS = 512
"""Dimensions that PCA leaves of a network's 1,280."""
TAILS = 0.0002
"""Share of a PCA feature's values that are clipped at either end."""
AT_ONCE = 32


def cifar10_gist(folder: Path) -> Arrays:
    """GIST of CIFAR-10's images."""
    images, y = archives.read_cifar10(folder)
    rounded = Quantised.of(gist(images, progress=show))
    return {**rounded._asdict(), "y": y, "n_train": np.int64(len(y) * 5 // 6)}


def cifar10_cnn(folder: Path) -> Arrays:
    """EfficientNet-Lite2 of CIFAR-10's images; PCA of the official training rows."""
    from networks import pooled
    from PIL import Image

    images, y = archives.read_cifar10(folder)
    parts = []
    for start in range(0, len(images), AT_ONCE):
        parts.append(pooled([Image.fromarray(each) for each in images[start : start + AT_ONCE]]))
        show(start + len(parts[-1]), len(images))
    n_train = len(y) * 5 // 6
    rounded = reduced(np.concatenate(parts), np.arange(len(y)) < n_train)
    return {**rounded, "y": y, "n_train": np.int64(n_train)}


def caltech256_gist(folder: Path) -> Arrays:
    """GIST of Caltech-256's pictures, stretched to 32 x 32 pixels."""
    from PIL import Image

    def small(picture: Any) -> NDArray[np.uint8]:
        return np.asarray(picture.resize((32, 32), Image.Resampling.LANCZOS))

    found = read_caltech256(folder / "256_ObjectCategories.tar", small)
    rounded = Quantised.of(gist(np.stack(found.values), progress=show))
    return {
        **rounded._asdict(),
        "y": found.y,
        "is_test": found.is_test(),
        "classes": found.classes,
    }


def caltech256_cnn(folder: Path) -> Arrays:
    """EfficientNet-Lite2 of Caltech-256's pictures; PCA of the rows that are no queries."""
    from networks import pooled

    found = read_caltech256(folder / "256_ObjectCategories.tar", lambda each: pooled([each])[0])
    is_test = found.is_test()
    return {
        **reduced(np.stack(found.values), is_test == 0),
        "y": found.y,
        "is_test": is_test,
        "classes": found.classes,
        "names": found.names,
    }


def clinc150(folder: Path) -> Arrays:
    """MiniLM embeddings of CLINC150's sentences."""
    from networks import embedded

    found = read_clinc150(folder / "data_full.json")
    X = embedded(found.text.tolist()).astype(np.float16)
    return {"X": X, **found._asdict(), "split_names": np.array(SPLITS)}


def fashion_mnist(folder: Path) -> Arrays:
    """Fashion-MNIST's pixels."""
    X, y = archives.read_fashion_mnist(folder)
    return {"X": X, "y": y, "n_train": np.int64(len(y) * 6 // 7)}


MAKERS: dict[str, Callable[[Path], Arrays]] = {
    "cifar10-gist": cifar10_gist,
    "cifar10-cnn": cifar10_cnn,
    "caltech256-gist": caltech256_gist,
    "caltech256-cnn": caltech256_cnn,
    "clinc150": clinc150,
    "fashion-mnist": fashion_mnist,
}


def reduced(features: Floats, fitted: NDArray[np.bool_], dims: int = DIMS) -> Arrays:
    """Return features in the directions of greatest variance among the fitted rows, as bytes."""
    mean = features[fitted].mean(axis=0, dtype=np.float64)
    away = features[fitted] - mean
    _, directions = np.linalg.eigh(away.T @ away)  # ascending
    basis = directions[:, ::-1][:, :dims].astype(np.float32)
    X = (features - mean.astype(np.float32)) @ basis
    lo, hi = np.quantile(X, (TAILS, 1 - TAILS), axis=0).astype(np.float32)
    scale = np.where(hi > lo, (hi - lo) / 255, 1).astype(np.float32)
    return {
        "q": np.rint((X - lo) / scale).clip(0, 255).astype(np.uint8),
        "lo": lo,
        "scale": scale,
        "pca_mean": mean.astype(np.float16),
        "pca_basis": basis.astype(np.float16),
    }


def make(name: str, source: Path, out: Path) -> Path:
    """Make a set and write it; return the file."""
    path = out / datasets.made_file(name)
    if path.exists():
        raise InputError(f"{path} is there already", hint="remove it to make it again")
    try:
        arrays = MAKERS[name](source)
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename} is missing", hint=f"get {datasets.describe(name).public}"
        ) from None
    out.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, allow_pickle=False, **arrays)
    return part.replace(path)


def show(done: int, of: int) -> None:
    """Say now and then how far it is."""
    if done == of or done // AT_ONCE % 50 == 0:
        print(f"{done:,} of {of:,} rows", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=MAKERS, help="the data set to make")
    parser.add_argument("--source", type=Path, required=True, help="folder with the public archive")
    parser.add_argument(
        "--out", type=Path, default=datasets.folders()[-1], help="folder to write to"
    )
    options = parser.parse_args()
    try:
        print(make(options.name, options.source, options.out))
    except EverhashError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
