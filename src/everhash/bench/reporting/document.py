"""The parts of a report, and how they become Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal

from everhash.bench.reporting.tables import Table

MAX_LINE = 100
"""The longest line of text; tables may be wider."""


@dataclass(frozen=True)
class Heading:
    """The heading of a section; level 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Series:
    """The points of a method, or of a variant of it."""

    method: str
    """Decides colour and marks."""
    points: tuple[tuple[float, float], ...]
    labels: tuple[str, ...]
    """One for all points, at the last of them, or one for each point."""
    line: tuple[tuple[float, float], ...] = ()
    """The line through the points, where it does not connect the points themselves."""
    open: bool = False
    """Drawn hollow: the second figure of the same method."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: curves with names at their ends, a scatter of named points, or dots.

    Dots have one line for each label, from below in order.
    """

    style: Literal["curves", "scatter", "dots"]
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    ticks: tuple[tuple[float, str], ...] = ()
    """Named ticks of the x axis; numbers if empty."""
    log_x: bool = False
    log_y: bool = False
    """The y axis shows times then, unless they are rates."""
    rates: bool = False
    """Whether a logarithmic y axis shows plain numbers."""
    level: tuple[float, str] | None = None
    """A value to compare with, and its name."""


@dataclass(frozen=True)
class Plot:
    """A figure; see `everhash.bench.reporting.figures` for how it is drawn.

    The names of its files end with the slug. The first sentence of the caption is drawn too.
    """

    slug: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 2


ReportPart = str | Heading | Bullets | Table | Plot
"""A string is a paragraph."""


def markdown(parts: Iterable[ReportPart], picture: Callable[[Plot], str] = lambda _: "") -> str:
    """Return parts as Markdown; `picture` returns the Markdown of a figure."""
    texts = (_text(part, picture) for part in parts)
    return "\n\n".join(text for text in texts if text) + "\n"


def _text(part: ReportPart, picture: Callable[[Plot], str]) -> str:
    if isinstance(part, Heading):
        return f"{'#' * part.level} {part.text}"
    if isinstance(part, Bullets):
        return "\n".join(wrapped(f"- {item}", "  ") for item in part.items)
    if isinstance(part, Table):
        return part.markdown()
    return picture(part) if isinstance(part, Plot) else wrapped(part)


def wrapped(text: str, indent: str = "") -> str:
    """Return text in lines of at most `MAX_LINE` characters, where its words allow."""
    lines = wrap(
        text,
        MAX_LINE,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)
