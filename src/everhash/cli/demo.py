"""`everhash demo`: stream handwritten digits into a collection, label by label."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

import everhash
from everhash.cli.demo_serve import PACE, PORT, Scans, is_scan, serve_scans
from everhash.cli.formatting import printable
from everhash.cli.picture import FORMATS, Checkpoint, draw
from everhash.cli.refresh import summary
from everhash.cli.terminal import compile_kernels
from everhash.codes import asymmetric
from everhash.collection.collection import Collection
from everhash.errors import CollectionFileError, OptionError
from everhash.extras import missing, require
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
    Path, typer.Option("--picture", "-p", help="Where to write the picture.", readable=False)
]
DemoFile = Annotated[
    Path, typer.Option("--file", "-f", help="Where to make the collection.", readable=False)
]
Seed = Annotated[int, typer.Option(help="Seed of the stream and the hasher.")]
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
    seed: Seed = 0,
    serve: Serve = False,
    port: Port = None,
    pace: Pace = None,
) -> None:
    """Stream scikit-learn's digits into a collection, label by label, and show what happened.

    Replaces the collection of an earlier demo. With --serve no picture is drawn: a web page shows
    the codes as they grow, and searches.

    Example: everhash demo --file digits.ever --picture digits.png
    """
    if not serve and (port is not None or pace is not None):
        raise OptionError("--port and --pace are for watching", hint="add --serve")
    port, pace = PORT if port is None else port, PACE if pace is None else pace
    _check_options(picture, seed, pace)
    if serve:
        require("serve")
    remove_earlier(file)
    compile_kernels()
    stream, queries = _digits(seed)
    new = partial(everhash.create, labels_per_cycle=LABELS_PER_CYCLE, random_state=seed)
    make = partial(new, file, DIM, BITS)
    if serve:
        serve_scans(stream, make, seed=seed, port=port, pace=pace)
        return
    with make() as collection:
        checkpoints = _show(collection, stream, queries)
        typer.echo(f"collection: {printable(file)} (everhash stats {printable(file)})")
        _draw(collection.hasher, checkpoints, picture)


def _show(collection: Collection, stream: Scans, queries: Queries) -> list[Checkpoint]:
    """Stream the rows in; print the checkpoints, a refresh and some searches."""
    console = Console()
    console.print(
        f"{len(stream.X)} digits arrive one label after the other, 30 % without their label; "
        f"{len(queries.X)} more are queries."
    )
    checkpoints = _stream_in(collection, stream, queries)
    _report(console, collection, checkpoints)
    console.print(_figures(collection, stream, queries))
    console.print(_answers(collection, stream, queries))
    return checkpoints


def _draw(hasher: StreamHasher, checkpoints: list[Checkpoint], picture: Path) -> None:
    """Draw the picture, or say what to install for it."""
    problem = missing("plot")
    if problem is not None:
        typer.echo(f"no picture was drawn: {problem}", err=True)
        return
    draw(hasher, checkpoints, picture)
    typer.echo(f"picture: {picture}")


def _check_options(picture: Path, seed: int, pace: float) -> None:
    """Raise for options that would otherwise fail only after the stream was learned."""
    if not 0 < pace < math.inf:
        raise OptionError(f"--pace must be above 0, got {pace}")
    if seed < 0:
        raise OptionError(f"--seed must be at least 0, got {seed}")
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
        error.hint = "it was not changed; choose another --file"
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


def _digits(seed: int) -> tuple[Scans, Queries]:
    """Return the stream sorted by label, some of it unlabelled, and the queries."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    queries, rest = order[:QUERIES], order[QUERIES:]
    rest = rest[np.argsort(y[rest], kind="stable")]
    hidden = rng.random(len(rest)) < HIDDEN
    return Scans(X[rest].astype(np.float32), y[rest], hidden), Queries(X[queries], y[queries])


def _stream_in(collection: Collection, stream: Scans, queries: Queries) -> list[Checkpoint]:
    steps = track(
        _checkpoints(collection, stream, queries),
        total=len(np.unique(stream.y)),
        description="streaming",
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    return list(steps)


def _checkpoints(collection: Collection, stream: Scans, queries: Queries) -> Iterator[Checkpoint]:
    """Ingest one label after the other; measure after each."""
    hasher, versions = collection.hasher, np.zeros(0, np.int64)
    for label in np.unique(stream.y):
        rows = np.flatnonzero(stream.y == label)
        labels = [None if stream.hidden[row] else int(stream.y[row]) for row in rows]
        start = perf_counter()
        collection.ingest(stream.X[rows], labels)
        seconds = perf_counter() - start
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


def _report(console: Console, collection: Collection, checkpoints: list[Checkpoint]) -> None:
    """Print the checkpoints, then refresh and print what that did."""
    console.print(_table(checkpoints))
    console.print(
        "mAP: tie-averaged, asymmetric distance, queries of the labels seen so far. By codeword: "
        "labelled rows, stored as their label's word.\nBy mapping: all rows, stored as their bits "
        "under the newest mapping. Rows/s: learned, added and on disk."
    )
    report = collection.refresh()
    console.print(f"\nrefresh: {summary(report, collection.stats())}")


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


def _figures(collection: Collection, stream: Scans, queries: Queries) -> Table:
    """Return how many answers are right, by meaning and by cosine. Ids are rows of the stream."""
    table = Table(
        title=f"{len(queries.X)} queries that the collection has never seen", box=box.SIMPLE
    )
    for heading in ("search", "first answer right", f"right among {BEST}"):
        table.add_column(heading, justify="left" if heading == "search" else "right")
    for by, what in (("meaning", 'by="meaning"'), ("likeness", 'plain cosine: by="likeness"')):
        found = collection.search(queries.X, BEST, by)
        right = stream.y[found.ids.astype(np.int64)] == queries.y[:, None]
        table.add_row(what, f"{100 * right[:, 0].mean():.1f} %", f"{100 * right.mean():.1f} %")
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
