"""The best time of several rounds; contestants take turns, so that load slows all alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

ROUNDS = 5
PATIENCE, MAX_ROUNDS = 1.0, 200
"""Short rounds are repeated for this many seconds, until other load on the machine has passed."""
MICROSECONDS = 1e6


def seconds(run: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    start = perf_counter()
    run()
    return perf_counter() - start


def load() -> float | None:
    """Return the system load of the last minute; None where it is not known."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def rounds(least: int = ROUNDS) -> Iterator[int]:
    """Yield the numbers of rounds: at least `least`, and more while there is time."""
    start = perf_counter()
    for number in range(MAX_ROUNDS):
        if number >= least and perf_counter() - start > PATIENCE:
            return
        yield number


def race(
    contestants: dict[str, Callable[[], object]], least: int = ROUNDS, per: int = 1
) -> dict[str, float]:
    """Return the best time of each, in microseconds; `per` is how many rows one call handles."""
    best = dict.fromkeys(contestants, np.inf)
    for _ in rounds(least):
        for name, run in contestants.items():
            best[name] = min(best[name], seconds(run) / per * MICROSECONDS)
    return best
