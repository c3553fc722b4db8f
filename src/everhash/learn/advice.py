"""What to choose for data of a size, and what it will cost, before any row is learned.

`advise` gives a setting with a reason for each choice, says what else to consider, and computes
costs. Reasons are figures that this repository has measured; each stands below its command.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from everhash import limits
from everhash.errors import LimitError
from everhash.learn.advice_rules import Choice, choose, consider, sizes
from everhash.learn.options import auto_labels_per_cycle, whole_number


@dataclass(frozen=True)
class Advice:
    """A setting and why, what else to consider, and sizes, chances and costs."""

    labels: int
    rows: int | None
    dim: int | None
    setting: tuple[Choice, ...]
    """What to pass to `everhash.create`, a reason each."""
    consider: tuple[str, ...]
    """When something simpler does as well, or everhash is no help."""
    bits: int
    labels_per_cycle: int
    cycles: int
    width: int
    """Bits of a whole code: k for each cycle."""
    labelled_disk_bytes: int | None
    """Bytes of a labelled entry in the file, features and likeness code included."""
    unlabelled_disk_bytes: int | None
    feature_bytes: int | None
    """Of both, the kept features: what other `keep_features` would save."""
    labelled_memory_bytes: int | None
    """Bytes of a labelled entry in memory, where features are read from the file."""
    unlabelled_memory_bytes: int | None
    disk_bytes: int | None
    """Of a file of `rows` labelled entries, with the learner's sums."""
    memory_bytes: int | None
    """The same in memory."""
    learner_bytes: int | None
    """Of the learner in memory: exact, 16 D^2 and 8 D a label, D with random features."""
    learning_seconds: float | None
    """About how long one thread learns all rows."""
    entry_bytes: int
    """Bytes of an unlabelled entry's code when it keeps its home cycle only."""
    full_entry_bytes: int
    """Bytes of an unlabelled entry's code when it keeps every cycle, as in the paper."""
    codeword_bytes: int
    """Bytes of all codewords together. A labelled entry has no code of its own."""
    functions_bytes_per_feature: int
    """Bytes of the mapping for each feature: last iterate and mean, float32."""
    unique_paper: float
    """Chance that all bipartitions of a full cycle differ, by the paper's formula."""
    unique: float
    """The same chance when a complement counts as the same bipartition, and a constant column as
    none at all: neither gives its hash function anything of its own to learn."""
    stale_bits_full: float
    """Bits of an entry that one learned row can make stale, all cycles kept: k, as in the paper."""
    stale_bits_home: float
    """The same for entries that keep their home cycle: k / cycles on average."""
    warnings: tuple[str, ...]
    """Where 2^k >> L >= rho >= log2 k fails, and what follows."""

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return asdict(self)


def advise(
    labels: int,
    *,
    rows: int | None = None,
    dim: int | None = None,
    bits: int | None = None,
    labels_per_cycle: int | None = None,
) -> Advice:
    """Say which setting to take, why, and what it costs.

    Args:
        labels: how many there will be in the end.
        rows: how many entries there will be; None leaves out what depends on it.
        dim: features of a row; None leaves out what depends on it.
        bits: k, to keep a choice of your own; None lets it be advised.
        labels_per_cycle: rho, the same.

    >>> advice = advise(labels=397, rows=100_000, dim=384)
    >>> advice.bits, advice.labels_per_cycle, advice.cycles, advice.width
    (32, 20, 20, 640)
    >>> [choice.option for choice in advice.setting][:3]
    ['dim', 'bits', 'labels_per_cycle']
    """
    labels = whole_number("labels", labels, least=1)
    rows = _at_least_one("rows", rows)
    dim = _at_least_one("dim", dim, most=limits.DIMS)
    bits = _at_least_one("bits", bits)
    labels_per_cycle = _at_least_one("labels_per_cycle", labels_per_cycle)
    if bits is not None and bits > limits.WIDTH:
        raise LimitError(f"{bits} bits a cycle, at most {limits.WIDTH} are supported")
    setting = choose(labels, rows, dim, bits, labels_per_cycle)
    value = {choice.option: choice.value for choice in setting}
    k, rho = value["bits"], value["labels_per_cycle"]
    rho = auto_labels_per_cycle(k, value["learner"]) if rho == "auto" else rho
    cycles = -(-labels // rho)
    _check_room(labels, cycles, k)
    together = min(rho, labels)
    return Advice(
        labels=labels,
        rows=rows,
        dim=dim,
        setting=setting,
        consider=consider(labels, rows),
        bits=k,
        labels_per_cycle=rho,
        cycles=cycles,
        width=cycles * k,
        **sizes(labels, rows, dim, k, cycles * k, value["learner"]),
        entry_bytes=-(-k // 8),
        full_entry_bytes=-(-cycles * k // 8),
        codeword_bytes=labels * -(-k // 8),
        functions_bytes_per_feature=8 * cycles * k,
        unique_paper=_chance_unique(k, math.ldexp(1.0, -together), first=0),
        unique=_chance_unique(k, math.ldexp(1.0, 1 - together), first=1),
        stale_bits_full=float(k),
        stale_bits_home=k / cycles,
        warnings=_warnings(labels, k, rho),
    )


def _check_room(labels: int, cycles: int, k: int) -> None:
    """Raise if there are more labels or bits than everhash supports."""
    if labels > limits.LABELS or cycles * k > limits.WIDTH:
        raise LimitError(
            f"{labels} labels in {cycles} cycles need {cycles * k} bits; at most "
            f"{limits.LABELS} labels and {limits.WIDTH} bits are supported",
            hint="let more labels share a cycle",
        )


def _at_least_one(name: str, value: int | None, most: int | None = None) -> int | None:
    """Return an option that may be left open as an int; raise if it is not a valid one."""
    return None if value is None else whole_number(name, value, least=1, most=most)


def _chance_unique(bits: int, share: float, first: int) -> float:
    """Return the product of 1 - (i + first) * share for i below `bits`.

    With share 2^-rho and first 0 this is the paper's (2^rho)! / ((2^rho - k)! 2^(rho k)). Columns
    that differ up to complement and are not constant: share 2^(1-rho), first 1.
    """
    factors = (1 - (i + first) * share for i in range(bits))
    total = 1.0
    for factor in factors:
        if factor <= 0:
            return 0.0
        total *= factor
    return total


def _warnings(labels: int, bits: int, rho: int) -> tuple[str, ...]:
    """Check 2^k >> L >= rho >= log2 k, link by link; ">>" is taken as 16 times."""
    found = []
    words = 2.0**bits if bits < 1000 else math.inf
    if words < labels:
        found.append(
            f"2^{bits} = {words:.0f} words for {labels} labels: labels of a cycle may have to "
            "share a word; use more bits"
        )
    elif words < 16 * labels:
        found.append(
            f"2^{bits} = {words:.0f} words are not many more than {labels} labels: words of a "
            "cycle lie close together; use more bits"
        )
    if labels < rho:
        found.append(
            f"{labels} labels never fill a cycle of {rho}: the code does not grow, which is fine "
            "for few labels"
        )
    if min(rho, labels) < math.log2(bits):
        found.append(
            f"{min(rho, labels)} labels a cycle are below log2 k = {math.log2(bits):.1f}: some of "
            f"the {bits} functions must learn the same bipartition; use fewer bits or a larger "
            "cycle"
        )
    return tuple(found)
