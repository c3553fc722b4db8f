"""Columns, sentences and tables that several layouts use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from everhash.bench.baselines import COSINE
from everhash.bench.kinds import PROTOCOLS
from everhash.bench.reporting import tables
from everhash.bench.reporting.beaten import where_beaten
from everhash.bench.reporting.document import Heading, ReportPart, Series
from everhash.bench.reporting.samples import (
    DISTANCES,
    OUR_METHODS,
    Column,
    Lines,
    Where,
    at_bits,
    figure,
    largest_deviation,
    mean_average_precision,
    right_answers,
    rows_a_label,
    setting,
    with_figures,
)
from everhash.bench.reporting.tables import Table, Under, grid
from everhash.bench.retrieval import ASYMMETRIC_AMONG
from everhash.bench.task import Row

STORED = {
    "codeword": "By codeword: an entry's label is known, and the entry is stored as its label's "
    "codeword; the question is only whether the query finds it. This flatters methods that have "
    "codewords",
    "mapping": "By mapping: an entry is stored as the bits that the hash functions give its "
    "features, and its label is not used. Where a method has several cycles, these are the bits "
    "of the entry's home cycle",
}
BESIDE = {
    "codeword": (
        "onehot",
        ": the figure of the one-hot classifier (`onehot`) beside theirs shows "
        "what a plain classifier scores",
    ),
    "mapping": (COSINE, ". `cosine` ranks by the features themselves, without any code"),
}
TITLES = {"codeword": "By codeword", "mapping": "By mapping"}
MEASURED = (
    "mAP, the mean over all orders of tied entries, and over seeds. Bold: the best of a column."
)
ANSWERED = (
    "What people ask for. First: share of queries whose first answer has their label. Ten: share "
    "of the first ten answers that have it. Both, and mAP, by asymmetric distance (of `cosine` by "
    "cosine, of `logistic` by class score), averaged over all orders of tied entries. ± is the "
    "95 % confidence interval of the mean over orderings of the stream (Student's t); a single "
    "ordering has none. Bytes: what an entry needs for its code, packed: its label's number by "
    "codeword, its word and its home cycle's number by mapping, float32 features of `cosine`. "
    "What a collection keeps besides, `benchmarks/footprint.py` measures."
)
BOUNDS = ("mapping", "codeword", "mixed")
MAX_OTHERS = 8
"""Methods in a panel of curves, beside ours: a reader cannot tell more apart."""


def explained(stored: str, lines: Lines) -> str:
    """Return sentences that explain how entries are stored."""
    method, words = BESIDE[stored]
    return f"{STORED[stored]}{words if method in lines else ''}."


def scored(
    lines: Lines, columns: Sequence[Column], under: Under | None = None, means: str = MEASURED
) -> Iterator[ReportPart]:
    """Yield a table of scores, what it was measured on, and where a method beats everhash."""
    judged = [column for column in columns if column.best == "high"]
    lines = with_figures(lines, judged)
    rows = [row for of_line in lines.values() for row in of_line]
    yield grid(lines, columns, under)
    yield f"{means} {largest_deviation(lines, judged)} {setting(rows)}"
    yield from where_beaten(lines, judged)


def score_columns(stored: str, keys: Sequence[tuple[Any, str, Where]]) -> list[Column]:
    """Return columns of mAP: by Hamming distance at each key, then by asymmetric distance."""
    return [
        Column(name, f"{key}", words, mean_average_precision(stored, distance), where)
        for distance, name in DISTANCES.items()
        for key, words, where in keys
    ]


def answered(lines: Lines, bits: int, where: Where, name: str = "") -> list[Column]:
    """Return columns of what people ask for: right answers, bytes an entry; mAP with its interval.

    All are by asymmetric distance, at one width.
    """
    at = f"{bits} bits" if bits else "any width"
    columns = []
    for stored, title in TITLES.items():
        group = f"{name}, {title.lower()}" if name else title
        columns += [
            Column(
                group, "mAP", at, mean_average_precision(stored, "asymmetric"), where, interval=True
            ),
            Column(group, "first", at, right_answers(stored, 0), where, interval=True),
            Column(group, "ten", at, right_answers(stored, 1), where, interval=True),
            Column(group, "bytes", at, figure("bytes", stored), where, "", form=amount_of_bytes),
        ]
    return [column for column in columns if any(map(column.values, lines.values()))]


def amount_of_bytes(value: float) -> str:
    """Return bytes an entry.

    >>> amount_of_bytes(4.375), amount_of_bytes(2048.0)
    ('4.4', '2,048')
    """
    return f"{value:,.0f}" if value == round(value) else f"{value:.1f}"


def bit_keys(there: Sequence[int]) -> list[tuple[int, str, Where]]:
    """Return a key for each width."""
    return [(bits, f"{bits} bits", at_bits(bits)) for bits in there]


def share_keys(rows: Sequence[Row]) -> list[tuple[str, str, Where]]:
    """Return a key for each share that the protocol varies."""

    def at(share: float) -> Where:
        return lambda row: bool(row["share"] == share)

    shares = sorted({row["share"] for row in rows})
    return [(f"{share:.0%}", f"{share:.0%}", at(share)) for share in shares]


def learning(bits: int) -> Column:
    """Return the column of learning times at a width."""
    return Column(
        *("learning (s)", f"{bits}", f"{bits} bits", figure("seconds"), at_bits(bits)),
        best="low",
        least=True,
        form=tables.seconds,
    )


def sampled(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield a warning where not all entries are ranked by asymmetric distance."""
    if max(row["ranked"] for row in rows) > ASYMMETRIC_AMONG:
        yield (
            f"By mapping and asymmetric distance {ASYMMETRIC_AMONG:,} of the entries are ranked, a "
            "random sample; by Hamming distance all of them."
        )


def has(rows: Sequence[Row], stored: str) -> bool:
    """Return whether any row has scores of entries stored in this way."""
    return any(row.get(stored) for row in rows)


def ties(lines: Lines) -> Iterator[ReportPart]:
    """Yield the largest effect that the order of tied entries could have on each method."""
    names = {"mapping": "by mapping", "codeword": "by codeword", "mixed": "mixed"}
    columns = [
        Column(names[stored], name, "", _gap(stored, distance), best="")
        for stored in BOUNDS
        for distance, name in DISTANCES.items()
    ]
    there = [column for column in columns if any(map(column.values, lines.values()))]
    if not there:
        return
    body = []
    for line, rows in lines.items():
        gaps = [max(column.values(rows), default=None) for column in there]
        if any(gap is not None for gap in gaps):
            cells = (tables.NOTHING if gap is None else f"{gap:.3f}" for gap in gaps)
            body.append((line, *cells))
    yield (
        "Ties: what the order of entries at equal distance could change. The widest gap of any "
        "run between mAP with ties in their best and in their worst order; the figures above are "
        "the mean over all orders."
    )
    yield Table(("method", *tables.headings(there)), tuple(body))
    yield setting([row for rows in lines.values() for row in rows])


def _gap(stored: str, distance: str) -> Callable[[Row], float | None]:
    def pick(row: Row) -> float | None:
        if row["bits"] == 0 and distance == "hamming":
            return None
        found = [(place.get(stored) or {}).get(distance) for place in (row, *row.get("curve", ()))]
        gaps = [each[2] - each[1] for each in found if each and None not in each]
        return max(gaps, default=None)

    return pick


def curves(
    lines: Lines, columns: Sequence[Column], places: Sequence[float], most: int = MAX_OTHERS
) -> tuple[Series, ...]:
    """Return a curve over columns for each of our methods, and for the best others."""
    found = {}
    for line, rows in lines.items():
        values = [column.value(rows) for column in columns]
        points = tuple(
            (place, value) for place, value in zip(places, values, strict=True) if value is not None
        )
        if points:
            found[line] = Series(rows[0]["method"], points, (line,))
    ours = [line for line in found if line in OUR_METHODS]
    others = sorted(
        (line for line in found if line not in ours), key=lambda line: _mean(found, line)
    )
    return tuple(found[line] for line in [*others[-most:], *ours])


def _mean(found: dict[str, Series], line: str) -> float:
    points = found[line].points
    return sum(y for _, y in points) / len(points)


def block_name(rows: Sequence[Row], bits: int = 0) -> str:
    """Return a data set and the length of its stream, as a heading has them."""
    name = f"{rows[0]['dataset']}, {rows_a_label(rows)}"
    return f"{name}, {bits} bits" if bits else name


def protocol_heading(rows: Sequence[Row], bits: int = 0) -> Heading:
    """Return a heading that explains the protocol too, unless it is the usual one."""
    protocol = rows[0]["protocol"]
    other = "" if protocol == "strict" else f" ({protocol}: {PROTOCOLS[protocol]})"
    return Heading(2, block_name(rows, bits) + other)


def slug(rows: Sequence[Row], bits: int = 0) -> str:
    """Return the same as a part of a file's name."""
    kept = "".join(letter if letter.isalnum() else " " for letter in rows[0]["dataset"].lower())
    parts = [*kept.split(), f"{rows[0]['rows_a_label']}", *([f"{bits}"] if bits else [])]
    return "-".join(parts)


def protocol_slug(rows: Sequence[Row], bits: int = 0) -> str:
    """Return the slug with the protocol, unless it is the usual one."""
    protocol = rows[0]["protocol"]
    return slug(rows, bits) if protocol == "strict" else f"{slug(rows, bits)}-{protocol}"
