"""The paper's Figure 4: variants of methods, their scores, and the cost of their upkeep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everhash.bench.reporting import tables
from everhash.bench.reporting.document import Heading, Panel, Plot, ReportPart, Series
from everhash.bench.reporting.layouts import common
from everhash.bench.reporting.samples import (
    DISTANCES,
    Column,
    Lines,
    blocks_by_width,
    figure,
    lines_of,
    mean_average_precision,
    setting,
)
from everhash.bench.reporting.tables import grid
from everhash.bench.retrieval import EVERY, KEPT_FRESH
from everhash.bench.task import Row, Task

COUNTED = {
    "versions": "function updates",
    "recomputed": "bits recomputed",
    "flipped": "bits flipped",
}

AXES = {
    "versions": "function updates",
    "recomputed": "bits recomputed per entry",
    "flipped": "bits flipped per entry",
}


def layout(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield the tables and figures of each set and width."""
    for bits, block in blocks_by_width(rows):
        yield common.protocol_heading(block, bits)
        lines = lines_of(block)
        yield from _scores(block, lines)
        if block[0]["protocol"] == "strict":  # the only one that keeps an index up to date
            yield Heading(3, "Upkeep")
            yield from _upkeep(block, lines, bits)
            yield _picture(block, lines, bits)
        yield Heading(3, "Ties")
        yield from common.ties(lines)


def _scores(rows: Sequence[Row], lines: Lines) -> Iterator[ReportPart]:
    yield " ".join(
        common.explained(stored, lines) for stored in common.TITLES if common.has(rows, stored)
    )
    yield from common.sampled(rows)
    yield from common.scored(
        lines,
        [
            Column(title.lower(), name, name, mean_average_precision(stored, distance))
            for stored, title in reversed(common.TITLES.items())
            for distance, name in DISTANCES.items()
            if common.has(rows, stored)
        ],
    )


def _upkeep(rows: Sequence[Row], lines: Lines, bits: int) -> Iterator[ReportPart]:
    counts = [
        Column(name, "", "", figure(key), best="low", form=tables.amount)
        for key, name in COUNTED.items()
    ]
    width = Column("width", "", "", figure("width"), best="", form="{:,.0f}".format)
    yield grid(lines, [*counts, width, common.learning(bits)])
    yield (
        "Function updates: how often any hash function changed, which is what the paper counts, "
        "as each change makes one bit of every entry stale. Bits recomputed and flipped: of an "
        f"unlabelled entry, with a refresh after {EVERY} rows in which a function has changed; "
        f"mean of at most {KEPT_FRESH:,} entries that were not learned. Width: bits of all cycles; "
        f"an entry keeps those of its home cycle. Learning: the best of the seeds. {setting(rows)}"
    )


def _picture(rows: Sequence[Row], lines: Lines, bits: int) -> Plot:
    score = Column("", "", "", mean_average_precision("mapping", "hamming"))
    panels = [
        Panel(
            *("scatter", f"{name[0].upper()}{name[1:]}", AXES[key], "mAP by mapping"),
            *(_points(lines, Column("", "", "", figure(key)), score), (), True),
        )
        for key, name in COUNTED.items()
    ]
    took = common.learning(bits)
    times = tuple(
        Series(of_line[0]["method"], ((seconds, 0.0),), (_short(of_line),))
        for of_line in reversed(lines.values())
        if (seconds := took.value(of_line))
    )
    panels.append(Panel("dots", "Training time", "seconds of learning", "", times, (), True))
    return Plot(
        f"{common.slug(rows, bits)}-updates",
        f"mAP against bit updates: {common.block_name(rows, bits)}",
        "mAP by mapping and Hamming distance against what it costs to keep an entry up to date; "
        f"up and to the left is better; numbers after a name are its options: {_options(lines)}.",
        tuple(panels),
        2,
    )


def _points(lines: Lines, count: Column, score: Column) -> tuple[Series, ...]:
    """Return the variants of each method in the order of their options; equal points are merged."""
    found: dict[tuple[str, float, float], list[str]] = {}
    for of_line in lines.values():
        x, y = count.value(of_line), score.value(of_line)
        if x and y is not None:
            found.setdefault((of_line[0]["method"], x, y), []).append(_values(of_line))
    series: dict[tuple[str, bool], list[tuple[float, float, str]]] = {}
    for (method, x, y), values in found.items():
        # the default is not on the line along which an option grows
        grows = any(values)
        label = f"{method} {' = '.join(filter(None, values))}".strip()
        series.setdefault((method, grows), []).append((x, y, label))
    return tuple(
        Series(method, tuple((x, y) for x, y, _ in points), tuple(label for *_, label in points))
        for (method, _), points in series.items()
    )


def _values(rows: Sequence[Row]) -> str:
    """Return the values of options, without their names."""
    return ", ".join(str(value) for _, value in Task.of(rows[0]).options)


def _short(rows: Sequence[Row]) -> str:
    """Return a method with the values of its options."""
    return f"{rows[0]['method']} {_values(rows)}".strip()


def _options(lines: Lines) -> str:
    """Return the names of the options that the values belong to."""
    names: dict[str, list[str]] = {}
    for of_line in lines.values():
        options = ", ".join(name for name, _ in Task.of(of_line[0]).options)
        methods = names.setdefault(options, [])
        methods += [of_line[0]["method"]] if of_line[0]["method"] not in methods else []
    return "; ".join(f"{' and '.join(each)} {name}" for name, each in names.items() if name)
