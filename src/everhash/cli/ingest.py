"""`everhash ingest`: files into a collection, batch by batch, all of them checked first."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer

from everhash.cli.arguments import Features, File, file_argument, opened
from everhash.cli.formatting import counted, shown
from everhash.cli.preflight import Check, Plan
from everhash.cli.terminal import Bar, compile_kernels
from everhash.collection.collection import Collection
from everhash.errors import OptionError
from everhash.learn.options import whole_number
from everhash.sources import Batch
from everhash.store.durability import read_durability

INTERRUPTED = 130
Sources = Annotated[list[Path], file_argument("Files: .npy .npz .parquet .arrow .feather .csv")]


def ingest(
    path: File,
    sources: Sources,
    features: Features = None,
    label: Annotated[str | None, typer.Option(help="Column of labels.")] = None,
    id_column: Annotated[str | None, typer.Option("--id", help="Column of ids.")] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option(help="Column that entries carry; several are carried as an object."),
    ] = None,
    thumbnail: Annotated[
        str | None, typer.Option(help="Column of pictures that entries carry, as bytes.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows a batch; each batch is one commit.")] = 10_000,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip rows whose ids are there already; needs --id.")
    ] = False,
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", help="Rows may come without a label.")
    ] = False,
    no_learn: Annotated[
        bool, typer.Option("--no-learn", help="Add the rows, but leave the mapping as it is.")
    ] = False,
    durability: Annotated[
        str, typer.Option(help="When a commit reaches the disk: commit, interval:100ms or none.")
    ] = "commit",
) -> None:
    """Learn from rows and add them.

    All files are checked first: if one row cannot be used, nothing is applied.
    What an interrupted run has committed stays; --resume goes on from there.

    Example: everhash ingest shop.ever products.parquet --features embedding --label kind --id sku
    """
    if resume and id_column is None:
        raise OptionError("--resume needs --id", hint="name the column of ids")
    whole_number("--rows", rows, least=1)
    read_durability(durability)
    columns = (features, label, id_column, _alone(payload), thumbnail)
    plan = Plan(sources, *columns, rows, resume, unlabelled)
    task = Ingestion(path, plan, learn=not no_learn)
    try:
        with opened(path, durability=durability) as collection:
            task.check(collection)
            compile_kernels()
            task.apply(collection)
            typer.echo(task.summary(collection.stats()))
    except KeyboardInterrupt:
        typer.echo(task.interrupted(), err=True)
        raise typer.Exit(INTERRUPTED) from None


def _alone(payload: list[str] | None) -> str | list[str] | None:
    """Return the one column whose values entries carry, or the several of an object."""
    columns = list(dict.fromkeys(payload or ()))
    return columns[0] if len(columns) == 1 else columns or None


class Patience:
    """Lets a batch end when the user presses Ctrl-C; a second one does not wait for it."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Patience:
        # where Ctrl-C does something else, as after `nohup`, it goes on doing that
        self._installed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._installed:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass
class Ingestion:
    """Files on their way into a collection."""

    path: Path
    plan: Plan
    learn: bool
    total: int | None = None
    rows: int = 0
    skipped: int = 0
    seconds: float = 0.0
    at: tuple[Path, int] | None = None
    """File and row after the last one that is safe; None before the first."""

    def check(self, collection: Collection) -> None:
        """Look at every row before the first is applied."""
        check = Check(collection, self.plan)
        with Bar("checking", self.plan.count()) as bar:
            for file, start, batch in self.plan.batches():
                check.look(file, start, batch)
                bar.move(len(batch.X))
        check.finish()
        self.total = check.rows

    def apply(self, collection: Collection) -> None:
        """Ingest batch after batch, each in a transaction of its own."""
        began = perf_counter()
        with Bar("ingesting", self.total) as bar, Patience() as patience:
            for file, start, batch in self.plan.batches():
                if patience.asked:
                    raise KeyboardInterrupt
                self._apply(collection, batch)
                self.at = file, start + len(batch.X)
                self.seconds = perf_counter() - began
                bar.move(len(batch.X), briefly(collection.stats()) if bar.seen else "")

    def _apply(self, collection: Collection, batch: Batch) -> None:
        n = len(batch.X)
        if self.plan.resume and batch.ids is not None:
            batch = batch.part(np.flatnonzero(~collection.has(batch.ids)))
        if len(batch.X):
            X, y, ids = batch
            pictures = batch.thumbnails
            if self.learn:
                collection.ingest(X, y, ids, payloads=batch.payloads, thumbnails=pictures)
            else:
                collection.add(X, ids, y, payloads=batch.payloads, thumbnails=pictures)
        self.rows += len(batch.X)
        self.skipped += n - len(batch.X)

    def summary(self, stats: dict[str, Any]) -> str:
        """Return what was done, in one line."""
        speed = f" ({self.rows / self.seconds:,.0f} rows/s)" if self.rows else ""
        there = f", {self.skipped:,} there already" if self.skipped else ""
        return (
            f"{counted(self.rows, 'row')} in {self.seconds:.1f} s{speed}{there}: "
            f"{counted(stats['entries'], 'entry', 'entries')}, {briefly(stats)}"
        )

    def interrupted(self) -> str:
        """Return what is safe after an interruption, and how to go on."""
        if self.at is None:
            return "interrupted: nothing was applied (repeat the command)"
        file, row = self.at
        rest = f"the rest starts at row {row} of {shown(file)}; with --id it could be resumed"
        how = rest if self.plan.id is None else "repeat the command with --resume for the rest"
        done = f"{self.rows + self.skipped:,} of {self.total:,} rows are safe in {shown(self.path)}"
        return f"interrupted: {done} ({how})"


def briefly(stats: dict[str, Any]) -> str:
    """Return where a collection stands, in a few words."""
    parts = (
        counted(stats["labels"], "label"),
        counted(stats["cycles"], "cycle"),
        f"{stats['width']:,} bits wide",
        counted(stats["stale_bits"], "stale bit"),
    )
    return ", ".join(parts)
