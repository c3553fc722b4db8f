"""`read`: picks the reader for a source, and cuts its batches to one size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from everhash.errors import DataMissingError, InputError, OptionError
from everhash.sources import csvs, npy, tables
from everhash.sources.arrays import read_arrays
from everhash.sources.batch import Batch
from everhash.sources.columns import ColumnChoice, location, ragged
from everhash.sources.items import read_items


def read(
    source: Any,
    *,
    features: str | None = None,
    label: str | None = None,
    id: str | None = None,  # noqa: A002 - what people call it
    payload: str | Sequence[str] | None = None,
    thumbnail: str | None = None,
    rows: int = 10_000,
) -> Iterator[Batch]:
    """Read rows from `source`, at most `rows` at a time.

    Args:
        source: a path, arrays, a table, or an iterable of batches or rows; see `everhash.sources`.
        features: the column of vectors; or columns of numbers, as "f0,f1,f2" or "f*". By default
            the only column of vectors, otherwise all columns of numbers that have no other use.
        label: the column of labels; a list is several labels, a null is no label.
        id: the column of ids, integers or strings.
        payload: for files and tables, the column of payloads; several columns become an object
            without its gaps. `everhash.sources.payload_values` lists how types become JSON.
        thumbnail: for Parquet and Arrow files and tables, the column of images, as bytes.
        rows: the most rows of a batch; batches with large payloads or thumbnails are smaller.

    >>> [batch.y for batch in read(([[1, 2], [3, 4], [5, 6]], ["a", "b", "a"]), rows=2)]
    [['a', 'b'], ['a']]
    >>> shop = [{"sku": 7, "v": [0.5, 1]}, {"sku": 9, "v": [2, 3]}]
    >>> [(batch.X.tolist(), batch.ids) for batch in read(shop, id="sku")]
    [([[0.5, 1.0], [2.0, 3.0]], [7, 9])]
    """
    if not isinstance(rows, int) or rows < 1:
        raise OptionError(f"rows must be a positive integer, got {rows!r:.80}")
    names = payload if payload is None or isinstance(payload, str) else tuple(payload)
    choice = ColumnChoice(features, label, id, names or None, thumbnail)
    return _cut(_open(source, choice, rows), rows)


def _open(source: Any, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Return the batches of a source, as its reader gives them."""
    if isinstance(source, str | os.PathLike):
        path = _existing(source)
        found = FORMATS[path.suffix.lower()][0](str(path), choice, rows)
    elif hasattr(source, "__arrow_c_stream__"):
        found = tables.read_stream(source, choice, rows)
    elif choice.attached:
        message = f"only files and tables have payload columns, got {type(source).__name__}"
        raise InputError(message, hint="pass them to ingest as payloads= and thumbnails=")
    elif isinstance(source, tuple) or hasattr(source, "ndim"):
        found = read_arrays(source if isinstance(source, tuple) else (source,), choice, rows)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray):
        found = read_items([source] if isinstance(source, Mapping) else source, choice, rows)
    else:
        message = f"expected a path, arrays, a table or an iterable, got {type(source).__name__}"
        raise InputError(message, hint="pass a file's name, (X, y, ids), or an iterable of these")
    return found


def _cut(found: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """Cut batches to at most `rows` rows; raise if one is wider or narrower than the first."""
    width, seen = None, 0
    for batch in found:
        n, d = batch.X.shape
        width = d if width is None else width
        if d != width:
            raise ragged(location("", row=seen), width, d)
        for start in range(0, n, rows):
            yield batch.part(slice(start, start + rows))
        seen += n


def count_rows(source: Any) -> int | None:
    """Return how many rows a source has, or None if that needs reading all of it.

    >>> count_rows(([[1, 2], [3, 4]], ["a", "b"]))
    2
    """
    if isinstance(source, str | os.PathLike):
        path = _existing(source)
        try:
            return FORMATS[path.suffix.lower()][1](str(path))
        except InputError:
            return None  # reading it raises the error
    if isinstance(source, tuple) or hasattr(source, "ndim"):
        return len(source[0] if isinstance(source, tuple) else source)
    return int(source.num_rows) if hasattr(source, "num_rows") else None


def _existing(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path}: expected a file, got a directory", hint="name a file in it")
    if path.suffix.lower() not in FORMATS:
        message = f"{path}: expected a name in {', '.join(FORMATS)}, got {path.suffix!r}"
        raise InputError(message, hint="convert it, or read it yourself and pass arrays or batches")
    if not path.exists():
        raise DataMissingError(f"no file at {path}", hint="check the path")
    return path


FORMATS: dict[str, tuple[Callable[..., Iterator[Batch]], Callable[[str], int | None]]] = {
    ".npy": (npy.read_npy, npy.count_npy),
    ".npz": (npy.read_npz, npy.count_npz),
    ".parquet": (tables.read_parquet, tables.count_rows),
    ".arrow": (tables.read_arrow, tables.count_rows),
    ".feather": (tables.read_arrow, tables.count_rows),
    ".csv": (csvs.read_csv, lambda _path: None),
}
