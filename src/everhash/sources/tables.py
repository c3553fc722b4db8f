"""Readers of Parquet and Arrow files, and of objects that export Arrow data, like data frames.

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
    location,
    ragged,
)
from everhash.sources.payload_values import MAX_BATCH_BYTES, as_payloads

READ_AHEAD = 1 << 18
"""Bytes of a Parquet column read at a time; by default pyarrow holds the whole file."""

PARQUET_ROWS = 100
"""Rows of a Parquet file read at a time with payloads or thumbnails, whose size is not known."""

TYPES = {
    "lists": ("list", "large_list", "fixed_size_list"),
    "numbers": ("floating", "integer", "boolean"),
    "labels": ("floating", "integer", "boolean", "string", "large_string", "string_view", "null"),
    "ids": ("integer", "string", "large_string", "string_view"),
    "the bytes of an image": ("binary", "large_binary", "fixed_size_binary", "binary_view", "null"),
}
"""Arrow types that can hold each of these."""


def read_parquet(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read a Parquet file; only the part of a row group that the next rows need is in memory."""
    pa = arrow()
    from pyarrow.parquet import ParquetFile

    with explained(path, "parquet", pa.ArrowException), pa.OSFile(path) as file:
        table = ParquetFile(file, pre_buffer=False, buffer_size=READ_AHEAD)
        features = choose(_kinds(table.schema_arrow), choice, path)
        size = min(rows, PARQUET_ROWS) if choice.attached else rows
        batches = table.iter_batches(size, columns=_needed(features, choice))
        yield from convert(batches, features, choice, rows, path)


def read_arrow(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read an Arrow IPC file or stream, a record batch at a time."""
    pa = arrow()
    with explained(path, "arrow", pa.ArrowException), pa.memory_map(path) as file:
        schema = _open_arrow(pa, file).schema
        features = choose(_kinds(schema), choice, path)
        needed = map(schema.names.index, _needed(features, choice))
        reader = _open_arrow(pa, file, included_fields=sorted(needed))
        count = getattr(reader, "num_record_batches", None)
        batches = reader if count is None else map(reader.get_batch, range(count))
        yield from convert(batches, features, choice, rows, path)


def _open_arrow(pa: Any, file: Any, **options: Any) -> Any:
    file.seek(0)
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    how = pa.ipc.IpcReadOptions(**options)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file, options=how)


def _needed(features: list[str], choice: ColumnChoice) -> list[str]:
    """Return all columns to read, each once."""
    return list(dict.fromkeys([*features, *choice.others]))


def read_stream(source: Any, choice: ColumnChoice, rows: int, where: str = "") -> Iterator[Batch]:
    """Read an object that exports Arrow data: a Table, a RecordBatchReader, a data frame."""
    pa = arrow()
    with explained(where or type(source).__name__, "a table", pa.ArrowException):
        reader = pa.RecordBatchReader.from_stream(source)
        features = choose(_kinds(reader.schema), choice, where)
        yield from convert(reader, features, choice, rows, where)


def count_rows(path: str) -> int | None:
    """Return how many rows a Parquet or Arrow file says it has; None for an Arrow stream."""
    pa = arrow()
    from pyarrow.parquet import read_metadata

    with explained(path, "a table", pa.ArrowException), pa.memory_map(path) as file:
        if path.lower().endswith(".parquet"):
            return int(read_metadata(file).num_rows)
        reader = _open_arrow(pa, file)
        return int(reader.count_rows()) if hasattr(reader, "count_rows") else None


def _kinds(schema: Any) -> list[tuple[str, Kind]]:
    """Return the kind of each column; an index stored by pandas is no feature by default."""
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
    batches: Iterable[Any], features: list[str], choice: ColumnChoice, rows: int, where: str
) -> Iterator[Batch]:
    """Convert record batches to batches of at most `rows` rows; fewer if payloads are large."""
    start, width = 0, None
    for table in _joined(batches, rows, choice.attached):
        row_bytes = _bytes(table, choice.attached) // max(table.num_rows, 1)
        step = min(rows, max(1, MAX_BATCH_BYTES // max(row_bytes, 1)))
        for offset in range(0, table.num_rows, step):
            part = TableSlice(table.slice(offset, step), where, start)
            X = part.features(features, width)
            y = None if choice.label is None else part.labels(choice.label)
            ids = None if choice.id is None else part.ids(choice.id)
            thumbnails = None if choice.thumbnail is None else part.thumbnails(choice.thumbnail)
            yield Batch(X, y, ids, part.payloads(choice), thumbnails)
            start, width = start + len(X), X.shape[1]


def _joined(batches: Iterable[Any], rows: int, attached: list[str]) -> Iterator[Any]:
    """Join record batches to tables of at least `rows` rows, or of `MAX_BATCH_BYTES`."""
    group, n, size = list[Any](), 0, 0
    for batch in batches:
        batch.validate(full=True)  # offsets must point into their buffers before they are used
        group.append(batch)
        n, size = n + batch.num_rows, size + _bytes(batch, attached)
        if n >= rows or size >= MAX_BATCH_BYTES:
            yield arrow().Table.from_batches(group)
            group, n, size = [], 0, 0
    if group:
        yield arrow().Table.from_batches(group)


def _bytes(part: Any, columns: list[str]) -> int:
    """Return how many bytes some columns take."""
    return sum(part.column(name).nbytes for name in columns)


class TableSlice(NamedTuple):
    """Some rows of a table; `where` and `start` are for error messages."""

    table: Any
    where: str
    start: int

    def features(self, names: list[str], width: int | None) -> NDArray[np.float32]:
        """Return (n, d) features from a column of vectors, of `width` if given, or of numbers."""
        if len(names) == 1 and _is(self._column(names[0]).type, "lists"):
            return self._vectors(names[0], width)
        table = np.empty((len(names), self.table.num_rows), np.float32)
        for j, name in enumerate(names):
            table[j] = self._numbers(name, self._column(name))
        return np.ascontiguousarray(table.T)

    def labels(self, name: str) -> list[Any] | NDArray[Any]:
        """Return a label a row: a set for a list, None for a null."""
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

    def payloads(self, choice: ColumnChoice) -> list[Any] | None:
        """Return a payload a row, or None if no column of payloads is named."""
        columns = {name: self.table.column(name) for name in choice.payload_columns}
        return as_payloads(columns, choice, self.where, self.start)

    def thumbnails(self, name: str) -> list[bytes | None]:
        """Return an image a row, from bytes or Hugging Face's struct of bytes and a path."""
        column = self._column(name)
        if _is(column.type, "struct") and column.type.get_field_index("bytes") >= 0:
            import pyarrow.compute as pc

            column = pc.struct_field(column, "bytes")
        hint = "store the bytes of PNG, JPEG, GIF or WebP files; paths are not followed"
        self._expect(name, column.type, "the bytes of an image", InputError, hint)
        return list(column.to_pylist())

    def _column(self, name: str) -> Any:
        """Return a column without extension type and dictionary."""
        chunks = self.table.column(name)
        column = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
        while hasattr(column, "storage"):
            column = column.storage
        if _is(column.type, "dictionary"):
            is_view = _is(column.type.value_type, "string_view")  # pyarrow cannot decode it
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
            raise ragged(location(self.where, name, self.start + row), d, int(lengths[row]))
        return self._numbers(name, column.flatten(), d).reshape(len(column), d)

    def _numbers(self, name: str, values: Any, width: int = 1) -> NDArray[np.float32]:
        self._expect(name, values.type, "numbers", FeatureTypeError)
        self._no_null(name, values, width)
        return as_float32(values.to_numpy(zero_copy_only=False))

    def _expect(
        self, name: str, kind: Any, what: str, error: Any, hint: str = "name another, or cast it"
    ) -> None:
        if not _is(kind, what):
            raise error(f"{location(self.where, name)}expected {what}, got {kind!s:.80}", hint=hint)

    def _no_null(self, name: str, values: Any, width: int = 1, error: Any = InputError) -> None:
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
            at = location(self.where, name, self.start + row)
            raise error(f"{at}expected a value, got null", hint="drop or repair the row")
