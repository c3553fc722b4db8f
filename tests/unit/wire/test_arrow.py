"""Arrow streams from strangers: read as what they are, or refused; never believed."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everhash.errors import FeatureTypeError, InputError, TooLargeError
from everhash.wire.arrow import MAX_MESSAGES, column_values, read_rows, write_rows
from tests.unit.serve.serving import PNG, arrow, vectors

MOST = 100
X = np.arange(12, dtype=np.float32).reshape(4, 3)
TABLE = {
    **{"vector": vectors(X), "id": ["a", "b", "c", "d"], "label": ["x", None, "y", "x"]},
    "payload": ["1", None, "[]", '"é"'],
    "thumbnail": pa.array([PNG, None, None, None], pa.binary()),
}


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
