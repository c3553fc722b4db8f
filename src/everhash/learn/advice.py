"""What to expect of a choice of bits and labels a cycle, before any row is learned."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from everhash import limits
from everhash.errors import LimitError
from everhash.learn.options import auto_labels_per_cycle, whole_number


@dataclass(frozen=True)
class Advice:
    """Sizes, chances and costs for `labels` labels at `bits` bits a cycle."""

    labels: int
    bits: int
    labels_per_cycle: int
    cycles: int
    width: int
    """Bits of a whole code: k for each cycle."""
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


def advise(labels: int, bits: int, labels_per_cycle: int | None = None) -> Advice:
    """Work out what `bits` and `labels_per_cycle` mean; None stands for 4 ceil(log2 k).

    >>> advice = advise(labels=397, bits=32)
    >>> advice.labels_per_cycle, advice.cycles, advice.width, round(advice.unique, 3)
    (20, 20, 640, 0.999)
    """
    labels, bits = whole_number("labels", labels, least=1), whole_number("bits", bits, least=1)
    if bits > limits.WIDTH:
        raise LimitError(f"{bits} bits a cycle, at most {limits.WIDTH} are supported")
    if labels_per_cycle is None:
        rho = auto_labels_per_cycle(bits)
    else:
        rho = whole_number("labels_per_cycle", labels_per_cycle, least=1)
    cycles = -(-labels // rho)
    if labels > limits.LABELS or cycles * bits > limits.WIDTH:
        raise LimitError(
            f"{labels} labels in {cycles} cycles need {cycles * bits} bits; at most "
            f"{limits.LABELS} labels and {limits.WIDTH} bits are supported",
            hint="raise labels_per_cycle",
        )
    together = min(rho, labels)
    return Advice(
        labels=labels,
        bits=bits,
        labels_per_cycle=rho,
        cycles=cycles,
        width=cycles * bits,
        entry_bytes=-(-bits // 8),
        full_entry_bytes=-(-cycles * bits // 8),
        codeword_bytes=labels * -(-bits // 8),
        functions_bytes_per_feature=8 * cycles * bits,
        unique_paper=_chance_unique(bits, math.ldexp(1.0, -together), first=0),
        unique=_chance_unique(bits, math.ldexp(1.0, 1 - together), first=1),
        stale_bits_full=float(bits),
        stale_bits_home=bits / cycles,
        warnings=_warnings(labels, bits, rho),
    )


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
