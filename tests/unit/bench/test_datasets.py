"""Data sets by name: found, described and checked; from official archives."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash.bench import archives, datasets
from everhash.bench.archives import MAX_OVERHEAD, RECORD, Batches, Idx, read_batches, read_idx
from everhash.bench.gist import Quantised, gist
from everhash.errors import DataMissingError, InputError, UnknownNameError
from tests.conftest import missing

Bytes = NDArray[np.uint8]
MEMBERS = ("batches/one.bin", "batches/two.bin")
RECORDS = 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with data; the cache too."""
    monkeypatch.setenv("EVERHASH_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "folders", lambda: [tmp_path])
    return tmp_path


def some_images(n: int = RECORDS * len(MEMBERS)) -> tuple[Bytes, Bytes]:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (n, 32, 32, 3), np.uint8), rng.integers(0, 10, n, np.uint8)


def as_records(images: Bytes, y: Bytes) -> bytes:
    """Write as CIFAR-10's page says: label, then 1,024 bytes each of red, green and blue."""
    planes = [images[..., channel].reshape(len(y), -1) for channel in range(3)]
    return np.concatenate([y[:, None], *planes], axis=1).tobytes()


def as_tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def batches() -> dict[str, bytes]:
    images, y = some_images()
    halves = (slice(0, RECORDS), slice(RECORDS, None))
    parts = [as_records(images[half], y[half]) for half in halves]
    return {"batches/readme.html": b"hello", **dict(zip(MEMBERS, parts, strict=True))}


def as_idx(array: Bytes) -> bytes:
    return struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


# by name


def test_every_set_is_described_and_either_has_a_file_or_needs_none() -> None:
    assert datasets.names() == ["digits", *datasets.FILES]
    for name in datasets.names():
        assert datasets.describe(name).name == name
    with pytest.raises(UnknownNameError, match=r"no dataset 'sun397'.*cifar10-gist"):
        datasets.describe("sun397")
    with pytest.raises(UnknownNameError):
        datasets.load("sun397")


@pytest.mark.parametrize("name", datasets.names())
def test_a_set_is_what_its_description_says(name: str) -> None:
    try:
        data = datasets.load(name)
    except DataMissingError as error:
        missing(str(error))
    about = datasets.describe(name)
    assert data.X.shape == (about.rows, about.dim)
    assert data.X.dtype == np.float32
    assert data.y.dtype == np.int64
    labels = np.unique(data.y[data.y >= 0])
    np.testing.assert_array_equal(labels, np.arange(about.labels))
    assert data.classes is None or len(data.classes) == about.labels
    assert data.is_query.any() == (about.queries != "none")
    if about.queries == "20 a label":
        assert (np.bincount(data.y[data.is_query]) == 20).all()


def test_digits_need_no_file(folder: Path) -> None:
    data = datasets.load("digits")
    assert (data.X.min(), data.X.max()) == (0, 16)
    assert not any(folder.iterdir())


@pytest.mark.parametrize("name", list(datasets.FILES))
def test_a_missing_set_says_what_was_looked_for_and_where(folder: Path, name: str) -> None:
    with pytest.raises(DataMissingError) as caught:
        datasets.load(name)
    message = str(caught.value)
    assert datasets.FILES[name][0] in message
    assert str(folder) in message
    assert "EVERHASH_DATA" in message
    assert datasets.describe(name).public in message
    assert f"{datasets.SCRIPT} {name} --source" in message


def test_all_missing_sets_are_one_error(folder: Path) -> None:
    with pytest.raises(DataMissingError, match=r"caltech256-cnn \(.*or clinc150 \(.*go without"):
        datasets.require(["digits", "caltech256-cnn", "clinc150"], "go without")
    datasets.require(["digits"])


def test_a_set_that_was_made_here_is_used_where_the_shared_file_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = datasets.describe("clinc150")._replace(rows=4, dim=3)
    monkeypatch.setattr(datasets, "DATASETS", (about,))
    X, y = np.eye(4, 3, dtype=np.float16), np.array([0, 1, 0, -1], np.int16)
    splits: Any = {
        "split": np.array([0, 0, 1, 1], np.uint8),
        "split_names": np.array(["train", "test"]),
    }
    path = folder / datasets.made_file("clinc150")
    np.savez(path, X=X, y=y, **splits)
    made = datasets.load("clinc150")
    np.testing.assert_array_equal(made.X, X)
    np.testing.assert_array_equal(made.is_query, [False, False, True, True])
    np.savez(path, X=X[:2], y=y[:2])
    with pytest.raises(InputError, match="expected 4 rows of 3 features"):
        datasets.load("clinc150")
    path.write_bytes(b"PK")
    with pytest.raises(InputError, match="cannot be read"):
        datasets.load("clinc150")


def test_a_damaged_file_is_refused(folder: Path) -> None:
    (folder / "clinc150_minilm384_f16.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="is damaged"):
        datasets.load("clinc150")


# CIFAR-10's archive


@pytest.fixture
def cifar10(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small archive in the place of the official one."""
    data = gzip.compress(as_tar(batches()))
    monkeypatch.setattr(archives, "CIFAR10", Batches("small.tar.gz", md5(data), MEMBERS, RECORDS))
    (folder / "small.tar.gz").write_bytes(data)
    return folder / "small.tar.gz"


def test_batches_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    path = tmp_path / "turned.tar.gz"
    path.write_bytes(gzip.compress(as_tar(dict(reversed(batches().items())))))
    images, y = read_batches(path, MEMBERS, RECORDS)
    expected = some_images()
    np.testing.assert_array_equal(images, expected[0])
    np.testing.assert_array_equal(y, expected[1])


def test_gist_is_computed_from_the_archive_once(
    cifar10: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = datasets.describe("cifar10-gist")._replace(rows=6)
    monkeypatch.setattr(datasets, "DATASETS", (about,))
    told: list[tuple[int, int]] = []
    made = datasets.load("cifar10-gist", progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (6, 6)
    images, y = some_images()
    np.testing.assert_array_equal(made.X, Quantised.of(gist(images)).features())
    np.testing.assert_array_equal(made.y, y)
    assert not made.is_query.any()
    cifar10.unlink()
    kept = datasets.load("cifar10-gist", progress=lambda *_: pytest.fail("computed again"))
    np.testing.assert_array_equal(kept.X, made.X)
    np.testing.assert_array_equal(kept.y, made.y)


def test_gist_that_cannot_be_kept_is_given_all_the_same(
    cifar10: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = cifar10.parent / "file"
    in_the_way.touch()
    monkeypatch.setenv("EVERHASH_DATA", str(cifar10.parent / "nowhere"))
    monkeypatch.setattr(datasets, "folders", lambda: [cifar10.parent, in_the_way / "cache"])
    assert len(datasets.load("cifar10-gist").X) == 6
    assert {each.name for each in cifar10.parent.iterdir()} == {"file", "small.tar.gz"}


def test_gist_is_kept_in_the_users_cache_where_the_data_folder_is_not_given(
    cifar10: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cifar10.parent / "home" / ".cache" / "everhash"
    monkeypatch.delenv("EVERHASH_DATA")
    monkeypatch.setattr(datasets, "folders", lambda: [cifar10.parent, cache])
    datasets.load("cifar10-gist")
    assert [each.name for each in cache.iterdir()] == ["cifar10_gist512_made.npz"]


def test_an_archive_that_is_not_the_published_one_is_refused(cifar10: Path) -> None:
    cifar10.write_bytes(gzip.compress(as_tar({})))
    with pytest.raises(InputError, match="is not the published file: expected md5"):
        datasets.load("cifar10-gist")


def linked(files: dict[str, bytes]) -> bytes:
    """Return a tar of which one file is a link to the other."""
    buffer = io.BytesIO(as_tar({MEMBERS[0]: files[MEMBERS[0]]}))
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        link = tarfile.TarInfo(MEMBERS[1])
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    return buffer.getvalue()


def negative(files: dict[str, bytes]) -> bytes:
    """Return a tar of which the first header claims less than no bytes."""
    tar = bytearray(as_tar(files))
    tar[124:136] = b"\xff" * 11 + b"\x00"
    tar[148:156] = b" " * 8
    tar[148:156] = b"%06o\0 " % sum(tar[:512])
    return bytes(tar)


HOSTILE: dict[str, tuple[Callable[[dict[str, bytes]], bytes], str]] = {
    "nothing": (lambda _: b"", "cannot be read"),
    "no tar": (lambda _: b"x" * 3000, "cannot be read"),
    "a file too few": (lambda f: as_tar({MEMBERS[0]: f[MEMBERS[0]]}), "no batches/two.bin in it"),
    "a file elsewhere": (
        lambda f: as_tar({f"../{name}": data for name, data in f.items()}),
        "no batches/one.bin, batches/two.bin in it",
    ),
    "a record too few": (
        lambda f: as_tar(f | {MEMBERS[1]: f[MEMBERS[1]][RECORD:]}),
        f"expected {RECORDS * RECORD} bytes of batches/two.bin, got {(RECORDS - 1) * RECORD} bytes",
    ),
    "a byte too many": (lambda f: as_tar(f | {MEMBERS[0]: f[MEMBERS[0]] + b"0"}), "got 9220 bytes"),
    "a label too high": (
        lambda f: as_tar(f | {MEMBERS[0]: b"\x0a" + f[MEMBERS[0]][1:]}),
        "expected labels below 10, got 10",
    ),
    "a link": (linked, "got something that is not a plain file"),
    "a size below 0": (negative, "cannot be read|in it"),
    "the end missing": (lambda f: as_tar(f)[:-15_000], "cannot be read|ends after"),
    "a bomb": (lambda f: as_tar({"zeros": bytes(4 * MAX_OVERHEAD)} | f), "more data than expected"),
    "a bomb in a header": (
        lambda _: tarfile.TarInfo().create_pax_global_header({"comment": "0" * 4 * MAX_OVERHEAD}),
        "more data than expected",
    ),
    "headers upon headers": (
        lambda f: tarfile.TarInfo().create_pax_global_header({"a": "b"}) * 900 + as_tar(f),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path: Path, kind: str) -> None:
    make, message = HOSTILE[kind]
    path = tmp_path / "hostile.tar.gz"
    path.write_bytes(gzip.compress(make(batches())))
    with pytest.raises(InputError, match=message) as caught:
        read_batches(path, MEMBERS, RECORDS)
    assert str(path) in str(caught.value)


@given(at=st.integers(0, 512 * 4), flip=st.integers(1, 255))
@settings(max_examples=100)
def test_any_flipped_byte_gives_an_error_or_images(tmp_path: Path, at: int, flip: int) -> None:
    tar = bytearray(as_tar(batches()))
    tar[at] ^= flip
    path = tmp_path / "flipped.tar.gz"
    path.write_bytes(gzip.compress(bytes(tar), 1))
    shape = (6, 32, 32, 3)
    try:
        found = read_batches(path, MEMBERS, RECORDS)[0].shape
    except InputError:
        found = shape
    assert found == shape


def test_a_torn_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "torn.tar.gz"
    whole = gzip.compress(as_tar(batches()))
    for length in (0, 5, 100, len(whole) // 2):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="torn"):
            read_batches(path, MEMBERS, RECORDS)


# Fashion-MNIST's files


def write_fashion(folder: Path, monkeypatch: pytest.MonkeyPatch, X: Bytes, y: Bytes) -> None:
    """Write rows as four small files in the place of the official ones."""
    n = len(y) - 2
    arrays = (X[:n].reshape(-1, 28, 28), y[:n], X[n:].reshape(-1, 28, 28), y[n:])
    files = []
    for official, array in zip(archives.FASHION_MNIST, arrays, strict=True):
        data = gzip.compress(as_idx(array))
        (folder / official.file).write_bytes(data)
        files.append(Idx(official.file, md5(data), array.shape))
    monkeypatch.setattr(archives, "FASHION_MNIST", tuple(files))


def test_fashion_mnist_is_read_from_the_official_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 256, (7, 784), np.uint8), rng.integers(0, 10, 7, np.uint8)
    write_fashion(folder, monkeypatch, X, y)
    data = datasets.load("fashion-mnist")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.X.dtype == np.float32
    assert not data.is_query.any()


def test_mnist_is_not_taken_for_fashion_mnist(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fashion(folder, monkeypatch, np.zeros((5, 784), np.uint8), np.zeros(5, np.uint8))
    other = gzip.compress(as_idx(np.ones((3, 28, 28), np.uint8)))
    (folder / "train-images-idx3-ubyte.gz").write_bytes(other)
    with pytest.raises(InputError, match="a file of another set with the same name"):
        datasets.load("fashion-mnist")


def test_three_of_four_files_are_not_enough(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fashion(folder, monkeypatch, np.zeros((5, 784), np.uint8), np.zeros(5, np.uint8))
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataMissingError):
        datasets.load("fashion-mnist")


@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
@settings(max_examples=25)
def test_an_idx_file_gives_back_what_was_written(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
    path = tmp_path / "small.gz"
    path.write_bytes(gzip.compress(as_idx(array)))
    np.testing.assert_array_equal(read_idx(path, shape), array)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected the header"),
        (as_idx(np.zeros((3, 2), np.uint8)), "expected the header"),
        (as_idx(np.zeros((2, 2), np.uint8)), "expected the header"),
        (as_idx(np.zeros((2, 3), np.uint8))[:-1], "expected 18 bytes .* got 17"),
        (as_idx(np.zeros((2, 3), np.uint8)) + bytes(1 << 24), "expected 18 bytes .* got more"),
        (struct.pack(">III", 0x802, 2**31, 2**31), "expected the header"),
    ],
)
def test_an_idx_file_of_another_shape_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "hostile.gz"
    path.write_bytes(gzip.compress(data))
    with pytest.raises(InputError, match=message):
        read_idx(path, (2, 3))
    path.write_bytes(data or b"no gzip")
    with pytest.raises(InputError, match="cannot be read"):
        read_idx(path, (2, 3))
