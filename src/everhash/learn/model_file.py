"""A hasher in one safetensors file: arrays, and a JSON text that says what they are.

    header            safetensors' own: names, dtypes, shapes and offsets of the arrays
      format          "everhash-hasher"
      version         "1"
      state           JSON: options, labels, counters
      sha256          of the state and of every array, name, dtype and shape included
    arrays            codewords, last, mean, updates, averaged, rounds, restarts, center,
                      center_total, memory, clock, heard, seen, slots; and given_codebook and
                      given_center where the user gave them

Nothing in a file names code. Every number read from it is held against the others before use.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.errors import DataMissingError, EverhashError, InputError, ModelFileError
from everhash.learn.centering import WARMUP
from everhash.learn.hasher import OnlineHasher
from everhash.learn.options import read_options

FORMAT, VERSION = "everhash-hasher", "1"
DAMAGED = "the file is damaged or was not written by everhash; restore it from a copy"
NEWER = "it may come from a newer everhash; upgrade to read it"
ARRAY_PARAMS = ("codebook", "center")
"""Options that may be arrays; the file keeps those beside the learned ones."""
Arrays = dict[str, NDArray[Any]]


def save_hasher(hasher: OnlineHasher, path: str | os.PathLike[str]) -> None:
    """Write a hasher. The file appears whole or not at all."""
    from safetensors.numpy import save_file

    hasher._require_fitted()
    arrays = _arrays_of(hasher)
    state = json.dumps(_state_of(hasher))
    metadata = {"format": FORMAT, "version": VERSION, "state": state}
    metadata["sha256"] = _digest(state, arrays)
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        save_file(arrays, partial, metadata)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def load_hasher(path: str | os.PathLike[str]) -> OnlineHasher:
    """Read a hasher that `OnlineHasher.save` wrote; it goes on as if it had never stopped."""
    state_text, arrays = _read(Path(path))
    try:
        return _restore(json.loads(state_text), arrays)
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        reason = error.message if isinstance(error, EverhashError) else f"bad state: {error!r:.200}"
        raise ModelFileError(f"{path}: {reason}", hint=DAMAGED) from None


def _read(path: Path) -> tuple[str, Arrays]:
    """Read the parts of a file and check that they are what was written."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise DataMissingError(f"no model file at {path}", hint="OnlineHasher.save writes one")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _require(metadata.get("format") == FORMAT, f"{path}: not a hasher's file")
            version = metadata.get("version")
            _require(version == VERSION, f"{path}: version {version!r:.20} is unknown", NEWER)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, UnicodeError) as error:
        raise ModelFileError(f"{path}: {error!s:.200}", hint=DAMAGED) from None
    state = metadata.get("state", "")
    _require(metadata.get("sha256") == _digest(state, arrays), f"{path}: checksum does not match")
    return state, arrays


def _digest(state: str, arrays: Arrays) -> str:
    total = hashlib.sha256(state.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def _arrays_of(hasher: OnlineHasher) -> Arrays:
    mapping, center, memory = hasher._mapping, hasher._center, hasher._memory
    arrays: Arrays = {
        "codewords": hasher._words.rows,
        "last": mapping.last.rows,
        "mean": mapping.mean.rows,
        "updates": mapping.updates.rows,
        "averaged": mapping.averaged.rows,
        "rounds": mapping.rounds.rows,
        "restarts": mapping.restarts.rows,
        "center": center.point,
        "center_total": center.total,
        "memory": memory.rows.rows,
        "clock": memory.clock.rows,
        "heard": memory.heard.rows,
        "seen": memory.seen.rows,
        "slots": memory.slots.rows,
    }
    for name in ARRAY_PARAMS:
        if isinstance(value := getattr(hasher._begun, name), np.ndarray):
            arrays[f"given_{name}"] = value
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _state_of(hasher: OnlineHasher) -> dict[str, Any]:
    params = hasher.get_params()
    given = {name for name in ARRAY_PARAMS if isinstance(getattr(hasher._begun, name), np.ndarray)}
    return {
        "params": {name: _plain(value) for name, value in params.items() if name not in given},
        "seed": hasher._begun.seed,
        "labels": [_label_to_json(label) for label in hasher._numbers],
        "columns": [str(name) for name in getattr(hasher, "feature_names_in_", [])],
        "center_count": hasher._center.count,
        "draws": hasher._memory.draws,
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _restore(state: dict[str, Any], arrays: Arrays) -> OnlineHasher:
    """Build the hasher, holding every size and index in the file against the others first."""
    params: dict[str, Any] = dict(state["params"])
    params |= {name: arrays[f"given_{name}"] for name in ARRAY_PARAMS if f"given_{name}" in arrays}
    hasher = OnlineHasher(**params)
    last = _array(arrays, "last", np.float32, 3)
    cycles, k, d = last.shape
    _require(k == hasher.bits and 1 <= d <= limits.DIMS, "sizes do not fit the options")
    options = read_options(hasher.get_params(), d)._replace(seed=_count(state["seed"], 2**128))
    labels = [_label_from_json(label) for label in state["labels"]]
    numbers = {label: number for number, label in enumerate(labels)}
    _require(len(numbers) == len(labels), "a label stands twice")
    opened = max(1, -(-len(labels) // options.labels_per_cycle))
    _require(cycles == opened, f"{len(labels)} labels need {opened} cycles, found {cycles}")
    hasher.n_features_in_ = d
    if state["columns"]:
        _require(len(state["columns"]) == d, "column names do not fit the features")
        hasher.feature_names_in_ = np.array(state["columns"], dtype=object)
    hasher._begin(options)
    hasher._numbers = numbers
    _restore_codewords(hasher, arrays, len(labels))
    _restore_mapping(hasher, arrays, last)
    _restore_center(hasher, arrays, state)
    _restore_memory(hasher, arrays, state)
    return hasher


def _restore_codewords(hasher: OnlineHasher, arrays: Arrays, n_labels: int) -> None:
    words = _array(arrays, "codewords", np.int8, 2, (n_labels, hasher.bits))
    _require(bool(np.isin(words, (-1, 1)).all()), "codewords hold more than -1 and +1")
    hasher._words.replace(words)
    in_cycle = (n_labels - 1) % hasher._begun.labels_per_cycle + 1 if n_labels else 0
    hasher._book.start_cycle(words[n_labels - in_cycle :])


def _restore_mapping(hasher: OnlineHasher, arrays: Arrays, last: NDArray[Any]) -> None:
    mapping, (cycles, k, d) = hasher._mapping, last.shape
    averages = cycles if hasher._begun.average else 0
    mapping.last.replace(last)
    mapping.mean.replace(_array(arrays, "mean", np.float32, 3, (averages, k, d)))
    mapping.updates.replace(_array(arrays, "updates", np.int64, 2, (cycles, k)))
    mapping.averaged.replace(_array(arrays, "averaged", np.int64, 2, (cycles, k)))
    mapping.rounds.replace(_array(arrays, "rounds", np.int64, 1, (cycles,)))
    mapping.restarts.replace(_array(arrays, "restarts", np.int64, 1, (cycles,)))


def _restore_center(hasher: OnlineHasher, arrays: Arrays, state: dict[str, Any]) -> None:
    center, d = hasher._center, hasher.n_features_in_
    center.point = _array(arrays, "center", np.float32, 1, (d,)).copy()
    center.total = _array(arrays, "center_total", np.float64, 1, (d,)).copy()
    center.count = _count(state["center_count"], WARMUP + 1)


def _restore_memory(hasher: OnlineHasher, arrays: Arrays, state: dict[str, Any]) -> None:
    memory, d, keep = hasher._memory, hasher.n_features_in_, hasher._begun.replay
    rows = _array(arrays, "memory", np.float32, 2, (None, d))
    seen = _array(arrays, "seen", np.int64, 1)
    slots = _array(arrays, "slots", np.int64, 2, (len(seen), keep))
    clock = _array(arrays, "clock", np.int64, 1)
    used = slots[np.arange(keep) < seen[:, None]]
    _require(len(seen) <= len(hasher._numbers), "the memory knows labels that do not exist")
    _require(len(clock) <= hasher.n_cycles_, "the memory knows cycles that do not exist")
    _require(np.array_equal(np.sort(used), np.arange(len(rows))), "the memory's slots do not fit")
    memory.rows.replace(rows)
    memory.clock.replace(clock)
    memory.heard.replace(_array(arrays, "heard", np.int64, 1, (len(seen),)))
    memory.seen.replace(seen)
    memory.slots.replace(slots)
    memory.draws = _count(state["draws"], 2**62)


def _array(
    arrays: Arrays, name: str, dtype: type, ndim: int, shape: tuple[int | None, ...] = ()
) -> NDArray[Any]:
    """Return an array of the file, if it has the type and shape it should have."""
    array = arrays[name]
    fits = array.dtype == dtype and array.ndim == ndim
    fits = fits and all(s in (None, g) for s, g in zip(shape, array.shape, strict=bool(shape)))
    _require(fits, f"array {name!r} is {array.dtype} {array.shape}")
    if array.dtype.kind == "f":
        _require(bool(np.isfinite(array).all()), f"array {name!r} holds NaN or infinity")
    elif array.dtype == np.int64:
        _require(int(array.min(initial=0)) >= 0, f"array {name!r} holds a negative count")
    return array


def _count(value: Any, below: int) -> int:
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below
    _require(ok, f"expected a count below {below}, got {value!r:.40}")
    return int(value)


def _label_to_json(label: Hashable) -> Any:
    """Write a label as JSON: numbers and strings as they are, tuples and bytes in an object."""
    if isinstance(label, bool | int | float | str):
        return label
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    if isinstance(label, tuple):
        return {"tuple": [_label_to_json(part) for part in label]}
    raise InputError(
        f"a label of type {type(label).__name__} cannot be saved",
        hint="use strings, numbers, bytes or tuples of them as labels",
    )


def _label_from_json(value: Any) -> Hashable:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and set(value) == {"bytes"}:
        return bytes.fromhex(value["bytes"])
    if isinstance(value, dict) and set(value) == {"tuple"}:
        return tuple(_label_from_json(part) for part in value["tuple"])
    raise ModelFileError("a label has an unknown form")


def _require(condition: bool, problem: str, hint: str = "") -> None:
    if not condition:
        raise ModelFileError(problem, hint=hint or DAMAGED)
