"""What a file of an `OnlineHasher` holds; see `model_format`.

state     params, seed, labels, columns, center_count, draws
arrays    codewords, last, mean, updates, averaged, rounds, restarts, center, center_total,
          memory, clock, heard, seen, slots; and given_codebook and given_center where the user
          gave them
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash import limits
from everhash.learn.centering import WARMUP, Center
from everhash.learn.hasher import OnlineHasher
from everhash.learn.model_format import (
    MOST,
    Arrays,
    array_of,
    count_of,
    label_from_json,
    label_to_json,
    list_of,
    pack_model,
    plain,
    require,
)
from everhash.learn.options import read_options
from everhash.learn.stream_hasher import StreamHasher
from everhash.stream import LARGEST, as_label

ARRAY_PARAMS = {"codebook": (np.int8, 2), "center": (np.float32, 1)}
"""Options that may be arrays; the file keeps those beside the learned ones."""


def hasher_to_bytes(hasher: OnlineHasher) -> bytes:
    """Return what a hasher's file holds."""
    hasher._require_fitted()
    hasher._read_options(hasher.n_features_in_, first=False)
    return pack_model(_state_of(hasher), _arrays_of(hasher))


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
    return arrays


def _state_of(hasher: OnlineHasher) -> dict[str, Any]:
    params = hasher.get_params()
    given = {name for name in ARRAY_PARAMS if isinstance(getattr(hasher._begun, name), np.ndarray)}
    return {
        "params": {name: plain(value) for name, value in params.items() if name not in given},
        "seed": hasher._begun.seed,
        "labels": [label_to_json(label) for label in hasher._numbers],
        "columns": [str(name) for name in getattr(hasher, "feature_names_in_", [])],
        "center_count": hasher._center.count,
        "draws": hasher._memory.draws,
    }


def restore_hasher(state: dict[str, Any], arrays: Arrays) -> OnlineHasher:
    """Build the hasher, holding every size and index in the file against the others first."""
    params: dict[str, Any] = dict(state["params"])
    for name, (dtype, ndim) in ARRAY_PARAMS.items():
        if f"given_{name}" in arrays:
            params[name] = array_of(arrays, f"given_{name}", dtype, ndim)
    hasher = OnlineHasher(**params)
    last = array_of(arrays, "last", np.float32, 3)
    cycles, k, d = last.shape
    require(k == hasher.bits and 1 <= d <= limits.DIMS, "sizes do not fit the options")
    require(cycles * k <= limits.WIDTH, f"more than {limits.WIDTH} bits")
    options = read_options(hasher.get_params(), d)._replace(seed=count_of(state["seed"], 2**128))
    numbers = restore_labels(state)
    opened = max(1, -(-len(numbers) // options.labels_per_cycle))
    require(cycles == opened, f"{len(numbers)} labels need {opened} cycles, found {cycles}")
    restore_columns(hasher, state, d)
    hasher._begin(options)
    hasher._numbers = numbers
    _restore_codewords(hasher, arrays, len(numbers))
    _restore_mapping(hasher, arrays, last)
    restore_center(hasher._center, arrays, state)
    _restore_memory(hasher, arrays, state)
    return hasher


def restore_labels(state: dict[str, Any]) -> dict[Hashable, int]:
    """Return each label's number."""
    labels = [as_label(label_from_json(label)) for label in list_of(state["labels"])]
    numbers = {label: number for number, label in enumerate(labels)}
    require(len(numbers) == len(labels), "a label stands twice")
    return numbers


def restore_columns(hasher: StreamHasher, state: dict[str, Any], n_features: int) -> None:
    """Set how many features a row has, and their names if they had any."""
    hasher.n_features_in_ = n_features
    if columns := list_of(state["columns"]):
        fit = len(columns) == n_features and all(isinstance(name, str) for name in columns)
        require(fit, "column names do not fit the features")
        hasher.feature_names_in_ = np.array(columns, dtype=object)


def restore_center(center: Center, arrays: Arrays, state: dict[str, Any]) -> None:
    """Put a centre where it stood."""
    d = len(center.point)
    point = array_of(arrays, "center", np.float32, 1, (d,))
    total = array_of(arrays, "center_total", np.float64, 1, (d,))
    count = count_of(state["center_count"], WARMUP + 1 if center.follows else 1)
    require(bool((np.abs(total) <= count * LARGEST).all()), "the center's total does not fit")
    stands = (total / count).astype(np.float32) if count else center.point
    require(np.array_equal(point, stands), "the center is not where its rows put it")
    center.point, center.total, center.count = point.copy(), total.copy(), count


def _restore_codewords(hasher: OnlineHasher, arrays: Arrays, n_labels: int) -> None:
    words = array_of(arrays, "codewords", np.int8, 2, (n_labels, hasher.bits))
    require(bool(np.isin(words, (-1, 1)).all()), "codewords hold more than -1 and +1")
    hasher._words.replace(words)
    in_cycle = (n_labels - 1) % hasher._begun.labels_per_cycle + 1 if n_labels else 0
    hasher._book.start_cycle(words[n_labels - in_cycle :])


def _restore_mapping(hasher: OnlineHasher, arrays: Arrays, last: NDArray[Any]) -> None:
    mapping, (cycles, k, d) = hasher._mapping, last.shape
    averages = cycles if hasher._begun.average else 0
    mapping.last.replace(last)
    mapping.mean.replace(array_of(arrays, "mean", np.float32, 3, (averages, k, d)))
    mapping.updates.replace(array_of(arrays, "updates", np.int64, 2, (cycles, k)))
    mapping.averaged.replace(array_of(arrays, "averaged", np.int64, 2, (cycles, k)))
    mapping.rounds.replace(array_of(arrays, "rounds", np.int64, 1, (cycles,)))
    mapping.restarts.replace(array_of(arrays, "restarts", np.int64, 1, (cycles,)))
    started = bool((mapping.restarts.rows <= mapping.rounds.rows).all())
    require(started, "averages start again after the last round")


def _restore_memory(hasher: OnlineHasher, arrays: Arrays, state: dict[str, Any]) -> None:
    memory, d, keep = hasher._memory, hasher.n_features_in_, hasher._begun.replay
    n = len(hasher._numbers)
    rows = array_of(arrays, "memory", np.float32, 2, (None, d))
    seen = array_of(arrays, "seen", np.int64, 1, (n,))
    slots = array_of(arrays, "slots", np.int64, 2, (n, keep))
    clock = array_of(arrays, "clock", np.int64, 1, (hasher.n_cycles_ if n else 0,))
    used = slots[np.arange(keep) < seen[:, None]] if n else slots.reshape(-1)
    require(np.array_equal(np.sort(used), np.arange(len(rows))), "the memory's slots do not fit")
    require(bool((np.abs(rows) < LARGEST).all()), "the memory holds values beyond the largest")
    memory.rows.replace(rows)
    memory.clock.replace(clock)
    memory.heard.replace(array_of(arrays, "heard", np.int64, 1, (n,)))
    memory.seen.replace(seen)
    memory.slots.replace(slots)
    memory.draws = count_of(state["draws"], MOST)
