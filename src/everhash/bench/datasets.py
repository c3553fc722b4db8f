"""Real feature sets by name.

Files are looked for in `$EVERHASH_DATA`, then in `../shared/data` beside a checkout, then in
`~/.cache/everhash`. The shared files are checked against their checksums. A file with `_made` in
its name was made by `benchmarks/datasets/make_features.py` from public data, and is used where the
shared one is missing. Two sets are also made from their authors' archives in one of these folders:
Fashion-MNIST from its IDX files, and CIFAR-10's GIST from the images; it is computed once and kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from everhash.bench import archives
from everhash.bench.gist import Progress, Quantised, gist
from everhash.errors import DataMissingError, InputError, UnknownNameError
from everhash.sources.columns import explained

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
CIFAR10 = (
    "CIFAR-10, binary version (cifar-10-binary.tar.gz), by Alex Krizhevsky, "
    "https://www.cs.toronto.edu/~kriz/cifar.html"
)
CALTECH256 = (
    "Caltech-256 (256_ObjectCategories.tar), by Griffin, Holub and Perona, "
    "https://data.caltech.edu/records/nyy15-4j048"
)
CLINC150 = "CLINC150 (data_full.json), by Larson and others, https://github.com/clinc/oos-eval"
FASHION_MNIST = (
    "Fashion-MNIST (four *-ubyte.gz files), by Zalando Research, "
    "https://github.com/zalandoresearch/fashion-mnist"
)
SCRIPT = "benchmarks/datasets/make_features.py"
"""Makes the file of a set from its public data; in everhash's repository."""


class DatasetInfo(NamedTuple):
    """What is known about a set before its file is read."""

    name: str
    what: str
    rows: int
    dim: int
    labels: int
    queries: str
    """Which rows the set itself names as queries."""
    public: str = ""
    """The public data that its features are made from; empty if it needs no file."""


DATASETS = (
    DatasetInfo("digits", "scikit-learn's digits, 8 x 8 pixels", 1_797, 64, 10, "none"),
    DatasetInfo("cifar10-gist", "CIFAR-10 images, GIST", 60_000, 512, 10, "none", CIFAR10),
    DatasetInfo(
        "cifar10-cnn", "CIFAR-10 images, EfficientNet-Lite2", 60_000, 512, 10, "none", CIFAR10
    ),
    DatasetInfo(
        *("caltech256-gist", "Caltech-256 images, GIST", 30_604, 512, 257),
        *("20 a label", CALTECH256),
    ),
    DatasetInfo(
        *("caltech256-cnn", "Caltech-256 images, EfficientNet-Lite2", 30_604, 512, 257),
        *("20 a label", CALTECH256),
    ),
    DatasetInfo(
        *("clinc150", "CLINC150 intents, MiniLM sentence embeddings", 23_700, 384, 150),
        *("test splits", CLINC150),
    ),
    DatasetInfo(
        *("fashion-mnist", "Fashion-MNIST, 28 x 28 pixels", 70_000, 784, 10),
        *("none", FASHION_MNIST),
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
    require([name])
    if name == "digits":
        return _digits()
    file, checksum = FILES[name]
    for path in _found(file):
        with path.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != checksum:
                raise InputError(
                    f"{path} is damaged: it is not the file that the checksum is of",
                    hint=f"get it again, or remove it and make {made_file(name)}: {SCRIPT}",
                )
        return _from_npz(name, path)
    for path in _found(made_file(name)):
        with explained(str(path), "npz", BadZipFile, KeyError):
            return _of_its_shape(_from_npz(name, path), path)
    X, y = _cifar10_gist(progress) if name == "cifar10-gist" else _fashion_mnist()
    return Dataset(name, X, y.astype(np.int64), _none(y))


def made_file(name: str) -> str:
    """Return the name of the file that is made from a set's public data.

    >>> made_file("cifar10-gist")
    'cifar10_gist512_made.npz'
    """
    return FILES[name][0].rpartition("_")[0].removesuffix("_u8") + "_made.npz"


def is_here(name: str) -> bool:
    """Return whether a set, or what it is made from on its first use, is on this machine."""
    archived = {
        "cifar10-gist": (archives.CIFAR10.file,),
        "fashion-mnist": tuple(idx.file for idx in archives.FASHION_MNIST),
    }
    if describe(name).name not in FILES:
        return True
    ways = ((FILES[name][0],), (made_file(name),), archived.get(name, ()))
    return any(files and _found(*files) for files in ways)


def require(wanted: Iterable[str], otherwise: str = "") -> None:
    """Raise one error for all sets that are not on this machine.

    Args:
        wanted: names of sets.
        otherwise: what to do without them, as the end of a sentence.
    """
    missing = [name for name in dict.fromkeys(wanted) if not is_here(name)]
    if not missing:
        return
    files = " or ".join(f"{name} ({FILES[name][0]})" for name in missing)
    sources = "; ".join(dict.fromkeys(describe(name).public for name in missing))
    raise DataMissingError(
        f"there is no data set {files} on this machine; looked in {', '.join(map(str, folders()))}",
        hint=f"set EVERHASH_DATA to the folder that has the file; or make the features from public "
        f"data: {sources}; then `python {SCRIPT} {missing[0]} --source FOLDER`"
        + (f"; {otherwise}" if otherwise else ""),
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


def _of_its_shape(data: Dataset, path: Path) -> Dataset:
    """Return a set that was made here, if it has as many rows and dimensions as the shared one."""
    about = describe(data.name)
    if data.X.shape != (about.rows, about.dim) or data.y.shape != (about.rows,):
        raise InputError(
            f"{path}: expected {about.rows:,} rows of {about.dim} features, got "
            f"{data.X.shape} and {len(data.y):,} labels",
            hint="make it again from the whole public data",
        )
    return data


def _fashion_mnist() -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    folder = _found(*(idx.file for idx in archives.FASHION_MNIST))[0].parent
    X, y = archives.read_fashion_mnist(folder)
    return X.astype(np.float32), y


def _cifar10_gist(progress: Progress | None) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    images, y = archives.read_cifar10(_found(archives.CIFAR10.file)[0].parent)
    rounded = Quantised.of(gist(images, progress=progress))
    with suppress(OSError):  # where it cannot be kept it is computed again next time
        rounded.write(_cache() / made_file("cifar10-gist"), y)
    return rounded.features(), y


def _cache() -> Path:
    """Return the folder for computed features."""
    named, cache = os.environ.get("EVERHASH_DATA"), folders()[-1]
    if named and os.access(named, os.W_OK):
        return Path(named)
    cache.mkdir(parents=True, exist_ok=True)
    return cache
