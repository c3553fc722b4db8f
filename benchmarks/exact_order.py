"""Parts "order" and "curve" of `exact.py`: the same rows in other orders, and on the way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everhash.bench.growth import seen_so_far
from exact_sets import (
    BOTH,
    CALL,
    ORDERS,
    SETS,
    Make,
    Rows,
    Setting,
    by_codeword,
    describe,
    learn,
    load,
    split_of,
)

BITS = 32
PLACES = (100, 300, 1000)
"""Rows after which a curve is measured, and again at the end."""


def order(orderings: int) -> None:
    print(
        "\norder: mAP by codeword, asymmetric, 32 bits, the stream shuffled, sorted by label, and "
        f"with labels\nthat join one after another and go on; spread: highest less lowest; "
        f"orderings 0 to {orderings - 1}"
    )
    print(f"{'set':<18}{'learner':<10}" + "".join(f"{name:>10}" for name in (*ORDERS, "spread")))
    for setting in SETS:
        for name, make in BOTH.items():
            found = [
                [_at_the_end(setting, make, which, seed) for which in ORDERS]
                for seed in range(orderings)
            ]
            means = np.mean(found, axis=0)
            cells = "".join(f"{value:10.3f}" for value in (*means, np.ptp(means)))
            print(f"{setting.name:<18}{name:<10}{cells}", flush=True)


def _at_the_end(setting: Setting, make: Make, which: str, seed: int) -> float:
    data, split = load(setting.name), split_of(setting, seed)
    hasher = make(BITS, seed)
    learn(hasher, data, ORDERS[which](data.y, split.stream, seed))
    return by_codeword(hasher, data, split).asymmetric.average


def curve(orderings: int) -> None:
    print(
        "\ncurve: mAP by codeword, asymmetric, 32 bits, among the labels that have come by then; "
        f"orderings 0 to {orderings - 1}"
    )
    worst = (1.0, "")
    for setting in SETS:
        print(f"\n{describe(setting, split_of(setting, 0))}")
        for which in ("shuffled", "sorted"):
            worst = min(worst, _curves(setting, which, orderings))
    print(f"\nworst difference exact - sgd: {worst[0]:+.3f} ({worst[1]})", flush=True)


def _curves(setting: Setting, which: str, orderings: int) -> tuple[float, str]:
    """Print both curves and their difference; return the worst one, and where it is."""
    ends = _ends(len(split_of(setting, 0).stream))
    print(f"{which:<18}{'rows':<12}" + "".join(f"{end:>10,}" for end in ends))
    means = {}
    for name, make in BOTH.items():
        found = [_curve(setting, make, which, seed) for seed in range(orderings)]
        means[name] = np.mean(found, axis=0)
        _show(name, means[name], "10.3f")
    difference: NDArray[np.float64] = means["exact"] - means["sgd"]
    _show("exact - sgd", difference, "+10.3f")
    place = int(difference.argmin())
    return float(difference[place]), f"{setting.name}, {which}, {ends[place]:,} rows"


def _show(name: str, values: NDArray[np.float64], form: str) -> None:
    cells = "".join(f"{value:{form}}" for value in values)
    print(f"{'':<18}{name:<12}{cells}", flush=True)


def _ends(rows: int) -> list[int]:
    return [place for place in PLACES if place < rows] + [rows]


def _curve(setting: Setting, make: Make, which: str, seed: int) -> list[float]:
    data, split = load(setting.name), split_of(setting, seed)
    stream: Rows = ORDERS[which](data.y, split.stream, seed)
    split, hasher, values, start = split._replace(stream=stream), make(BITS, seed), [], 0
    for end in _ends(len(stream)):
        for first in range(start, end, CALL):
            batch = stream[first : min(first + CALL, end)]
            hasher.partial_fit(data.X[batch], data.y[batch])
        seen = seen_so_far(data, split, end)
        values.append(by_codeword(hasher, data, seen).asymmetric.average)
        start = end
    return values
