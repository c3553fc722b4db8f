"""Whatever a file states, each value alone: refused with a typed error, or read and consistent.

A size that a file states may cost no memory that the file's own bytes do not account for.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import OnlineHasher, limits, load_hasher
from everhash.errors import CollectionFileError, ModelFileError
from everhash.learn.following import follower_of
from everhash.learn.model_format import pack_model, unpack_model
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.model_file import hasher_from_bytes
from everhash.store.parts import ABOUT, PartKey
from tests.conftest import Stream
from tests.fuzz.forging import Forgery, pack, write_victim
from tests.fuzz.hostile_lessons import another
from tests.fuzz.samples import reading
from tests.fuzz.spoiling import EXTREMES, Spoiled, spoil
from tests.fuzz.test_method_files import NAMES, learned
from tests.fuzz.test_model_file import Arrays, stream

MEGABYTE = 2**20
ROOM = 64 * MEGABYTE
"""Bytes that reading a file may take, beyond a few times its length."""
SAMPLED = 29
"""One forgery in so many is tried where all would take long."""
SIZES = (-1, 0, 500_000, 2**31, 2**62, 2**63)


@contextmanager
def at_no_great_expense(path: Path, room: int = ROOM) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < room + 8 * path.stat().st_size, f"{peak / MEGABYTE:.0f} MB"


# Models


def everhash_few() -> StreamHasher:
    X, y = stream(60, d=4, labels=5)
    return OnlineHasher(bits=3, labels_per_cycle=2, features=6).partial_fit(X, y)


def everhash_summed() -> StreamHasher:
    X, y = stream(1200, d=4, labels=5)
    return OnlineHasher(bits=3, labels_per_cycle=2, features=6).partial_fit(X, y)


def everhash_follower() -> StreamHasher:
    return follower_of(everhash_few())  # type: ignore[arg-type]


def everhash_unlearned() -> StreamHasher:
    return OnlineHasher(bits=8).begin(3)


def sgd() -> StreamHasher:
    X, y = stream(60, d=4, labels=5)
    return OnlineHasher(bits=3, labels_per_cycle=2, learner="sgd", replay=2).partial_fit(X, y)


OURS = (everhash_few, everhash_summed, everhash_follower, everhash_unlearned, sgd)


def opened(hasher: StreamHasher) -> tuple[dict[str, Any], Arrays]:
    """Return the state and the arrays of a hasher's file."""
    text, arrays = unpack_model(hasher.to_bytes(), "good")
    return json.loads(text), arrays


def check_model(spoiled: Spoiled, arrays: Arrays, path: Path) -> None:
    """Refused as damaged, or a hasher that works and is written as it was read."""
    path.write_bytes(pack_model(spoiled.value, arrays))
    with at_no_great_expense(path):
        try:
            hasher = load_hasher(path)
        except ModelFileError:
            return
        except Exception as error:
            raise AssertionError(f"{spoiled.name}: {error!r}") from error
        hasher.transform(np.ones((1, hasher.n_features_in_), np.float32))
    again = hasher_from_bytes(hasher.to_bytes(), "again")
    assert again.to_bytes() == hasher.to_bytes(), spoiled.name


@pytest.mark.parametrize("make", OURS)
def test_every_value_of_a_model_of_ours_is_checked(
    make: Callable[[], StreamHasher], tmp_path: Path
) -> None:
    state, arrays = opened(make())
    for spoiled in spoil(state):
        check_model(spoiled, arrays, tmp_path / "model")


@pytest.mark.parametrize("name", NAMES)
def test_every_size_of_a_method_is_checked(name: str, digits: Stream, tmp_path: Path) -> None:
    state, arrays = opened(learned(name, digits, 60))
    for spoiled in spoil(state["params"], SIZES):
        whole = Spoiled(f"{name}: {spoiled.name}", {**state, "params": spoiled.value})
        check_model(whole, arrays, tmp_path / "model")


def test_a_small_file_that_claims_many_bits_is_refused_before_they_are_made(
    tmp_path: Path,
) -> None:
    state, arrays = opened(everhash_unlearned())
    without_trust = {n: a for n, a in arrays.items() if "trust" not in n and n != "best_scores"}
    for bits in (10_000, 63_000, 500_000, limits.WIDTH):
        state["params"]["bits"] = bits
        for some in (arrays, without_trust):
            kept = {**some, "codewords": np.zeros((0, bits), np.int8)}
            path = tmp_path / "model"
            path.write_bytes(pack_model(state, kept))
            allowed = "trust_rows" not in kept and bits * 1065 <= limits.WEIGHTS
            with at_no_great_expense(path, 5 * limits.WEIGHTS if allowed else ROOM):
                try:
                    load_hasher(path)
                except ModelFileError:
                    assert not allowed
                else:
                    assert allowed


@pytest.mark.slow
def test_the_largest_hashers_open_within_the_limit_of_their_functions(tmp_path: Path) -> None:
    for bits, d, features in ((2000, 16_384, 16_384), (63_000, 3, 1000), (1_000_000, 1, 0)):
        path = tmp_path / "model"
        OnlineHasher(bits=bits, features=features).begin(d).save(path)
        with at_no_great_expense(path, 8 * limits.WEIGHTS):
            load_hasher(path)


# Collections


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("victim") / "good"
    write_victim(path)
    return path


def check_file(forgery: Forgery, path: Path, what: str) -> None:
    """Each call refuses the file as damaged, or works."""
    forgery.write(path)
    for call in (everhash.verify, read, work):
        try:
            with at_no_great_expense(path):
                call(path)
        except CollectionFileError:
            continue
        except Exception as error:
            raise AssertionError(f"{what}: {call.__name__}: {error!r}") from error
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()


def read(path: Path) -> None:
    with everhash.open(path, readonly=True) as collection:
        reading(collection)


def work(path: Path) -> None:
    with everhash.open(path) as collection:
        collection.ingest([[1.0, 2.0, 3.0]], y=["a"])
        collection.label(["e9"], ["b"])
        collection.compact()


def heads(victim: Path) -> Iterator[tuple[str, Forgery]]:
    for name, head in spoil(Forgery(victim).head):
        forgery = Forgery(victim)
        forgery.text = json.dumps(head)
        yield f"head: {name}", forgery


NUMBERS = (*EXTREMES[:-2], 2**63 - 1)
"""What SQLite can have in a column of integers."""


def columns(victim: Path) -> Iterator[tuple[str, Forgery]]:
    for key, part in Forgery(victim).parts.items():
        for number in NUMBERS:
            for column in ("start", "rows", "written"):
                forgery = Forgery(victim)
                if column != "start":
                    forgery.parts[key] = part._replace(**{column: number})
                elif PartKey(key.kind, number) not in forgery.parts:
                    forgery.rename(key, PartKey(key.kind, number))
                yield f"{key}: {column} {number}", forgery


def contents(victim: Path) -> Iterator[tuple[str, Forgery]]:
    good = Forgery(victim)
    for key in good.parts:
        if key.kind == "model" or ABOUT not in good.arrays(key):
            continue
        for name, value in spoil({"about": good.about(key)}):
            forgery = Forgery(victim)
            arrays = {n: array for n, array in good.arrays(key).items() if n != ABOUT}
            forgery.put(key, pack(arrays, value.get("about")))
            yield f"{key}: {name}", forgery


MADE = (heads, columns, contents)


@pytest.mark.parametrize("make", MADE)
def test_values_that_a_collection_states_are_checked(
    make: Callable[[Path], Iterator[tuple[str, Forgery]]], victim: Path, tmp_path: Path
) -> None:
    for what, forgery in list(make(victim))[::SAMPLED]:
        check_file(forgery, tmp_path / "forged", what)


@pytest.mark.slow
@pytest.mark.parametrize("make", MADE)
def test_every_value_that_a_collection_states_is_checked(
    make: Callable[[Path], Iterator[tuple[str, Forgery]]], victim: Path, tmp_path: Path
) -> None:
    for what, forgery in make(victim):
        check_file(forgery, tmp_path / "forged", what)


def test_a_collection_whose_model_claims_many_bits_is_refused_before_they_are_made(
    victim: Path, tmp_path: Path
) -> None:
    state, arrays = opened(everhash_unlearned())
    state["params"]["bits"] = 500_000
    arrays["codewords"] = np.zeros((0, 500_000), np.int8)
    forgery = Forgery(victim)
    another(pack_model(state, arrays))(forgery)
    with pytest.raises(CollectionFileError), at_no_great_expense(victim):
        everhash.open(forgery.write(tmp_path / "forged"))
