"""`read`: picks the reader for a source, and cuts its batches to one size."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from everhash.errors import DataMissingError, InputError, OptionError
from everhash.sources import csvs, jsonl, npy, tables
from everhash.sources.arrays import read_arrays
from everhash.sources.batch import Batch
from everhash.sources.columns import ColumnChoice, Taken, choose, location
from everhash.sources.items import read_items
from everhash.tabular import ragged

PATTERN = frozenset("*?[")
"""Characters that make a path a pattern of several."""


def read(
    source: Any,
    *,
    features: str | None = None,
    label: str | None = None,
    id: str | None = None,  # noqa: A002 - what people call it
    payload: str | Sequence[str] | None = None,
    thumbnail: str | None = None,
    batch_rows: int = 10_000,
) -> Iterator[Batch]:
    """Read rows from `source`, at most `batch_rows` at a time.

    Columns that are not named are taken by their names, as `everhash export` writes them: features,
    labels or label, id, payload, thumbnail. An empty name takes none.

    Args:
        source: a path or a pattern such as "data/*.parquet", arrays, a table, a mapping, or an
            iterable of batches or rows; see `everhash.sources`.
        features: the column of vectors; or columns of numbers, as "f0,f1,f2" or "f*". By default
            the only column of vectors, otherwise numbered columns such as e0, e1, e2, otherwise all
            columns of numbers that have no other use. Other numbers beside numbered columns are an
            error: name the features then.
        label: the column of labels; a list is several labels, a null is no label.
        id: the column of ids, integers or strings.
        payload: the column of payloads; several columns become an object without its gaps.
            `everhash.sources.payload_values` lists how types become JSON.
        thumbnail: the column of images: bytes, in JSON lines base64.
        batch_rows: the most rows of a batch; batches with large payloads or thumbnails are smaller.

    >>> [batch.y for batch in read(([[1, 2], [3, 4], [5, 6]], ["a", "b", "a"]), batch_rows=2)]
    [['a', 'b'], ['a']]
    >>> shop = [{"sku": 7, "v": [0.5, 1]}, {"sku": 9, "v": [2, 3]}]
    >>> [(batch.X.tolist(), batch.ids) for batch in read(shop, id="sku")]
    [([[0.5, 1.0], [2.0, 3.0]], [7, 9])]
    """
    if not isinstance(batch_rows, int) or batch_rows < 1:
        raise OptionError(f"batch_rows must be a positive integer, got {batch_rows!r:.80}")
    choice = _choice(features, label, id, payload, thumbnail)
    return _cut(_open(source, choice, batch_rows), batch_rows)


def infer(
    path: str | os.PathLike[str],
    *,
    features: str | None = None,
    label: str | None = None,
    id: str | None = None,  # noqa: A002 - what people call it
    payload: str | Sequence[str] | None = None,
    thumbnail: str | None = None,
) -> Taken | None:
    """Return the columns that `read` takes of a file; None if it has no columns to choose from.

    The arguments are those of `read`. A .npy has no columns, nor has an empty file.
    """
    file = existing(path)
    choice = _choice(features, label, id, payload, thumbnail)
    columns = FORMATS[file.suffix.lower()].columns
    if columns is None:
        return None
    found = columns(str(file))
    if file.suffix.lower() == ".npz":
        return npy.npz_choice(found, choice, str(file))
    return choose(found, choice, str(file)) if found else None


def _choice(features: Any, label: Any, name: Any, payload: Any, thumbnail: Any) -> ColumnChoice:
    names = payload if payload is None or isinstance(payload, str) else tuple(payload) or None
    return ColumnChoice(features or None, label, name, names, thumbnail)


def _open(source: Any, choice: ColumnChoice, rows: int) -> Iterator[Batch]:
    """Return the batches of a source, as its reader gives them."""
    if isinstance(source, str | os.PathLike):
        paths = expand(source)
        opened = (FORMATS[path.suffix.lower()].read(str(path), choice, rows) for path in paths)
        found: Iterator[Batch] = chain.from_iterable(opened)
    elif hasattr(source, "__arrow_c_stream__") and getattr(source, "ndim", 2) == 2:
        found = tables.read_stream(source, choice, rows)
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
        try:
            counts = [FORMATS[path.suffix.lower()].count_rows(str(path)) for path in expand(source)]
        except InputError:
            return None  # reading it raises the error
        known = [n for n in counts if n is not None]
        return sum(known) if len(known) == len(counts) else None
    if isinstance(source, tuple) or hasattr(source, "ndim"):
        return len(source[0] if isinstance(source, tuple) else source)
    return int(source.num_rows) if hasattr(source, "num_rows") else None


def expand(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path names: itself, or those that match it as a pattern, sorted."""
    if PATTERN.isdisjoint(os.fspath(source)) or os.path.lexists(source):
        return [existing(source)]
    found = sorted(glob.glob(os.fspath(source), recursive=True))
    if not found:
        raise DataMissingError(f"no file matches {os.fspath(source)}", hint="check the pattern")
    return [existing(path) for path in found]


def existing(source: str | os.PathLike[str]) -> Path:
    """Return the path of a file that can be read; raise if there is none."""
    path = Path(source)
    if path.is_dir():
        message = f"{path}: expected a file, got a directory"
        raise InputError(message, hint=f"name its files, as in '{path / '*.parquet'}'")
    if path.suffix.lower() not in FORMATS:
        message = f"{path}: expected a name in {', '.join(FORMATS)}, got {path.suffix!r}"
        raise InputError(message, hint="convert it, or read it yourself and pass arrays or batches")
    if not path.exists():
        raise DataMissingError(f"no file at {path}", hint="check the path")
    return path


class Format(NamedTuple):
    """How files of one ending are read."""

    read: Callable[[str, ColumnChoice, int], Iterator[Batch]]
    count_rows: Callable[[str], int | None]
    """Rows of a file, None if that needs reading all of it."""
    columns: Callable[[str], list[Any]] | None
    """Its columns and what they hold; for a .npz the names of its arrays. None if it has none."""


def _uncounted(_path: str) -> int | None:
    return None


FORMATS: dict[str, Format] = {
    ".npy": Format(npy.read_npy, npy.count_npy, None),
    ".npz": Format(npy.read_npz, npy.count_npz, npy.npz_arrays),
    ".parquet": Format(tables.read_parquet, tables.count_rows, tables.file_columns),
    ".arrow": Format(tables.read_arrow, tables.count_rows, tables.file_columns),
    ".feather": Format(tables.read_arrow, tables.count_rows, tables.file_columns),
    ".csv": Format(csvs.read_csv, _uncounted, csvs.csv_columns),
    ".jsonl": Format(jsonl.read_jsonl, _uncounted, jsonl.jsonl_columns),
    ".ndjson": Format(jsonl.read_jsonl, _uncounted, jsonl.jsonl_columns),
}
