"""The picture that `everhash demo` draws: the code matrix, and mAP as labels arrive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from everhash.learn.stream_hasher import StreamHasher

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CODEWORD, MAPPING = "#1f6f8b", "#e07a3f"
FORMATS = (".png", ".pdf", ".svg")


class Checkpoint(NamedTuple):
    """Measurements after all rows of a label have arrived."""

    rows: int
    labels: int
    cycles: int
    width: int
    by_codeword: float
    by_mapping: float
    changed: int
    rows_per_second: float


def draw(hasher: StreamHasher, checkpoints: list[Checkpoint], path: Path) -> None:
    """Draw the code matrix on the left and mAP along the stream on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    _draw_matrix(left, hasher)
    _draw_scores(right, checkpoints)
    figure.savefig(path, dpi=150)


def _draw_matrix(axes: Axes, hasher: StreamHasher) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ("#e07a3f", "#eeeeee", "#1f6f8b")
    axes.imshow(
        hasher.codewords_, cmap=ListedColormap(colours), aspect="auto", interpolation="nearest"
    )
    for cycle in range(1, hasher.n_cycles_):
        axes.axvline(cycle * hasher.bits - 0.5, color="black", linewidth=0.8)
    axes.set_yticks(range(len(hasher.labels_)), [str(label) for label in hasher.labels_])
    axes.set_xlabel(f"hash function ({hasher.bits} more with each cycle)")
    axes.set_ylabel("label, in order of arrival")
    rho = hasher.get_params()["labels_per_cycle"]
    axes.set_title(f"A codeword for each label; every {rho} labels the code widens")
    axes.legend(
        handles=[
            Patch(color=colour, label=name)
            for colour, name in zip(colours, ("-1", "0 (inactive)", "+1"), strict=True)
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=3,
        frameon=False,
    )


def _draw_scores(axes: Axes, checkpoints: list[Checkpoint]) -> None:
    rows = [c.rows for c in checkpoints]
    for values, colour, name in (
        ([c.by_codeword for c in checkpoints], CODEWORD, "labelled entries, by codeword"),
        ([c.by_mapping for c in checkpoints], MAPPING, "all entries, by mapping"),
    ):
        axes.plot(rows, values, "o-", color=colour, label=name)
    for c in checkpoints:
        axes.annotate(
            str(c.labels), (c.rows, c.by_codeword), (0, 7), textcoords="offset points", ha="center"
        )
    axes.set_ylim(0, 1.08)
    axes.set_xlabel("rows seen, one pass (numbers: labels so far)")
    axes.set_ylabel("mAP, tie-averaged, asymmetric distance")
    axes.set_title("Retrieval as labels arrive")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", frameon=False)
