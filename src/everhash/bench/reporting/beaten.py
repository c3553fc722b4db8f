"""Where a method beats everhash: sentences from the figures of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from everhash.bench.baselines import COSINE
from everhash.bench.reporting.document import Bullets, ReportPart
from everhash.bench.reporting.samples import OURS, Column, Lines, pooled
from everhash.bench.task import Row

MAX_NAMED = 5
"""Methods that are named in a sentence; more are counted."""


class Win(NamedTuple):
    """A figure that is better than everhash's in the same column, over the seeds both have."""

    line: str
    column: Column
    theirs: float
    ours: float
    deviations: float | None
    """The difference in pooled standard deviations over seeds."""
    times: float | None
    """The learning time as a multiple of everhash's."""


def wins(lines: Lines, columns: Sequence[Column]) -> list[Win]:
    """Return all figures that are better than everhash's, line by line, over the seeds both have.

    Seeds decide the split, and some splits are easier than others: a method that was run with one
    seed is held against our run with that seed, not against our mean.
    """
    if OURS not in lines:
        return []
    found = []
    for line, of_line in lines.items():
        for column in columns:
            rows, our_rows = _same_seeds(column, of_line, lines[OURS])
            ours, theirs = column.value(our_rows), column.value(rows)
            if line != OURS and ours is not None and theirs is not None:
                won = _better(column, theirs, ours)
                found += [_win(line, column, rows, our_rows)] if won else []
    return found


def _same_seeds(column: Column, theirs: list[Row], ours: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of a column whose seeds both have."""
    seeds = [{row["seed"] for row in rows if column.where(row)} for rows in (theirs, ours)]
    common = set.intersection(*seeds)
    both = [[row for row in rows if row["seed"] in common] for rows in (theirs, ours)]
    return both[0], both[1]


def _better(column: Column, theirs: float, ours: float) -> bool:
    if not column.best or column.form(theirs) == column.form(ours):
        return False
    return theirs > ours if column.best == "high" else theirs < ours


def _win(line: str, column: Column, theirs: list[Row], ours: list[Row]) -> Win:
    values = column.values(theirs), column.values(ours)
    their, our = column.value(theirs) or 0.0, column.value(ours) or 0.0
    spread = None if column.least else pooled(*values)
    apart = abs(their - our) / spread if spread else None
    learning = Column("", "", "", lambda row: row.get("seconds"), column.where, least=True)
    took, we_took = learning.value(theirs), learning.value(ours)
    return Win(line, column, their, our, apart, took / we_took if took and we_took else None)


def where_beaten(lines: Lines, columns: Sequence[Column]) -> Iterator[ReportPart]:
    """Yield a list of the methods that beat everhash, and by how much."""
    if OURS not in lines:
        yield f"There is no row of {OURS}, so nothing to hold the others against."
        return
    others = [line for line in lines if line != OURS]
    if not others:
        yield f"Only {OURS} was run: there is nothing to compare it with."
        return
    found = wins(lines, columns)
    if not found:
        yield f"{_none_of(others)} beats {OURS} in this table."
        return
    yield f"**Where a method beats {OURS}:**"
    groups = dict.fromkeys((win.column.group, win.line) for win in found)
    yield Bullets(
        tuple(
            _sentence([win for win in found if (win.column.group, win.line) == each])
            for each in sorted(groups, key=lambda each: [c.group for c in columns].index(each[0]))
        )
    )
    if any(win.column.best == "high" for win in found):
        yield (
            "(Over the seeds that both have. sd: standard deviation over them, pooled over both; "
            "time: of learning, the best of the seeds.)"
        )


def _none_of(others: list[str]) -> str:
    """Return the methods that did not win, by name if they are few.

    >>> _none_of(["lsh"]), _none_of(["lsh", "paper"])
    ('The only other method, `lsh`, never', 'None of `lsh` and `paper`')
    """
    named = [f"`{line}`" for line in others]
    if len(named) == 1:
        return f"The only other method, {named[0]}, never"
    if len(named) > MAX_NAMED:
        return f"None of the {len(named)} other methods that were run"
    return f"None of {', '.join(named[:-1])} and {named[-1]}"


def _sentence(found: Sequence[Win]) -> str:
    method = found[0].line.partition(" ")[0]
    whole = f"`{found[0].line}`, {found[0].column.group}: " + "; ".join(map(_words, found))
    if method == COSINE:
        whole += "; it keeps the features themselves, not bits"
    return whole


def _words(win: Win) -> str:
    form = win.column.form
    place = f"{win.column.words} " if win.column.words else ""
    words = []
    if win.column.best == "high":
        words.append(f"+{form(win.theirs - win.ours)}")
        words.append(f"{win.deviations:.1f} sd" if win.deviations is not None else "one seed")
        words += [f"{ratio(win.times)} the time"] if win.times is not None else []
    return f"{place}{form(win.theirs)} against {form(win.ours)}" + (
        f" ({', '.join(words)})" if words else ""
    )


def ratio(value: float) -> str:
    """Return a ratio as text.

    >>> ratio(0.51), ratio(26.4), ratio(12345.6)
    ('0.51 x', '26 x', '12,346 x')
    """
    return f"{value:,.0f} x" if value >= 10 else f"{value:.2g} x"
