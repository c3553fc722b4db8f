"""Places names beside points and curves so that they do not overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from everhash.bench.reporting.document import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]
SIZE = 8
"""Font size of names, in points."""
DARKER = {"#808080": "#555555", "#333333": "#333333"}
"""Text colours of muted series; thin letters must be darker than lines."""
RADII = (7, 10, 13, 18, 24, 31, 39, 48, 58, 70)
"""Distances from a mark to its name that are tried, in points."""
LINE_FROM = 12
"""Distance from which on a thin line leads from a mark to its name, in points."""
ANGLES = tuple(
    turn * math.pi / 8 for turn in (0, 8, 4, 12, 2, 6, 14, 10, 1, 15, 7, 9, 3, 5, 13, 11)
)
"""Directions in order of preference: right, left, above, below, then the others."""


class Box(NamedTuple):
    """A rectangle on the canvas."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """Return the area of the intersection."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.top, other.top) - max(self.bottom, other.bottom)
        return wide * high if wide > 0 and high > 0 else 0.0

    def nearest(self, x: float, y: float) -> Point:
        """Return the point of the rectangle that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)

    def outside(self, other: Box) -> float:
        """Return the area outside of another rectangle."""
        area = (self.right - self.left) * (self.top - self.bottom)
        return area - self.overlap(other)


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Return places moved as little as possible, so that they are at least a gap apart.

    >>> apart([0.0, 1.0, 10.0], 4.0)
    [-1.5, 2.5, 10.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[list[int]] = []
    starts: list[float] = []
    for i in order:
        groups.append([i])
        starts.append(places[i])
        while len(groups) > 1 and starts[-2] + gap * len(groups[-2]) > starts[-1]:
            last, _ = groups.pop(), starts.pop()
            members = groups[-1]
            members += last
            # where each member wants the group to start; the mean is nearest to all
            wanted = [places[member] - gap * rank for rank, member in enumerate(members)]
            starts[-1] = sum(wanted) / len(wanted)
    moved = [0.0] * len(places)
    for start, members in zip(starts, groups, strict=True):
        for rank, member in enumerate(members):
            moved[member] = start + gap * rank
    return moved


def name_ends(axes: Axes, series: Sequence[Series], colours: Sequence[str]) -> None:
    """Write the name of each curve to the right of the panel, at the height of its end."""
    to_axes, gap = axes.transAxes.inverted(), SIZE * 1.25 * _scale(axes)
    ends = [axes.transData.transform(each.points[-1]) for each in series]
    heights = apart([float(y) for _, y in ends], gap)
    for each, end, height, colour in zip(series, ends, heights, colours, strict=True):
        y = float(to_axes.transform((0.0, height))[1])
        axes.text(1.03, y, each.labels[0], transform=axes.transAxes, **_letters(colour))
        _lead(axes, tuple(to_axes.transform(end)), (1.025, y), colour)


def name_points(axes: Axes, series: Sequence[Series], colours: Sequence[str]) -> None:
    """Write a name beside each point, where it covers the least of what is there."""
    to_axes = axes.transAxes.inverted()  # independent of the resolution
    scale = _scale(axes)
    named = [
        Name(label, colour, *map(float, axes.transData.transform(point)))
        for each, colour in zip(series, colours, strict=True)
        for label, point in zip(each.labels, each.points, strict=True)
    ]
    taken = [name.mark(scale) for name in named]
    extent = axes.get_window_extent()
    frame = Box(extent.x0, extent.y0, extent.x1, extent.y1)

    def covered(box: Box) -> float:
        return sum(map(box.overlap, taken)) + box.outside(frame)

    # names in crowded places have the least choice, so they are placed first
    for name in sorted(named, key=lambda name: (-name.crowd(named, 60 * scale), name.text)):
        wide, high = _size(axes, name)
        best = min(_candidates(name, wide, high, scale), key=covered)
        taken.append(best)
        left, middle = to_axes.transform((best.left, (best.bottom + best.top) / 2))
        axes.text(left, middle, name.text, transform=axes.transAxes, **_letters(name.colour))
        near = best.nearest(name.x, name.y)
        if math.dist(near, (name.x, name.y)) > LINE_FROM * scale:
            mark = tuple(to_axes.transform((name.x, name.y)))
            _lead(axes, mark, tuple(to_axes.transform(near)), name.colour)


def _lead(axes: Axes, start: Point, end: Point, colour: str) -> None:
    """Draw a thin line from a point to its name."""
    xs, ys = zip(start, end, strict=True)
    look: Any = {"color": colour, "linewidth": 0.5, "clip_on": False, "zorder": 2}
    axes.plot(xs, ys, transform=axes.transAxes, scalex=False, scaley=False, **look)


class Name(NamedTuple):
    """A name, its colour, and the point on the canvas that it belongs to."""

    text: str
    colour: str
    x: float
    y: float

    def mark(self, scale: float) -> Box:
        """Return the rectangle that the mark covers."""
        half = 5 * scale
        return Box(self.x - half, self.y - half, self.x + half, self.y + half)

    def crowd(self, others: Sequence[Name], near: float) -> int:
        """Return how many points are near."""
        return sum(math.dist((self.x, self.y), (other.x, other.y)) < near for other in others)


def _scale(axes: Axes) -> float:
    """Return the number of pixels in a typographic point."""
    return float(axes.figure.dpi_scale_trans.transform((1, 1))[0]) / 72


def _letters(colour: str) -> dict[str, Any]:
    muted = colour in DARKER
    return {
        "fontsize": SIZE,
        "color": DARKER.get(colour, colour),
        "fontweight": "normal" if muted else "bold",
        "va": "center",
    }


def _size(axes: Axes, name: Name) -> tuple[float, float]:
    """Return the width and height of a name in pixels."""
    from matplotlib.text import Text

    text = Text(0, 0, name.text, **_letters(name.colour))
    text.set_figure(axes.figure)
    extent = text.get_window_extent()
    return float(extent.width), float(extent.height)


def _candidates(name: Name, wide: float, high: float, scale: float) -> Iterator[Box]:
    """Yield places for a name around a mark, the nearest first."""
    for radius in RADII:
        for angle in ANGLES:
            x = name.x + math.cos(angle) * (radius * scale + wide / 2)
            y = name.y + math.sin(angle) * (radius * scale + high / 2)
            yield Box(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
