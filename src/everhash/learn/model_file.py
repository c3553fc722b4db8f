"""A hasher in one safetensors file: arrays, and a JSON text that says what they are.

    header            safetensors' own: names, dtypes, shapes and offsets of the arrays; in its
                      metadata, under "everhash", a JSON object:
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
from everhash.stream import LARGEST, as_label

FORMAT, VERSION = "everhash-hasher", "1"
DAMAGED = "the file is damaged or was not written by everhash; restore it from a copy"
NEWER = "it may come from a newer everhash; upgrade to read it"
ARRAY_PARAMS = {"codebook": (np.int8, 2), "center": (np.float32, 1)}
"""Options that may be arrays; the file keeps those beside the learned ones."""
MOST = 2**62
"""Counts in a file stay below this, so that counting on cannot overflow."""
Arrays = dict[str, NDArray[Any]]


def hasher_to_bytes(hasher: OnlineHasher) -> bytes:
    """Return what a hasher's file holds."""
    from safetensors.numpy import save

    hasher._require_fitted()
    hasher._read_options(hasher.n_features_in_, first=False)
    arrays = _arrays_of(hasher)
    state = json.dumps(_state_of(hasher), default=float)  # a step may be a Fraction
    about = {"format": FORMAT, "version": VERSION, "state": state, "sha256": _digest(state, arrays)}
    # one entry only: safetensors writes several in any order, and no two files would be alike
    return bytes(save(arrays, {"everhash": json.dumps(about)}))


def save_hasher(hasher: OnlineHasher, path: str | os.PathLike[str]) -> None:
    """Write a hasher. The file appears whole or not at all."""
    content = hasher_to_bytes(hasher)
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def load_hasher(path: str | os.PathLike[str]) -> OnlineHasher:
    """Read a hasher that `OnlineHasher.save` wrote; it goes on as if it had never stopped."""
    file = Path(path)
    if not file.is_file():
        raise DataMissingError(f"no model file at {path}", hint="OnlineHasher.save writes one")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: {error}", hint="make the file readable") from None
    return hasher_from_bytes(content, str(path))


def hasher_from_bytes(content: bytes, path: str) -> OnlineHasher:
    """Build a hasher from what its file holds; `path` is for messages."""
    state_text, arrays = _read(content, path)
    try:
        return _restore(json.loads(state_text), arrays)
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        reason = error.message if isinstance(error, EverhashError) else f"bad state: {error!r:.200}"
        raise ModelFileError(f"{path}: {reason}", hint=DAMAGED) from None


def _read(content: bytes, path: str) -> tuple[str, Arrays]:
    """Read the parts of a file and check that they are what was written."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
        # safetensors has checked the header by now; only its metadata it does not hand out
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        about = _about(path, header.get("__metadata__") or {})
        version = about.get("version")
        _require(version == VERSION, f"{path}: version {version!r:.20} is unknown", NEWER)
    except ModelFileError:
        raise
    except (
        SafetensorError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise ModelFileError(f"{path}: {error!s:.200}", hint=DAMAGED) from None
    state = str(about.get("state", ""))
    _require(about.get("sha256") == _digest(state, arrays), f"{path}: checksum does not match")
    return state, arrays


def _about(path: str, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        about = json.loads(metadata.get("everhash", "null"))
    except RecursionError:
        about = None
    ours = isinstance(about, dict) and about.get("format") == FORMAT
    _require(ours, f"{path}: not a hasher's file")
    return dict(about)


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
        "labels": [label_to_json(label) for label in hasher._numbers],
        "columns": [str(name) for name in getattr(hasher, "feature_names_in_", [])],
        "center_count": hasher._center.count,
        "draws": hasher._memory.draws,
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _restore(state: dict[str, Any], arrays: Arrays) -> OnlineHasher:
    """Build the hasher, holding every size and index in the file against the others first."""
    params: dict[str, Any] = dict(state["params"])
    for name, (dtype, ndim) in ARRAY_PARAMS.items():
        if f"given_{name}" in arrays:
            params[name] = _array(arrays, f"given_{name}", dtype, ndim)
    hasher = OnlineHasher(**params)
    last = _array(arrays, "last", np.float32, 3)
    cycles, k, d = last.shape
    _require(k == hasher.bits and 1 <= d <= limits.DIMS, "sizes do not fit the options")
    _require(cycles * k <= limits.WIDTH, f"more than {limits.WIDTH} bits")
    options = read_options(hasher.get_params(), d)._replace(seed=_count(state["seed"], 2**128))
    labels = [as_label(label_from_json(label)) for label in _listed(state["labels"])]
    numbers = {label: number for number, label in enumerate(labels)}
    _require(len(numbers) == len(labels), "a label stands twice")
    opened = max(1, -(-len(labels) // options.labels_per_cycle))
    _require(cycles == opened, f"{len(labels)} labels need {opened} cycles, found {cycles}")
    hasher.n_features_in_ = d
    if columns := _listed(state["columns"]):
        fit = len(columns) == d and all(isinstance(name, str) for name in columns)
        _require(fit, "column names do not fit the features")
        hasher.feature_names_in_ = np.array(columns, dtype=object)
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
    started = bool((mapping.restarts.rows <= mapping.rounds.rows).all())
    _require(started, "averages start again after the last round")


def _restore_center(hasher: OnlineHasher, arrays: Arrays, state: dict[str, Any]) -> None:
    center, d = hasher._center, hasher.n_features_in_
    point = _array(arrays, "center", np.float32, 1, (d,))
    total = _array(arrays, "center_total", np.float64, 1, (d,))
    count = _count(state["center_count"], WARMUP + 1 if center.follows else 1)
    _require(bool((np.abs(total) <= count * LARGEST).all()), "the center's total does not fit")
    stands = (total / count).astype(np.float32) if count else center.point
    _require(np.array_equal(point, stands), "the center is not where its rows put it")
    center.point, center.total, center.count = point.copy(), total.copy(), count


def _restore_memory(hasher: OnlineHasher, arrays: Arrays, state: dict[str, Any]) -> None:
    memory, d, keep = hasher._memory, hasher.n_features_in_, hasher._begun.replay
    n = len(hasher._numbers)
    rows = _array(arrays, "memory", np.float32, 2, (None, d))
    seen = _array(arrays, "seen", np.int64, 1, (n,))
    slots = _array(arrays, "slots", np.int64, 2, (n, keep))
    clock = _array(arrays, "clock", np.int64, 1, (hasher.n_cycles_ if n else 0,))
    used = slots[np.arange(keep) < seen[:, None]] if n else slots.reshape(-1)
    _require(np.array_equal(np.sort(used), np.arange(len(rows))), "the memory's slots do not fit")
    _require(bool((np.abs(rows) < LARGEST).all()), "the memory holds values beyond the largest")
    memory.rows.replace(rows)
    memory.clock.replace(clock)
    memory.heard.replace(_array(arrays, "heard", np.int64, 1, (n,)))
    memory.seen.replace(seen)
    memory.slots.replace(slots)
    memory.draws = _count(state["draws"], MOST)


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
        counts = array.min(initial=0) >= 0 and array.max(initial=0) < MOST
        _require(bool(counts), f"array {name!r} holds a count below 0 or too large to go on from")
    return array


def _count(value: Any, below: int) -> int:
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below
    _require(ok, f"expected a count below {below}, got {value!r:.40}")
    return int(value)


def _listed(value: Any) -> list[Any]:
    _require(isinstance(value, list), f"expected a list, got a {type(value).__name__}")
    return list(value)


def label_to_json(label: Hashable) -> Any:
    """Write a label as JSON: numbers and strings as they are, tuples and bytes in an object."""
    if isinstance(label, bool | int | float | str):
        return label
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    raise InputError(
        f"a label of type {type(label).__name__} cannot be saved",
        hint="use strings, numbers, bytes or tuples of them as labels",
    )


def label_from_json(value: Any) -> Hashable:
    """Read a label that `label_to_json` wrote."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and set(value) == {"bytes"}:
        return bytes.fromhex(value["bytes"])
    if isinstance(value, dict) and set(value) == {"tuple"}:
        return tuple(label_from_json(part) for part in _listed(value["tuple"]))
    raise ModelFileError("a label has an unknown form")


def _require(condition: bool, problem: str, hint: str = "") -> None:
    if not condition:
        raise ModelFileError(problem, hint=hint or DAMAGED)
