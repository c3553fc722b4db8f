"""Tables: which columns hold the features, the label and the id, and Arrow columns as rows.

Files and whatever hands out Arrow data (a pyarrow Table, a pandas or polars data frame) are read in
record batches, so memory does not grow with the table. pyarrow is imported on first use. Rows are
numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import EverhashError, FeatureTypeError, IdError, InputError, LabelError

Kind = Literal["vectors", "numbers", "other"]
"""What a column holds: a list of numbers a row, a number a row, or anything else."""
Rows = tuple[NDArray[np.float32], "list[Any] | NDArray[Any] | None", "list[int | str] | None"]
"""Features, labels and ids of some rows."""
READ_AHEAD = 1 << 20
"""bytes of a Parquet column read at a time; pyarrow would hold the whole file by default"""


class Wanted(NamedTuple):
    """The columns the user named."""

    features: str | None = None
    label: str | None = None
    id: str | None = None


class Chosen(NamedTuple):
    """The columns to read."""

    features: tuple[str, ...]
    label: str | None
    id: str | None

    @property
    def names(self) -> list[str]:
        """Every column once."""
        named = (*self.features, self.label, self.id)
        return list(dict.fromkeys(name for name in named if name is not None))


def choose(columns: Iterable[tuple[str, Kind]], wanted: Wanted, where: str) -> Chosen:
    """Pick the columns: those named; features by default the only vectors, or else all numbers.

    >>> columns = [("sku", "numbers"), ("v", "vectors"), ("price", "numbers")]
    >>> choose(columns, Wanted(id="sku"), "shop.parquet").features
    ('v',)
    """
    columns = list(columns)
    names = [name for name, _ in columns]
    for name in (wanted.label, wanted.id):
        if name is not None and name not in names:
            raise missing(name, names, where)
    free = [(name, kind) for name, kind in columns if name not in wanted[1:]]
    if wanted.features is None:
        features = _default_features(free, names, where)
    else:
        features = matching(wanted.features, names, wanted)
    if not features:
        raise missing(str(wanted.features), names, where)
    chosen = Chosen(tuple(features), wanted.label, wanted.id)
    for name in chosen.names:
        if names.count(name) > 1:
            raise InputError(
                f"{place(where)}{names.count(name)} columns are called {name!r}",
                hint="give each column a name of its own",
            )
    return chosen


def _default_features(free: list[tuple[str, Kind]], names: list[str], where: str) -> list[str]:
    vectors = [name for name, kind in free if kind == "vectors"]
    if len(vectors) > 1:
        raise InputError(
            f"{place(where)}{len(vectors)} columns hold vectors: {listed(vectors)}",
            hint=f"say which one, as in features={vectors[0]!r}",
        )
    features = vectors or [name for name, kind in free if kind == "numbers"]
    if not features:
        raise InputError(
            f"{place(where)}expected a column of vectors or columns of numbers, got none",
            hint=f"the columns are {listed(names)}",
        )
    return features


def matching(features: str, names: Sequence[str], wanted: Wanted) -> list[str]:
    """Return the columns that a name, a glob or a comma-separated list of them means.

    A list keeps its order and a glob that of the table; no glob means the label or the id.

    >>> matching("b,f*", ["f1", "f0", "fid", "b"], Wanted(id="fid"))
    ['b', 'f1', 'f0']
    """
    if features in names:
        return [features]
    found: list[str] = []
    for part in (part.strip() for part in features.split(",")):
        free = (name for name in names if name not in wanted[1:] and fnmatchcase(name, part))
        matches = [part] if part in names else list(free)
        if not matches:
            return []
        found += matches
    return list(dict.fromkeys(found))


def missing(name: str, names: Sequence[str], where: str) -> InputError:
    """Return the error for a column that is not there."""
    return InputError(f"{place(where)}no column {name!r}", hint=f"the columns are {listed(names)}")


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message, the first few of many.

    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    text = ", ".join(f"{name!r:.80}" for name in names[:most]) or "none"
    return f"{text} and {len(names) - most} more" if len(names) > most else text


def place(where: str, column: str | None = None, row: int | None = None) -> str:
    """Return the place of a fault, as the beginning of a message about it.

    >>> place("shop.csv", "price", 7), place("", row=7)
    ("shop.csv: column 'price', row 7: ", 'row 7: ')
    """
    inside = [f"column {column!r:.80}"] if column is not None else []
    inside += [f"row {row}"] if row is not None else []
    return "".join(f"{part}: " for part in (where, ", ".join(inside)) if part)


def ragged(at: str, expected: int, got: int) -> InputError:
    """Return the error for a row that is longer or shorter than those before it."""
    return InputError(
        f"{at}expected {expected} features as in the rows before, got {got}",
        hint="embed all rows with one model; drop or repair the row",
    )


def as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as contiguous float32; what does not fit becomes infinity."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def arrow() -> Any:
    """Return the pyarrow module."""
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            "reading tables needs pyarrow, which is not installed", hint="pip install pyarrow"
        ) from None
    return pyarrow


@contextmanager
def explained(where: str, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn what a reader raises about something bad into one line that names it."""
    try:
        yield
    except EverhashError:
        raise
    except (OSError, ValueError, KeyError, EOFError, *errors) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{place(where)}cannot be read as {kind}: {reason:.200}",
            hint="it is damaged or of another kind; write it again",
        ) from None


def read_parquet(path: str, wanted: Wanted, rows: int) -> Iterator[Rows]:
    """Read a Parquet file; of a row group, only what the next rows need is held."""
    pa = arrow()
    from pyarrow.parquet import ParquetFile

    with explained(path, "parquet", pa.ArrowException), pa.OSFile(path) as file:
        table = ParquetFile(file, pre_buffer=False, buffer_size=READ_AHEAD)
        chosen = choose(_kinds(table.schema_arrow), wanted, path)
        yield from convert(table.iter_batches(rows, columns=chosen.names), chosen, path, rows)


def read_arrow(path: str, wanted: Wanted, rows: int) -> Iterator[Rows]:
    """Read an Arrow IPC file or stream, a record batch at a time."""
    pa = arrow()
    with explained(path, "arrow", pa.ArrowException), pa.memory_map(path) as file:
        reader = _open_arrow(pa, file)
        chosen = choose(_kinds(reader.schema), wanted, path)
        if hasattr(reader, "get_batch"):
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            batches = iter(reader)
        yield from convert(_sound(batches), chosen, path, rows)


def _open_arrow(pa: Any, file: Any) -> Any:
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    return pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)


def count_rows(path: str) -> int | None:
    """Return how many rows a Parquet or Arrow file says it has; a stream does not say."""
    pa = arrow()
    kind = "parquet" if path.lower().endswith(".parquet") else "arrow"
    with explained(path, kind, pa.ArrowException), pa.memory_map(path) as file:
        if kind == "parquet":
            from pyarrow.parquet import read_metadata

            return int(read_metadata(file).num_rows)
        reader = _open_arrow(pa, file)
        return int(reader.count_rows()) if hasattr(reader, "count_rows") else None


def read_stream(source: Any, wanted: Wanted, rows: int, where: str = "") -> Iterator[Rows]:
    """Read what hands out Arrow data: a Table, a RecordBatchReader, a data frame."""
    pa = arrow()
    with explained(where or type(source).__name__, "a table", pa.ArrowException):
        reader = pa.RecordBatchReader.from_stream(source)
        chosen = choose(_kinds(reader.schema), wanted, where)
        yield from convert(_sound(reader), chosen, where, rows)


def read_columns(
    columns: Mapping[str, Any], kinds: Iterable[tuple[str, Kind]], wanted: Wanted, where: str
) -> Iterator[Rows]:
    """Read columns by name: lists, or NumPy arrays of one or two dimensions, of equal length."""
    pa = arrow()
    chosen = choose(kinds, wanted, where)
    with explained(where, "columns", pa.ArrowException):
        table = pa.table({name: _as_arrow(pa, columns[name]) for name in chosen.names})
        yield from convert(table.to_batches(), chosen, where, max(len(table), 1))


def _as_arrow(pa: Any, values: Any) -> Any:
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "fiub":
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    return pa.array(values.tolist() if getattr(values, "ndim", 1) > 1 else values)


def _sound(batches: Iterable[Any]) -> Iterator[Any]:
    """Check that offsets stay inside their buffers before anything follows them."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _kinds(schema: Any) -> list[tuple[str, Kind]]:
    """Return the columns of a schema; an index that pandas stored is no feature by default."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError, RecursionError):
        index = []
    return [(field.name, "other" if field.name in index else _kind(field.type)) for field in schema]


def _kind(kind: Any) -> Kind:
    pa = arrow()
    while isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type
    if _is_list(kind):
        return "vectors" if _is_number(kind.value_type) else "other"
    return "numbers" if _is_number(kind) and not pa.types.is_boolean(kind) else "other"


def _is_list(kind: Any) -> bool:
    is_ = arrow().types
    return bool(is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    is_ = arrow().types
    return bool(is_.is_floating(kind) or is_.is_integer(kind) or is_.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    is_ = arrow().types
    return bool(is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind))


def convert(batches: Iterable[Any], chosen: Chosen, where: str, rows: int) -> Iterator[Rows]:
    """Turn record batches of any sizes into rows, `rows` at a time."""
    start, width = 0, None
    for group in _regrouped(batches, rows):
        columns = {name: Column.of(group, where, name, start) for name in chosen.names}
        X = _features([columns[name] for name in chosen.features], width)
        y = None if chosen.label is None else columns[chosen.label].labels()
        yield X, y, None if chosen.id is None else columns[chosen.id].ids()
        start, width = start + len(X), X.shape[1]


def _regrouped(batches: Iterable[Any], rows: int) -> Iterator[list[Any]]:
    group: list[Any] = []
    room = rows
    for batch in batches:
        rest = batch
        while rest.num_rows:
            group.append(rest.slice(0, room))
            rest, room = rest.slice(room), room - group[-1].num_rows
            if room == 0:
                yield group
                group, room = [], rows
    if group:
        yield group


def _features(columns: list[Column], width: int | None) -> NDArray[np.float32]:
    """Return (n, d) features, from one column of vectors or several of numbers."""
    if len(columns) == 1 and _is_list(columns[0].values.type):
        return columns[0].vectors(width)
    table = np.empty((len(columns), len(columns[0].values)), np.float32)
    for j, column in enumerate(columns):
        table[j] = column.numbers()
    return np.ascontiguousarray(table.T)


class Column(NamedTuple):
    """A few rows of a column, which knows its place for the messages."""

    values: Any
    where: str
    name: str
    start: int

    @classmethod
    def of(cls, group: list[Any], where: str, name: str, start: int) -> Column:
        """Gather a column of record batches, without extension types and dictionaries."""
        pa = arrow()
        parts = []
        for batch in group:
            part = batch.column(name)
            while isinstance(part.type, pa.BaseExtensionType):
                part = part.storage
            parts.append(part.dictionary_decode() if pa.types.is_dictionary(part.type) else part)
        return cls(parts[0] if len(parts) == 1 else pa.concat_arrays(parts), where, name, start)

    def _at(self, row: int | None = None) -> str:
        return place(self.where, self.name, None if row is None else self.start + row)

    def vectors(self, width: int | None) -> NDArray[np.float32]:
        """Return one list a row as (n, d); `width` is that of the rows before."""
        import pyarrow.compute as pc

        if self.values.null_count:
            raise _null(self._at(_first_null(self.values)), "a vector")
        lengths = pc.list_value_length(self.values).to_numpy()
        d = int(lengths[0]) if width is None else width
        wrong = np.flatnonzero(lengths != d)
        if len(wrong):
            raise ragged(self._at(int(wrong[0])), d, int(lengths[wrong[0]]))
        return self._replace(values=self.values.flatten()).numbers(d).reshape(len(lengths), d)

    def numbers(self, width: int = 1) -> NDArray[np.float32]:
        """Return the values, `width` of which make a row."""
        if not _is_number(self.values.type):
            raise FeatureTypeError(
                f"{self._at()}expected numbers, got {self.values.type!s:.80}",
                hint="say which columns hold numbers, as in features='f*'",
            )
        if self.values.null_count:
            raise _null(self._at(_first_null(self.values) // width), "numbers")
        return as_float32(self.values.to_numpy(zero_copy_only=False))

    def labels(self) -> list[Any] | NDArray[Any]:
        """Return a label a row: None for a null, a set for a list."""
        several = _is_list(self.values.type)
        kind = self.values.type.value_type if several else self.values.type
        if not (_is_number(kind) or _is_text(kind) or arrow().types.is_null(kind)):
            raise LabelError(
                f"{self._at()}expected labels, got {self.values.type!s:.80}",
                hint="labels are integers or strings, or lists of them; cast the column",
            )
        if several:
            return [None if found is None else set(found) for found in self.values.to_pylist()]
        if _is_number(kind) and not self.values.null_count:
            return np.asarray(self.values.to_numpy(zero_copy_only=False))
        return list(self.values.to_pylist())

    def ids(self) -> list[int | str]:
        """Return an id a row."""
        if self.values.null_count:
            at = self._at(_first_null(self.values))
            raise IdError(f"{at}expected an id, got null", hint="give every row an id, or none")
        if not (_is_text(self.values.type) or arrow().types.is_integer(self.values.type)):
            raise IdError(
                f"{self._at()}expected ids, got {self.values.type!s:.80}",
                hint="ids are integers or strings; cast the column",
            )
        return list(self.values.to_pylist())


def _null(at: str, expected: str) -> InputError:
    return InputError(f"{at}expected {expected}, got null", hint="drop or repair the row")


def _first_null(values: Any) -> int:
    return int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
