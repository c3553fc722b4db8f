"""What people find at the start: searches beside cosine, labels told beside other classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from everhash.bench.few_labels import BESIDE
from everhash.bench.reporting.document import Heading, ReportPart
from everhash.bench.reporting.samples import blocks
from everhash.bench.reporting.tables import Table
from everhash.bench.task import Row

FOUND = (
    "Shares right, first answer / among ten: mean over seeds. `cosine` is FAISS IndexFlatIP on the "
    "same rows. Gap: relevance, the default, less the better of meaning and cosine. The trees that "
    "judge relevance have learned from these sets; [relevance](relevance.md) shows how they fare "
    "on a set that they have not seen. Error: how far the probabilities stated with the first ten "
    "are from the share right, in tenths of them, on average."
)
TOLD = (
    "`predict` beside what knows the same labelled rows: logistic regression with the best C of "
    "three for these queries, the nearest mean of a label, and the nearest row. The others cannot "
    "learn from rows without a label. Gap: to the best of them. Error: as above, of the "
    "probability of the likeliest label. Said: the accuracy that `stats` reports as "
    "`accuracy_now`, measured on learned rows, each left out; - where no label has two."
)
SEARCHES = ("relevance", "meaning", "cosine")
CLASSIFIERS = ("everhash", "logistic", "means", "nearest")


def few(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield what is found and told where few rows of each label have it."""
    yield Heading(2, "Few rows of each label have it")
    yield f"So many rows of each label have it, {BESIDE} others do not. {FOUND}"
    yield _found(rows)
    yield Heading(3, "Labels told")
    yield TOLD
    head = ("data", "rows", *CLASSIFIERS, "gap", "error", "said")
    yield Table(head, tuple(_told(block) for block in blocks(rows)))
    yield _measured(rows)


def half(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield what is found where half of the labels are unknown."""
    yield Heading(2, "Half of the labels are unknown")
    yield (
        "The rows column counts the rows of each label; half of the labels are unknown, and of "
        "each known one half of the rows have it. Queries are of all labels."
    )
    yield _found(rows)
    yield _measured(rows)


def _measured(rows: Sequence[Row]) -> str:
    seeds, asked = {row["seed"] for row in rows}, {row["asked"] for row in rows}
    machines = "; ".join(sorted({row["machine"] for row in rows}))
    return f"Mean of {len(seeds)} orderings, {min(asked):,} to {max(asked):,} queries. {machines}."


def _found(rows: Sequence[Row]) -> Table:
    lines = []
    for block in blocks(rows):
        shares = {by: [_mean(block, "ways", by, part) for part in PARTS] for by in SEARCHES}
        others = zip(*(shares[by] for by in SEARCHES[1:]), strict=True)
        gaps = [ours - max(pair) for ours, pair in zip(shares["relevance"], others, strict=True)]
        cells = [" / ".join(f"{share:.3f}" for share in shares[by]) for by in SEARCHES]
        gap = " / ".join(f"{gap:+.3f}" for gap in gaps)
        error = f"{_mean(block, 'stated', 'relevance'):.3f}"
        lines.append((block[0]["dataset"], str(block[0]["rows_a_label"]), *cells, gap, error))
    return Table(("data", "rows", *SEARCHES, "gap", "error"), tuple(lines))


PARTS = ("first", "ten")


def _told(block: Sequence[Row]) -> tuple[str, ...]:
    shares = [_mean(block, "guessed", name) for name in CLASSIFIERS]
    said = [row["told"]["accuracy"] for row in block]
    known = [share for share in said if share is not None]
    return (
        block[0]["dataset"],
        str(block[0]["rows_a_label"]),
        *(f"{share:.3f}" for share in shares),
        f"{shares[0] - max(shares[1:]):+.3f}",
        f"{_mean(block, 'told', 'error'):.3f}",
        f"{fmean(known):.3f}" if known else "-",
    )


def _mean(block: Sequence[Row], *keys: str) -> float:
    values = []
    for row in block:
        value = row
        for key in keys:
            value = value[key]
        values.append(float(value))  # type: ignore[arg-type]
    return fmean(values)
