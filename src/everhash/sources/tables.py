"""Tables: Parquet, Arrow, and whatever hands out Arrow data, such as a pandas or polars data frame.

All are read in record batches, so memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import FeatureTypeError, IdError, InputError, LabelError
from everhash.sources.batch import Batch
from everhash.sources.columns import (
    ColumnChoice,
    Kind,
    arrow,
    as_float32,
    choose,
    explained,
    place,
    ragged,
)
from everhash.sources.payload_values import WEIGHT, as_payloads

READ_AHEAD = 1 << 18
"""bytes of a Parquet column read at a time; left to itself, pyarrow holds the whole file"""

PIECE = 100
"""rows of a Parquet file read at a time where rows carry something: nobody knows how heavy it is"""

TYPES = {
    "lists": ("list", "large_list", "fixed_size_list"),
    "numbers": ("floating", "integer", "boolean"),
    "labels": ("floating", "integer", "boolean", "string", "large_string", "string_view", "null"),
    "ids": ("integer", "string", "large_string", "string_view"),
    "a picture's bytes": ("binary", "large_binary", "fixed_size_binary", "binary_view", "null"),
}
"""What Arrow calls the types that can hold these."""


def read_parquet(path: str, wanted: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read a Parquet file; of a row group, only what the next rows need is held."""
    pa = arrow()
    from pyarrow.parquet import ParquetFile

    with explained(path, "parquet", pa.ArrowException), pa.OSFile(path) as file:
        table = ParquetFile(file, pre_buffer=False, buffer_size=READ_AHEAD)
        features = choose(_kinds(table.schema_arrow), wanted, path)
        piece = min(rows, PIECE) if wanted.carried else rows
        batches = table.iter_batches(piece, columns=_needed(features, wanted))
        yield from convert(batches, features, wanted, rows, path)


def read_arrow(path: str, wanted: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read an Arrow IPC file or stream, a record batch at a time."""
    pa = arrow()
    with explained(path, "arrow", pa.ArrowException), pa.memory_map(path) as file:
        schema = _open_arrow(pa, file).schema
        features = choose(_kinds(schema), wanted, path)
        needed = map(schema.names.index, _needed(features, wanted))
        reader = _open_arrow(pa, file, included_fields=sorted(needed))
        count = getattr(reader, "num_record_batches", None)
        batches = reader if count is None else map(reader.get_batch, range(count))
        yield from convert(batches, features, wanted, rows, path)


def _open_arrow(pa: Any, file: Any, **options: Any) -> Any:
    file.seek(0)
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    how = pa.ipc.IpcReadOptions(**options)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file, options=how)


def _needed(features: list[str], wanted: ColumnChoice) -> list[str]:
    """Return all columns that are read, each once."""
    return list(dict.fromkeys([*features, *wanted.besides]))


def read_stream(source: Any, wanted: ColumnChoice, rows: int, where: str = "") -> Iterator[Batch]:
    """Read what hands out Arrow data: a Table, a RecordBatchReader, a data frame."""
    pa = arrow()
    with explained(where or type(source).__name__, "a table", pa.ArrowException):
        reader = pa.RecordBatchReader.from_stream(source)
        features = choose(_kinds(reader.schema), wanted, where)
        yield from convert(reader, features, wanted, rows, where)


def count_rows(path: str) -> int | None:
    """Return how many rows a Parquet or Arrow file says it has; an Arrow stream does not say."""
    pa = arrow()
    from pyarrow.parquet import read_metadata

    with explained(path, "a table", pa.ArrowException), pa.memory_map(path) as file:
        if path.lower().endswith(".parquet"):
            return int(read_metadata(file).num_rows)
        reader = _open_arrow(pa, file)
        return int(reader.count_rows()) if hasattr(reader, "count_rows") else None


def _kinds(schema: Any) -> list[tuple[str, Kind]]:
    """Return the columns of a schema; an index that pandas stored is no feature by default."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError, RecursionError):
        index = []
    return [(field.name, "other" if field.name in index else _kind(field.type)) for field in schema]


def _kind(kind: Any) -> Kind:
    while hasattr(kind, "storage_type") or _is(kind, "dictionary"):
        kind = kind.storage_type if hasattr(kind, "storage_type") else kind.value_type
    if _is(kind, "lists"):
        return "vectors" if _is(kind.value_type, "numbers") else "other"
    return "numbers" if _is(kind, "numbers") and not _is(kind, "boolean") else "other"


def _is(kind: Any, what: str) -> bool:
    return any(getattr(arrow().types, f"is_{name}")(kind) for name in TYPES.get(what, [what]))


def convert(
    batches: Iterable[Any], features: list[str], wanted: ColumnChoice, rows: int, where: str
) -> Iterator[Batch]:
    """Turn record batches into rows, at most `rows` at a time; fewer, where they carry much."""
    start, width = 0, None
    for table in _joined(batches, rows, wanted.carried):
        each = _weight(table, wanted.carried) // max(table.num_rows, 1)
        step = min(rows, max(1, WEIGHT // max(each, 1)))
        for offset in range(0, table.num_rows, step):
            cut = Cut(table.slice(offset, step), where, start)
            X = cut.features(features, width)
            y = None if wanted.label is None else cut.labels(wanted.label)
            ids = None if wanted.id is None else cut.ids(wanted.id)
            pictures = None if wanted.thumbnail is None else cut.thumbnails(wanted.thumbnail)
            yield Batch(X, y, ids, cut.payloads(wanted), pictures)
            start, width = start + len(X), X.shape[1]


def _joined(batches: Iterable[Any], rows: int, carried: list[str]) -> Iterator[Any]:
    """Gather record batches into tables of `rows` rows, or until what they carry weighs much."""
    group, held, weight = list[Any](), 0, 0
    for batch in batches:
        batch.validate(full=True)  # offsets stay inside their buffers, before anything follows them
        group.append(batch)
        held, weight = held + batch.num_rows, weight + _weight(batch, carried)
        if held >= rows or weight >= WEIGHT:
            yield arrow().Table.from_batches(group)
            group, held, weight = [], 0, 0
    if group:
        yield arrow().Table.from_batches(group)


def _weight(part: Any, columns: list[str]) -> int:
    """Return how many bytes some columns have."""
    return sum(part.column(name).nbytes for name in columns)


class Cut(NamedTuple):
    """Some rows of a table; `where` and `start` are for the messages."""

    table: Any
    where: str
    start: int

    def features(self, names: list[str], width: int | None) -> NDArray[np.float32]:
        """Return (n, d) from a column of vectors, `width` long if given, or columns of numbers."""
        if len(names) == 1 and _is(self._column(names[0]).type, "lists"):
            return self._vectors(names[0], width)
        table = np.empty((len(names), self.table.num_rows), np.float32)
        for j, name in enumerate(names):
            table[j] = self._numbers(name, self._column(name))
        return np.ascontiguousarray(table.T)

    def labels(self, name: str) -> list[Any] | NDArray[Any]:
        """Return a label a row: None for a null, a set for a list."""
        column = self._column(name)
        several = _is(column.type, "lists")
        kind = column.type.value_type if several else column.type
        self._expect(name, kind, "labels", LabelError)
        if _is(kind, "numbers") and not several and not column.null_count:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        values = column.to_pylist()
        return [v if v is None else set(v) for v in values] if several else list(values)

    def ids(self, name: str) -> list[int | str]:
        """Return an id a row."""
        column = self._column(name)
        self._no_null(name, column, error=IdError)
        self._expect(name, column.type, "ids", IdError)
        return list(column.to_pylist())

    def payloads(self, wanted: ColumnChoice) -> list[Any] | None:
        """Return a payload a row, or None if there are none to be."""
        columns = {name: self.table.column(name) for name in wanted.payload_columns}
        return as_payloads(columns, wanted, self.where, self.start)

    def thumbnails(self, name: str) -> list[bytes | None]:
        """Return a picture a row: bytes, or what Hugging Face has, a struct of bytes and a path."""
        column = self._column(name)
        if _is(column.type, "struct") and column.type.get_field_index("bytes") >= 0:
            import pyarrow.compute as pc

            column = pc.struct_field(column, "bytes")
        hint = "put the bytes of PNG, JPEG, GIF or WebP files there; no path is followed"
        self._expect(name, column.type, "a picture's bytes", InputError, hint)
        return list(column.to_pylist())

    def _column(self, name: str) -> Any:
        """Return a column without extension type and dictionary."""
        chunks = self.table.column(name)
        column = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
        while hasattr(column, "storage"):
            column = column.storage
        if _is(column.type, "dictionary"):
            is_view = _is(column.type.value_type, "string_view")  # which pyarrow cannot decode
            return arrow().array(column.to_pylist()) if is_view else column.dictionary_decode()
        return column

    def _vectors(self, name: str, width: int | None) -> NDArray[np.float32]:
        import pyarrow.compute as pc

        column = self._column(name)
        self._no_null(name, column)
        lengths = pc.list_value_length(column).to_numpy()
        d = int(lengths[0]) if width is None else width
        if (lengths != d).any():
            row = int(np.argmax(lengths != d))
            raise ragged(place(self.where, name, self.start + row), d, int(lengths[row]))
        return self._numbers(name, column.flatten(), d).reshape(len(column), d)

    def _numbers(self, name: str, values: Any, width: int = 1) -> NDArray[np.float32]:
        self._expect(name, values.type, "numbers", FeatureTypeError)
        self._no_null(name, values, width)
        return as_float32(values.to_numpy(zero_copy_only=False))

    def _expect(
        self, name: str, kind: Any, what: str, error: Any, hint: str = "name another, or cast it"
    ) -> None:
        if not _is(kind, what):
            raise error(f"{place(self.where, name)}expected {what}, got {kind!s:.80}", hint=hint)

    def _no_null(self, name: str, values: Any, width: int = 1, error: Any = InputError) -> None:
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
            at = place(self.where, name, self.start + row)
            raise error(f"{at}expected a value, got null", hint="drop or repair the row")
