"""What a report is made of, and how it becomes text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal

from everhash.bench.reporting.tables import Table

ROOM = 100
"""Characters a line of text has at most; tables may be wider."""


@dataclass(frozen=True)
class Heading:
    """The beginning of a section; level 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Series:
    """Points of one method, or of one variant of it."""

    method: str
    """Decides how it looks."""
    points: tuple[tuple[float, float], ...]
    labels: tuple[str, ...]
    """One for all points, which stands at the last, or one a point."""
    line: tuple[tuple[float, float], ...] = ()
    """What is drawn through the points, where it is not the points themselves."""
    open: bool = False
    """Drawn hollow: the second figure of the same method."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: curves with names at their ends, a scatter of named points, or dots.

    Dots stand on a line a label, in order from below.
    """

    style: Literal["curves", "scatter", "dots"]
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    ticks: tuple[tuple[float, str], ...] = ()
    """Places on the x axis that are named; numbers if empty."""
    log_x: bool = False
    log_y: bool = False
    """The y axis shows times then."""
    level: tuple[float, str] | None = None
    """A height to compare with, and what it is."""


@dataclass(frozen=True)
class Picture:
    """A figure; see `everhash.bench.reporting.figures` for how it is drawn.

    The names of its files end with the slug. The first sentence of the caption is drawn too.
    """

    slug: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 2


ReportPart = str | Heading | Bullets | Table | Picture
"""A string is a paragraph."""


def markdown(parts: Iterable[ReportPart], picture: Callable[[Picture], str] = lambda _: "") -> str:
    """Return parts as Markdown with lines that are not too long; `picture` says what shows one."""
    texts = (_text(part, picture) for part in parts)
    return "\n\n".join(text for text in texts if text) + "\n"


def _text(part: ReportPart, picture: Callable[[Picture], str]) -> str:
    if isinstance(part, Heading):
        return f"{'#' * part.level} {part.text}"
    if isinstance(part, Bullets):
        return "\n".join(wrapped(f"- {item}", "  ") for item in part.items)
    if isinstance(part, Table):
        return part.markdown()
    return picture(part) if isinstance(part, Picture) else wrapped(part)


def wrapped(text: str, indent: str = "") -> str:
    """Return text in lines of at most `ROOM` characters, where its words allow."""
    lines = wrap(
        text,
        ROOM,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)
