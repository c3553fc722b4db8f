"""Model files: what comes back, and what damaged, foreign and hostile files can do: nothing."""

from __future__ import annotations

import hashlib
import json
import os
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from everhash import OnlineHasher, limits, load_hasher
from everhash.errors import (
    CodebookWarning,
    DataMissingError,
    InputError,
    ModelFileError,
    NotFittedError,
    OptionError,
)
from everhash.learn.stream_hasher import StreamHasher

Arrays = dict[str, NDArray[Any]]
State = dict[str, Any]
Told = dict[str, str | None]
Edit = Callable[[State, Arrays], object]

MEGABYTE = 2**20


# What comes back


def stream(n: int, d: int = 5, labels: int = 7, seed: int = 0) -> tuple[NDArray[np.float32], Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(labels, size=n)
    X = rng.standard_normal((labels, d))[y] + rng.standard_normal((n, d)) / 2
    return X.astype(np.float32), y.tolist()


def assert_same(a: StreamHasher, b: StreamHasher, X: Any, folder: Path) -> None:
    """Everything there is to see is equal, and so are the bytes of both when saved."""
    assert a.labels_ == b.labels_
    assert [type(label) for label in a.labels_] == [type(label) for label in b.labels_]
    assert (a.width_, a.version_) == (b.width_, b.version_)
    np.testing.assert_array_equal(a.versions_, b.versions_)
    np.testing.assert_array_equal(a.codewords_, b.codewords_)
    np.testing.assert_array_equal(a.margins(X), b.margins(X))
    a.save(folder / "a")
    b.save(folder / "b")
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


OWN_WORDS = np.array([[1, 1, -1, 1], [-1, 1, 1, 1], [1, -1, -1, -1]], np.int8)
OWN_CENTER = np.array([0.5, -1, 0, 2, 3])
HASHERS: dict[str, Callable[[], OnlineHasher]] = {
    "default": OnlineHasher,
    "paper": OnlineHasher.paper,
    "linear": lambda: OnlineHasher(bits=5, features=0, publish=1.1, learn_unlabelled=True),
    "several cycles": lambda: OnlineHasher(bits=5, labels_per_cycle=3, features=100),
    "sgd": lambda: OnlineHasher(bits=5, labels_per_cycle=3, learner="sgd", replay=2),
    "one cycle": lambda: OnlineHasher(bits=5, labels_per_cycle=None, features=100),
    "sqrt schedule": lambda: OnlineHasher(bits=6, learner="sgd", schedule="sqrt", step=0.5),
    "logistic, no average": lambda: OnlineHasher(
        bits=6, learner="sgd", loss="logistic", average=False
    ),
    "hadamard": lambda: OnlineHasher(bits=6, codebook="hadamard", labels_per_cycle=4, features=100),
    "own codebook": lambda: OnlineHasher(
        bits=4, codebook=OWN_WORDS, labels_per_cycle=3, features=100
    ),
    "own codebook in lists": lambda: OnlineHasher(
        bits=4, codebook=OWN_WORDS.tolist(), labels_per_cycle=3, features=100
    ),
    "own center": lambda: OnlineHasher(bits=4, learner="sgd", center=OWN_CENTER),
    "no center": lambda: OnlineHasher(bits=4, learner="sgd", center=None),
    "no memory": lambda: OnlineHasher(bits=4, learner="sgd", replay=0),
    "seed drawn": lambda: OnlineHasher(bits=4, random_state=None, features=100),
    "large seed": lambda: OnlineHasher(bits=4, random_state=2**100, features=100),
    "numbers of other types": lambda: OnlineHasher(
        bits=np.int64(4),  # type: ignore[arg-type]
        learner="sgd",
        step=Fraction(1, 2),  # type: ignore[arg-type]
        average=np.bool_(True),  # type: ignore[arg-type]
        labels_per_cycle=np.uint8(3),  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("name", HASHERS)
def test_learning_goes_on_after_loading_as_if_it_had_never_stopped(
    name: str, tmp_path: Path
) -> None:
    X, y = stream(1400)
    hasher = HASHERS[name]().partial_fit(X[:700], y[:700])
    hasher.save(tmp_path / "model")
    loaded = load_hasher(tmp_path / "model")
    assert_same(hasher, loaded, X, tmp_path)
    for start in (700, 1050):
        more = slice(start, start + 350)
        hasher.partial_fit(X[more], y[more])
        loaded.partial_fit(X[more], y[more])
    assert_same(hasher, loaded, X, tmp_path)


@pytest.mark.parametrize("rows", [1, 40, 999, 1000, 1001])
def test_every_moment_of_the_warm_up_can_be_saved(rows: int, tmp_path: Path) -> None:
    X, y = stream(1100)
    hasher = OnlineHasher(bits=4, features=100).partial_fit(X[:rows], y[:rows])
    hasher.save(tmp_path / "model")
    loaded = load_hasher(tmp_path / "model")
    assert_same(hasher.partial_fit(X, y), loaded.partial_fit(X, y), X, tmp_path)


MIXED: list[Hashable] = [
    5,
    -3,
    2**70,
    "5",
    "ключ \ud800 \x00",
    True,
    False,
    2.5,
    -1e-300,
    b"",
    b"\x00\xff",
    (),
    ("a", (1, b"x", (2.5, False)), ""),
    (1,),
]


def test_labels_of_every_kind_come_back_as_they_were(tmp_path: Path) -> None:
    X, _ = stream(42)
    hasher = OnlineHasher(bits=6, labels_per_cycle=4).partial_fit(X, MIXED * 3)
    hasher.assign([""])  # no input may name it any more, but older files have it
    hasher.save(tmp_path / "model")
    loaded = load_hasher(tmp_path / "model")
    assert repr(loaded.labels_) == repr([*MIXED, ""])
    assert_same(hasher, loaded, X, tmp_path)
    y = [*MIXED[::-1], "new"]
    assert_same(hasher.partial_fit(X[:15], y), loaded.partial_fit(X[:15], y), X, tmp_path)


def test_numpy_labels_come_back_as_plain_ones(tmp_path: Path) -> None:
    y = [np.int16(4), (np.int64(1), np.str_("a")), np.longdouble(2.5), {np.str_("b"), np.uint8(9)}]
    hasher = OnlineHasher(bits=4).partial_fit(np.eye(4), y)
    hasher.save(tmp_path / "model")
    assert load_hasher(tmp_path / "model").labels_ == [4, (1, "a"), 2.5, 9, "b"]


def test_column_names_come_back_and_are_held_to(tmp_path: Path) -> None:
    X, y = stream(50, d=3)
    frame = pd.DataFrame(X, columns=["height", "ширина", "z"])
    hasher = OnlineHasher(bits=4).partial_fit(frame, y)
    hasher.save(tmp_path / "model")
    loaded = load_hasher(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["height", "ширина", "z"]
    assert loaded.feature_names_in_.dtype == object
    assert_same(hasher.partial_fit(frame, y), loaded.partial_fit(frame, y), frame, tmp_path)
    with pytest.raises(ValueError, match="feature names"):
        loaded.partial_fit(frame[["z", "height", "ширина"]], y)


@pytest.mark.parametrize("replay", [0, 10, 10**6])
def test_a_hasher_without_labels_comes_back(replay: int, tmp_path: Path) -> None:
    X, y = stream(60)
    hasher = OnlineHasher(bits=4, learner="sgd", replay=replay).partial_fit(X)
    hasher.save(tmp_path / "model")
    with cheaply(tmp_path / "model"):
        loaded = load_hasher(tmp_path / "model")
    assert loaded.labels_ == []
    if replay < 10**6:
        assert_same(hasher.partial_fit(X, y), loaded.partial_fit(X, y), X, tmp_path)
    assert_same(hasher, loaded, X, tmp_path)


def test_what_may_change_while_learning_comes_back_changed(tmp_path: Path) -> None:
    X, y = stream(100)
    sgd = OnlineHasher(bits=4, learner="sgd").partial_fit(X, y)
    sgd.set_params(step=0.25, loss="logistic", schedule="sqrt")
    exact = OnlineHasher(bits=4, features=20).partial_fit(X, y).set_params(publish=1.1)
    for hasher in (sgd, exact):
        hasher.save(tmp_path / "model")
        loaded = load_hasher(tmp_path / "model")
        assert loaded.get_params() == hasher.get_params()
        assert_same(hasher.partial_fit(X, y), loaded.partial_fit(X, y), X, tmp_path)


# Saving


@pytest.mark.parametrize(
    "changed", [{"bits": 5}, {"codebook": OWN_WORDS}, {"publish": "fast"}, {"step": 0.5}]
)
def test_options_that_no_longer_fit_are_not_saved(changed: State, tmp_path: Path) -> None:
    X, y = stream(20)
    hasher = OnlineHasher(bits=4).partial_fit(X, y).set_params(**changed)
    with pytest.raises(OptionError):
        hasher.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("label", [1 + 2j, ("a", frozenset({1})), (1, None), range(3)])
def test_a_label_that_cannot_be_saved_touches_no_file(label: Hashable, tmp_path: Path) -> None:
    hasher = OnlineHasher(bits=2).partial_fit([[1.0, 2.0], [2.0, 1.0]], ["a", label])
    with pytest.raises(InputError, match="cannot be saved"):
        hasher.save(tmp_path / "new")
    (tmp_path / "old").write_text("precious")
    with pytest.raises(InputError, match="cannot be saved"):
        hasher.save(tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "precious"


def test_nothing_learned_is_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        OnlineHasher().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_saving_over_a_file_replaces_it_and_leaves_nothing_else(tmp_path: Path) -> None:
    X, y = stream(30)
    hasher = OnlineHasher(bits=4).partial_fit(X, y)
    (tmp_path / "model").write_bytes(b"old" * 10_000)
    hasher.save(str(tmp_path / "model"))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert_same(hasher, load_hasher(str(tmp_path / "model")), X, tmp_path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError("no space left on device")

    X, y = stream(30)
    hasher = OnlineHasher(bits=4).partial_fit(X, y)
    hasher.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    hasher.partial_fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="no space"):
            hasher.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_bytes() == before


def test_a_folder_that_is_not_there_or_in_the_way_is_an_os_error(tmp_path: Path) -> None:
    hasher = OnlineHasher(bits=2).partial_fit([[1.0, 2.0]], ["a"])
    with pytest.raises(FileNotFoundError):
        hasher.save(tmp_path / "missing" / "model")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        hasher.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "any").touch()
    OnlineHasher(bits=2).partial_fit([[1.0, 2.0]], ["a"]).save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_the_file_is_plain_safetensors_with_the_documented_parts(tmp_path: Path) -> None:
    X, y = stream(30)
    options: State = {"codebook": OWN_WORDS, "center": OWN_CENTER, "labels_per_cycle": 3}
    OnlineHasher(bits=4, learner="sgd", **options).partial_fit(X, y).save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        assert set(file.metadata()) == {"everhash"}
        about = json.loads(file.metadata()["everhash"])
        assert set(about) == {"format", "version", "state", "sha256"}
        assert set(file.keys()) == {*ARRAYS, "given_codebook", "given_center"}


# Damage


ARRAYS = {
    "codewords": np.int8,
    "last": np.float32,
    "mean": np.float32,
    "updates": np.int64,
    "averaged": np.int64,
    "rounds": np.int64,
    "restarts": np.int64,
    "center": np.float32,
    "center_total": np.float64,
    "memory": np.float32,
    "clock": np.int64,
    "heard": np.int64,
    "seen": np.int64,
    "slots": np.int64,
}
COUNTS = [name for name, dtype in ARRAYS.items() if dtype is np.int64]
FLOATS = [name for name, dtype in ARRAYS.items() if np.dtype(dtype).kind == "f"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A whole model file of less than two kilobytes."""
    hasher = OnlineHasher(bits=2, labels_per_cycle=2, learner="sgd", replay=1).partial_fit(
        [[1.0, 2.0], [3.0, 1.0], [0.0, 5.0], [2.0, 2.0]], ["a", "b", 3, "a"]
    )
    path = tmp_path_factory.mktemp("tiny") / "model"
    hasher.save(path)
    return path.read_bytes()


def assert_refused_or_unharmed(path: Path, original: bytes) -> None:
    try:
        loaded = load_hasher(path)
    except ModelFileError:
        return
    loaded.save(path.with_name("again"))
    assert path.with_name("again").read_bytes() == original


def test_every_truncation_is_refused(tiny: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    with path.open("wb", buffering=0) as file:  # grown byte by byte: cheaper than cutting
        for byte in tiny:
            with pytest.raises(ModelFileError):
                load_hasher(path)
            file.write(bytes([byte]))
    assert load_hasher(path).labels_ == ["a", "b", 3]


def test_every_single_bit_flip_is_refused_or_harmless(tiny: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(tiny)
    with path.open("r+b", buffering=0) as file:
        for position, byte in enumerate(tiny):
            for flipped in [byte ^ 1 << bit for bit in range(8)]:
                os.pwrite(file.fileno(), bytes([flipped]), position)
                assert_refused_or_unharmed(path, tiny)
            os.pwrite(file.fileno(), bytes([byte]), position)
    assert path.read_bytes() == tiny


@given(data=st.data())
def test_splices_of_a_model_file_are_refused_or_harmless(
    data: st.DataObject, tiny: bytes, tmp_path: Path
) -> None:
    start = data.draw(st.integers(0, len(tiny)))
    end = data.draw(st.integers(start, min(len(tiny), start + 40)))
    patch = data.draw(st.binary(max_size=40) | st.text(max_size=10).map(str.encode))
    (tmp_path / "damaged").write_bytes(tiny[:start] + patch + tiny[end:])
    assert_refused_or_unharmed(tmp_path / "damaged", tiny)


@given(
    garbage=st.binary(max_size=200)
    | st.binary(max_size=100).map(lambda text: len(text).to_bytes(8, "little") + text)
    | st.text(max_size=60).map(
        lambda name: (
            (header := json.dumps({"__metadata__": {name: name}, name: []}).encode())
            and len(header).to_bytes(8, "little") + header
        )
    )
)
def test_garbage_is_refused(garbage: bytes, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(garbage)
    with pytest.raises(ModelFileError):
        load_hasher(tmp_path / "model")


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.touch()
    with pytest.raises(ModelFileError, match="damaged or was not written by everhash"):
        load_hasher(foreign)
    foreign.write_text(json.dumps({"format": "everhash-hasher", "version": "1"}))
    with pytest.raises(ModelFileError):
        load_hasher(foreign)
    with zipfile.ZipFile(foreign, "w") as archive:
        archive.writestr("state", "{}")
    with pytest.raises(ModelFileError):
        load_hasher(foreign)
    np.save(foreign.with_suffix(".npy"), np.zeros(3))
    with pytest.raises(ModelFileError):
        load_hasher(foreign.with_suffix(".npy"))
    save_file({"weight": np.zeros(3)}, foreign)
    with pytest.raises(ModelFileError, match="not a hasher's file"):
        load_hasher(foreign)


def test_a_missing_file_is_data_missing(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path, tmp_path / "no" / "such" / "folder"):
        with pytest.raises(DataMissingError, match=str(path)) as caught:
            load_hasher(path)
        assert isinstance(caught.value, FileNotFoundError)


# Malice: files whose checksum is right


class cheaply:  # noqa: N801 - reads as a sentence: with cheaply(path): load_hasher(path)
    """Within a second of work, and at no more than 64 MB beyond twice the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        tracemalloc.start()
        self.start = time.process_time()

    def __exit__(self, *error: object) -> None:
        seconds = time.process_time() - self.start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < 1
        assert peak < 64 * MEGABYTE + 2 * self.path.stat().st_size


def refused(path: Path, says: str | None = None) -> ModelFileError:
    with cheaply(path), pytest.raises(ModelFileError, match=says) as caught:
        load_hasher(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint
    assert "checksum" not in caught.value.message
    return caught.value


def craft(path: Path, state: State | str, arrays: Arrays, told: Told | None = None) -> Path:
    """Write a model file by its documentation, with the checksum that belongs to it."""
    text = state if isinstance(state, str) else json.dumps(state)
    total = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"|{name}|{array.dtype.str}|{arrays[name].shape}|".encode())
        total.update(array.tobytes())
    metadata: Told = {"format": "everhash-hasher", "version": "1", "state": text}
    metadata |= {"sha256": total.hexdigest()} | (told or {})
    about = {name: value for name, value in metadata.items() if value is not None}
    save_file(arrays, path, {"everhash": json.dumps(about)})
    return path


VICTIM: dict[str, Any] = {
    "bits": 3,
    "labels_per_cycle": 2,
    "learner": "sgd",
    "replay": 2,
    "codebook": "random",
}


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Arrays]:
    """State and arrays of a good file: 4 features, 3 bits, 5 labels in 3 cycles of 2."""
    X, y = stream(60, d=4, labels=5)
    path = tmp_path_factory.mktemp("victim") / "model"
    OnlineHasher(**VICTIM).partial_fit(X, y).save(path)
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["everhash"])
        return about["state"], {name: file.get_tensor(name) for name in ARRAYS}


def edited(victim: tuple[str, Arrays], edit: Edit, path: Path) -> Path:
    state = json.loads(victim[0])
    arrays = {name: array.copy() for name, array in victim[1].items()}
    edit(state, arrays)
    return craft(path, state, arrays)


def test_a_crafted_file_that_changes_nothing_loads(
    victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    X, y = stream(60, d=4, labels=5)
    hasher = OnlineHasher(**VICTIM)
    loaded = load_hasher(edited(victim, tell("draws", 60), tmp_path / "model"))
    assert_same(hasher.partial_fit(X, y), loaded, X, tmp_path)


OTHER_DTYPES = {"i": np.int32, "f": np.float16}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_type_shape_or_none_at_all_is_refused(
    name: str, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    state, arrays = victim
    array = arrays[name]
    for other in (
        array.astype(OTHER_DTYPES[array.dtype.kind]),
        array.astype(np.float64 if array.dtype != np.float64 else np.float32),
        array.view(f"u{array.itemsize}"),
        array[:-1],
        np.concatenate([array, array[:1]]),
        array[None],
        array[0],
        array.reshape(-1)[0],
        array[..., None],
    ):
        changed = {**arrays, name: np.array(other, order="C")}
        refused(
            craft(tmp_path / "model", state, changed), "array|slots|labels|cycles|center|features"
        )
    missing = {key: value for key, value in arrays.items() if key != name}
    refused(craft(tmp_path / "model", state, missing), f"{name}")


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(
    name: str, value: float, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    def edit(state: State, arrays: Arrays) -> None:
        arrays[name].reshape(-1)[-1] = value

    refused(edited(victim, edit, tmp_path / "model"), f"{name}.*NaN or infinity")


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [-1, -(2**63), 2**62, 2**63 - 1])
def test_counts_nobody_could_count_to_are_refused(
    name: str, value: int, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    def edit(state: State, arrays: Arrays) -> None:
        arrays[name].reshape(-1)[0] = value

    refused(edited(victim, edit, tmp_path / "model"), f"{name}.*count")


def put(name: str, index: Any, value: Any) -> Edit:
    """Edit one element of an array."""

    def edit(state: State, arrays: Arrays) -> None:
        arrays[name][index] = value

    return edit


def swap(name: str, array: Any) -> Edit:
    """Replace or add an array."""
    return lambda _, arrays: arrays.update({name: np.ascontiguousarray(array)})


def both(*edits: Edit) -> Edit:
    return lambda state, arrays: [edit(state, arrays) for edit in edits]


def tell(key: str, value: Any) -> Edit:
    """Change the state, or with "params.bits" one of the options."""

    def edit(state: State, arrays: Arrays) -> None:
        *above, last = key.split(".")
        place = state[above[0]] if above else state
        place[last] = value

    return edit


def reshape_last(*shape: int) -> Edit:
    return both(swap("last", np.zeros(shape, np.float32)), tell("params.bits", shape[1]))


def nested(depth: int) -> Any:
    label: Any = 1
    for _ in range(depth):
        label = {"tuple": [label]}
    return label


CONTRADICTIONS: dict[str, tuple[Edit, str]] = {
    "codeword with 0": (put("codewords", (0, 0), 0), "codewords hold"),
    "codeword with 2": (put("codewords", (4, 2), 2), "codewords hold"),
    "codeword with -128": (put("codewords", (1, 1), -128), "codewords hold"),
    "slot out of range": (put("slots", (0, 0), 10**6), "slots do not fit"),
    "slot just out of range": (put("slots", (0, 0), 10), "slots do not fit"),
    "slot twice": (swap("slots", np.zeros((5, 2), np.int64)), "slots do not fit"),
    "fewer rows seen than remembered": (put("seen", 0, 0), "slots do not fit"),
    "memory of another width": (swap("memory", np.zeros((10, 3), np.float32)), "memory"),
    "memory beyond float32": (put("memory", (0, 0), 3e38), "out of range"),
    "memory of unknown labels": (
        both(
            swap("seen", np.zeros(6, np.int64)),
            swap("slots", np.zeros((6, 2), np.int64)),
            swap("heard", np.zeros(6, np.int64)),
        ),
        "seen|heard",
    ),
    "clock of unknown cycles": (swap("clock", np.zeros(4, np.int64)), "clock"),
    "restart after the end": (put("restarts", 0, 10**6), "averages restart"),
    "center elsewhere": (put("center", 0, 1e6), "does not match its rows"),
    "total of more rows": (put("center_total", 0, 1e300), "total does not fit"),
    "count of fewer rows": (tell("center_count", 59), "does not match its rows"),
    "no rows, but a total": (tell("center_count", 0), "total does not fit"),
    "center that should not move": (tell("params.center", None), "count below 1"),
    "too many labels for the words": (tell("labels", list("abcdef")), "codewords"),
    "too many labels for the cycles": (tell("labels", list("abcdefg")), "codewords"),
    "too few labels": (tell("labels", ["a"]), "codewords"),
    "ten thousand labels": (tell("labels", list(range(10**4))), "codewords"),
    "no labels": (tell("labels", []), "codewords"),
    "label twice": (tell("labels", ["a", "b", "c", "d", "a"]), "listed twice"),
    "label twice in disguise": (tell("labels", [1, "1", 2, 3, True]), "listed twice"),
    "label twice as a float": (tell("labels", [1, 1.0, 2, 3, 4]), "listed twice"),
    "label null": (tell("labels", [None, 1, 2, 3, 4]), "no name"),
    "label a list": (tell("labels", [[1], 1, 2, 3, 4]), "unknown form"),
    "label an unknown object": (tell("labels", [{"set": [1]}, 1, 2, 3, 4]), "unknown form"),
    "label two objects": (tell("labels", [{"tuple": [], "bytes": ""}, 1, 2, 3, 4]), "unknown"),
    "label NaN": (tell("labels", [float("nan"), 1, 2, 3, 4]), "NaN"),
    "label infinity": (tell("labels", [float("inf"), 1, 2, 3, 4]), "infinity"),
    "label of bad bytes": (tell("labels", [{"bytes": "xyz"}, 1, 2, 3, 4]), "fromhex"),
    "label of bytes that are none": (tell("labels", [{"bytes": 7}, 1, 2, 3, 4]), "fromhex"),
    "label a tuple of text": (tell("labels", [{"tuple": "abc"}, 1, 2, 3, 4]), "unknown form"),
    "labels a text": (tell("labels", "abcde"), "expected a list"),
    "labels an object": (tell("labels", dict.fromkeys("abcde")), "expected a list"),
    "labels a number": (tell("labels", 5), "expected a list"),
    "functions of other features": (reshape_last(3, 3, 5), "last"),
    "bits that do not fit": (tell("params.bits", 4), "codewords"),
    "more bits than supported": (reshape_last(1, limits.WIDTH + 1, 1), f"at most {limits.WIDTH}"),
    "more features than supported": (
        swap("center", np.zeros(limits.DIMS + 1, np.float32)),
        "features",
    ),
    "no features": (swap("center", np.zeros(0, np.float32)), "0 features"),
    "no bits": (reshape_last(3, 0, 4), "bits must be"),
    "no cycles": (reshape_last(0, 3, 4), "last"),
    "huge replay": (tell("params.replay", 10**12), "replay must be at most"),
    "replay beyond any array": (tell("params.replay", 10**40), "replay must be at most"),
    "huge cycles, many of them": (tell("params.labels_per_cycle", 10**18), "last"),
    "one cycle, many of them": (tell("params.labels_per_cycle", None), "last"),
    "more cycles than there are": (tell("params.labels_per_cycle", 1), "last"),
    "means nobody takes": (tell("params.average", False), "mean"),
    "unknown option": (tell("params.command", "rm"), "unexpected keyword"),
    "no option at all": (tell("params", {}), "codewords"),
    "options a list": (tell("params", ["bits"]), "bad state"),
    "options a text": (tell("params", "bits"), "bad state"),
    "options missing": (tell("params", None), "bad state"),
    "own codebook too wide": (swap("given_codebook", np.ones((2, 4), np.int8)), "shape"),
    "own codebook of zeros": (swap("given_codebook", np.zeros((2, 3), np.int8)), "-1 and"),
    "own codebook of one word": (swap("given_codebook", np.ones((2, 3), np.int8)), "word twice"),
    "own codebook of floats": (swap("given_codebook", np.ones((1, 3))), "given_codebook"),
    "own center too wide": (swap("given_center", np.ones(5, np.float32)), "features"),
    "own center of NaN": (swap("given_center", np.full(4, np.nan, np.float32)), "NaN"),
    "own center beyond float32": (swap("given_center", np.full(4, 1e300)), "given_center"),
    "own center a table": (swap("given_center", np.ones((4, 1), np.float32)), "given_center"),
    "too few columns": (tell("columns", ["a", "b", "c"]), "column names"),
    "too many columns": (tell("columns", ["a", "b", "c", "d", "e"]), "column names"),
    "columns of numbers": (tell("columns", [1, 2, 3, 4]), "column names"),
    "columns of lists": (tell("columns", [["a"], ["b"], ["c"], ["d"]]), "column names"),
    "columns a text": (tell("columns", "abcd"), "expected a list"),
    "columns an object": (tell("columns", dict.fromkeys("abcd")), "expected a list"),
    "columns null": (tell("columns", None), "expected a list"),
    "deeply nested label": (tell("labels", [nested(400), 1, 2, 3]), "cannot be a label"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_parts_that_contradict_each_other_are_refused(
    name: str, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    edit, says = CONTRADICTIONS[name]
    refused(edited(victim, edit, tmp_path / "model"), says)


NO_OPTION: dict[str, list[Any]] = {
    "bits": ["3", 3.0, True, None, [3], -3, 10**40],
    "labels_per_cycle": ["2", "automatic", 2.0, 0, -2, True, [2], {}],
    "step": ["1", 0, -1, float("nan"), float("inf"), None, True, [1.0]],
    "loss": ["zero", 0, None, ["hinge"]],
    "average": [1, 0, "yes", None],
    "codebook": ["rows", 7, None, {}, [[1, 0, 1]], [[1, 1], [1]]],
    "replay": ["2", 2.0, -1, None, True],
    "center": ["origin", 5, {}, [1, 2], [[1, 2, 3, 4]], ["a", "b", "c", "d"]],
    "random_state": [-1, 0.5, "0", True, [0]],
    "schedule": ["linear", None, 0],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in NO_OPTION.items() for value in values]
)
def test_options_that_are_none_are_refused(
    name: str, value: Any, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    refused(edited(victim, tell(f"params.{name}", value), tmp_path / "model"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, too_large in (("seed", 2**128), ("draws", 2**62), ("center_count", 1001))
        for value in (-1, 0.5, 60.0, "0", None, True, [0], too_large, 10**1000)
    ],
)
def test_counters_that_count_nothing_are_refused(
    name: str, value: Any, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    refused(edited(victim, tell(name, value), tmp_path / "model"), "expected a count")


@pytest.mark.parametrize(
    "key", ["params", "seed", "labels", "columns", "center_count", "draws", "everything"]
)
def test_a_state_with_a_part_missing_is_refused(
    key: str, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    def forget(state: State, arrays: Arrays) -> None:
        for name in list(state) if key == "everything" else [key]:
            del state[name]

    refused(edited(victim, forget, tmp_path / "model"), "bad state: KeyError")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "hasher",
        "[]",
        "7",
        "null",
        '"params"',
        "{}{}",
        "1" * 5000,
        '{"params": ' + "1" * 5000 + "}",
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"params": {"bits": 3}, "labels": ' + "[" * 50_000 + "]" * 50_000 + "}",
        "\ufeff{}",
    ],
    ids=lambda text: repr(text[:16]) + str(len(text)),
)
def test_a_state_that_is_no_state_is_refused(
    text: str, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    refused(craft(tmp_path / "model", text, victim[1]), "bad state")


def test_another_format_is_refused_and_a_newer_version_asks_for_an_upgrade(
    victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    path = tmp_path / "model"
    for other in ("everhash-index", "", None):
        refused(craft(path, *victim, {"format": other}), "not a hasher's file")
    for version in ("3", "1.1", "", "1" * 10**6, None):
        error = refused(craft(path, *victim, {"version": version}), "version .* is unknown")
        assert "upgrade" in error.hint
        assert len(error.message) < 300 + len(str(path))


@pytest.mark.parametrize("told", [{"state": None}, {"sha256": None}, {"sha256": "0" * 64}])
def test_a_checksum_that_does_not_match_is_refused(
    told: Told, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match="checksum"):
        load_hasher(craft(tmp_path / "model", *victim, told))


HEADERS: dict[str, dict[str, Any]] = {
    "type numpy lacks": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]},
    "another type numpy lacks": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
    "unknown type": {"dtype": "PICKLE", "shape": [8], "data_offsets": [0, 8]},
    "too many axes": {"dtype": "I64", "shape": [1] * 100, "data_offsets": [0, 8]},
    "nothing, hugely": {"dtype": "I64", "shape": [0, 2**60], "data_offsets": [0, 0]},
    "a shape that overflows": {"dtype": "I64", "shape": [2**33, 2**33], "data_offsets": [0, 8]},
    "more than the file has": {"dtype": "I64", "shape": [2**30], "data_offsets": [0, 2**33]},
    "offsets the wrong way": {"dtype": "I64", "shape": [1], "data_offsets": [8, 0]},
    "a negative shape": {"dtype": "I64", "shape": [-1], "data_offsets": [0, 8]},
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_promise_the_impossible_are_refused(name: str, tmp_path: Path) -> None:
    about = {"format": "everhash-hasher", "version": "1", "state": "{}", "sha256": ""}
    metadata = {"everhash": json.dumps(about)}
    header = json.dumps({"__metadata__": metadata, "last": HEADERS[name]}).encode()
    path = tmp_path / "model"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    refused(path)


def test_a_header_longer_than_any_file_is_refused(tmp_path: Path) -> None:
    for length in (9, 2**31, 2**63, 2**64 - 1):
        (tmp_path / "model").write_bytes(length.to_bytes(8, "little") + b"{}      ")
        refused(tmp_path / "model")


# Malice at random: whatever is accepted must be usable


def assert_refused_or_usable(path: Path) -> None:
    X, y = stream(12, d=4, labels=7)
    try:
        hasher = load_hasher(path)
    except ModelFileError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodebookWarning)
        hasher.partial_fit(X, y)
    assert hasher.margins(X).shape == (12, hasher.width_)
    assert len(hasher.codewords_) == len(hasher.labels_)
    hasher.save(path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 8)
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["auto", "hinge", "logistic", "warmup", "maxmin", "hadamard", "sqrt"]),
    lambda inside: (
        st.lists(inside, max_size=6)
        | st.dictionaries(st.sampled_from(["tuple", "bytes", "bits", "a"]), inside, max_size=2)
    ),
    max_leaves=8,
)
PLACES = st.sampled_from(
    ["params", "seed", "labels", "columns", "center_count", "draws", "unknown"]
    + [f"params.{name}" for name in (*NO_OPTION, "unknown")]
)


@given(place=PLACES, value=JSON)
@settings(max_examples=200)
def test_any_state_is_refused_or_usable(
    place: str, value: Any, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    assert_refused_or_usable(edited(victim, tell(place, value), tmp_path / "model"))


def some_array(name: str, shape: tuple[int, ...]) -> Iterator[st.SearchStrategy[NDArray[Any]]]:
    yield hnp.arrays(ARRAYS[name], shape)
    if ARRAYS[name] is np.int64:
        yield hnp.arrays(np.int64, shape, elements=st.integers(0, 12))
        yield hnp.arrays(np.int64, shape, elements=st.integers(2**62 - 5, 2**62 + 5))
    if np.dtype(ARRAYS[name]).kind == "f":
        finite = {"allow_nan": False, "allow_infinity": False}
        yield hnp.arrays(ARRAYS[name], shape, elements=finite)
    yield hnp.arrays(ARRAYS[name], hnp.array_shapes(min_dims=0, min_side=0, max_side=6))
    yield hnp.arrays(
        hnp.integer_dtypes(endianness="<") | hnp.floating_dtypes(endianness="<"), shape
    )


@given(data=st.data(), name=st.sampled_from(list(ARRAYS)))
@settings(max_examples=200)
def test_any_array_is_refused_or_usable(
    data: st.DataObject, name: str, victim: tuple[str, Arrays], tmp_path: Path
) -> None:
    array = data.draw(st.one_of(*some_array(name, victim[1][name].shape)))
    assert_refused_or_usable(edited(victim, swap(name, array), tmp_path / "model"))
