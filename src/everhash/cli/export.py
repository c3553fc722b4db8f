"""`everhash export`: write the entries to a table, or the hasher to a model file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from everhash.cli.arguments import AsJson, File, file_argument, open_collection
from everhash.cli.export_formats import WRITERS, EntryRow, Table
from everhash.cli.formatting import counted, print_json, printable
from everhash.cli.terminal import Bar
from everhash.collection.collection import Collection
from everhash.disk import appear
from everhash.errors import EverhashError, OptionError, StoreError

ENTRIES_A_READ = 1000
"""Entries whose attachments and features are read at a time."""
MODEL = ".safetensors"
OutFile = Annotated[
    Path,
    file_argument(
        "New file: .parquet, .arrow, .jsonl or .csv; .safetensors for the hasher.", metavar="OUT"
    ),
]


def export(path: File, out: OutFile, as_json: AsJson = False) -> None:
    """Write all entries to a table that ingest reads back, or the hasher to a model file.

    A table has the columns id, labels, features, payload, thumbnail, guess,
    home and code. Guess is the label an unlabelled entry is taken for, home the
    cycle of its bits. Code is those bits in hexadecimal, eight to a byte, the
    first one in the lowest bit. In a CSV features are columns f0, f1 and so on.

    Example: everhash export shop.ever shop.parquet
    """
    suffix = out.suffix.lower()
    if suffix not in (*WRITERS, MODEL):
        endings = ", ".join((*WRITERS, MODEL))
        raise OptionError(f"export cannot write {out}", hint=f"use one of {endings}")
    with open_collection(path, readonly=True) as collection:
        if suffix == MODEL:
            with _all_or_nothing(out) as partial:
                collection.hasher.save(partial)
            counts = {"labels": len(collection.labels())}
            said = f"the hasher of {counted(counts['labels'], 'label')}"
        else:
            _write(collection, out)
            counts = {"entries": len(collection)}
            said = counted(counts["entries"], "entry", "entries")
    if as_json:
        print_json({"file": str(out), **counts})
    else:
        typer.echo(f"{said} in {printable(out)}")


def _write(collection: Collection, out: Path) -> None:
    """Write all entries; first say what the file cannot carry."""
    table, write = Table.of(collection), WRITERS[out.suffix.lower()]
    with _all_or_nothing(out) as partial:
        partial.touch()  # if that fails, nothing else matters
        for note in table.losses(out.suffix.lower(), _rows(collection, None)):
            typer.echo(f"note: {printable(out)}: {note}", err=True)
        with Bar("exporting", len(collection)) as bar:
            write(partial, table, _rows(collection, bar))


@contextmanager
def _all_or_nothing(out: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it becomes `out` when it is complete."""
    if out.exists():
        raise StoreError(f"{out} is there already", hint="choose another name")
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        yield partial
        appear(partial, out)
    except OSError as error:
        if isinstance(error, EverhashError):
            raise
        raise StoreError(
            f"{out} cannot be written: {error.strerror or error}",
            hint="choose a folder that you may write to, on a disk that is not full",
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def _rows(collection: Collection, bar: Bar | None) -> Iterator[EntryRow]:
    """Yield all entries with what they have attached and their features, where these are kept."""
    keep = collection.stats()["keep_features"]
    left = collection.entries()
    while entries := list(islice(left, ENTRIES_A_READ)):
        attachments = collection.attachments([entry.id for entry in entries])
        kept = [
            entry.id
            for entry in entries
            if keep == "all" or (keep == "unlabelled" and not entry.labels)
        ]
        features = dict(zip(kept, collection.features(kept), strict=True)) if kept else {}
        for entry, attached in zip(entries, attachments, strict=True):
            yield EntryRow(entry, attached, features.get(entry.id))
        if bar is not None:
            bar.advance_by(len(entries))
