"""Draws the figures of reports as SVG and PNG; the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from everhash.bench.baselines import COSINE
from everhash.bench.reporting.document import Panel, Plot, Series
from everhash.bench.reporting.labels import name_ends, name_points
from everhash.bench.reporting.samples import group_of
from everhash.bench.reporting.tables import duration
from everhash.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"everhash": "#0072b2", "everhash-sgd": "#009e73", "paper": "#d55e00"}
"""Of our methods; distinguishable with any colour vision."""
MUTED, LIGHT, FAINT, INK = "#808080", "#a6a6a6", "#dddddd", "#333333"
DASHES = ("-", "--", ":", "-.")
"""Of the other methods, in turn."""
BARE = (0, (6, 3))
"""The dashes of `cosine`, the features without any code."""
SHAPES = ("o", "s", "^", "D", "v", "P")
"""Of points beside a fitted line, in turn."""
MARKS = {"batch": "s", "no code": "D"}
"""Of methods that are not online."""
WIDTH, HEIGHT = 9.0, 3.9
"""Inches of a figure, and of each row of panels."""
CROWD = 15
"""Number of names from which on a panel is higher."""
LINE = 0.21
"""Inches of a line of dots."""
DPI = 120
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "everhash",
    "svg.fonttype": "none",
}


def save(picture: Plot, path: Path) -> tuple[Path, Path]:
    """Draw a figure; `path` has no suffix yet. Return the paths of the PNG and of the SVG."""
    require("plot")
    import matplotlib as mpl

    png, svg = (path.with_name(f"{path.name}.{suffix}") for suffix in ("png", "svg"))
    with mpl.rc_context(STYLE):
        figure = draw(picture)
        figure.savefig(png, dpi=DPI, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return png, svg


def draw(picture: Plot) -> Figure:
    """Return a figure with all its panels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(picture.columns, max(1, len(picture.panels)))
    rows = -(-len(picture.panels) // columns)
    heights = [
        max(map(_height, picture.panels[row * columns : (row + 1) * columns]))
        for row in range(rows)
    ]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.5))
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(rows, columns, height_ratios=heights)
    placed = [
        (figure.add_subplot(grid[divmod(place, columns)]), panel)
        for place, panel in enumerate(picture.panels)
    ]
    for axes, panel in placed:
        axes.set_xscale("log" if panel.log_x else "linear")
        axes.set_yscale("log" if panel.log_y else "linear")
        DRAWN[panel.style](axes, panel)
        _dress(axes, panel)
    figure.suptitle(picture.title, fontsize=12.5, fontweight="bold", x=0.015, ha="left")
    note = picture.caption.partition(". ")[0].removesuffix(".")
    figure.supxlabel(fill(note, 120), fontsize=8.5, x=0.015, ha="left", color=INK)
    _arrange(figure, placed)
    for axes, panel in placed:  # the layout must be fixed before names are placed
        if panel.style == "curves":
            name_ends(axes, panel.series, [_colour(each) for each in panel.series])
        elif panel.style == "scatter":
            name_points(axes, panel.series, [_colour(each) for each in panel.series])
    return figure


def _height(panel: Panel) -> float:
    lines = len({label for each in panel.series for label in each.labels})
    if panel.style == "dots":
        return max(HEIGHT / 2, LINE * lines + 1.0)
    return HEIGHT if lines < CROWD else HEIGHT * 1.25


def _arrange(figure: Figure, placed: list[tuple[Axes, Panel]]) -> None:
    """Leave space for names: beside dots on the left, at the ends of curves on the right."""
    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08, hspace=0.03)
    for axes, panel in placed:
        if panel.style == "curves":
            labels = [label for each in panel.series for label in each.labels]
            room = f"   {max(labels, key=len, default='')}"
            letters: Any = {"fontsize": 8, "fontweight": "bold", "alpha": 0.0, "gid": "room"}
            axes.text(1.03, 0.5, room, transform=axes.transAxes, **letters)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes, _ in placed:
        for text in [text for text in axes.texts if text.get_gid() == "room"]:
            text.remove()


def _dress(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    _ticks(axes, panel)
    if panel.ticks:
        axes.set_xticks([place for place, _ in panel.ticks], [name for _, name in panel.ticks])
    if panel.level is not None:
        height, name = panel.level
        axes.axhline(height, color=INK, linewidth=0.9, linestyle=BARE)
        # curves rise to the right, where there is room below them; in a scatter, on the left
        place, side = (0.995, "right") if panel.style == "curves" else (0.005, "left")
        axes.annotate(
            *(name, (place, height), (0, 3)),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            fontsize=8,
            ha=side,
        )


def _ticks(axes: Axes, panel: Panel) -> None:
    """Write plain numbers on logarithmic axes, more of them where there are few powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    shown = plain_number if panel.rates else duration
    for log, axis, ends, formatted in (
        (panel.log_x, axes.xaxis, axes.get_xlim(), lambda value, _: plain_number(value)),
        (panel.log_y, axes.yaxis, axes.get_ylim(), lambda value, _: shown(value)),
    ):
        if log:
            steps = (1.0, 2.0, 5.0) if ends[1] < 50 * ends[0] else (1.0,)
            axis.set_major_locator(LogLocator(10.0, steps))
            axis.set_major_formatter(FuncFormatter(formatted))
            axis.set_minor_formatter(NullFormatter())


def plain_number(value: float) -> str:
    """Return a short number without an exponent.

    >>> plain_number(0.001), plain_number(2000), plain_number(1e6)
    ('0.001', '2k', '1M')
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:,g}{letter}"
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _curves(axes: Axes, panel: Panel) -> None:
    if panel.log_y:
        heights = [y for series in panel.series for _, y in series.points]
        middle, half = (min(heights) * max(heights)) ** 0.5, (max(heights) / min(heights)) ** 0.6
        # a curve that hardly grows must look flat
        axes.set_ylim(middle / max(half, 10), middle * max(half, 10))
    shapes = cycle(SHAPES)
    for series, look in zip(panel.series, _looks(panel.series), strict=True):
        axes.plot(*zip(*(series.line or series.points), strict=True), **look)
        shape = next(shapes) if series.line else ""
        _mark(axes, series, 4.5 if series.method in COLOURS else 3.0, look["color"], shape)


def _scatter(axes: Axes, panel: Panel) -> None:
    for series in panel.series:
        axes.plot(
            *zip(*series.points, strict=True), color=_colour(series), linewidth=0.8, alpha=0.5
        )
        _mark(axes, series, 8 if series.method in COLOURS else 6)
    axes.margins(0.12, 0.1)


def _dots(axes: Axes, panel: Panel) -> None:
    names = list(dict.fromkeys(series.labels[0] for series in panel.series))
    for series in panel.series:
        line = float(names.index(series.labels[0]))
        placed = replace(series, points=tuple((x, line) for x, _ in series.points))
        _mark(axes, placed, 8 if series.method in COLOURS else 6)
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    for label in axes.get_yticklabels():
        method = label.get_text().partition(" ")[0]
        label.set_color(COLOURS.get(method, INK))
        label.set_fontweight("bold" if method in COLOURS else "normal")
    axes.set_ylim(-0.7, len(names) - 0.3)


def _mark(axes: Axes, series: Series, size: float, colour: str = "", shape: str = "") -> None:
    """Draw the points of a series; ours above the others."""
    colour = colour or _colour(series)
    axes.plot(
        *zip(*series.points, strict=True),
        marker=shape or MARKS.get(group_of(series.method), "o"),
        linestyle="none",
        markersize=size,
        color=colour,
        markerfacecolor="white" if series.open else colour,
        zorder=4 if series.method in COLOURS else 3,
    )


def _looks(series: tuple[Series, ...]) -> Iterator[dict[str, Any]]:
    """Yield how each line is drawn: ours thick and coloured, the others thin and dashed."""
    muted = 0
    for each in series:
        if each.method in COLOURS:
            yield {"color": COLOURS[each.method], "linewidth": 2.4, "zorder": 4}
        elif each.method == COSINE:
            yield {"color": INK, "linewidth": 1.1, "linestyle": BARE}
        else:
            shade = MUTED if muted // len(DASHES) % 2 == 0 else LIGHT
            yield {"color": shade, "linewidth": 1.2, "linestyle": DASHES[muted % len(DASHES)]}
            muted += 1


def _colour(series: Series) -> str:
    return INK if series.method == COSINE else COLOURS.get(series.method, MUTED)


DRAWN = {"curves": _curves, "scatter": _scatter, "dots": _dots}
