"""Some rows of an Arrow table: their features, labels, ids, payloads and thumbnails.

A column of the type arrow.json, as `everhash export` writes it where values are of several types,
has labels, ids and payloads as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.errors import FeatureTypeError, IdError, InputError, LabelError
from everhash.sources.columns import ColumnChoice, arrow, as_float32, location
from everhash.sources.json_values import as_id_value, as_label_value
from everhash.sources.payload_values import as_payloads
from everhash.tabular import ragged

TYPES = {
    "lists": ("list", "large_list", "fixed_size_list"),
    "numbers": ("floating", "integer", "boolean"),
    "labels": ("floating", "integer", "boolean", "string", "large_string", "string_view", "null"),
    "ids": ("integer", "string", "large_string", "string_view"),
    "the bytes of an image": ("binary", "large_binary", "fixed_size_binary", "binary_view", "null"),
}
"""Arrow types that can hold each of these."""


def is_type(kind: Any, what: str) -> bool:
    """Whether an Arrow type can hold something: a name in `TYPES`, or an Arrow type's own."""
    return any(getattr(arrow().types, f"is_{name}")(kind) for name in TYPES.get(what, [what]))


def is_json(field: Any) -> bool:
    """Whether a column holds JSON; older versions of pyarrow have no type for it."""
    named = (field.metadata or {}).get(b"ARROW:extension:name")
    return named == b"arrow.json" or getattr(field.type, "extension_name", None) == "arrow.json"


def json_field(name: str) -> Any:
    """Return the field of a column that holds JSON, in any version of pyarrow."""
    marks = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
    return arrow().field(name, arrow().string(), metadata=marks)


class TableSlice(NamedTuple):
    """Some rows of a table; `where` and `start` are for error messages."""

    table: Any
    where: str
    start: int

    def features(self, names: list[str], width: int | None) -> NDArray[np.float32]:
        """Return (n, d) features from a column of vectors, of `width` if given, or of numbers."""
        if len(names) == 1 and is_type(self._column(names[0]).type, "lists"):
            return self._vectors(names[0], width)
        table = np.empty((len(names), self.table.num_rows), np.float32)
        for j, name in enumerate(names):
            table[j] = self._numbers(name, self._column(name))
        return np.ascontiguousarray(table.T)

    def labels(self, name: str) -> list[Any] | NDArray[Any]:
        """Return a label a row: a set for a list, None for a null."""
        if is_json(self.table.schema.field(name)):
            return [as_label_value(value, at) for value, at in self._json(name)]
        column = self._column(name)
        several = is_type(column.type, "lists")
        kind = column.type.value_type if several else column.type
        self._expect(name, kind, "labels", LabelError)
        if is_type(kind, "numbers") and not several and not column.null_count:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        values = column.to_pylist()
        return [v if v is None else set(v) for v in values] if several else list(values)

    def ids(self, name: str) -> list[int | str]:
        """Return an id a row."""
        if is_json(self.table.schema.field(name)):
            return [as_id_value(value, at) for value, at in self._json(name)]
        column = self._column(name)
        self._no_null(name, column, error=IdError)
        self._expect(name, column.type, "ids", IdError)
        return list(column.to_pylist())

    def payloads(self, choice: ColumnChoice) -> list[Any] | None:
        """Return a payload a row, or None if no column of payloads is named."""
        columns: dict[str, Any] = {name: self.table.column(name) for name in choice.payload_columns}
        for name in choice.payload_columns:
            if is_json(self.table.schema.field(name)):
                columns[name] = [value for value, _ in self._json(name)]
        return as_payloads(columns, choice, self.where, self.start)

    def thumbnails(self, name: str) -> list[bytes | None]:
        """Return an image a row, from bytes or Hugging Face's struct of bytes and a path."""
        column = self._column(name)
        if is_type(column.type, "struct") and column.type.get_field_index("bytes") >= 0:
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
        if is_type(column.type, "dictionary"):
            is_view = is_type(column.type.value_type, "string_view")  # pyarrow cannot decode it
            return arrow().array(column.to_pylist()) if is_view else column.dictionary_decode()
        return column

    def _json(self, name: str) -> Iterator[tuple[Any, str]]:
        """Yield the values in a column of JSON, None for a null, and where each is."""
        for row, text in enumerate(self._column(name).to_pylist(), self.start):
            at = location(self.where, name, row)
            try:
                yield (None if text is None else json.loads(text)), at
            except (ValueError, RecursionError) as error:
                hint = "drop or repair the row"
                raise InputError(f"{at}expected JSON: {error!s:.100}", hint=hint) from None

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
        if not is_type(kind, what):
            raise error(f"{location(self.where, name)}expected {what}, got {kind!s:.80}", hint=hint)

    def _no_null(self, name: str, values: Any, width: int = 1, error: Any = InputError) -> None:
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
            at = location(self.where, name, self.start + row)
            raise error(f"{at}expected a value, got null", hint="drop or repair the row")
