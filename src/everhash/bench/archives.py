"""Image sets as their authors published them: CIFAR-10's binary version, Fashion-MNIST's IDX files.

Each file is checked against the md5 sum that its authors publish beside it (CIFAR-10's page,
Fashion-MNIST's README). That finds damaged files, and MNIST's files, which have the same names; it
does not stop an attacker. So sizes are not taken from the file: they are known beforehand, nothing
more is decompressed, and nothing is unpacked to disk. CIFAR-10's Python version is pickles, which
could run code; it is not read.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import InputError
from everhash.sources.columns import explained

Bytes = NDArray[np.uint8]

LABELS = 10
"""Number of labels in either set; they are numbered from 0."""
RECORD = 1 + 3 * 32 * 32
"""Bytes of a CIFAR-10 image: its label, then all of red, of green and of blue, row by row."""
MAX_OVERHEAD = 1 << 20
"""Bytes of a tar that may be headers, padding and other small files."""
BROKEN = (zlib.error, tarfile.TarError, RecursionError)
"""Raised by bad archives; RecursionError by a long chain of headers."""


class Batches(NamedTuple):
    """An archive of files with `records` records each."""

    file: str
    md5: str
    members: tuple[str, ...]
    """In the order of their rows."""
    records: int


class Idx(NamedTuple):
    """A gzipped array of bytes."""

    file: str
    md5: str
    shape: tuple[int, ...]


CIFAR10 = Batches(
    "cifar-10-binary.tar.gz",
    "c32a1d4ab5d03f1284b67883e8d87530",
    (
        *(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)),
        "cifar-10-batches-bin/test_batch.bin",
    ),
    10_000,
)
FASHION_MNIST = (
    Idx("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", (60_000, 28, 28)),
    Idx("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", (60_000,)),
    Idx("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", (10_000, 28, 28)),
    Idx("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", (10_000,)),
)
"""Images and labels of the training set, then of the test set."""


def read_cifar10(folder: Path) -> tuple[Bytes, Bytes]:
    """Return CIFAR-10's (60000, 32, 32, 3) images and their labels, in the official order."""
    path = folder / CIFAR10.file
    check_md5(path, CIFAR10.md5)
    return read_batches(path, CIFAR10.members, CIFAR10.records)


def read_fashion_mnist(folder: Path) -> tuple[Bytes, Bytes]:
    """Return Fashion-MNIST's (70000, 784) pixels and their labels, in the official order."""
    parts = []
    for idx in FASHION_MNIST:
        check_md5(folder / idx.file, idx.md5)
        parts.append(read_idx(folder / idx.file, idx.shape))
    X = np.concatenate(parts[::2])
    y = _checked_labels(np.concatenate(parts[1::2]), folder)
    return X.reshape(len(X), -1), y


def check_md5(path: Path, expected: str) -> None:
    """Raise if a file is not the published one."""
    with explained(str(path), "a file"), path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != expected:
        raise InputError(
            f"{path} is not the published file: expected md5 {expected}, got {found}",
            hint="it is damaged, or a file of another set with the same name; download it again",
        )


def read_batches(path: Path, members: Sequence[str], records: int) -> tuple[Bytes, Bytes]:
    """Read images and labels out of a .tar.gz of CIFAR-10's binary batches.

    Args:
        path: the archive.
        members: the files in it, in the order of their rows.
        records: how many images each has.
    """
    table = np.empty((len(members), records, RECORD), np.uint8)
    missing = set(members)
    with explained(str(path), "tar.gz", *BROKEN), gzip.open(path) as file:
        bounded: Any = _Bounded(file, table.nbytes + MAX_OVERHEAD, path)
        # as a stream, which cannot seek back and forth
        with tarfile.open(fileobj=bounded, mode="r|") as tar:
            for name, data in _files(tar, missing, records * RECORD, path):
                table[members.index(name)] = np.frombuffer(data, np.uint8).reshape(records, RECORD)
    if missing:
        raise _damaged(path, f"no {', '.join(sorted(missing))} in it")
    rows = table.reshape(-1, RECORD)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), _checked_labels(rows[:, 0].copy(), path)


def _files(
    tar: tarfile.TarFile, missing: set[str], size: int, path: Path
) -> Iterator[tuple[str, bytes]]:
    """Yield the missing files of a tar until all are found; each must have exactly this size."""
    for member in tar:
        if member.name in missing:
            plain = member.isfile() and not member.issparse()
            if not plain or member.size != size:
                what = f"{member.size} bytes" if plain else "something that is not a plain file"
                raise _damaged(path, f"expected {size} bytes of {member.name}, got {what}")
            file = tar.extractfile(member)
            data = b"" if file is None else file.read(size)
            if len(data) != size:
                raise _damaged(path, f"{member.name} ends after {len(data)} of {size} bytes")
            missing.remove(member.name)
            yield member.name, data
        if not missing:
            return


def read_idx(path: Path, shape: tuple[int, ...]) -> Bytes:
    """Read a gzipped IDX file of bytes that has exactly this shape."""
    header = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)  # 8: unsigned bytes
    size = len(header) + math.prod(shape)
    with explained(str(path), "gz", *BROKEN), gzip.open(path) as file:
        data = file.read(size + 1)
    if not data.startswith(header):
        got = data[: len(header)].hex()
        raise _damaged(path, f"expected the header {header.hex()} for shape {shape}, got {got}")
    if len(data) != size:
        more = "more" if len(data) > size else f"{len(data)}"
        raise _damaged(path, f"expected {size} bytes for shape {shape}, got {more}")
    return np.frombuffer(data, np.uint8, offset=len(header)).reshape(shape)


class _Bounded:
    """A file that raises when more than `most` bytes are read."""

    def __init__(self, file: gzip.GzipFile, most: int, path: Path) -> None:
        self._file, self._left, self._path = file, most, path

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise _damaged(self._path, "more data than expected")
        return data


def _checked_labels(y: Bytes, path: Path) -> Bytes:
    if y.size and y.max() >= LABELS:
        raise _damaged(path, f"expected labels below {LABELS}, got {y.max()}")
    return y


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"{path}: {what}", hint="it is damaged; download it again")
