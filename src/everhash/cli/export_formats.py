"""Tables of entries in the formats that `everhash export` writes and `everhash ingest` reads.

Columns are called as `everhash.sources` takes them by default. Where values of a column are of
several types, such as the ids 7 and "a", Parquet and Arrow files have them as JSON.
"""

from __future__ import annotations

import csv
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.collection.attachments import Attachment
from everhash.collection.collection import Collection
from everhash.collection.typed import INT64
from everhash.index.entries import Entry
from everhash.sources.columns import arrow
from everhash.sources.csvs import INTEGERS
from everhash.sources.table_slices import json_field
from everhash.wire.labels import label_to_json

MAX_GROUP_ROWS, MAX_GROUP_BYTES = 65_536, 64 << 20
"""Limits of a row group in a Parquet file: entries, and bytes of features and thumbnails."""


class EntryRow(NamedTuple):
    """An entry with what belongs to it."""

    entry: Entry
    attached: Attachment
    features: NDArray[np.float32] | None


@dataclass(frozen=True)
class Table:
    """What is known of all rows before the first is written."""

    dim: int
    keep_features: str
    labelled: int
    id_type: str
    """Either int, str, or json if both are there."""
    label_type: str

    @classmethod
    def of(cls, collection: Collection) -> Table:
        """Look at all entries of a collection."""
        stats = collection.stats()
        names = (info.label for info in collection.labels())
        ids = (entry.id for entry in collection.entries())
        kept = stats["keep_features"], stats["labelled"]
        return cls(stats["dim"], *kept, _type_of(ids), _type_of(names))

    def losses(self, suffix: str, rows: Iterator[EntryRow]) -> Iterator[str]:
        """Yield what is not in the file, or will not be read back."""
        if self.keep_features == "none" or (self.keep_features == "unlabelled" and self.labelled):
            whose = "all" if self.keep_features == "none" else "labelled"
            yield f"features of {whose} entries are not kept, so ingest cannot read them back"
        if suffix == ".csv":
            ids, pictures = [], False
            for entry, attached, _ in rows:
                ids.append(entry.id)
                pictures = pictures or attached.thumbnail is not None
            if pictures:
                yield "a CSV has no thumbnails; .parquet, .arrow and .jsonl do"
            if not _ids_survive(ids):
                yield "a CSV does not tell ids such as 7 and '7' apart; .parquet and .jsonl do"


def _type_of(values: Iterable[Any]) -> str:
    """Return the type that all values have, "json" if they differ or are of another."""
    kinds = {_kind(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else "json" if kinds else "str"


def _kind(value: Any) -> str:
    if type(value) is int and value in INT64:
        return "int"
    return "str" if isinstance(value, str) else "json"


def _ids_survive(ids: list[Any]) -> bool:
    """Whether a CSV gives ids back: as numbers if all cells look like numbers, else as texts."""
    are_numbers = all(re.match(INTEGERS[0][0], str(value)) for value in ids)
    return all(isinstance(value, int if are_numbers else str) for value in ids)


# Lines


def _code(entry: Entry) -> str | None:
    if entry.code is None:
        return None
    return np.packbits(entry.code, bitorder="little").tobytes().hex()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _labels(entry: Entry) -> list[Any]:
    return [label_to_json(label) for label in entry.labels]


def _guess(entry: Entry) -> Any:
    return None if entry.guess is None else label_to_json(entry.guess)


def _short(features: NDArray[np.float32]) -> list[float]:
    """Return numbers with the nine digits that tell any two of them apart."""
    return [float(f"{value:.9g}") for value in features.tolist()]


def _write_csv(path: Path, table: Table, rows: Iterator[EntryRow]) -> None:
    columns = [f"f{i}" for i in range(table.dim)]
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("id", "labels", "payload", "guess", "home", "code", *columns))
        for entry, attached, features in rows:
            payload = None if attached.payload is None else _json(attached.payload)
            guess = _guess(entry)
            cells = (entry.id, _json(_labels(entry)), payload, guess, entry.home, _code(entry))
            numbers = [None] * table.dim if features is None else _short(features)
            lines.writerow((*cells, *numbers))


def _write_jsonl(path: Path, _table: Table, rows: Iterator[EntryRow]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for entry, attached, features in rows:
            picture = attached.thumbnail
            line = {
                "id": entry.id,
                "labels": _labels(entry),
                "features": None if features is None else _short(features),
                "payload": attached.payload,
                "thumbnail": None if picture is None else b64encode(picture).decode(),
                "guess": _guess(entry),
                "home": entry.home,
                "code": _code(entry),
            }
            file.write(f"{_json(line)}\n")


# Arrow


def _schema(table: Table) -> Any:
    pa = arrow()
    types = {"int": pa.int64(), "str": pa.string()}

    def field(name: str, kind: str, *, several: bool = False) -> Any:
        if kind == "json":
            return json_field(name)
        return pa.field(name, pa.list_(types[kind]) if several else types[kind])

    return pa.schema(
        [
            field("id", table.id_type),
            field("labels", table.label_type, several=True),
            pa.field("features", pa.list_(pa.float32(), table.dim)),
            json_field("payload"),
            pa.field("thumbnail", pa.binary()),
            field("guess", table.label_type),
            pa.field("home", pa.int32()),
            pa.field("code", pa.string()),
        ]
    )


def _record_batch(table: Table, schema: Any, rows: list[EntryRow]) -> Any:
    entries = [row.entry for row in rows]
    payloads = [row.attached.payload for row in rows]
    ids = [entry.id for entry in entries]
    labels: list[Any] = [_labels(entry) for entry in entries]
    guesses = [_guess(entry) for entry in entries]
    if table.label_type == "json":
        labels, guesses = list(map(_json, labels)), [g if g is None else _json(g) for g in guesses]
    columns = [
        list(map(_json, ids)) if table.id_type == "json" else ids,
        labels,
        [row.features for row in rows],
        [None if payload is None else _json(payload) for payload in payloads],
        [row.attached.thumbnail for row in rows],
        guesses,
        [entry.home for entry in entries],
        [_code(entry) for entry in entries],
    ]
    pa = arrow()
    pairs = zip(columns, schema.types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in pairs], schema=schema)


def _write_parquet(path: Path, table: Table, rows: Iterator[EntryRow]) -> None:
    schema = _schema(table)
    from pyarrow import parquet

    with parquet.ParquetWriter(path, schema) as writer:
        for group in _groups(rows):
            writer.write_batch(_record_batch(table, schema, group))


def _write_arrow(path: Path, table: Table, rows: Iterator[EntryRow]) -> None:
    schema = _schema(table)
    with arrow().OSFile(str(path), "wb") as file, arrow().ipc.new_file(file, schema) as writer:
        for group in _groups(rows):
            writer.write_batch(_record_batch(table, schema, group))


def _groups(rows: Iterator[EntryRow]) -> Iterator[list[EntryRow]]:
    """Collect rows until a row group is full."""
    group: list[EntryRow] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.attached.thumbnail or b"")
        size += 0 if row.features is None else row.features.nbytes
        if len(group) == MAX_GROUP_ROWS or size > MAX_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


WRITERS: dict[str, Callable[[Path, Table, Iterator[EntryRow]], None]] = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".jsonl": _write_jsonl,
    ".csv": _write_csv,
}
