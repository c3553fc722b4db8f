"""`everhash ingest`: check all files, then add their rows to a collection batch by batch."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer

from everhash.cli.arguments import Features, File, file_argument, open_collection
from everhash.cli.formatting import counted, printable
from everhash.cli.preflight import IngestPlan, RowCheck
from everhash.cli.terminal import Bar, compile_kernels
from everhash.collection.collection import Collection
from everhash.errors import OptionError
from everhash.learn.options import whole_number
from everhash.sources import Batch
from everhash.store.durability import read_durability

INTERRUPTED = 130
"""Exit code after Ctrl-C."""
Sources = Annotated[list[Path], file_argument("Files: .npy .npz .parquet .arrow .feather .csv")]
Label = Annotated[str | None, typer.Option(help="Column of labels.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of ids.")]
Payload = Annotated[
    list[str] | None,
    typer.Option(help="Column of payloads; several columns become an object."),
]
Thumbnail = Annotated[str | None, typer.Option(help="Column of thumbnails: images, as bytes.")]
BatchRows = Annotated[int, typer.Option(help="Rows a batch; each batch is one commit.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip rows whose ids are there already; needs --id.")
]
Unlabelled = Annotated[bool, typer.Option("--unlabelled", help="Accept rows without a label.")]
NoLearn = Annotated[
    bool, typer.Option("--no-learn", help="Add the rows, but leave the mapping as it is.")
]
Durability = Annotated[
    str, typer.Option(help="When a commit reaches the disk: commit, interval:100ms or none.")
]


def ingest(
    path: File,
    sources: Sources,
    features: Features = None,
    label: Label = None,
    id_column: IdColumn = None,
    payload: Payload = None,
    thumbnail: Thumbnail = None,
    rows: BatchRows = 10_000,
    resume: Resume = False,
    unlabelled: Unlabelled = False,
    no_learn: NoLearn = False,
    durability: Durability = "commit",
) -> None:
    """Learn from rows and add them.

    All files are checked first: if one row cannot be used, nothing is applied.
    Rows that an interrupted run has committed stay; --resume adds the rest.

    Example: everhash ingest shop.ever products.parquet --features embedding --label kind --id sku
    """
    if resume and id_column is None:
        raise OptionError("--resume needs --id", hint="name the column of ids")
    whole_number("--rows", rows, least=1)
    read_durability(durability)
    columns = (features, label, id_column, _one_or_several(payload), thumbnail)
    plan = IngestPlan(sources, *columns, rows, resume, unlabelled)
    _run(Ingestion(path, plan, learn=not no_learn), durability)


def _one_or_several(payload: list[str] | None) -> str | list[str] | None:
    """Return the name of a single payload column, or a list of several, each once."""
    columns = list(dict.fromkeys(payload or ()))
    return columns[0] if len(columns) == 1 else columns or None


def _run(ingestion: Ingestion, durability: str) -> None:
    """Check all rows, then apply them; print a summary, or what is safe after Ctrl-C."""
    try:
        with open_collection(ingestion.path, durability=durability) as collection:
            ingestion.check(collection)
            compile_kernels()
            ingestion.apply(collection)
            typer.echo(ingestion.summary(collection.stats()))
    except KeyboardInterrupt:
        typer.echo(ingestion.interrupted(), err=True)
        raise typer.Exit(INTERRUPTED) from None


class DeferredInterrupt:
    """Notes Ctrl-C so that a batch can finish; a second Ctrl-C interrupts at once."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> DeferredInterrupt:
        # another handler, such as that of `nohup`, is left in place
        self._installed = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._installed:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass
class Ingestion:
    """The rows of some files, being added to a collection."""

    path: Path
    plan: IngestPlan
    learn: bool
    total: int | None = None
    rows: int = 0
    skipped: int = 0
    seconds: float = 0.0
    position: tuple[Path, int] | None = None
    """File and row after the last committed row; None before the first commit."""

    def check(self, collection: Collection) -> None:
        """Check every row before the first is applied."""
        check = RowCheck(collection, self.plan)
        with Bar("checking", self.plan.count()) as bar:
            for file, start, batch in self.plan.batches():
                check.check_batch(file, start, batch)
                bar.advance_by(len(batch.X))
        check.finish()
        self.total = check.rows

    def apply(self, collection: Collection) -> None:
        """Add batch after batch, each in a transaction of its own."""
        began = perf_counter()
        with Bar("ingesting", self.total) as bar, DeferredInterrupt() as interrupt:
            for file, start, batch in self.plan.batches():
                if interrupt.requested:
                    raise KeyboardInterrupt
                self._apply(collection, batch)
                self.position = file, start + len(batch.X)
                self.seconds = perf_counter() - began
                bar.advance_by(len(batch.X), status(collection.stats()) if bar.is_visible else "")

    def _apply(self, collection: Collection, batch: Batch) -> None:
        n = len(batch.X)
        if self.plan.resume and batch.ids is not None:
            batch = batch.part(np.flatnonzero(~collection.has(batch.ids)))
        if len(batch.X):
            X, y, ids = batch
            attached: dict[str, Any] = {"payloads": batch.payloads, "thumbnails": batch.thumbnails}
            if self.learn:
                collection.ingest(X, y, ids, **attached)
            else:
                collection.add(X, ids, y, **attached)
        self.rows += len(batch.X)
        self.skipped += n - len(batch.X)

    def summary(self, stats: dict[str, Any]) -> str:
        """Return one line on what was done."""
        speed = f" ({self.rows / self.seconds:,.0f} rows/s)" if self.rows else ""
        skipped = f", {self.skipped:,} there already" if self.skipped else ""
        return (
            f"{counted(self.rows, 'row')} in {self.seconds:.1f} s{speed}{skipped}: "
            f"{counted(stats['entries'], 'entry', 'entries')}, {status(stats)}"
        )

    def interrupted(self) -> str:
        """Return one line on which rows are safe after Ctrl-C, and how to continue."""
        if self.position is None:
            return "interrupted: nothing was applied (repeat the command)"
        file, row = self.position
        rest = f"the rest starts at row {row} of {printable(file)}; with --id it could be resumed"
        how = rest if self.plan.id is None else "repeat the command with --resume for the rest"
        done = f"{self.rows + self.skipped:,} of {self.total:,} rows"
        return f"interrupted: {done} are safe in {printable(self.path)} ({how})"


def status(stats: dict[str, Any]) -> str:
    """Return the labels, cycles, width and stale bits of a collection in one line."""
    parts = (
        counted(stats["labels"], "label"),
        counted(stats["cycles"], "cycle"),
        f"{stats['width']:,} bits wide",
        counted(stats["stale_bits"], "stale bit"),
    )
    return ", ".join(parts)
