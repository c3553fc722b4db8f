"""`everhash demo`: stream handwritten digits into a collection, label by label."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

import everhash
from everhash import kernels
from everhash.cli.arguments import AsJson
from everhash.cli.demo_serve import PACE, PORT, Scans, is_scan, serve_scans
from everhash.cli.formatting import print_json, printable
from everhash.cli.picture import FORMATS, Checkpoint, draw
from everhash.cli.refresh import summary
from everhash.codes import asymmetric
from everhash.collection.collection import Collection
from everhash.errors import CollectionFileError, OptionError
from everhash.extras import missing, require
from everhash.index.refresh import RefreshReport
from everhash.learn.stream_hasher import StreamHasher
from everhash.metrics import mean_average_precision

DIM, BITS, LABELS_PER_CYCLE, QUERIES = 64, 32, 5, 297
ROWS = 1500
NEAREST, BEST = 5, 10
"""Entries printed for a query, and those counted for the figures."""
HIDDEN = 0.3
"""Share of the rows that arrive without their label."""


class Queries(NamedTuple):
    """Rows that are not in the collection, and their labels."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]


PictureFile = Annotated[
    Path, typer.Option("--picture", help="Where to write the picture.", readable=False)
]
DemoFile = Annotated[
    Path, typer.Option("--file", help="Where to make the collection.", readable=False)
]
RandomState = Annotated[int, typer.Option(help="Seed of the stream and the hasher.")]
Serve = Annotated[
    bool, typer.Option("--serve", help="Stream the rows slowly, to be watched in a browser.")
]
Port = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, help="Port to serve at; 0 picks a free one.", show_default=str(PORT)
    ),
]
Pace = Annotated[
    float | None,
    typer.Option(help="Rows a second while it serves.", show_default=f"{PACE:g}"),
]


def demo(
    picture: PictureFile = Path("everhash-demo.png"),
    file: DemoFile = Path("everhash-demo.ever"),
    random_state: RandomState = 0,
    serve: Serve = False,
    port: Port = None,
    pace: Pace = None,
    as_json: AsJson = False,
) -> None:
    """Stream scikit-learn's digits into a collection, label by label, and show what happened.

    Replaces the collection of an earlier demo. With --serve no picture is drawn: a web page shows
    the codes as they grow, and searches.

    Example: everhash demo --file digits.ever --picture digits.png
    """
    if not serve and (port is not None or pace is not None):
        raise OptionError("--port and --pace are for watching", hint="add --serve")
    port, pace = PORT if port is None else port, PACE if pace is None else pace
    _check_options(picture, random_state, pace)
    if serve:
        require("serve")
    remove_earlier(file)
    stream, queries = _digits(random_state)
    make = partial(everhash.create, file, DIM, BITS, labels_per_cycle=LABELS_PER_CYCLE)
    make = partial(make, random_state=random_state)
    if serve:
        order = np.random.default_rng(random_state)
        serve_scans(stream, make, order, port=port, pace=pace, as_json=as_json)
        return
    with make() as collection:
        shown = _stream_in(collection, stream, queries)
        if not as_json:
            _show(collection, stream, queries, shown)
            typer.echo(f"collection: {printable(file)} (everhash stats {printable(file)})")
        drawn = _draw(collection.hasher, shown.checkpoints, picture)
    if as_json:
        print_json(
            {"file": str(file), "picture": str(picture) if drawn else None, **shown.as_json()}
        )
    elif drawn:
        typer.echo(f"picture: {printable(picture)}")


class Shown(NamedTuple):
    """What the demo has measured."""

    checkpoints: list[Checkpoint]
    refreshed: RefreshReport
    figures: list[Figure]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "checkpoints": [checkpoint._asdict() for checkpoint in self.checkpoints],
            "refresh": asdict(self.refreshed),
            "figures": [figure._asdict() for figure in self.figures],
        }


class Figure(NamedTuple):
    """Shares of answers that are right, by one way of searching."""

    by: str
    first_right: float
    right: float


def _show(collection: Collection, stream: Scans, queries: Queries, shown: Shown) -> None:
    """Print the checkpoints, the refresh and some searches."""
    console = Console()
    console.print(
        f"{len(stream.X)} digits arrived one label after the other, 30 % without their label; "
        f"{len(queries.X)} more are queries."
    )
    console.print(_table(shown.checkpoints))
    console.print(
        "mAP: tie-averaged, asymmetric distance, queries of the labels seen so far. By codeword: "
        "labelled rows, stored as their label's word.\nBy mapping: all rows, stored as their bits "
        "under the newest mapping. Rows/s: learned, added and on disk."
    )
    console.print(f"\nrefresh: {summary(shown.refreshed, collection.stats())}")
    console.print(_figure_table(shown.figures, len(queries.X)))
    console.print(_answers(collection, stream, queries))


def _draw(hasher: StreamHasher, checkpoints: list[Checkpoint], picture: Path) -> bool:
    """Draw the picture, or say what to install for it; return whether it was drawn."""
    problem = missing("plot")
    if problem is not None:
        typer.echo(f"no picture was drawn: {problem}", err=True)
        return False
    draw(hasher, checkpoints, picture)
    return True


def _check_options(picture: Path, random_state: int, pace: float) -> None:
    """Raise for options that would otherwise fail only after the stream was learned."""
    if not 0 < pace < math.inf:
        raise OptionError(f"--pace must be above 0, got {pace}")
    if random_state < 0:
        raise OptionError(f"--random-state must be at least 0, got {random_state}")
    if picture.is_dir() or not os.access(picture.parent, os.W_OK):
        raise OptionError(
            f"no picture can be written to {picture}",
            hint="name a file in a folder that you may write to",
        )
    if picture.suffix.lower() not in FORMATS:
        raise OptionError(
            f"{picture} does not end like a picture", hint=f"use one of {', '.join(FORMATS)}"
        )


def remove_earlier(file: Path) -> None:
    """Remove the collection of an earlier demo; raise if the file is anything else."""
    if not file.exists():
        return
    try:
        with everhash.open(file) as collection:  # for writing: fails if another process writes it
            stats, ours = collection.stats(), _is_ours(collection)
    except CollectionFileError as error:
        error.hint_template = "it was not changed; choose another --file"
        raise
    if not ours or stats["entries"] > ROWS:
        raise OptionError(
            f"{file} is a collection, but not from an earlier demo", hint="choose another --file"
        )
    file.unlink()


def _is_ours(collection: Collection) -> bool:
    """Whether a demo made the collection; on its page, users may have added labels."""
    stats, labels = collection.stats(), collection.hasher.labels_
    if (stats["dim"], stats["bits"]) != (DIM, BITS):
        return False
    if set(labels) <= set(range(10)):
        return True
    ids = [entry.id for entry in islice(collection.entries(), ROWS)]
    return all(is_scan(attached.payload) for attached in collection.attachments(ids))


def _digits(random_state: int) -> tuple[Scans, Queries]:
    """Return the stream sorted by label, some of it unlabelled, and the queries."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(X))
    queries, rest = order[:QUERIES], order[QUERIES:]
    rest = rest[np.argsort(y[rest], kind="stable")]
    hidden = rng.random(len(rest)) < HIDDEN
    return Scans(X[rest].astype(np.float32), y[rest], hidden), Queries(X[queries], y[queries])


def _stream_in(collection: Collection, stream: Scans, queries: Queries) -> Shown:
    """Stream the rows in and measure; refresh; search."""
    steps = track(
        _checkpoints(collection, stream, queries),
        total=len(np.unique(stream.y)),
        description="streaming",
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    return Shown(list(steps), collection.refresh(), _figures(collection, stream, queries))


def _checkpoints(collection: Collection, stream: Scans, queries: Queries) -> Iterator[Checkpoint]:
    """Ingest one label after the other; measure after each."""
    hasher, versions = collection.hasher, np.zeros(0, np.int64)
    for label in np.unique(stream.y):
        rows = np.flatnonzero(stream.y == label)
        labels = [None if stream.hidden[row] else int(stream.y[row]) for row in rows]
        start = kernels.clock()
        collection.ingest(stream.X[rows], labels)
        seconds = kernels.clock() - start
        before = np.full(hasher.width_, -1)
        before[: len(versions)] = versions
        versions = hasher.versions_
        seen = Queries(*(part[queries.y <= label] for part in queries))
        yield Checkpoint(
            rows=int(rows[-1]) + 1,
            labels=len(hasher.labels_),
            cycles=hasher.n_cycles_,
            width=hasher.width_,
            by_codeword=_by_codeword(hasher, stream, seen, rows[-1]),
            by_mapping=_by_mapping(hasher, stream, seen, rows[-1]),
            changed=int((versions != before).sum()),
            rows_per_second=len(rows) / seconds,
        )


def _by_codeword(hasher: StreamHasher, stream: Scans, queries: Queries, last: int) -> float:
    labelled = stream.y[: last + 1][~stream.hidden[: last + 1]]
    distances = asymmetric(hasher.margins(queries.X), hasher.encode_labels())[:, labelled]
    return mean_average_precision(distances, queries.y[:, None] == labelled)


def _by_mapping(hasher: StreamHasher, stream: Scans, queries: Queries, last: int) -> float:
    distances = asymmetric(hasher.margins(queries.X), hasher.encode(stream.X[: last + 1]))
    return mean_average_precision(distances, queries.y[:, None] == stream.y[: last + 1])


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


def _figures(collection: Collection, stream: Scans, queries: Queries) -> list[Figure]:
    """Return how many answers are right, by each way. Ids are rows of the stream."""
    figures = []
    for by in ("relevance", "meaning", "likeness"):
        found = collection.search(queries.X, BEST, by)
        right = stream.y[found.ids.astype(np.int64)] == queries.y[:, None]
        figures.append(Figure(by, float(right[:, 0].mean()), float(right.mean())))
    return figures


def _figure_table(figures: list[Figure], queries: int) -> Table:
    table = Table(title=f"{queries} queries that the collection has never seen", box=box.SIMPLE)
    for heading in ("search", "first answer right", f"right among {BEST}"):
        table.add_column(heading, justify="left" if heading == "search" else "right")
    for by, first, right in figures:
        what = f"--by {by}: plain cosine" if by == "likeness" else f"--by {by}"
        table.add_row(what, f"{100 * first:.1f} %", f"{100 * right:.1f} %")
    return table


def _answers(collection: Collection, stream: Scans, queries: Queries) -> Table:
    """Return a table of a few searches."""
    some = np.unique(queries.y, return_index=True)[1][::2]
    matches = collection.search(queries.X[some], NEAREST)
    table = Table(
        title=f"search: {len(some)} queries, their {NEAREST} best entries",
        caption="in brackets: the true label of an entry that arrived without one",
        box=box.SIMPLE,
    )
    table.add_column("query", justify="right")
    table.add_column("labels found")
    table.add_column("probabilities")
    for digit, ids, scores in zip(queries.y[some], matches.ids, matches.scores, strict=True):
        found = [f"({stream.y[i]})" if stream.hidden[i] else f" {stream.y[i]} " for i in ids]
        cells = " ".join(f"{score:.2f}" for score in scores)
        table.add_row(str(digit), " ".join(found), cells)
    return table
