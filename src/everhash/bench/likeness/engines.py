"""What searches by likeness: a collection by its public calls, FAISS and usearch."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

import everhash
from everhash import Collection, extras, kernels
from everhash.bench.likeness.rows import DIM, Counts, Floats
from everhash.errors import OptionError

K = 10
"""Entries asked for."""
Setting = dict[str, float]
"""Options of a search, which decide how much is found and how fast."""
OURS, FLAT = "everhash", "FAISS Flat"
TRAINED = 64
"""Rows a cell that FAISS's quantizers learn from, at most; more does not change the cells much."""


class Engine(Protocol):
    """Software that holds rows and finds the most alike."""

    def warm(self) -> None:
        """Load what is needed before a search, so that memory does not count it."""

    def begin(self, path: Path, n: int, sample: Floats) -> None:
        """Begin an index of n rows; `sample` are the first of them."""

    def add(self, X: Floats) -> None:
        """Add rows, which are numbered from 0."""

    def save(self) -> None:
        """Write everything to the path."""

    def open(self, path: Path) -> None:
        """Read what was saved."""

    def choose(self, setting: Setting) -> None:
        """Choose how the next searches are done."""

    def search(self, Q: Floats) -> Counts:
        """Return the numbers of the K most alike of each query."""


def takes_recall() -> bool:
    """Return whether a search of this version can be told how much to find."""
    return "recall" in inspect.signature(Collection.search).parameters


def by_likeness(collection: Collection, Q: Floats, setting: Setting) -> Counts:
    """Search a collection by likeness; `recall` is passed on where searches have it."""
    options: dict[str, Any] = {"exact": True} if "exact" in setting else {}
    if "recall" in setting and takes_recall():
        options["recall"] = setting["recall"]
    found: Counts = collection.search(Q, k=K, by="likeness", **options).ids
    return found


class OurEngine:
    """A collection in a file."""

    def __init__(self) -> None:
        self._collection: Any = None
        self._setting: Setting = {}

    def warm(self) -> None:
        """Load compiled kernels."""
        kernels.load_all()

    def begin(self, path: Path, n: int, sample: Floats) -> None:  # noqa: ARG002
        """Create the collection."""
        self._collection = everhash.create(path, dim=DIM)

    def add(self, X: Floats) -> None:
        """Add rows, each call one durable transaction."""
        self._collection.add(X)

    def save(self) -> None:
        """Close the collection, which has everything in its file already."""
        self._collection.wait()
        self._collection.close()

    def open(self, path: Path) -> None:
        """Open the collection."""
        self._collection = everhash.open(path)

    def choose(self, setting: Setting) -> None:
        """Choose how much is to be found."""
        self._setting = setting

    def search(self, Q: Floats) -> Counts:
        """Search by likeness."""
        return by_likeness(self._collection, Q, self._setting).astype(np.int64)


class FaissEngine:
    """An index of FAISS by its factory's name, in which {cells} is about the root of the rows."""

    def __init__(self, factory: str) -> None:
        self._factory = factory
        self._faiss: Any = extras.find("faiss")
        self._index: Any = None
        self._path = Path()
        if self._faiss is None:
            raise OptionError(f"faiss is not installed: {extras.install_hint('bench')}")
        self._faiss.omp_set_num_threads(1)

    def warm(self) -> None:
        """Do nothing: FAISS is loaded."""

    def begin(self, path: Path, n: int, sample: Floats) -> None:
        """Make the index and train it."""
        cells = max(1, round(n**0.5))
        name, product = self._factory.format(cells=cells), self._faiss.METRIC_INNER_PRODUCT
        self._path, self._index = path, self._faiss.index_factory(DIM, name, product)
        self._index.train(sample[: TRAINED * cells])

    def add(self, X: Floats) -> None:
        """Add rows."""
        self._index.add(X)

    def save(self) -> None:
        """Write the index."""
        self._faiss.write_index(self._index, str(self._path))

    def open(self, path: Path) -> None:
        """Read the index."""
        self._index = self._faiss.read_index(str(path))

    def choose(self, setting: Setting) -> None:
        """Set options by the names that FAISS has for them."""
        for name, value in setting.items():
            self._faiss.ParameterSpace().set_index_parameter(self._index, name, value)

    def search(self, Q: Floats) -> Counts:
        """Search by inner product, which is cosine as all rows have length 1."""
        found: Counts = self._index.search(Q, K)[1]
        return found


class UsearchEngine:
    """An index of usearch in half precision, on one thread."""

    def __init__(self) -> None:
        self._usearch: Any = extras.find("usearch.index")
        self._index: Any = None
        self._path = Path()
        if self._usearch is None:
            raise OptionError(f"usearch is not installed: {extras.install_hint('bench')}")

    def warm(self) -> None:
        """Do nothing: usearch is loaded."""

    def _new(self) -> Any:
        return self._usearch.Index(ndim=DIM, metric="ip", dtype="f16")

    def begin(self, path: Path, n: int, sample: Floats) -> None:  # noqa: ARG002
        """Make the index."""
        self._path, self._index = path, self._new()

    def add(self, X: Floats) -> None:
        """Add rows."""
        first = len(self._index)
        self._index.add(np.arange(first, first + len(X)), X, threads=1)

    def save(self) -> None:
        """Write the index."""
        self._index.save(str(self._path))

    def open(self, path: Path) -> None:
        """Read the index into memory."""
        self._index = self._new()
        self._index.load(str(path))

    def choose(self, setting: Setting) -> None:
        """Choose how many candidates a search keeps."""
        self._index.expansion_search = int(setting["expansion"])

    def search(self, Q: Floats) -> Counts:
        """Search; usearch returns no rows of rows for one query."""
        keys = self._index.search(Q if len(Q) > 1 else Q[0], K, threads=1).keys
        found: Counts = np.asarray(keys, np.int64).reshape(len(Q), -1)
        return found


class Known(NamedTuple):
    """An engine, how it holds rows in memory, and the settings it is asked at."""

    make: Any
    """A class, and its arguments."""
    holds: str
    settings: tuple[Setting, ...]

    def engine(self) -> Engine:
        """Return a new engine; raise if it is not installed."""
        kind, *arguments = self.make
        made: Engine = kind(*arguments)
        return made


EFFORTS = (16, 32, 64, 128, 256, 512)
PROBED = (1, 2, 4, 8, 16, 32, 64, 128)
ENGINES = {
    OURS: Known(
        (OurEngine,),
        "likeness codes in memory, half precision in the file",
        ({"recall": 0.9}, {"recall": 0.95}, {"recall": 0.98}, {"recall": 1.0}, {"exact": 1.0}),
    ),
    FLAT: Known((FaissEngine, "Flat"), "full precision", ({},)),
    "FAISS IVF": Known(
        (FaissEngine, "IVF{cells},Flat"),
        "full precision",
        tuple({"nprobe": probed} for probed in PROBED),
    ),
    "FAISS IVF RaBitQ": Known(
        (FaissEngine, "IVF{cells},RaBitQfs,Refine(SQfp16)"),
        "a bit a dimension, and half precision",
        tuple(
            {"nprobe": probed, "k_factor_rf": factor}
            for probed in PROBED[2:]
            for factor in (4, 10, 30)
        ),
    ),
    "FAISS HNSW": Known(
        (FaissEngine, "HNSW32"),
        "full precision and a graph",
        tuple({"efSearch": effort} for effort in EFFORTS),
    ),
    "usearch": Known(
        (UsearchEngine,),
        "half precision and a graph",
        tuple({"expansion": effort} for effort in EFFORTS),
    ),
}
"""By name. The first is ours; answers of the second are what the others should find."""


def in_words(setting: Setting) -> str:
    """Return a setting as people read it.

    >>> in_words({"nprobe": 8, "k_factor_rf": 10}), in_words({"recall": 0.98}), in_words({})
    ('nprobe=8, k_factor_rf=10', 'recall=0.98', '')
    """
    if "exact" in setting:
        return "exact=True"
    return ", ".join(f"{name}={value:g}" for name, value in setting.items())
