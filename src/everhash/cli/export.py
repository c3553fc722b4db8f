"""`everhash export`: entries as a table, or the hasher as a model file."""

from __future__ import annotations

import csv
import json
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from everhash.cli.arguments import INT64, File, file_argument, opened
from everhash.cli.formatting import counted, shown
from everhash.cli.terminal import Bar
from everhash.collection.attachments import Attachment
from everhash.collection.collection import Collection
from everhash.errors import EverhashError, OptionError, StoreError
from everhash.index.entries import Entry

COLUMNS = ("id", "labels", "home", "code", "payload", "thumbnail")
GROUP, WEIGHT = 65_536, 64 << 20
"""Entries in a row group of a Parquet file, at most, and bytes of their thumbnails, about."""
TOGETHER = 1000
"""Entries whose attachments are read at a time."""
Row = tuple[Entry, Attachment]


def export(
    path: File,
    out: Annotated[
        Path,
        file_argument("New file: .parquet, .csv or .jsonl; .safetensors for the hasher."),
    ],
) -> None:
    """Write all entries to a table, or the hasher to a model file.

    A table has the columns id, labels, home, code, payload and thumbnail.
    Home is the cycle an unlabelled entry's bits belong to, code those bits:
    in hexadecimal, eight to a byte, the first of them in the lowest bit.
    Payloads are JSON, thumbnails base64; in Parquet they are bytes.

    Example: everhash export shop.ever shop.parquet
    """
    suffix = out.suffix.lower()
    if suffix not in (*WRITERS, ".safetensors"):
        endings = ", ".join((*WRITERS, ".safetensors"))
        raise OptionError(f"{out} has no ending that export knows", hint=f"use one of {endings}")
    with opened(path, readonly=True) as collection:
        if suffix == ".safetensors":
            with _whole_or_not_at_all(out) as partial:
                collection.hasher.save(partial)
            what = f"the hasher of {counted(len(collection.hasher.labels_), 'label')}"
        else:
            with (
                Bar("exporting", len(collection)) as bar,
                _whole_or_not_at_all(out) as partial,
            ):
                WRITERS[suffix](partial, collection, _rows(collection, bar))
            what = counted(len(collection), "entry", "entries")
    typer.echo(f"{what} in {shown(out)}")


@contextmanager
def _whole_or_not_at_all(out: Path) -> Iterator[Path]:
    """Give a file to write to that becomes `out` once it is complete."""
    if out.exists():
        raise StoreError(f"{out} is there already", hint="choose another name")
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.link(partial, out)  # unlike a rename it never replaces a file
    except OSError as error:
        if isinstance(error, EverhashError):
            raise
        raise StoreError(
            f"{out} cannot be written: {error.strerror or error}",
            hint="choose a folder you may write to, with room in it",
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def _rows(collection: Collection, bar: Bar) -> Iterator[Row]:
    """Go through all entries and what they carry."""
    entries = collection.entries()
    while some := list(islice(entries, TOGETHER)):
        carried = collection.attachments([entry.id for entry in some])
        yield from zip(some, carried, strict=True)
        bar.move(len(some))


def _code(entry: Entry) -> str | None:
    if entry.code is None:
        return None
    return np.packbits(entry.code, bitorder="little").tobytes().hex()


def _json(payload: Any) -> str | None:
    return None if payload is None else json.dumps(payload, ensure_ascii=False)


def _base64(thumbnail: bytes | None) -> str | None:
    return None if thumbnail is None else b64encode(thumbnail).decode()


def _write_csv(path: Path, _collection: Collection, rows: Iterator[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for entry, carried in rows:
            labels = json.dumps(entry.labels, default=str, ensure_ascii=False)
            ours = (entry.id, labels, entry.home, _code(entry))
            table.writerow((*ours, _json(carried.payload), _base64(carried.thumbnail)))


def _write_jsonl(path: Path, _collection: Collection, rows: Iterator[Row]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for entry, carried in rows:
            ours = (entry.id, entry.labels, entry.home, _code(entry))
            values = (*ours, carried.payload, _base64(carried.thumbnail))
            file.write(json.dumps(dict(zip(COLUMNS, values, strict=True)), default=str) + "\n")


def _write_parquet(path: Path, collection: Collection, rows: Iterator[Row]) -> None:
    try:
        pa: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise OptionError(
            "writing .parquet needs pyarrow, which is not installed",
            hint="pip install pyarrow, or export to .csv or .jsonl",
        ) from None
    # a column has one type: numbers where all are, else texts
    names = _plain if _all_numbers(entry.id for entry in collection.entries()) else str
    labels = _plain if _all_numbers(collection.hasher.labels_) else str
    kinds = {str: pa.string(), _plain: pa.int64()}
    ours = (kinds[names], pa.list_(kinds[labels]), pa.int32(), pa.string())
    types = (*ours, pa.string(), pa.binary())
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    with parquet.ParquetWriter(path, schema) as writer:
        for group in _groups(rows):
            columns = {
                "id": [names(entry.id) for entry, _ in group],
                "labels": [[labels(label) for label in entry.labels] for entry, _ in group],
                "home": [entry.home for entry, _ in group],
                "code": [_code(entry) for entry, _ in group],
                "payload": [_json(carried.payload) for _, carried in group],
                "thumbnail": [carried.thumbnail for _, carried in group],
            }
            writer.write_table(pa.table(columns, schema=schema))


def _groups(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Gather rows until they are many, or their thumbnails weigh much."""
    group: list[Row] = []
    weight = 0
    for row in rows:
        group.append(row)
        weight += len(row[1].thumbnail or b"")
        if len(group) == GROUP or weight > WEIGHT:
            yield group
            group, weight = [], 0
    if group:
        yield group


def _all_numbers(values: Iterable[Any]) -> bool:
    return all(type(value) is int and value in INT64 for value in values)


def _plain(value: Any) -> Any:
    return value


WRITERS = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_jsonl}
