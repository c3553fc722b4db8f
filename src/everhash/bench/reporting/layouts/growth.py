"""Labels that arrive over time: areas under curves, and the curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from everhash.bench.growth import CHECKPOINTS
from everhash.bench.reporting import tables
from everhash.bench.reporting.document import Heading, Panel, Plot, ReportPart
from everhash.bench.reporting.layouts import common
from everhash.bench.reporting.samples import (
    DISTANCES,
    Column,
    Lines,
    Pick,
    Where,
    blocks_by_width,
    figure,
    lines_of,
)
from everhash.bench.task import Row

ORDERS = {
    "joining": "labels join over time, and go on coming",
    "sorted": "one label comes after the other",
}


def layout(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield the areas and curves of each set."""
    for bits, block in blocks_by_width(rows):
        yield Heading(2, common.block_name(block, bits))
        lines = lines_of(block)
        for stored, title in common.TITLES.items():
            if any(stored in row["area"] for row in block):
                yield Heading(3, title)
                yield common.explained(stored, lines)
                yield _figures(block)
                yield from common.scored(lines, list(_columns(block, stored)))
        yield _picture(block, lines, bits)
        yield Heading(3, "Ties")
        yield from common.ties(lines)


def _figures(rows: Sequence[Row]) -> str:
    orders = "; ".join(f"{order}: {ORDERS.get(order, order)}" for order in _orders(rows))
    return (
        f"The figures are areas under the curves: the mean of mAP over {CHECKPOINTS} "
        "checkpoints, each among the entries of the labels seen so far. "
        f"{orders[0].upper()}{orders[1:]}."
    )


def _orders(rows: Sequence[Row]) -> list[str]:
    there = {row["protocol"] for row in rows}
    return sorted(there, key=lambda order: [*ORDERS, order].index(order))


def _in_order(order: str) -> Where:
    return lambda row: bool(row["protocol"] == order)


def _columns(rows: Sequence[Row], stored: str) -> Iterator[Column]:
    for order in _orders(rows):
        for distance, name in DISTANCES.items():
            yield Column(order, name, name, _area(stored, distance), _in_order(order))
        seconds = figure("seconds")
        yield Column(order, "s", "", seconds, _learned(order), "low", True, tables.seconds)


def _learned(order: str) -> Where:
    """Return a test for rows of an order by methods that learn."""
    return lambda row: bool(row["protocol"] == order and row["width"])


def _area(stored: str, distance: str) -> Pick:
    def pick(row: Row) -> Any:
        if row["bits"] == 0 and distance == "hamming":
            return None
        return row["area"].get(stored, {}).get(distance)

    return pick


def _picture(rows: Sequence[Row], lines: Lines, bits: int) -> Plot:
    panels = []
    for stored, title in common.TITLES.items():
        for order in _orders(rows):
            of_order = [row for row in rows if row["protocol"] == order]
            columns = [_checkpoint(stored, place, order) for place in range(CHECKPOINTS)]
            series = common.curves(lines, columns, range(1, CHECKPOINTS + 1))
            if series:
                ticks = tuple((place + 1.0, _seen(of_order, place)) for place in range(CHECKPOINTS))
                name = f"{title}, labels {order}"
                panels.append(Panel("curves", name, "labels seen so far", "mAP", series, ticks))
    return Plot(
        f"{common.slug(rows, bits)}-growth",
        f"mAP while labels arrive: {common.block_name(rows, bits)}",
        "mAP by asymmetric distance among the entries of the labels seen so far, mean over seeds: "
        "ours, and the best of the other methods in each panel. The "
        f"{CHECKPOINTS} checkpoints are at even distances along the stream.",
        tuple(panels),
        len(_orders(rows)),
    )


def _checkpoint(stored: str, place: int, order: str) -> Column:
    def pick(row: Row) -> Any:
        if place >= len(row["curve"]):
            return None
        return (row["curve"][place].get(stored) or {}).get("asymmetric", (None,))[0]

    return Column("", "", "", pick, _in_order(order))


def _seen(rows: Sequence[Row], place: int) -> str:
    """Return the number of labels seen by a checkpoint."""
    return f"{fmean(row['curve'][place]['labels'] for row in rows):.0f}"
