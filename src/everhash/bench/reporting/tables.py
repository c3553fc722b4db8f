"""Markdown tables with aligned columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from everhash.bench.reporting.samples import GROUPS, Column, Lines, group_of, interval
from everhash.bench.task import Row

NOTHING = "-"
Under = Mapping[str, tuple[str, ...]]
"""A further line below that of a method: a cell for its name, and one for each column."""


@dataclass(frozen=True)
class Table:
    """Cells of text. Numbers are aligned to the right, words to the left."""

    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    """The columns with words."""

    def markdown(self) -> str:
        """Return the table with aligned columns."""
        cells = [[plain(cell) for cell in line] for line in (self.head, *self.lines)]
        rooms = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
        rule = [
            "-" * room if place in self.words else "-" * (room - 1) + ":"
            for place, room in enumerate(rooms)
        ]
        return "\n".join(self._line(line, rooms) for line in (cells[0], rule, *cells[1:]))

    def _line(self, cells: Sequence[str], rooms: Sequence[int]) -> str:
        padded = (
            cell.ljust(room) if place in self.words else cell.rjust(room)
            for place, (cell, room) in enumerate(zip(cells, rooms, strict=True))
        )
        return f"| {' | '.join(padded)} |"


def plain(cell: str) -> str:
    r"""Return text that cannot break the table.

    >>> plain("a|b\nc")
    'a\\|b c'
    """
    return " ".join(cell.replace("|", "\\|").split())


def grid(lines: Lines, columns: Sequence[Column], under: Under | None = None) -> Table:
    """Return a table of methods, group by group; the best of each column is bold.

    Cells without a value show a dash.
    """
    values = {line: [column.value(rows) for column in columns] for line, rows in lines.items()}
    bests = [best_of(column, [v[i] for v in values.values()]) for i, column in enumerate(columns)]
    body: list[tuple[str, ...]] = []
    for group in GROUPS:
        members = [line for line in values if group_of(lines[line][0]["method"]) == group]
        if members:
            body.append((f"*{group}*", *("" for _ in columns)))
        for line in members:
            cells = (
                shown(column, value, best) + spread(column, lines[line])
                for column, value, best in zip(columns, values[line], bests, strict=True)
            )
            body.append((line, *cells))
            body += [under[line]] if under and line in under else []
    return Table(("method", *headings(columns)), tuple(body))


def best_of(column: Column, values: Sequence[float | None]) -> str | None:
    """Return the best of a column, as it is shown."""
    there = [value for value in values if value is not None]
    if not there or not column.best:
        return None
    return column.form(max(there) if column.best == "high" else min(there))


def shown(column: Column, value: float | None, best: str | None) -> str:
    """Return a cell."""
    if value is None:
        return NOTHING
    text = column.form(value)
    return f"**{text}**" if text == best else text


def spread(column: Column, rows: Sequence[Row]) -> str:
    """Return what follows a mean that is shown with its confidence interval."""
    half = interval(column.values(rows)) if column.interval else None
    return "" if half is None else f" ± {column.form(half)}"


def headings(columns: Sequence[Column]) -> list[str]:
    """Return the headings of columns; the group is named at its first column only."""
    titles, before = [], ""
    for column in columns:
        titles.append(f"{column.group} {column.title}".strip())
        if column.group == before and column.title:
            titles[-1] = column.title
        before = column.group
    return titles


def seconds(value: float) -> str:
    """Return seconds with two or three significant digits.

    >>> seconds(0.00313), seconds(0.521), seconds(1.234), seconds(1075.3)
    ('0.0031', '0.521', '1.23', '1,075')
    """
    for least, decimals in ((100, 0), (10, 1), (1, 2), (0.1, 3), (0.01, 3)):
        if value >= least:
            return f"{value:,.{decimals}f}"
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.5f}"


def duration(value: float) -> str:
    """Return a time in the unit that fits.

    >>> duration(3.2e-6), duration(0.0451), duration(1234)
    ('3.2 µs', '45.1 ms', '1,234 s')
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= unit * 0.9995:
            return f"{value:,.0f} s" if value >= 1000 else f"{value / unit:.3g} {name}"
    return f"{value * 1e9:.3g} ns"


def amount(value: float) -> str:
    """Return a count with no more digits than it needs.

    >>> amount(6.06), amount(192.0), amount(30558)
    ('6.1', '192', '30,558')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
