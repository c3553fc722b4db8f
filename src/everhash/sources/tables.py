"""Readers of Parquet and Arrow files, and of objects that export Arrow data, like data frames.

All are read in record batches, so memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from everhash.sources.batch import Batch
from everhash.sources.columns import ColumnChoice, Kind, Taken, arrow, choose, explained
from everhash.sources.payload_values import MAX_BATCH_BYTES
from everhash.sources.table_slices import TableSlice, is_type

READ_AHEAD = 1 << 18
"""Bytes of a Parquet column read at a time; by default pyarrow holds the whole file."""

PARQUET_ROWS = 100
"""Rows of a Parquet file read at a time with payloads or thumbnails, whose size is not known."""


def read_parquet(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read a Parquet file; only the part of a row group that the next rows need is in memory."""
    pa = arrow()
    from pyarrow.parquet import ParquetFile

    with explained(path, "parquet", pa.ArrowException), pa.OSFile(path) as file:
        table = ParquetFile(file, pre_buffer=False, buffer_size=READ_AHEAD)
        taken = choose(_kinds(table.schema_arrow), choice, path)
        size = min(rows, PARQUET_ROWS) if taken.choice.attached else rows
        batches = table.iter_batches(size, columns=taken.needed)
        yield from convert(batches, taken, rows, path)


def read_arrow(path: str, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Read an Arrow IPC file or stream, a record batch at a time."""
    pa = arrow()
    with explained(path, "arrow", pa.ArrowException), pa.memory_map(path) as file:
        schema = _open_arrow(pa, file).schema
        taken = choose(_kinds(schema), choice, path)
        needed = map(schema.names.index, taken.needed)
        reader = _open_arrow(pa, file, included_fields=sorted(needed))
        count = getattr(reader, "num_record_batches", None)
        batches = reader if count is None else map(reader.get_batch, range(count))
        yield from convert(batches, taken, rows, path)


def _open_arrow(pa: Any, file: Any, **options: Any) -> Any:
    file.seek(0)
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    how = pa.ipc.IpcReadOptions(**options)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file, options=how)


def read_stream(source: Any, choice: ColumnChoice, rows: int, where: str = "") -> Iterator[Batch]:
    """Read an object that exports Arrow data: a Table, a RecordBatchReader, a data frame."""
    pa = arrow()
    with explained(where or type(source).__name__, "a table", pa.ArrowException):
        reader = pa.RecordBatchReader.from_stream(source)
        taken = choose(_kinds(reader.schema), choice, where)
        yield from convert(reader, taken, rows, where)


def file_columns(path: str) -> list[tuple[str, Kind]]:
    """Return the columns of a Parquet or Arrow file, and what each holds."""
    pa = arrow()
    from pyarrow.parquet import read_schema

    with explained(path, "a table", pa.ArrowException), pa.memory_map(path) as file:
        is_parquet = path.lower().endswith(".parquet")
        return _kinds(read_schema(file) if is_parquet else _open_arrow(pa, file).schema)


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
    while hasattr(kind, "storage_type") or is_type(kind, "dictionary"):
        kind = kind.storage_type if hasattr(kind, "storage_type") else kind.value_type
    if is_type(kind, "lists"):
        return "vectors" if is_type(kind.value_type, "numbers") else "other"
    if is_type(kind, "the bytes of an image") and not is_type(kind, "null"):
        return "bytes"
    if is_type(kind, "struct") and kind.get_field_index("bytes") >= 0:
        return "bytes"
    return "numbers" if is_type(kind, "numbers") and not is_type(kind, "boolean") else "other"


def convert(batches: Iterable[Any], taken: Taken, rows: int, where: str) -> Iterator[Batch]:
    """Convert record batches to batches of at most `rows` rows; fewer if payloads are large."""
    features, choice = taken
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
