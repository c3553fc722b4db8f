"""The rules of `advise`. Each names the command that measured its figure, and its page, if any.

`tests/unit/learn/test_advice_figures.py` holds the figures to those pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everhash.learn.options import auto_labels_per_cycle

BITS, FEATURES = 32, 1000
MOST_SUMS = 2**31
"""Bytes of sums beyond which the exact learner is not advised: our choice, not a measurement."""
FLAT_ROWS_A_MILLISECOND = 17_500
"""Rows of 384 features that FAISS IndexFlatIP scans in a millisecond, one query at a time: 88
queries a second at 200,000 (`python benchmarks/find_speed.py`, docs/results/find_speed.md)."""


@dataclass(frozen=True)
class Choice:
    """One option of the advised setting."""

    option: str
    value: Any
    why: str


def choose(
    labels: int, rows: int | None, dim: int | None, bits: int | None, cycle: int | None
) -> tuple[Choice, ...]:
    """Return a value for each option that matters, with the reason."""
    k = BITS if bits is None else bits
    learner = _learner(dim)
    choices = [] if dim is None else [Choice("dim", dim, "the features of your rows")]
    choices += [_bits(k, given=bits is not None), _cycle(labels, k, cycle, learner.value), learner]
    if learner.value == "exact":
        choices.append(_random_features(rows))
    return (*choices, _keep_features(dim), _likeness(dim))


def _bits(k: int, *, given: bool) -> Choice:
    # `everhash bench run table1 --methods everhash`: CIFAR-10 GIST, docs/results/table1.md
    measured = (
        "labelled entries score .624 mAP at 8 to 64 bits alike; unlabelled ones .270, .279, .293 "
        "and .300 at 8, 16, 32 and 64"
    )
    return Choice("bits", k, f"{'your choice: ' if given else ''}{measured} (CIFAR-10 GIST)")


def _cycle(labels: int, k: int, cycle: int | None, learner: str) -> Choice:
    # `everhash bench run ablation`: CLINC150, by codeword, asymmetric
    auto = auto_labels_per_cycle(k, learner)
    if cycle is None and labels <= auto:
        return Choice("labels_per_cycle", "auto", f"{labels} labels fit one cycle of {auto}")
    measured = "cycles of 10 to 25 labels score .943 mAP, one cycle for all .882"
    if cycle is None:
        return Choice("labels_per_cycle", "auto", f"cycles of {auto}: {measured} (CLINC150)")
    return Choice("labels_per_cycle", cycle, f"your choice: {measured} (CLINC150)")


def _learner(dim: int | None) -> Choice:
    # `everhash bench run table2`, docs/results/table2.md: CLINC150 .942 against .899 by codeword
    if dim is not None and sums_bytes(dim, FEATURES) > MOST_SUMS:
        size = sums_bytes(dim, FEATURES) / 2**30
        return Choice(
            "learner",
            "sgd",
            f"the exact learner's sums would take {size:.1f} GiB at {dim} features; gradient "
            "steps score .899 mAP where it scores .942 (CLINC150), and cannot forget or merge",
        )
    return Choice(
        "learner",
        "exact",
        "scores .942 mAP where gradient steps score .899 (CLINC150), in any order, and can forget "
        "and merge",
    )


def _random_features(rows: int | None) -> Choice:
    # `everhash bench run ablation`, and `python benchmarks/exact_cost.py`, docs/results.md
    why = (
        "random features raise unlabelled entries from .848 to .902 mAP (CLINC150), .650 to .690 "
        "(Caltech-256); learning a row takes 48 instead of 9.5 µs at 384 features"
    )
    if rows is not None and rows < 1000:
        why += "; so few rows are learned in a second either way"
    return Choice("features", FEATURES, why)


def _keep_features(dim: int | None) -> Choice:
    # sizes: docs/collection.md, held by tests/unit/learn/test_advice.py
    price = "2 bytes a feature" if dim is None else f"{2 * dim:,} bytes an entry"
    return Choice(
        "keep_features",
        "all",
        f"labels can be corrected and likeness is exact, for {price} of disk",
    )


def _likeness(dim: int | None) -> Choice:
    # README, "What people find": `everhash bench run found` and `unseen`
    price = "a bit a feature" if dim is None else f"{likeness_bytes(dim):,} bytes an entry"
    return Choice(
        "likeness",
        True,
        f"finds what nobody has labelled: the codes keep .968 to .996 of the mAP of cosine, for "
        f"{price}",
    )


FEW_LABELS = 100
"""Between the 10 with which cosine led at 2 rows of each, and the 150 with which it did not."""


def consider(labels: int, rows: int | None) -> tuple[str, ...]:
    """Say when something else does as well or better."""
    found = []
    if labels == 1:
        found.append("one label tells nothing apart: a plain search by cosine does the same")
    if rows is not None and rows <= FLAT_ROWS_A_MILLISECOND:
        found.append(
            f"{rows:,} rows are scanned by plain cosine in a millisecond: everhash is then worth "
            "it for what it learns from labels, not for speed"
        )
    if rows is not None and labels < FEW_LABELS and rows < 5 * labels:
        # `everhash bench run found`, docs/results/found.md: few rows of each label have it
        found.append(
            "with few labels and fewer than 5 rows of each, cosine gives the right first answer "
            "as often or more: .966 against .957 with 2 rows of each of 10 labels (digits), .704 "
            "against .689 (Fashion-MNIST); with 2 rows of each of 150 labels it is .867 against "
            ".890 (CLINC150)"
        )
    # `everhash bench run found`, docs/results/found.md: first answers right, all rows at once
    found.append(
        "if all rows are there at once and only their labels are asked for, logistic regression "
        "does about as well or better: .937 of first answers against .932 (CLINC150), .798 "
        "against .792 (Caltech-256), .889 against .896 (CIFAR-10 CNN)"
    )
    # `everhash bench run unseen`, docs/results/unseen.md
    found.append(
        "labels that nobody has taught are found better by cosine (.836 mAP against .583, "
        "CLINC150): "
        "search by relevance, the default, which counts both, or those by likeness"
    )
    return tuple(found)


# Sizes


def sums_bytes(dim: int, features: int) -> int:
    """Return bytes of the exact learner's sums in memory: 16 D^2 (docs/explanation.md)."""
    return 16 * (dim + features) ** 2


def likeness_bytes(dim: int) -> int:
    """Return bytes of a likeness code: a bit a feature, at least 256, and 8 bytes."""
    return max(256, -(-dim // 64) * 64) // 8 + 8


def sizes(
    labels: int, rows: int | None, dim: int | None, k: int, functions: int, learner: str
) -> dict[str, Any]:
    """Return bytes of an entry and of all, and seconds of learning; None where unknown."""
    if dim is None:
        return dict.fromkeys(SIZES)
    exact = learner == "exact"
    kept, alike = 2 * dim, likeness_bytes(dim)
    width = dim + FEATURES
    # docs/explanation.md: 16 D^2 in memory, 4 D^2 on disk; a label adds 8 D, its sum and classifier
    of_labels = 8 * width * labels if exact else 8 * functions * dim
    sums = sums_bytes(dim, FEATURES) if exact else 0
    # docs/collection.md, "Sizes"; `python benchmarks/footprint.py file`: 31 bytes beside features
    # for an unlabelled entry of 64 bits
    known = label_bytes(labels) + 8 + kept + alike
    unknown = -(-k // 8) + 24 + kept + alike
    # `python benchmarks/footprint.py memory`: 19 bytes labelled; unlabelled 138 at
    # 64 bits, of which 64 are certificates, one a bit
    in_memory = 19 + alike
    return {
        "labelled_disk_bytes": known,
        "unlabelled_disk_bytes": unknown,
        "feature_bytes": kept,
        "labelled_memory_bytes": in_memory,
        "unlabelled_memory_bytes": k + 74 + alike,
        "disk_bytes": None if rows is None else rows * known + sums // 4 + of_labels,
        "memory_bytes": None if rows is None else rows * in_memory + sums + of_labels,
        "learner_bytes": sums + of_labels,
        "learning_seconds": None if rows is None else rows * _row_seconds(dim, k, exact),
    }


SIZES = (
    *("labelled_disk_bytes", "unlabelled_disk_bytes", "feature_bytes"),
    *("labelled_memory_bytes", "unlabelled_memory_bytes", "disk_bytes", "memory_bytes"),
    *("learner_bytes", "learning_seconds"),
)


def label_bytes(labels: int) -> int:
    """Return bytes of an entry's label: 1, 2 or 4."""
    return 1 if labels <= 2**8 else 2 if labels <= 2**16 else 4


def _row_seconds(dim: int, k: int, exact: bool) -> float:
    """Return about how long one thread learns a row.

    `python benchmarks/exact_cost.py`, docs/results.md: 9.5 to 134 µs at D of 384 to 2,512, within a
    sixth of 6.4 + D^2 / 48,400. Gradient steps: 3.5 µs at 512 features and 32 bits.
    """
    if exact:
        return 1e-6 * (6.4 + (dim + FEATURES) ** 2 / 48_400)
    return 3.5e-6 * dim * k / (512 * 32)
