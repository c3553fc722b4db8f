"""Search by likeness beside peers: curves, what they cost, and speed at equal recall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from everhash.bench.reporting.document import Bullets, Heading, Panel, Plot, ReportPart, Series
from everhash.bench.reporting.samples import OURS, machines
from everhash.bench.reporting.tables import NOTHING, Table, duration
from everhash.bench.task import Row

EQUAL = 0.98
"""The recall at which speeds are compared."""
DRAWN = 0.8
"""Points below this recall are not drawn: nobody wants them, and they would crowd the others."""
WAYS = {"batch": "in one call", "single": "one by one"}
Figures = dict[str, Any]


class Fastest(NamedTuple):
    """The fastest setting of an engine that finds enough."""

    engine: str
    setting: str
    recall: float
    rate: float
    """Queries a second."""


def layout(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield all parts of the page."""
    raced = sorted(
        (row for row in rows if row["part"] == "search"),
        key=lambda row: (row["dataset"], row["size"], row["seed"]),
    )
    yield _where(rows)
    if raced:
        yield Heading(2, "At equal recall")
        yield from _equal(raced)
        yield _picture(raced)
    for row in raced:
        yield from _race(row)
    yield from _inserts([row for row in rows if row["part"] == "inserts"])
    yield from _growing([row for row in rows if row["part"] == "growing"])


def _where(rows: Sequence[Row]) -> str:
    """Return sentences about seeds, machine and versions."""
    packages = sorted(
        {f"{name} {value}" for row in rows for name, value in row["packages"].items()}
    )
    peers = f" {', '.join(packages)}." if packages else ""
    drawn = ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))
    return f"Seed: {drawn}. {machines(rows)}{peers}"


def place(row: Row) -> str:
    """Return what was searched, as a heading."""
    several = f", seed {row['seed']}" if row["seed"] else ""
    return f"{row['dataset']}, {row['size']:,} entries{several}"


def _there(row: Row) -> dict[str, Figures]:
    """Return the engines that were raced."""
    return {name: each for name, each in row["engines"].items() if each.get("settings")}


def fastest(row: Row, way: str, least: float = EQUAL) -> dict[str, Fastest]:
    """Return the fastest setting of each engine that finds at least so much."""
    found = {}
    for name, engine in _there(row).items():
        enough = [each for each in engine["settings"] if each["recall"] >= least]
        if enough:
            best = max(enough, key=lambda each: each[way])
            found[name] = Fastest(name, best["setting"], best["recall"], best[way])
    return found


def _equal(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield how many times as fast ours is as each peer, at its fastest setting that is enough."""
    lines = []
    for row in rows:
        by_way = {way: fastest(row, way) for way in WAYS}
        for name in _there(row):
            cells = [cell for way in WAYS for cell in _compared(by_way[way], name)]
            lines.append((place(row), name, *cells))
    titles = ("setting", "recall", "queries/s", "ratio")
    head = [f"{title} {words}" for words in WAYS.values() for title in titles]
    yield Table(("rows", "engine", *head), tuple(lines), (0, 1, 2, 6))
    yield (
        f"Of each engine the fastest setting that finds at least {EQUAL} of the ten; a dash where "
        "none does. The ratio is our queries a second through the peer's: above 1 ours is faster."
    )
    slower = [
        f"{place(row)}, {words}: {name}, {ours.rate / each.rate:.2f}"
        for row in rows
        for way, words in WAYS.items()
        if (ours := (found := fastest(row, way)).get(OURS))
        for name, each in found.items()
        if name != OURS and each.rate > ours.rate
    ]
    if slower:
        yield f"**Where a peer beats {OURS}**, with the ratio:"
        yield Bullets(tuple(slower))


def _compared(found: dict[str, Fastest], name: str) -> tuple[str, str, str, str]:
    """Return setting, recall, queries a second and the ratio as cells."""
    its, ours = found.get(name), found.get(OURS)
    if its is None:
        return (NOTHING,) * 4
    ratio = NOTHING if ours is None or name == OURS else f"{ours.rate / its.rate:.2f}"
    return its.setting or NOTHING, f"{its.recall:.4f}", rate(its.rate), ratio


def rate(value: float) -> str:
    """Return queries a second with three digits at most.

    >>> rate(12.345), rate(1234.5), rate(0.256)
    ('12.3', '1,234', '0.256')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _race(row: Row) -> Iterator[ReportPart]:
    """Yield what every engine costs, and all its settings."""
    yield Heading(2, place(row)[0].upper() + place(row)[1:])
    yield Table(
        (
            "engine",
            "holds rows in",
            "anonymous",
            "of files",
            "disk",
            "build",
            "save",
            "first answer",
        ),
        tuple(_costs(name, engine) for name, engine in _there(row).items()),
        (0, 1),
    )
    yield (
        "Bytes an entry: of memory that grew while it was opened and searched, anonymous and of "
        "files, which the system may drop; and on disk. Build and save: without making the rows; "
        "peers on one thread. First answer: from opening to the answer of one query, in a process "
        "that has just started and has imported its packages; ours loads its compiled kernels then."
    )
    lines = tuple(
        (name, *_at(setting)) for name, each in _there(row).items() for setting in each["settings"]
    )
    head = ("engine", "setting", "recall", "queries/s in one call", "queries/s one by one")
    yield Table((*head, "median"), lines, (0, 1))
    asked = max(each["asked"] for engine in _there(row).values() for each in engine["settings"])
    yield (
        f"Recall at 10; {asked:,} queries a call, of slow settings fewer; one by one: the best "
        f"round, and the median of all single calls; rounds: {row['rounds']}."
    )
    if not row["takes_recall"]:
        yield f"This version of {OURS} has no `recall`: its settings with one are all the same."
    notes = tuple(
        f"{name}: {each['note']}" for name, each in row["engines"].items() if each.get("note")
    )
    if notes:
        yield "**Left out:**"
        yield Bullets(notes)


def _costs(name: str, engine: Figures) -> tuple[str, ...]:
    sizes = (engine.get(key) for key in ("anon", "file", "disk"))
    shown = (NOTHING if size is None else f"{max(size, 0.0):,.0f}" for size in sizes)
    times = (duration(engine[key]) for key in ("build", "save", "first_answer"))
    return name, engine["holds"], *shown, *times


def _at(each: Figures) -> tuple[str, ...]:
    rates = (rate(each["batch"]), rate(each["single"]))
    taken = duration(each["single_ms"] / 1e3)
    return each["setting"] or NOTHING, f"{each['recall']:.4f}", *rates, taken


def _picture(rows: Sequence[Row]) -> Plot:
    """Return recall against queries a second, for all rows and both ways of asking."""
    panels = tuple(
        Panel(
            *("curves", f"{place(row)}, {words}", "recall at 10", "queries a second", series),
            log_y=True,
            rates=True,
        )
        for row in rows
        for way, words in WAYS.items()
        if (series := tuple(_curves(row, way)))
    )
    return Plot(
        "recall",
        "Recall against queries a second",
        "Queries a second, on a logarithmic axis, by recall at 10; up and to the right is better. "
        f"Settings that find less than {DRAWN} are not drawn.",
        panels,
    )


def _curves(row: Row, way: str) -> Iterator[Series]:
    """Yield the settings of each engine that no other of its own beats in both."""
    for name, engine in _there(row).items():
        points: list[tuple[float, float]] = []
        for each in sorted(engine["settings"], key=lambda each: (-each["recall"], -each[way])):
            better = not points or each[way] > points[-1][1]
            if each["recall"] >= DRAWN and better:
                points.append((each["recall"], each[way]))
        if points:
            line = tuple(reversed(points))
            yield Series(name, line, (name,), line)


def _inserts(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield how inserts slow searches, and searches inserts."""
    if not rows:
        return
    yield Heading(2, "Inserts beside searches")
    parts = (("idle", "median"), ("idle", "p99"), ("searches", "median"), ("searches", "p99"))
    of_inserts = (("inserts", "median"), ("inserts", "p99"), ("inserts", "longest"))
    yield Table(
        (
            *("rows", "search alone", "p99 alone", "search", "p99"),
            *("insert", "insert p99", "longest insert", "inserts/s"),
        ),
        tuple(
            (place(row), *_times(row, (*parts, *of_inserts)), rate(row["inserts"]["rate"]))
            for row in rows
        ),
    )
    yield (
        "One thread inserts a row without a label 200 times a second, durably, another searches by "
        "likeness one by one; times are medians unless said otherwise. Alone: without inserts."
    )


def _growing(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield the longest pause of a writer while a collection grows."""
    if not rows:
        return
    yield Heading(2, "The longest write while a collection grows")
    parts = (("inserts", "median"), ("inserts", "p99"), ("inserts", "longest"))
    yield Table(
        ("rows", "to", "insert", "insert p99", "longest insert", "at", "longest search"),
        tuple(
            (
                *(place(row), f"{row['to']:,}", *_times(row, parts)),
                f"{row['inserts']['longest_at']:,}",
                *_times(row, (("searches", "longest"),)),
            )
            for row in rows
        ),
    )
    yield (
        "One row a call, without a label, durably, and a search by likeness after every 100. At: "
        "how many entries there were after the longest insert."
    )


def _times(row: Row, parts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return milliseconds of a row as times."""
    return tuple(duration(row[part][name] / 1e3) for part, name in parts)
