"""`everhash demo`: handwritten digits stream in label by label; watch the codes grow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from everhash import kernels
from everhash.codes import asymmetric
from everhash.errors import OptionError
from everhash.learn.hasher import OnlineHasher
from everhash.metrics import mean_average_precision

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BITS, LABELS_PER_CYCLE, QUERIES = 32, 5, 297
CODEWORD, MAPPING = "#1f6f8b", "#e07a3f"
PICTURES = (".png", ".pdf", ".svg")


class Checkpoint(NamedTuple):
    """What there is to see once all rows of a label have arrived."""

    rows: int
    labels: int
    cycles: int
    width: int
    by_codeword: float
    by_mapping: float
    changed: int
    rows_per_second: float


class Stream(NamedTuple):
    """Rows in order of arrival, their true labels, and which of them come without."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    hidden: NDArray[np.bool_]


def demo(
    picture: Annotated[
        Path, typer.Option("--picture", "-p", help="Where to write the picture.")
    ] = Path("everhash-demo.png"),
    seed: Annotated[int, typer.Option(help="Seed of the stream and the hasher.")] = 0,
) -> None:
    """Stream scikit-learn's digits label by label, learn in one pass, and draw what happened."""
    _check_options(picture, seed)
    console = Console()
    with console.status("compiling kernels (some seconds on a machine's first run)"):
        kernels.load()
    stream, queries, query_labels = _digits(seed)
    hasher = OnlineHasher(bits=BITS, labels_per_cycle=LABELS_PER_CYCLE, random_state=seed)
    console.print(
        f"{len(stream.X)} digits arrive one label after the other, a quarter without their label; "
        f"{len(queries)} more are queries."
    )
    steps = track(
        _checkpoints(hasher, stream, queries, query_labels),
        total=len(np.unique(stream.y)),
        description="streaming",
        console=console,
        disable=not console.is_terminal,
    )
    checkpoints = list(steps)
    console.print(_table(checkpoints))
    console.print(
        "mAP: tie-averaged, asymmetric distance, queries of the labels seen so far. By codeword: "
        "labelled rows, stored as their label's word.\nBy mapping: all rows, stored as their bits "
        "under the newest mapping."
    )
    _draw(hasher, checkpoints, picture)
    typer.echo(f"picture: {picture}")


def _check_options(picture: Path, seed: int) -> None:
    """Refuse what would fail only after the stream has been learned."""
    if seed < 0:
        raise OptionError(f"--seed must be at least 0, got {seed}")
    if not picture.parent.is_dir() or picture.is_dir():
        raise OptionError(f"no picture can be written to {picture}", hint="name a file in a folder")
    if picture.suffix.lower() not in PICTURES:
        raise OptionError(
            f"{picture} has no ending of a picture", hint=f"use one of {', '.join(PICTURES)}"
        )


def _digits(seed: int) -> tuple[Stream, NDArray[np.float32], NDArray[np.int64]]:
    """Return the stream sorted by label, a quarter of it unlabelled, and the queries."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    queries, rest = order[:QUERIES], order[QUERIES:]
    rest = rest[np.argsort(y[rest], kind="stable")]
    hidden = rng.random(len(rest)) < 0.25
    return Stream(X[rest].astype(np.float32), y[rest], hidden), X[queries], y[queries]


def _checkpoints(
    hasher: OnlineHasher,
    stream: Stream,
    queries: NDArray[np.float32],
    query_labels: NDArray[np.int64],
) -> Iterator[Checkpoint]:
    """Learn one label after the other; look around after each."""
    versions = np.zeros(0, np.int64)
    for label in np.unique(stream.y):
        here = np.flatnonzero(stream.y == label)
        given = [None if stream.hidden[row] else int(stream.y[row]) for row in here]
        start = perf_counter()
        hasher.partial_fit(stream.X[here], given)
        seconds = perf_counter() - start
        before = np.full(hasher.width_, -1)
        before[: len(versions)] = versions
        versions = hasher.versions_
        asked = query_labels <= label
        yield Checkpoint(
            rows=int(here[-1]) + 1,
            labels=len(hasher.labels_),
            cycles=hasher.n_cycles_,
            width=hasher.width_,
            by_codeword=_by_codeword(hasher, stream, queries[asked], query_labels[asked], here[-1]),
            by_mapping=_by_mapping(hasher, stream, queries[asked], query_labels[asked], here[-1]),
            changed=int((versions != before).sum()),
            rows_per_second=len(here) / seconds,
        )


def _by_codeword(
    hasher: OnlineHasher, stream: Stream, queries: Any, query_labels: Any, last: int
) -> float:
    labelled = stream.y[: last + 1][~stream.hidden[: last + 1]]
    distances = asymmetric(hasher.margins(queries), hasher.encode_labels())[:, labelled]
    return mean_average_precision(distances, query_labels[:, None] == labelled)


def _by_mapping(
    hasher: OnlineHasher, stream: Stream, queries: Any, query_labels: Any, last: int
) -> float:
    distances = asymmetric(hasher.margins(queries), hasher.encode(stream.X[: last + 1]))
    return mean_average_precision(distances, query_labels[:, None] == stream.y[: last + 1])


def _table(checkpoints: list[Checkpoint]) -> Table:
    table = Table(title="digits, label by label")
    for heading in ("rows", "labels", "cycles", "width", "mAP by codeword", "mAP by mapping"):
        table.add_column(heading, justify="right")
    table.add_column("functions changed", justify="right")
    table.add_column("rows/s", justify="right")
    for c in checkpoints:
        table.add_row(
            str(c.rows),
            str(c.labels),
            str(c.cycles),
            str(c.width),
            f"{c.by_codeword:.3f}",
            f"{c.by_mapping:.3f}",
            f"{c.changed} of {c.width}",
            f"{c.rows_per_second:,.0f}",
        )
    return table


def _draw(hasher: OnlineHasher, checkpoints: list[Checkpoint], path: Path) -> None:
    """Draw the code matrix on the left and mAP along the stream on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    _draw_matrix(left, hasher)
    _draw_scores(right, checkpoints)
    figure.savefig(path, dpi=150)


def _draw_matrix(axes: Axes, hasher: OnlineHasher) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = ("#e07a3f", "#eeeeee", "#1f6f8b")
    axes.imshow(
        hasher.codewords_, cmap=ListedColormap(colours), aspect="auto", interpolation="nearest"
    )
    for cycle in range(1, hasher.n_cycles_):
        axes.axvline(cycle * BITS - 0.5, color="black", linewidth=0.8)
    axes.set_yticks(range(len(hasher.labels_)), [str(label) for label in hasher.labels_])
    axes.set_xlabel(f"hash function ({BITS} more with each cycle)")
    axes.set_ylabel("label, in order of arrival")
    axes.set_title(f"A codeword for each label; every {LABELS_PER_CYCLE} labels the code widens")
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
