"""Arrow streams from strangers: read as what they are, or refused; never believed."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everhash.errors import FeatureTypeError, InputError, TooLargeError
from everhash.wire import arrow as wire
from everhash.wire.arrow import MAX_MESSAGES, write_rows
from everhash.wire.arrow_columns import MAX_NESTED, MAX_TEXT, column_values
from tests.unit.serve.serving import PNG, arrow, vectors

MOST, LABELS = 100, 1000
X = np.arange(12, dtype=np.float32).reshape(4, 3)
TABLE = {
    **{"vector": vectors(X), "id": ["a", "b", "c", "d"], "label": ["x", None, "y", "x"]},
    "payload": ["1", None, "[]", '"é"'],
    "thumbnail": pa.array([PNG, None, None, None], pa.binary()),
}


def read_rows(content: bytes, most: int) -> dict[str, Any]:
    return wire.read_rows(content, most, LABELS)


def test_what_is_written_is_read() -> None:
    fields = {
        "rows": X,
        "ids": [1, "b", 3, "d"],
        "labels": ["x", None, ["y", 2], {"tuple": [1]}],
        "payloads": ['{"a": 1}', None, "3", "null"],
        "thumbnails": [PNG, None, None, PNG],
    }
    found = read_rows(write_rows(fields), MOST)
    np.testing.assert_array_equal(found.pop("rows"), X)
    payloads = [{"a": 1}, None, 3, None]
    assert found == {**{name: fields[name] for name in found}, "payloads": payloads}
    assert read_rows(write_rows({"rows": X, "ids": [1, 2, 3, 4]}), MOST)["ids"] == [1, 2, 3, 4]


def test_a_table_is_read_as_it_was_written() -> None:
    found = read_rows(arrow(TABLE), MOST)
    np.testing.assert_array_equal(found["rows"], X)
    assert found["ids"] == ["a", "b", "c", "d"]
    assert found["labels"] == ["x", None, "y", "x"]
    assert found["payloads"] == [1, None, [], "é"]
    assert found["thumbnails"] == [PNG, None, None, None]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float16(), 3)),
        *(pa.list_(pa.int8()), pa.list_(pa.uint64(), 3)),
    ],
)
def test_vectors_come_as_lists_of_any_numbers(kind: Any) -> None:
    column = pa.array([row.tolist() for row in X]).cast(kind)
    found = read_rows(arrow({"vector": column}), MOST)["rows"]
    np.testing.assert_array_equal(found, X)


def test_a_table_comes_in_several_batches_and_slices() -> None:
    table = pa.table(TABLE)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for start, length in ((1, 2), (3, 0), (0, 1), (2, 2)):
            writer.write_table(table.slice(start, length))
    found = read_rows(sink.getvalue(), MOST)
    np.testing.assert_array_equal(found["rows"], X[[1, 2, 0, 2, 3]])
    assert found["ids"] == ["b", "c", "a", "c", "d"]


def test_labels_may_be_one_of_a_few_or_several() -> None:
    encoded = pa.array(["x", None, "y", "x"]).dictionary_encode()
    several = [["x", "y"], [], None, ["z"]]
    for column, wanted in ((encoded, ["x", None, "y", "x"]), (several, several)):
        found = read_rows(arrow({"vector": vectors(X), "label": column}), MOST)
        assert found["labels"] == wanted


def flat(X: Any, nulls: Any = None) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1), mask=nulls), X.shape[1])


@pytest.mark.parametrize(
    "columns",
    [
        *({"id": [1]}, {"vector": [1.0]}, {"vector": [["a"]]}, {"vector": [[[1.0]]]}),
        *({"vector": [[1.0], None]}, {"vector": [[1.0], [1.0, 2.0]]}, {"vector": [[1.0, None]]}),
        *({"vector": vectors(X), "other": [1, 2, 3, 4]}, {"vector": [None]}),
        {"vector": flat(X, np.arange(12) == 5)},
        *({"vector": vectors(X), "id": [[1]] * 4}, {"vector": vectors(X), "label": [{"a": 1}] * 4}),
        {"vector": vectors(X), "payload": [1, 2, 3, 4]},
        {"vector": vectors(X), "payload": ["{", "1", "2", "3"]},
        {"vector": vectors(X), "payload": ["[" * 100_000, "1", "2", "3"]},
        {"vector": vectors(X), "thumbnail": ["a", "b", "c", "d"]},
        {"vector": pa.array([[1]], pa.list_(pa.decimal128(5, 1)))},
    ],
)
def test_a_table_of_another_form_is_refused(columns: Any) -> None:
    with pytest.raises(InputError):
        read_rows(arrow(columns), MOST)


def test_vectors_of_texts_are_told_from_other_faults() -> None:
    with pytest.raises(FeatureTypeError):
        read_rows(arrow({"vector": [["1"]]}), MOST)


def test_a_column_that_stands_twice_is_refused() -> None:
    table = pa.Table.from_arrays([vectors(X), vectors(X)], ["vector", "vector"])
    with pytest.raises(InputError):
        read_rows(arrow(table), MOST)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("where", ["batch", "dictionary"])
def test_what_unfolds_is_refused_before_it_does(codec: str, where: str) -> None:
    large = np.zeros((50, 20_000), np.float32)
    if where == "batch":
        columns: Any = {"vector": vectors(large)}
    else:
        column = pa.array(["x" * 4_000_000] * 50).dictionary_encode()
        columns = {"vector": vectors(large[:, :1]), "label": column}
    options = pa.ipc.IpcWriteOptions(compression=codec)
    content = arrow(columns, options=options)
    assert len(content) < 100_000
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="compressed"):
            read_rows(content, MOST)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() <= before


def test_more_rows_or_batches_than_allowed_are_refused() -> None:
    with pytest.raises(TooLargeError, match="101 rows"):
        read_rows(arrow({"vector": vectors(np.zeros((101, 1)))}), MOST)
    batch = pa.record_batch({"vector": vectors(X[:0])})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(MAX_MESSAGES + 1):
            writer.write_batch(batch)
    with pytest.raises(TooLargeError, match="record batches"):
        read_rows(sink.getvalue(), MOST)


def test_a_schema_without_end_is_refused() -> None:
    table = pa.table({f"column {i}": [1] for i in range(2000)})
    with pytest.raises(InputError, match="schema"):
        read_rows(arrow(table), MOST)


WHOLE = arrow(TABLE)
ENCODED = arrow({"vector": vectors(X), "label": pa.array(["x"] * 4).dictionary_encode()})


@given(
    st.sampled_from([WHOLE, ENCODED]),
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4),
    st.integers(0, len(WHOLE)),
)
@example(WHOLE, [], len(WHOLE))
def test_a_damaged_table_is_refused_or_read(
    content: bytes, changes: list[tuple[int, int]], length: int
) -> None:
    data = bytearray(content)
    for place, value in changes:
        data[place % len(data)] = value
    try:
        found = read_rows(bytes(data[:length]), MOST)
    except InputError:
        return
    n = len(found["rows"])
    assert all(len(column) == n <= MOST for column in found.values())


@given(
    rows=st.lists(st.none() | st.lists(st.none() | st.sampled_from(["ant", "bee", ""]))),
    cut=st.integers(0, 5),
)
def test_values_that_rows_of_a_table_share_are_read_as_others(rows: list[Any], cut: int) -> None:
    texts, shared = pa.list_(pa.string()), pa.list_(pa.dictionary(pa.int32(), pa.string()))
    plain = pa.chunked_array([pa.array(rows, texts)[cut:], pa.array(rows[:cut], texts)])
    flat = pa.chunked_array(
        [pa.array([row[0] if row else None for row in rows], pa.string())[cut:]]
    )
    encoded = pa.chunked_array([pa.array(chunk.to_pylist(), shared) for chunk in plain.chunks])
    assert column_values(encoded) == plain.to_pylist()
    assert column_values(encoded.slice(1)) == plain.to_pylist()[1:]
    assert column_values(flat.dictionary_encode()) == flat.to_pylist()


def test_a_long_value_that_many_rows_share_is_held_once() -> None:
    column = pa.chunked_array([pa.array(["x" * 100_000] * 1000).dictionary_encode()])
    tracemalloc.start()
    assert len(column_values(column)) == 1000
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@given(st.binary(max_size=300))
def test_noise_is_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        read_rows(content, MOST)


JSON_TEXT = {b"everhash": b"json"}


def as_json(name: str, column: Any) -> pa.Table:
    """Return a table of as many rows as a column has, whose texts are JSON."""
    fields = [
        pa.field("vector", pa.list_(pa.float32(), 3)),
        pa.field(name, column.type, True, JSON_TEXT),
    ]
    return pa.table([vectors(np.zeros((len(column), 3))), column], schema=pa.schema(fields))


def shared_by(rows: int, value: str) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), pa.array([value]))


def of_nothing(n: int) -> Any:
    """Return a row of n labels, each of them null: they take no byte."""
    return pa.LargeListArray.from_arrays(pa.array([0, n], pa.int64()), pa.nulls(n))


def bits(n: int) -> Any:
    zeros = pa.Array.from_buffers(pa.bool_(), n, [None, pa.py_buffer(bytes(n // 8 + 1))])
    return pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), zeros)


TEXT = "a" * (4 << 20)
BOMBS: dict[str, Callable[[], Any]] = {
    "a long label that rows share": lambda: as_json("label", shared_by(100, f'"{TEXT}"')),
    "a long id that rows share": lambda: as_json("id", shared_by(100, f'"{TEXT}"')),
    "a plain label that rows share": lambda: {
        "vector": vectors(np.zeros((100, 3))),
        "label": shared_by(100, TEXT),
    },
    "labels that rows share in lists": lambda: {
        "vector": vectors(np.zeros((1, 3))),
        "label": pa.ListArray.from_arrays(pa.array([0, 100], pa.int32()), shared_by(100, TEXT)),
    },
    "labels of no byte": lambda: {"vector": vectors(X[:1]), "label": of_nothing(2**28)},
    "labels of a bit": lambda: {"vector": vectors(X[:1]), "label": bits(1 << 22)},
    "a dictionary of nothing": lambda: {
        "vector": vectors(X[:1]),
        "label": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.nulls(2**27)),
    },
    "lists in a label": lambda: as_json("label", pa.array(["[" + "[]," * MAX_NESTED + "1]"])),
    "lists in payloads": lambda: {
        "vector": vectors(np.zeros((110, 3))),
        "payload": ["[" + "[]," * 10_000 + f"{row}]" for row in range(110)],
    },
    "a long payload": lambda: {"vector": vectors(X[:1]), "payload": [f'"{TEXT}"']},
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_body_makes_no_large_request(kind: str) -> None:
    body = arrow(BOMBS[kind]())
    tracemalloc.start()
    try:
        found = read_rows(body, 10 * MOST)
        assert kind == "a dictionary of nothing"
        assert found["labels"] == [None]
    except TooLargeError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 * len(body) + (8 << 20)


def test_a_value_is_read_once_however_many_rows_have_it() -> None:
    found = read_rows(arrow(as_json("label", shared_by(100, '["a", "b"]'))), MOST)["labels"]
    assert found == [["a", "b"]] * 100
    assert len({id(value) for value in found}) == 1


def test_text_is_counted_as_often_as_it_stands() -> None:
    fits = shared_by(100, "a" * (MAX_TEXT // 100))
    assert (
        len(
            read_rows(arrow({"vector": vectors(np.zeros((100, 3))), "label": fits}), MOST)["labels"]
        )
        == 100
    )


def test_a_dictionary_in_parts_is_refused() -> None:
    schema = pa.schema(
        {"vector": pa.list_(pa.float32(), 3), "label": pa.dictionary(pa.int8(), pa.string())}
    )
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for values in (["a"], ["a", "b"]):
            column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(values))
            writer.write_batch(pa.record_batch([vectors(X[:1]), column], schema=schema))
    with pytest.raises(InputError, match="in parts"):
        read_rows(sink.getvalue(), MOST)


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["a"])),
        pa.array(["a"], pa.string_view()),
        pa.array([["a"]], pa.list_view(pa.string())),
        pa.array([{"a": 1}]),
        pa.array([[["a"]]]),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_types_that_need_no_bytes_are_not_read(column: Any) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(arrow({"vector": vectors(X[:1]), "label": column}), MOST)
