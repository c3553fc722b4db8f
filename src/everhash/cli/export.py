"""`everhash export`: write the entries to a table, or the hasher to a model file."""

from __future__ import annotations

import csv
import json
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from everhash.cli.arguments import INT64, File, file_argument, open_collection
from everhash.cli.formatting import counted, printable
from everhash.cli.terminal import Bar
from everhash.collection.attachments import Attachment
from everhash.collection.collection import Collection
from everhash.errors import EverhashError, OptionError, StoreError
from everhash.index.entries import Entry
from everhash.sources.columns import arrow

COLUMNS = ("id", "labels", "guess", "home", "code", "payload", "thumbnail")
MAX_GROUP_ROWS, MAX_GROUP_BYTES = 65_536, 64 << 20
"""Limits of a row group in a Parquet file: entries, and bytes of their thumbnails (about)."""
ENTRIES_A_READ = 1000
"""Entries whose attachments are read at a time."""
EntryRow = tuple[Entry, Attachment]
MODEL = ".safetensors"
OutFile = Annotated[
    Path, file_argument("New file: .parquet, .csv or .jsonl; .safetensors for the hasher.")
]


def export(path: File, out: OutFile) -> None:
    """Write all entries to a table, or the hasher to a model file.

    A table has the columns id, labels, guess, home, code, payload and thumbnail.
    Guess is the label an unlabelled entry is taken for, home the cycle of its bits.
    Code is those bits in hexadecimal, eight to a byte, the first one in the lowest bit.
    Payloads are JSON, thumbnails base64; in Parquet they are bytes.

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
            what = f"the hasher of {counted(len(collection.labels()), 'label')}"
        else:
            with Bar("exporting", len(collection)) as bar, _all_or_nothing(out) as partial:
                WRITERS[suffix](partial, collection, _rows(collection, bar))
            what = counted(len(collection), "entry", "entries")
    typer.echo(f"{what} in {printable(out)}")


@contextmanager
def _all_or_nothing(out: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it becomes `out` when it is complete."""
    if out.exists():
        raise StoreError(f"{out} is there already", hint="choose another name")
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.link(partial, out)  # unlike a rename, a link never replaces a file
    except OSError as error:
        if isinstance(error, EverhashError):
            raise
        raise StoreError(
            f"{out} cannot be written: {error.strerror or error}",
            hint="choose a folder that you may write to, on a disk that is not full",
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def _rows(collection: Collection, bar: Bar) -> Iterator[EntryRow]:
    """Yield all entries with their attachments."""
    left = collection.entries()
    while entries := list(islice(left, ENTRIES_A_READ)):
        attachments = collection.attachments([entry.id for entry in entries])
        yield from zip(entries, attachments, strict=True)
        bar.advance_by(len(entries))


def _code(entry: Entry) -> str | None:
    if entry.code is None:
        return None
    return np.packbits(entry.code, bitorder="little").tobytes().hex()


def _json(payload: Any) -> str | None:
    return None if payload is None else json.dumps(payload, ensure_ascii=False)


def _base64(thumbnail: bytes | None) -> str | None:
    return None if thumbnail is None else b64encode(thumbnail).decode()


def _write_csv(path: Path, _collection: Collection, rows: Iterator[EntryRow]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for entry, attached in rows:
            labels = json.dumps(entry.labels, default=str, ensure_ascii=False)
            cells = (entry.id, labels, entry.guess, entry.home, _code(entry))
            table.writerow((*cells, _json(attached.payload), _base64(attached.thumbnail)))


def _write_jsonl(path: Path, _collection: Collection, rows: Iterator[EntryRow]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for entry, attached in rows:
            cells = (entry.id, entry.labels, entry.guess, entry.home, _code(entry))
            values = (*cells, attached.payload, _base64(attached.thumbnail))
            file.write(json.dumps(dict(zip(COLUMNS, values, strict=True)), default=str) + "\n")


def _write_parquet(path: Path, collection: Collection, rows: Iterator[EntryRow]) -> None:
    pa = arrow()
    from pyarrow import parquet

    # a column has one type: numbers if all values are numbers, otherwise texts
    id_type: Any = int if _all_numbers(entry.id for entry in collection.entries()) else str
    names = (label for label in collection.hasher.labels_ if label is not None)
    label_type: Any = int if _all_numbers(names) else str
    arrow_types = {str: pa.string(), int: pa.int64()}
    types = (
        *(arrow_types[id_type], pa.list_(arrow_types[label_type]), arrow_types[label_type]),
        *(pa.int32(), pa.string(), pa.string(), pa.binary()),
    )
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    with parquet.ParquetWriter(path, schema) as writer:
        for group in _groups(rows):
            columns = {
                "id": [id_type(entry.id) for entry, _ in group],
                "labels": [[label_type(label) for label in entry.labels] for entry, _ in group],
                "guess": [
                    None if entry.guess is None else label_type(entry.guess) for entry, _ in group
                ],
                "home": [entry.home for entry, _ in group],
                "code": [_code(entry) for entry, _ in group],
                "payload": [_json(attached.payload) for _, attached in group],
                "thumbnail": [attached.thumbnail for _, attached in group],
            }
            writer.write_table(pa.table(columns, schema=schema))


def _groups(rows: Iterator[EntryRow]) -> Iterator[list[EntryRow]]:
    """Collect rows until a row group is full."""
    group: list[EntryRow] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row[1].thumbnail or b"")
        if len(group) == MAX_GROUP_ROWS or size > MAX_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _all_numbers(values: Iterable[Any]) -> bool:
    return all(type(value) is int and value in INT64 for value in values)


WRITERS = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_jsonl}
