"""Part "quality" of `exact.py`: how well entries are found, beside batch logistic regression."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from everhash import peers
from everhash.bench.counts import Score
from everhash.bench.datasets import Dataset
from everhash.bench.protocols import Split
from everhash.bench.scoring import score_mapping
from exact_sets import HASHERS, SETS, Make, Setting, by_codeword, describe, learn, load, split_of

BITS = {"cifar10-gist": (8, 16, 32, 64)}
"""Where it is not 32 alone."""
QUERIES, AMONG = 1000, 20_000
"""By mapping: queries asked, and entries ranked by asymmetric distance."""
COST = {"cifar10-gist": 3.0, "clinc150": 100.0, "caltech256-cnn": 10.0, "digits": 10.0}
"""C of logistic regression: of 1, 3, 10, 30 and 100 the best for the queries of ordering 0."""
HEADING = (
    f"{'':<26}{'codeword':>18}{'mapping':>20}\n"
    f"{'setting':<26}{'Hamming':>8}{'asym.':>10}{'Hamming':>10}{'asym.':>10}{'seconds':>10}"
)


def quality(orderings: int) -> None:
    print(
        "\nquality: tie-averaged mAP, mean over orderings; seconds of learning, the least. By "
        f"mapping, home coding,\n{QUERIES:,} queries drawn with the ordering's seed; by asymmetric "
        f"distance {AMONG:,} random entries are ranked.\nC of logistic regression: the best of 1, "
        "3, 10, 30 and 100 for the queries of ordering 0, in its favour."
    )
    _load_kernels()
    for setting in SETS:
        print(f"\n{describe(setting, split_of(setting, 0))}; orderings 0 to {orderings - 1}")
        batch = np.array([_logistic(setting, seed) for seed in range(orderings)])
        onehot = np.array([_onehot(setting, seed) for seed in range(orderings)])
        for bits in BITS.get(setting.name, (32,)):
            _table(setting, bits, orderings, batch, onehot)


def _load_kernels() -> None:
    """Let every hasher learn a little, so that nobody's time has the loading of kernels in it."""
    data = load("digits")
    for hasher in (*(make(32, 0) for make in HASHERS.values()), peers.get("onehot")):
        hasher.partial_fit(data.X[:50], data.y[:50])


def _table(
    setting: Setting,
    bits: int,
    orderings: int,
    batch: NDArray[np.float64],
    onehot: NDArray[np.float64],
) -> None:
    print(f"\n{bits} bits\n{HEADING}")
    rows = {}
    for name, make in HASHERS.items():
        found = np.array([_scores(setting, make, bits, seed) for seed in range(orderings)])
        rows[name] = found.mean(axis=0)
        _show(name, *rows[name][:4], found[:, 4].min())
    _show(f"logistic regression, C={COST[setting.name]:g}", *_beside(batch))
    _show("one-hot classifier", *_beside(onehot))
    ratio = rows["exact (default)"][1] / batch[:, 0].mean()
    print(f"exact / logistic regression, by codeword, asymmetric: {ratio:.3f}", flush=True)


def _show(name: str, *figures: float) -> None:
    widths = (8, 10, 10, 10, 10)
    cells = (f"{value:.3f}" if math.isfinite(value) else "-" for value in figures)
    print(
        f"{name:<26}" + "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)), flush=True
    )


def _beside(found: NDArray[np.float64]) -> tuple[float, ...]:
    return math.nan, found[:, 0].mean(), math.nan, math.nan, found[:, 1].min()


def _scores(setting: Setting, make: Make, bits: int, seed: int) -> tuple[float, ...]:
    """Return mAP by codeword and by mapping, two distances each, and seconds of learning."""
    data, split = load(setting.name), split_of(setting, seed)
    hasher = make(bits, seed)
    seconds = learn(hasher, data, split.stream)
    rng = np.random.default_rng(seed)
    asked, stored = rng.permutation(split.queries)[:QUERIES], rng.permutation(split.entries)
    mapping = score_mapping(
        *(hasher, data.X[asked], data.y[asked], data.X[stored], data.y[stored]),
        coding="home",
        asymmetric_among=AMONG,
    )
    codeword = by_codeword(hasher, data, split)
    return (*(score.average for score in (*codeword, *mapping)), seconds)


def _onehot(setting: Setting, seed: int) -> tuple[float, float]:
    data, split = load(setting.name), split_of(setting, seed)
    hasher = peers.get("onehot", random_state=seed)
    seconds = learn(hasher, data, split.stream)
    return by_codeword(hasher, data, split).asymmetric.average, seconds


def _logistic(setting: Setting, seed: int) -> tuple[float, float]:
    """Return mAP, entries ranked by the score of their label, and seconds of learning."""
    from sklearn.linear_model import LogisticRegression

    data, split = load(setting.name), split_of(setting, seed)
    center = data.X[split.stream].mean(axis=0)
    start = perf_counter()
    model = LogisticRegression(C=COST[setting.name], max_iter=1000)
    model.fit(_unit_rows(data, split.stream, center), data.y[split.stream])
    seconds = perf_counter() - start
    scores = model.decision_function(_unit_rows(data, split.queries, center))
    return _ranked(scores, model.classes_, data, split), seconds


def _ranked(
    scores: NDArray[np.float64], labels: NDArray[np.int64], data: Dataset, split: Split
) -> float:
    """Return mAP of entries ranked by their label's score; those of a label tie."""
    entries = np.searchsorted(labels, data.y[split.entries])
    held = np.bincount(entries, minlength=len(labels))
    own = np.searchsorted(labels, data.y[split.queries])
    best = scores[np.arange(len(own)), own, None]
    before, size = (scores > best) @ held, (scores == best) @ held
    return Score.of((before[:, None], size[:, None], held[own][:, None])).average


def _unit_rows(
    data: Dataset, rows: NDArray[np.int64], center: NDArray[np.float32]
) -> NDArray[np.float32]:
    Z: NDArray[np.float32] = data.X[rows] - center
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    return Z
