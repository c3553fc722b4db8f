"""Tables 1 and 2 of the paper with all methods: mAP by bits, and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everhash.bench.baselines import BASELINES, COSINE
from everhash.bench.reporting import tables
from everhash.bench.reporting.document import Heading, Panel, Plot, ReportPart, Series
from everhash.bench.reporting.layouts import common
from everhash.bench.reporting.published import DEEP, FEATURES, PAPER, TIMED_AT, Published, published
from everhash.bench.reporting.samples import (
    DISTANCES,
    Column,
    Lines,
    at_bits,
    blocks,
    figure,
    lines_of,
    mean_average_precision,
    setting,
    usual_width,
    widths,
    with_figures,
)
from everhash.bench.reporting.tables import NOTHING, grid
from everhash.bench.retrieval import EVERY, KEPT_FRESH
from everhash.bench.task import Row

TOLERATED = 0.2
"""The share by which a figure may be below the published one without a mark."""


def layout(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield the tables and figures of each set."""
    for block in blocks(rows, "protocol"):
        yield common.protocol_heading(block)
        lines = lines_of(block)
        for stored, title in common.TITLES.items():
            if common.has(block, stored):
                yield Heading(3, title)
                yield common.explained(stored, lines)
                yield from _scores(block, lines, stored)
        yield from _by_bits(block, lines)
        yield from _answers(block, lines)
        yield Heading(3, "Costs")
        yield from _costs(block, lines)
        yield from _by_time(block, lines)
        yield Heading(3, "Ties")
        yield from common.ties(lines)


def _scores(rows: list[Row], lines: Lines, stored: str) -> Iterator[ReportPart]:
    columns = [
        *common.score_columns(stored, common.bit_keys(widths(rows))),
        common.learning(usual_width(rows)),
    ]
    known = published(rows[0]["dataset"], {row["stream"] for row in rows}, stored)
    under = {
        method: (f"*published: {line.name}*", *_cells(line, columns))
        for method, line in known.items()
    }
    if stored == "mapping":
        yield from common.sampled(rows)
    yield from common.scored(lines, columns, under)
    if known:
        yield from _against(rows[0]["dataset"], lines, stored, known)
    if stored == "codeword" and rows[0]["dataset"] == "cifar10-cnn":
        yield from filter(None, [DEEP.get(rows[0]["rows_a_label"])])


def _answers(rows: list[Row], lines: Lines) -> Iterator[ReportPart]:
    """Yield right first answers, bytes and seconds at one width, with confidence intervals."""
    bits = usual_width(rows)
    columns = common.answered(lines, bits, at_bits(bits))
    if any(column.title == "first" for column in columns):
        yield Heading(3, f"Answers at {bits} bits")
        yield from common.scored(lines, [*columns, common.learning(bits)], means=common.ANSWERED)


def _cells(line: Published, columns: Sequence[Column]) -> Iterator[str]:
    """Yield the published figures for columns."""
    for column in columns:
        bits = int(column.title)
        if column.group == DISTANCES["hamming"]:
            score = line.score(bits)
            yield NOTHING if score is None else f"{score:.2f}"
        elif column.group == common.learning(bits).group and bits == TIMED_AT:
            yield tables.seconds(line.seconds)
        else:
            yield NOTHING


def _against(
    dataset: str, lines: Lines, stored: str, known: dict[str, Published]
) -> Iterator[ReportPart]:
    """Yield the source of the published figures, and the difference of ours."""
    yield f"Published: {PAPER}, measured on {FEATURES[dataset]}, on the authors' machine."
    column = Column("", "", "", mean_average_precision(stored, "hamming"), at_bits(TIMED_AT))
    parts = []
    for method, line in known.items():
        here, there = column.value(lines.get(method, ())), line.score(TIMED_AT)
        if here is not None and there:
            off = here / there - 1
            mark = f" (**more than {TOLERATED:.0%} below**)" if off < -TOLERATED else ""
            parts.append(f"{method} {here:.3f} here, {there:.2f} published, {off:+.0%}{mark}")
    if parts:
        yield f"At {TIMED_AT} bits by Hamming distance: {'; '.join(parts)}."


def _costs(rows: list[Row], lines: Lines) -> Iterator[ReportPart]:
    """Yield the times of learning and encoding, and the bits computed in refreshes."""
    bits = usual_width(rows)
    here = (f"{bits}", f"{bits} bits")
    encoding = figure("encoding")
    columns = [
        *(common.learning(width) for width in widths(rows)),
        Column("encoding (s)", *here, encoding, at_bits(bits), "low", True, tables.seconds),
        Column("flipped", *here, figure("flipped"), at_bits(bits), "low", form=tables.amount),
        Column("recomputed", *here, figure("recomputed"), at_bits(bits), "low", form=tables.amount),
    ]
    lines = with_figures(lines, columns)
    yield grid(lines, columns)
    yield (
        "Seconds of learning the stream and of encoding all entries, the best of the seeds. "
        "Flipped and recomputed: bits of an unlabelled entry that changed, and that had to be "
        f"worked out again, in all refreshes together, one every {EVERY} rows; mean of at most "
        f"{KEPT_FRESH:,} entries that were not learned. {setting(rows)}"
    )


def _by_bits(rows: list[Row], lines: Lines) -> Iterator[ReportPart]:
    there = widths(rows)
    if len(there) < 2:
        return
    ticks = tuple((float(place), f"{bits}") for place, bits in enumerate(there))
    coded = {line: of_line for line, of_line in lines.items() if line not in BASELINES}
    panels = []
    for distance, name in DISTANCES.items():
        for stored, title in common.TITLES.items():
            columns = [
                c for c in common.score_columns(stored, common.bit_keys(there)) if c.group == name
            ]
            series = common.curves(coded, columns, range(len(there)))
            if series:
                level = _level(lines, stored, distance)
                what = (f"{title}, {name}", "bits", "mAP")
                panels.append(Panel("curves", *what, series, ticks, level=level))
    yield Plot(
        f"{common.protocol_slug(rows)}-bits",
        f"mAP by length of code: {common.block_name(rows)}",
        "mAP by bits, mean over seeds: ours, and the best of the other methods in each panel.",
        tuple(panels),
        sum(common.has(rows, stored) for stored in common.TITLES),
    )


def _by_time(rows: list[Row], lines: Lines) -> Iterator[ReportPart]:
    bits = usual_width(rows)
    panels = []
    for stored, title in common.TITLES.items():
        series = tuple(_points(lines, stored, bits))
        if series:
            level = _level(lines, stored, "asymmetric")
            what = (f"{title}, {bits} bits", "seconds of learning", "mAP")
            panels.append(Panel("scatter", *what, series, log_x=True, level=level))
    if panels:
        yield Plot(
            f"{common.protocol_slug(rows)}-time",
            f"mAP against learning time: {common.block_name(rows)}",
            f"mAP by Hamming distance at {bits} bits against the best learning time of the seeds; "
            "up and to the left is better; squares: batch methods; hollow: by asymmetric distance, "
            "as there are no bits to count.",
            tuple(panels),
            1,
        )


def _points(lines: Lines, stored: str, bits: int) -> Iterator[Series]:
    for line, of_line in lines.items():
        by_hamming, by_margins = (
            Column("", "", "", mean_average_precision(stored, distance), at_bits(bits)).value(
                of_line
            )
            for distance in DISTANCES
        )
        score = by_margins if by_hamming is None else by_hamming
        took = common.learning(bits).value(of_line)
        if score is not None and took:
            method = of_line[0]["method"]
            yield Series(method, ((took, score),), (line,), open=by_hamming is None)


def _level(lines: Lines, stored: str, distance: str) -> tuple[float, str] | None:
    """Return the score of the features themselves, which need no learning."""
    column = Column("", "", "", mean_average_precision(stored, distance))
    score = column.value(lines.get(COSINE, ()))
    return None if score is None else (score, "cosine of the features")
