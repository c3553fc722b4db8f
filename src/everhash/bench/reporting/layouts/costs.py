"""How times grow with sizes, and how they compare with those of other software."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from everhash.bench.reporting.document import Bullets, Heading, Panel, Plot, ReportPart, Series
from everhash.bench.reporting.samples import OURS, machines
from everhash.bench.reporting.tables import NOTHING, Table, duration
from everhash.bench.task import Row

Points = tuple[tuple[float, float], ...]


class Law(NamedTuple):
    """seconds = scale * size ** power."""

    power: float
    scale: float


def fitted(points: Points) -> Law | None:
    """Fit a power law to points, by least squares on logarithms; None for fewer than two sizes.

    >>> law = fitted(((1.0, 3.0), (10.0, 300.0)))
    >>> round(law.power, 6), round(law.scale, 6)
    (2.0, 3.0)
    """
    if len({size for size, _ in points}) < 2:
        return None
    x, y = np.log(np.array(points)).T
    away = x - x.mean()
    power = float(away @ (y - y.mean()) / (away @ away))
    return Law(power, float(np.exp(y.mean() - power * x.mean())))


class Timed(NamedTuple):
    """What was timed, of which method, in which unit."""

    what: str
    method: str
    unit: str


def scale(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield how seconds grow with each size that was varied."""
    panels = []
    for axis in sorted({row["axis"] for row in rows}):
        of_axis = [row for row in rows if row["axis"] == axis]
        found = _points(of_axis)
        yield Heading(2, f"By {axis}")
        yield Table(
            ("what", "method", "from", "to", "time at first", "at last", "power"),
            tuple(_line(timed, points) for timed, points in found.items()),
            (0, 1),
        )
        yield (
            f"From, to: the smallest and the greatest number of {axis} (bits, for width), and the "
            "best time at each. Power p: time grows as that number to the p, fitted by least "
            "squares on logarithms; 1 is in proportion, 0 is not at all. "
            f"{', '.join(sorted({row['dataset'] for row in of_axis}))} rows. {machines(of_axis)}"
        )
        panels.append(_panel(axis, found))
    yield Plot(
        "scale",
        "How costs grow",
        "Best time by size, both on logarithmic axes: time grows as size to the p, fitted.",
        tuple(panels),
    )


def _points(rows: Sequence[Row]) -> dict[Timed, Points]:
    """Return the best time at each size, by what was timed."""
    best: dict[Timed, dict[float, float]] = {}
    for row in rows:
        times = best.setdefault(Timed(row["what"], row["method"], row.get("unit", "")), {})
        times[row["size"]] = min(row["seconds"], times.get(row["size"], row["seconds"]))
    return {timed: tuple(sorted(times.items())) for timed, times in sorted(best.items())}


def _line(timed: Timed, points: Points) -> tuple[str, ...]:
    law = fitted(points)
    (first, least), (last, most) = points[0], points[-1]
    what = f"{timed.what} {timed.unit}".strip()
    power = NOTHING if law is None else f"{law.power:.2f}"
    return what, timed.method, f"{first:,}", f"{last:,}", duration(least), duration(most), power


def _panel(axis: str, found: dict[Timed, Points]) -> Panel:
    series = []
    for timed, points in found.items():
        law = fitted(points)
        name = timed.what if timed.method == OURS else f"{timed.method} {timed.what}"
        ends = (points[0][0], points[-1][0])
        line = tuple((size, law.scale * size**law.power) for size in ends) if law else ()
        label = f"{name}, p = {law.power:.2f}" if law else name
        series.append(Series(timed.method, points, (label,), line))
    x = "width (bits)" if axis == "width" else axis
    return Panel("curves", f"By {axis}", x, "time", tuple(series), log_x=True, log_y=True)


class Against(NamedTuple):
    """What was compared with which peer."""

    what: str
    peer: str
    dataset: str
    bits: int
    unit: str

    def __str__(self) -> str:
        return f"{self.what} against {self.peer} ({self.dataset})"


class Race(NamedTuple):
    """The best of everhash and of the peer; None where unknown."""

    about: Against
    ours: float | None
    peer: float | None
    wanted: float | None
    note: str

    @property
    def ratio(self) -> float | None:
        """How many times as fast everhash is."""
        return self.peer / self.ours if self.peer is not None and self.ours else None

    def cells(self) -> tuple[str, ...]:
        """Return a line of the table."""
        what, peer, dataset, bits, unit = self.about
        words = (what, dataset, f"{bits}" if bits else NOTHING, peer or NOTHING, unit)
        return *words, *map(_number, (self.ours, self.peer, self.ratio, self.wanted))


def speed(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield times beside those of other software, and where everhash is slower than wanted."""
    yield Heading(2, "Speed")
    races = list(_races(rows))
    head = ("what", "data", "bits", "peer", "unit", OURS, "peer's", "ratio", "wanted")
    yield Table(head, tuple(race.cells() for race in races), (0, 1, 3, 4))
    yield (
        "The ratio is the peer's figure through ours: above 1 ours is faster, or needs less. "
        f"{machines(rows)}"
    )
    yield from _listed(
        f"Where a peer beats {OURS}",
        (
            f"{race.about}: {_number(race.peer)} against {_number(race.ours)} {race.about.unit}"
            for race in races
            if race.ratio is not None and race.ratio < 1
        ),
    )
    yield from _listed(
        "Below what was wanted",
        (
            f"{race.about}: ratio {_number(race.ratio)}, wanted {_number(race.wanted)}"
            for race in races
            if race.ratio is not None and race.wanted is not None and race.ratio < race.wanted
        ),
    )
    notes: dict[str, dict[str, None]] = {}
    for race in races:
        notes.setdefault(race.note, {})[race.about.what] = None
    yield from _listed("Notes", (f"{'; '.join(of)}: {note}" for note, of in notes.items() if note))


def _races(rows: Sequence[Row]) -> Iterator[Race]:
    """Yield each comparison, with the best of several seeds."""
    groups: dict[Against, list[Row]] = {}
    sizes = _sizes(rows)
    for row in rows:
        parts = (row[key] for key in ("peer_name", "dataset", "bits", "unit"))
        groups.setdefault(Against(row["what"] + _at(row, sizes[row["what"]]), *parts), []).append(
            row
        )
    for about, group in sorted(groups.items()):
        ours, peer = (
            min((row[name] for row in group if row[name] is not None), default=None)
            for name in ("ours", "peer")
        )
        yield Race(about, ours, peer, group[0]["wanted"], group[0]["note"])


def _sizes(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return, by what was measured, the options in which its rows differ."""
    values: dict[str, dict[str, set[int | None]]] = {}
    for row in rows:
        of_what = values.setdefault(row["what"], {"features": set(), "size": set()})
        for name, found in of_what.items():
            found.add(row["options"].get(name))
    return {
        what: [name for name, found in of_what.items() if len(found) > 1]
        for what, of_what in values.items()
    }


def _at(row: Row, names: Sequence[str]) -> str:
    """Return the named options as they follow what was measured."""
    there = ((name, row["options"].get(name)) for name in names)
    return "".join(f", {name} {value:,}" for name, value in there if value is not None)


def _listed(title: str, items: Iterable[str]) -> Iterator[ReportPart]:
    parts = tuple(items)
    if parts:
        yield f"**{title}:**"
        yield Bullets(parts)


def _number(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
