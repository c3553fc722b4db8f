"""`everhash ingest`: check all files, then add their rows to a collection batch by batch."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer

import everhash
from everhash import kernels
from everhash.cli import INTERRUPTED
from everhash.cli.arguments import (
    AsJson,
    Features,
    Target,
    file_argument,
    is_cluster,
    is_url,
    open_collection,
)
from everhash.cli.formatting import counted, print_json, printable
from everhash.cli.inputs import Format, files_of, shown
from everhash.cli.preflight import IngestPlan, RowCheck
from everhash.cli.terminal import Bar
from everhash.collection.api import CollectionApi
from everhash.errors import DataMissingError, OptionError
from everhash.learn.options import whole_number
from everhash.sources import Batch
from everhash.store.durability import read_durability
from everhash.stream import as_labels

Sources = Annotated[
    list[Path],
    file_argument(
        "Files or quoted patterns: .npy .npz .parquet .arrow .feather .csv .jsonl; a folder stands "
        "for its .parquet files; - is stdin.",
        metavar="SOURCE",
    ),
]
Label = Annotated[str | None, typer.Option(help="Column of labels.", metavar="COLUMN")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of ids.", metavar="COLUMN")]
Payload = Annotated[
    list[str] | None,
    typer.Option(help="Column of payloads; several columns become an object.", metavar="COLUMN"),
]
Thumbnail = Annotated[
    str | None, typer.Option(help="Column of thumbnails: images, as bytes.", metavar="COLUMN")
]
BatchRows = Annotated[int, typer.Option(help="Rows a batch; each batch is one commit.")]
Create = Annotated[
    bool, typer.Option("--create", help="Create the collection if the file is not there.")
]
Bits = Annotated[
    int | None, typer.Option(help="Bits of a code, for a new collection. Default: 32.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Skip rows whose ids are there already; needs ids.")
]
NoLearn = Annotated[
    bool, typer.Option("--no-learn", help="Add the rows, but leave the mapping as it is.")
]
Durability = Annotated[
    str, typer.Option(help="When a commit reaches the disk: commit, interval:100ms or none.")
]


def ingest(
    target: Target,
    sources: Sources,
    features: Features = None,
    label: Label = None,
    id_column: IdColumn = None,
    payload: Payload = None,
    thumbnail: Thumbnail = None,
    form: Format = None,
    create: Create = False,
    bits: Bits = None,
    batch_rows: BatchRows = 10_000,
    resume: Resume = False,
    no_learn: NoLearn = False,
    durability: Durability = "commit",
    as_json: AsJson = False,
) -> None:
    """Learn from rows and add them.

    Columns that are not named are taken by their names: features, labels or
    label, id, payload, thumbnail. So what export writes is read back as it is.
    A row whose label is missing is added without one.
    All files are checked first: if one row cannot be used, nothing is applied.
    Rows that an interrupted run has committed stay; --resume adds the rest.
    Several files for a cluster are read in parallel, by its nodes.

    Example: everhash ingest shop.ever 'data/*.parquet' --create --label kind --id sku
    """
    whole_number("--batch-rows", batch_rows, least=1)
    read_durability(durability)
    columns = {
        "features": features,
        "label": label,
        "id": id_column,
        "payload": _one_or_several(payload),
        "thumbnail": thumbnail,
    }
    opening = Opening(target, create, bits, durability)
    opening.check()
    try:
        with files_of(sources, form) as files:
            plan = IngestPlan(files, columns, batch_rows, resume, learn=not no_learn)
            _run(_ingestion(target, plan), opening, as_json=as_json)
    except KeyboardInterrupt:
        typer.echo(NOTHING, err=True)
        raise typer.Exit(INTERRUPTED) from None


def _ingestion(target: str, plan: IngestPlan) -> Ingestion:
    """Return how rows are added: files for a cluster by tasks of their own."""
    if len(plan.files) > 1 and is_cluster(target):
        from everhash.cli.parallel_ingest import ParallelIngestion

        return ParallelIngestion(target, plan)
    return Ingestion(target, plan)


NOTHING = "interrupted: nothing was applied (repeat the command)"


def _one_or_several(payload: list[str] | None) -> str | list[str] | None:
    """Return the name of a single payload column, or a list of several, each once."""
    columns = list(dict.fromkeys(payload or ()))
    return columns[0] if len(columns) == 1 else columns or None


def _run(ingestion: Ingestion, opening: Opening, *, as_json: bool) -> None:
    """Check all rows, then apply them; print a summary, or what is safe after Ctrl-C."""
    plan = ingestion.plan
    if plan.resume and not plan.has_ids:
        raise OptionError("--resume needs ids", hint="name their column with --id")
    for line in plan.found():
        typer.echo(f"taken: {line}", err=True)
    try:
        if opening.is_new:
            with everhash.create(None, dim=plan.dim()) as empty:
                ingestion.check(empty)
        with opening.opened(plan) as collection:
            if not opening.is_new:
                ingestion.check(collection)
            ingestion.apply(collection)
            stats = collection.stats()
    except KeyboardInterrupt:
        typer.echo(ingestion.interrupted(), err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(ingestion.counts(stats))
    else:
        typer.echo(ingestion.summary(stats))


@dataclass
class Opening:
    """How the collection is opened, or created."""

    target: str
    create: bool
    bits: int | None
    durability: str

    @cached_property
    def is_new(self) -> bool:
        """Whether the collection is to be created."""
        return self.create and not Path(self.target).exists()

    def check(self) -> None:
        """Raise if the options do not go together."""
        if self.create and is_url(self.target):
            raise OptionError("a service has its collection already", hint="leave out --create")
        if not (self.create or is_url(self.target) or Path(self.target).exists()):
            raise DataMissingError(
                f"no collection at {self.target}", hint="--create makes one for these rows"
            )
        if self.bits is not None and not self.is_new:
            raise OptionError(
                "--bits is for a new collection",
                hint="leave it out, or name a new file and --create",
            )

    @contextmanager
    def opened(self, plan: IngestPlan) -> Iterator[CollectionApi]:
        """Open the collection, or create one for rows of this plan."""
        if self.is_new:
            options: dict[str, Any] = {} if self.bits is None else {"bits": self.bits}
            path, durability = Path(self.target), self.durability
            everhash.create(path, dim=plan.dim(), durability=durability, **options).close()
        with open_collection(self.target, durability=self.durability) as collection:
            yield collection


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

    target: str
    plan: IngestPlan
    total: int | None = None
    rows: int = 0
    unlabelled: int = 0
    skipped: int = 0
    seconds: float = 0.0
    position: tuple[Path, int] | None = None
    """File and row after the last committed row; None before the first commit."""

    def check(self, collection: CollectionApi) -> None:
        """Check every row before the first is applied."""
        check = RowCheck(collection, self.plan, self.target)
        with Bar("checking", self.plan.count()) as bar:
            for file, start, batch in self.plan.batches():
                check.check_batch(file, start, batch)
                bar.advance_by(len(batch.X))
        check.finish()
        self.total = check.rows

    def apply(self, collection: CollectionApi) -> None:
        """Add batch after batch, each in a transaction of its own."""
        began = kernels.clock()
        with Bar("ingesting", self.total) as bar, DeferredInterrupt() as interrupt:
            for file, start, batch in self.plan.batches():
                if interrupt.requested:
                    raise KeyboardInterrupt
                self._apply(collection, batch)
                self.position = file, start + len(batch.X)
                self.seconds = kernels.clock() - began
                bar.advance_by(len(batch.X), status(collection.stats()) if bar.is_visible else "")

    def _apply(self, collection: CollectionApi, batch: Batch) -> None:
        n = len(batch.X)
        if self.plan.resume and batch.ids is not None:
            batch = batch.part(np.flatnonzero(~collection.has(batch.ids)))
        if len(batch.X):
            X, y, ids = batch
            attached: dict[str, Any] = {"payloads": batch.payloads, "thumbnails": batch.thumbnails}
            if self.plan.learn:
                collection.ingest(X, y, ids, **attached)
            else:
                collection.add(X, ids, y, **attached)
        self.rows += len(batch.X)
        self.unlabelled += len(batch.X) - len(set(as_labels(batch.y, len(batch.X)).rows.tolist()))
        self.skipped += n - len(batch.X)

    def counts(self, stats: dict[str, Any]) -> dict[str, Any]:
        """Return what was done, and what the collection has now."""
        shown = ("entries", "labels", "cycles", "width", "stale_bits")
        done = {"rows": self.rows, "unlabelled": self.unlabelled, "skipped": self.skipped}
        return done | {"seconds": round(self.seconds, 3)} | {name: stats[name] for name in shown}

    def summary(self, stats: dict[str, Any]) -> str:
        """Return one line on what was done."""
        speed = f" ({self.rows / self.seconds:,.0f} rows/s)" if self.rows else ""
        unlabelled = f", {self.unlabelled:,} without a label," if self.unlabelled else ""
        skipped = f", {self.skipped:,} there already" if self.skipped else ""
        return (
            f"{counted(self.rows, 'row')}{unlabelled} in {self.seconds:.1f} s{speed}{skipped}: "
            f"{counted(stats['entries'], 'entry', 'entries')}, {status(stats)}"
        )

    def interrupted(self) -> str:
        """Return one line on which rows are safe after Ctrl-C, and how to continue."""
        if self.position is None:
            return NOTHING
        file, row = self.position
        rest = f"the rest starts at row {row} of {shown(file)}; with --id it could be resumed"
        how = "repeat the command with --resume for the rest" if self.plan.has_ids else rest
        done = f"{self.rows + self.skipped:,} of {self.total:,} rows"
        return f"interrupted: {done} are safe in {printable(self.target)} ({how})"


def status(stats: dict[str, Any]) -> str:
    """Return the labels, cycles, width and stale bits of a collection in one line."""
    parts = (
        counted(stats["labels"], "label"),
        counted(stats["cycles"], "cycle"),
        f"{stats['width']:,} bits wide",
        counted(stats["stale_bits"], "stale bit"),
    )
    return ", ".join(parts)
