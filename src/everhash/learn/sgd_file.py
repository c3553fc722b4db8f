"""What a hasher's file holds of the sgd learner; see `model_file`.

state     center_count, draws
arrays    last, mean, updates, averaged, rounds, restarts, center, center_total, memory, clock,
          heard, seen, slots
"""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.learn.centering import WARMUP, Center
from everhash.learn.model_format import MAX_COUNT, Arrays, Shape, array_of, count_of, require
from everhash.learn.options import Options
from everhash.learn.sgd import SgdLearner
from everhash.stream import MAX_FEATURE


def write(learner: SgdLearner, state: dict[str, Any], arrays: Arrays) -> None:
    """Add what the learner knows to a file."""
    mapping, center, memory = learner.mapping, learner.center, learner.memory
    state |= {"center_count": center.count, "draws": memory.draws}
    arrays |= {
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


def shapes(options: Options, d: int, n_labels: int) -> dict[str, Shape]:
    """Return the shapes that arrays of a good file have, as far as options and labels say."""
    cycles, k, n = options.cycles_of(n_labels), options.bits, n_labels
    return {
        "last": (cycles, k, d),
        "mean": (cycles if options.average else 0, k, d),
        "updates": (cycles, k),
        "averaged": (cycles, k),
        "rounds": (cycles,),
        "restarts": (cycles,),
        "center": (d,),
        "center_total": (d,),
        "memory": (None, d),
        "clock": (cycles if n else 0,),
        "heard": (n,),
        "seen": (n,),
        "slots": (n, options.replay),
    }


def read(learner: SgdLearner, state: dict[str, Any], arrays: Arrays, n_cycles: int) -> None:
    """Bring the learner to where the file was written, with all labels known."""
    _read_mapping(learner, arrays, n_cycles)
    read_center(learner.center, arrays, state)
    _read_memory(learner, arrays, state)


def _read_mapping(learner: SgdLearner, arrays: Arrays, cycles: int) -> None:
    mapping, k, d = learner.mapping, learner.mapping.bits, learner.mapping.n_features
    averages = cycles if mapping.average else 0
    mapping.last.replace(array_of(arrays, "last", np.float32, 3, (cycles, k, d)))
    mapping.mean.replace(array_of(arrays, "mean", np.float32, 3, (averages, k, d)))
    mapping.updates.replace(array_of(arrays, "updates", np.int64, 2, (cycles, k)))
    mapping.averaged.replace(array_of(arrays, "averaged", np.int64, 2, (cycles, k)))
    mapping.rounds.replace(array_of(arrays, "rounds", np.int64, 1, (cycles,)))
    mapping.restarts.replace(array_of(arrays, "restarts", np.int64, 1, (cycles,)))
    started = bool((mapping.restarts.rows <= mapping.rounds.rows).all())
    require(started, "averages restart after the last round")


def read_center(center: Center, arrays: Arrays, state: dict[str, Any]) -> None:
    """Put a centre where it stood."""
    d = len(center.point)
    point = array_of(arrays, "center", np.float32, 1, (d,))
    total = array_of(arrays, "center_total", np.float64, 1, (d,))
    count = count_of(state["center_count"], WARMUP + 1 if center.follows else 1)
    require(bool((np.abs(total) <= count * MAX_FEATURE).all()), "the center's total does not fit")
    stands = (total / count).astype(np.float32) if count else center.point
    require(np.array_equal(point, stands), "the center does not match its rows")
    center.point, center.total, center.count = point.copy(), total.copy(), count


def _read_memory(learner: SgdLearner, arrays: Arrays, state: dict[str, Any]) -> None:
    memory, keep, n = learner.memory, learner.memory.keep, learner.n_labels
    rows = array_of(arrays, "memory", np.float32, 2, (None, learner.mapping.n_features))
    seen = array_of(arrays, "seen", np.int64, 1, (n,))
    slots = array_of(arrays, "slots", np.int64, 2, (n, keep))
    clock = array_of(arrays, "clock", np.int64, 1, (learner.mapping.n_cycles if n else 0,))
    used = slots[np.arange(keep) < seen[:, None]] if n else slots.reshape(-1)
    require(np.array_equal(np.sort(used), np.arange(len(rows))), "the memory's slots do not fit")
    require(bool((np.abs(rows) < MAX_FEATURE).all()), "values in the memory are out of range")
    memory.rows.replace(rows)
    memory.clock.replace(clock)
    memory.heard.replace(array_of(arrays, "heard", np.int64, 1, (n,)))
    memory.seen.replace(seen)
    memory.slots.replace(slots)
    memory.draws = count_of(state["draws"], MAX_COUNT)
    learner.known = n
