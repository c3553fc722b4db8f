"""Real feature sets by name.

Files are looked for in `$EVERHASH_DATA`, then in `../shared/data` beside a checkout, then in
`~/.cache/everhash`, and checked against their checksums. Two sets can also be made from their
authors' archives in one of these folders: Fashion-MNIST from its IDX files, and CIFAR-10's GIST
from the images; it is computed once and then cached.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.bench import archives
from everhash.bench.gist import Progress, Quantised, gist
from everhash.errors import DataMissingError, InputError, UnknownNameError

FILES = {
    "cifar10-gist": (
        "cifar10_gist512_u8.npz",
        "1f3b18aa6c4e0ae892e088e578552c0c0f14a95ad477bda1c428f937159588f6",
    ),
    "cifar10-cnn": (
        "cifar10_efflite2_pca512_u8.npz",
        "f0c6f6c6ed8635c2b4ef5c357550dbf1db3793f79012e58a961bbe1ade6df507",
    ),
    "caltech256-gist": (
        "caltech256_gist512_u8.npz",
        "105e3318cffd81c77b56f75319dcbe235b137319cb20549a7641fdd4ee611322",
    ),
    "caltech256-cnn": (
        "caltech256_efflite2_pca512_u8.npz",
        "8f281566b253c206b73ce709915a22a38bddb03ee9109b60700523e235d684ec",
    ),
    "clinc150": (
        "clinc150_minilm384_f16.npz",
        "a87e8a4d8dfe770747c4054fee351aeda627c548ecc594ec01b18b36737a591e",
    ),
    "fashion-mnist": (
        "fashion_mnist_u8.npz",
        "7237f188c83559caad37a81b0c5312ec8bdd2ef64398b4f82dda0f783eca9c53",
    ),
}
"""File and sha256 sum of each set that is read from a file."""
KEPT_GIST = "cifar10_gist512_made.npz"
"""The file of CIFAR-10's GIST that was computed on this machine."""


class DatasetInfo(NamedTuple):
    """What is known about a set before its file is read."""

    name: str
    what: str
    rows: int
    dim: int
    labels: int
    queries: str
    """Which rows the set itself names as queries."""
    otherwise: str = ""
    """How to get it without its file."""


DATASETS = (
    DatasetInfo("digits", "scikit-learn's digits, 8 x 8 pixels", 1_797, 64, 10, "none"),
    DatasetInfo(
        "cifar10-gist",
        "CIFAR-10 images, GIST",
        60_000,
        512,
        10,
        "none",
        "cifar-10-binary.tar.gz of https://www.cs.toronto.edu/~kriz/cifar.html works too: its GIST "
        "is computed once, in minutes (the Python version, which is pickles, is not read)",
    ),
    DatasetInfo("cifar10-cnn", "CIFAR-10 images, EfficientNet-Lite2", 60_000, 512, 10, "none"),
    DatasetInfo("caltech256-gist", "Caltech-256 images, GIST", 30_604, 512, 257, "20 a label"),
    DatasetInfo(
        "caltech256-cnn", "Caltech-256 images, EfficientNet-Lite2", 30_604, 512, 257, "20 a label"
    ),
    DatasetInfo(
        "clinc150", "CLINC150 intents, MiniLM sentence embeddings", 23_700, 384, 150, "test splits"
    ),
    DatasetInfo(
        "fashion-mnist",
        "Fashion-MNIST, 28 x 28 pixels",
        70_000,
        784,
        10,
        "none",
        "the four *-ubyte.gz files of https://github.com/zalandoresearch/fashion-mnist work too",
    ),
)


@dataclass(frozen=True)
class Dataset:
    """Features, labels, and the queries where the set itself names them."""

    name: str
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    """Label of each row; -1 where it has none (CLINC150's out-of-scope rows)."""
    is_query: NDArray[np.bool_]
    classes: tuple[str, ...] | None = None
    """The names of labels 0, 1, ..., where they are known."""


def names() -> list[str]:
    """Return the names of all sets."""
    return [each.name for each in DATASETS]


def describe(name: str) -> DatasetInfo:
    """Return what is known about a set, without looking for its file."""
    for each in DATASETS:
        if each.name == name:
            return each
    raise UnknownNameError(f"no dataset {name!r}", hint=f"expected one of: {', '.join(names())}")


def load(name: str, *, progress: Progress | None = None) -> Dataset:
    """Read a set by name; `progress` is called while features are computed."""
    describe(name)
    if name == "digits":
        return _digits()
    file, checksum = FILES[name]
    for path in _found(file):
        with path.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != checksum:
                raise InputError(f"{path} is damaged", hint="download it again")
        return _from_npz(name, path)
    made = None
    if name == "cifar10-gist":
        made = _cifar10_gist(progress)
    elif name == "fashion-mnist":
        made = _fashion_mnist()
    if made is None:
        raise _missing(name)
    X, y = made
    return Dataset(name, X, y.astype(np.int64), _none(y))


def _missing(name: str) -> DataMissingError:
    file, _ = FILES[name]
    looked = ", ".join(map(str, folders()))
    otherwise = describe(name).otherwise
    return DataMissingError(
        f"{file} is not on this machine (looked in {looked})",
        hint="put it into one of these folders, or set EVERHASH_DATA to the folder that has it; "
        + (otherwise or "the set 'digits' needs no file"),
    )


def folders() -> list[Path]:
    """Return the folders in which files are looked for, in this order."""
    checkout = Path(__file__).resolve().parents[3]
    named = os.environ.get("EVERHASH_DATA")
    return [
        *([Path(named)] if named else []),
        checkout.parent / "shared" / "data",
        Path.home() / ".cache" / "everhash",
    ]


def _found(*files: str) -> list[Path]:
    """Return the files' paths in the first folder that has them all; an empty list if none has."""
    for folder in folders():
        paths = [folder / file for file in files]
        if all(path.is_file() for path in paths):
            return paths
    return []


def _none(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask with no row set."""
    return np.zeros(len(y), np.bool_)


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    classes = tuple(map(str, range(10)))
    return Dataset("digits", X.astype(np.float32), y.astype(np.int64), _none(y), classes)


def _from_npz(name: str, path: Path) -> Dataset:
    with np.load(path) as file:
        X = file["q"] * file["scale"] + file["lo"] if "q" in file else file["X"]
        y = file["y"].astype(np.int64)
        is_query = _none(y)
        if "is_test" in file:
            is_query = file["is_test"].astype(np.bool_)
        elif "split" in file:
            splits = [str(split) for split in file["split_names"]]
            is_query = np.array(["test" in split for split in splits])[file["split"]]
        classes = tuple(map(str, file["classes"])) if "classes" in file else None
    return Dataset(name, X.astype(np.float32), y, is_query, classes)


def _fashion_mnist() -> tuple[NDArray[np.float32], NDArray[np.uint8]] | None:
    for path in _found(*(idx.file for idx in archives.FASHION_MNIST))[:1]:
        X, y = archives.read_fashion_mnist(path.parent)
        return X.astype(np.float32), y
    return None


def _cifar10_gist(
    progress: Progress | None,
) -> tuple[NDArray[np.float32], NDArray[np.uint8]] | None:
    for path in _found(KEPT_GIST):
        rows = len(archives.CIFAR10.members) * archives.CIFAR10.records
        rounded, y = Quantised.read(path, rows)
        return rounded.features(), y
    for path in _found(archives.CIFAR10.file):
        images, y = archives.read_cifar10(path.parent)
        rounded = Quantised.of(gist(images, progress=progress))
        with suppress(OSError):  # without a cache it is computed again next time
            rounded.write(_cache() / KEPT_GIST, y)
        return rounded.features(), y
    return None


def _cache() -> Path:
    """Return the folder for computed features."""
    named, cache = os.environ.get("EVERHASH_DATA"), folders()[-1]
    if named and os.access(named, os.W_OK):
        return Path(named)
    cache.mkdir(parents=True, exist_ok=True)
    return cache
