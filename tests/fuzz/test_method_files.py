"""Files of peer methods that were tampered with, checksum and all: a typed error, or a hasher."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import peers
from everhash.errors import EverhashError, ModelFileError
from everhash.learn.model_format import pack_model, unpack_model
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.batch_method import BatchMethod
from everhash.peers.model_file import hasher_from_bytes
from tests.conftest import Stream
from tests.contracts.test_batch_hashers import OPTIONS
from tests.contracts.test_hashers import PEERS

Arrays = dict[str, NDArray[Any]]
State = dict[str, Any]
Forgery = tuple[str, State, Arrays]
NAMES = [*PEERS, *OPTIONS]
WRONG: tuple[Any, ...] = (None, -1, 2**200, "x", [], {}, [[1]])


def learned(name: str, digits: Stream, rows: int) -> StreamHasher:
    """Return a method that has learned rows: one by one, or all at once."""
    X, y = digits.X[:rows], digits.y[:rows]
    if name in PEERS:
        return PEERS[name]().partial_fit(X, y)
    hasher = peers.get(name, 8, **OPTIONS[name])
    assert isinstance(hasher, BatchMethod)
    return hasher.fit(X, y)


def arrays_changed(arrays: Arrays) -> Iterator[tuple[str, Arrays]]:
    """Every array missing, of another type or shape, or with values it cannot have."""
    for name, array in arrays.items():
        changes: dict[str, NDArray[Any] | None] = {
            "missing": None,
            "of another type": array.astype(np.float64 if array.dtype != np.float64 else np.int8),
            "one axis more": array[None],
            "one row more": np.concatenate([array, array[:1] if len(array) else array]),
            "empty": array[:0],
        }
        if array.dtype.kind == "f":
            changes["NaN"] = np.full_like(array, np.nan)
            changes["huge"] = np.full_like(array, 1e30)
        if array.dtype == np.int64:
            changes["negative"] = np.full_like(array, -1)
            changes["large"] = np.full_like(array, 2**61)
            changes["too large"] = np.full_like(array, 2**62)
        if array.dtype == np.int8:
            changes["other signs"] = np.full_like(array, 2)
        for kind, changed in changes.items():
            others = {other: value for other, value in arrays.items() if other != name}
            yield f"{name} {kind}", others if changed is None else others | {name: changed}


def states_changed(state: State) -> Iterator[tuple[str, State]]:
    """Options, labels and counts that are wrong, foreign or enormous."""
    for name in state:
        yield f"no {name}", {key: value for key, value in state.items() if key != name}
        for value in WRONG:
            yield f"{name} {value!r}", {**state, name: value}
    params = state["params"]
    for name in params:
        for value in (*WRONG, 0, 10**9, 1e300, True):
            yield f"{name}={value!r}", {**state, "params": {**params, name: value}}
    yield "another option", {**state, "params": {**params, "path": "/etc/passwd"}}
    yield "no code", {**state, "method": "os:system"}
    yield "one label more", {**state, "labels": [*state["labels"], "one more"]}
    yield "a label twice", {**state, "labels": [*state["labels"][:-1], state["labels"][0]]}
    yield "a label less", {**state, "labels": state["labels"][:-1]}


def forgeries(content: bytes) -> Iterator[Forgery]:
    text, arrays = unpack_model(content, "model")
    state = json.loads(text)
    yield from ((what, state, changed) for what, changed in arrays_changed(arrays))
    yield from ((what, changed, arrays) for what, changed in states_changed(state))


@pytest.mark.parametrize("name", NAMES)
def test_a_forged_file_is_refused_or_harmless(name: str, digits: Stream) -> None:
    hasher = learned(name, digits, 210)
    refused = 0
    for what, state, arrays in forgeries(hasher.to_bytes()):
        start = time.process_time()
        try:
            loaded = hasher_from_bytes(pack_model(state, arrays), "forged")
        except ModelFileError:
            refused += 1
        else:
            go_on(loaded, digits)
        assert time.process_time() - start < 2, f"{what} takes long"
    assert refused > 100


def go_on(loaded: StreamHasher, digits: Stream) -> None:
    """Learn and hash with what was let through: a typed error may say no, nothing else may."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if not isinstance(loaded, BatchMethod):
            with suppress(EverhashError):
                loaded.partial_fit(digits.X[210:310], digits.y[210:310])
        with suppress(EverhashError):
            loaded.margins(digits.X[:20])
            loaded.freeze()


@pytest.mark.parametrize("name", NAMES)
def test_every_cut_of_a_file_is_refused(name: str, digits: Stream, drawn_seed: int) -> None:
    content = learned(name, digits, 60).to_bytes()
    step = max(1, len(content) // 200)
    for end in range(drawn_seed % step, len(content), step):
        with pytest.raises(ModelFileError):
            hasher_from_bytes(content[:end], "cut")
    step = max(1, len(content) // 300)
    for at in range(drawn_seed % step, len(content), step):
        flipped = bytearray(content)
        flipped[at] ^= 4
        with pytest.raises(ModelFileError):
            hasher_from_bytes(bytes(flipped), "flipped")
