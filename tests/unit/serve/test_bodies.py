"""Bodies from strangers: read as what they are, or refused; never believed."""

from __future__ import annotations

import io
import struct
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.lib import format as npy_format

from everhash.errors import FeatureTypeError, InputError, LabelError
from everhash.serve.arrow import MESSAGES, _values, read_table
from everhash.serve.bodies import read_json, read_npy
from everhash.serve.errors import RefusedError
from everhash.serve.fields import label_of
from tests.unit.serve.serving import PNG, arrow, npy, vectors

MOST = 100
NUMBERS = ["<f2", "<f4", ">f8", "<i8", "<u2", "|i1"]
X = np.arange(12, dtype=np.float32).reshape(4, 3)
TABLE = {
    **{"vector": vectors(X), "id": ["a", "b", "c", "d"], "label": ["x", None, "y", "x"]},
    "payload": ["1", None, "[]", '"é"'],
    "thumbnail": pa.array([PNG, None, None, None], pa.binary()),
}


@given(st.data(), st.sampled_from(NUMBERS), st.booleans())
def test_an_array_is_read_as_it_was_written(data: Any, kind: str, fortran: bool) -> None:
    shape = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    array = data.draw(arrays.arrays(np.dtype(kind), shape))
    content = npy(np.asfortranarray(array) if fortran else array)
    np.testing.assert_array_equal(read_npy(content, MOST), array)


def header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the head of a .npy that says this."""
    told = text.encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", len(told))
    return npy_format.magic(*version) + length + told


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"x", b"\x93NUMPY", npy(X)[:-1], npy(X) + b"!", npy(X)[:60], npy(X)[8:]),
        npy(np.array([[None]], object), allow_pickle=True),
        *(npy(np.array([["a"]])), npy(np.array([[1j]])), npy(np.array([["2020"]], "M8[s]"))),
        *(npy(np.zeros(3)), npy(np.zeros((1, 2, 3))), npy(np.float64(3))),
        npy(np.zeros((2, 2), [("a", "f4"), ("b", "f4")])),
        npy(np.zeros((2, 2), np.longdouble)),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (100, 1000000000000)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -8)}") + b"x" * 32,
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, True)}") + b"x" * 8,
        header("{'descr': '|V0', 'fortran_order': False, 'shape': (9, 100000000)}"),
        header("{'descr': '<f4', 'fortran_order': 1, 'shape': (1, 1)}") + b"x" * 4,
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1)}") + b"cos\nsystem\n.",
        header("{'descr': __import__('os'), 'fortran_order': False, 'shape': (1, 1)}"),
        header("[" * 5000, (2, 0)),
        header("9" * 9000),
        npy_format.magic(2, 0) + b"\xff\xff\xff\xff",
        npy_format.magic(9, 9) + b"xxxx",
    ],
)
def test_what_is_no_array_of_rows_is_refused(content: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_npy(content, MOST)
    assert len(caught.value.message) < 500


def test_rows_without_features_are_not_a_way_around_the_limit() -> None:
    content = header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 0)}")
    with pytest.raises(RefusedError) as caught:
        read_npy(content, MOST)
    assert caught.value.status == 413


@given(st.binary(max_size=200), st.integers(0, 127), st.binary(min_size=1, max_size=8))
def test_a_damaged_array_is_refused_or_read(tail: bytes, place: int, change: bytes) -> None:
    content = bytearray(npy(X) + tail)
    content[place : place + len(change)] = change
    try:
        rows = read_npy(bytes(content), MOST)
    except (InputError, RefusedError):
        return
    assert rows.ndim == 2
    assert rows.nbytes <= len(content)


def test_a_table_is_read_as_it_was_written() -> None:
    found = read_table(arrow(TABLE), MOST)
    np.testing.assert_array_equal(found["vector"], X)
    assert found["id"] == ["a", "b", "c", "d"]
    assert found["label"] == ["x", None, "y", "x"]
    assert found["payload"] == [1, None, [], "é"]
    assert found["thumbnail"] == [PNG, None, None, None]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float16(), 3)),
        *(pa.list_(pa.int8()), pa.list_(pa.uint64(), 3)),
    ],
)
def test_vectors_come_as_lists_of_any_numbers(kind: Any) -> None:
    column = pa.array([row.tolist() for row in X]).cast(kind)
    found = read_table(arrow({"vector": column}), MOST)["vector"]
    np.testing.assert_array_equal(found, X)


def test_a_table_comes_in_several_batches_and_slices() -> None:
    table = pa.table(TABLE)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for start, length in ((1, 2), (3, 0), (0, 1), (2, 2)):
            writer.write_table(table.slice(start, length))
    found = read_table(sink.getvalue(), MOST)
    np.testing.assert_array_equal(found["vector"], X[[1, 2, 0, 2, 3]])
    assert found["id"] == ["b", "c", "a", "c", "d"]


def test_labels_may_be_one_of_a_few_or_several() -> None:
    encoded = pa.array(["x", None, "y", "x"]).dictionary_encode()
    several = [["x", "y"], [], None, ["z"]]
    for column, wanted in ((encoded, ["x", None, "y", "x"]), (several, several)):
        found = read_table(arrow({"vector": vectors(X), "label": column}), MOST)
        assert found["label"] == wanted


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
        read_table(arrow(columns), MOST)


def test_vectors_of_texts_are_told_from_other_faults() -> None:
    with pytest.raises(FeatureTypeError):
        read_table(arrow({"vector": [["1"]]}), MOST)


def test_a_column_that_stands_twice_is_refused() -> None:
    table = pa.Table.from_arrays([vectors(X), vectors(X)], ["vector", "vector"])
    with pytest.raises(InputError):
        read_table(arrow(table), MOST)


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
            read_table(content, MOST)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() <= before


def test_more_rows_or_batches_than_allowed_are_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        read_table(arrow({"vector": vectors(np.zeros((101, 1)))}), MOST)
    assert caught.value.status == 413
    batch = pa.record_batch({"vector": vectors(X[:0])})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(MESSAGES + 1):
            writer.write_batch(batch)
    with pytest.raises(RefusedError, match="record batches"):
        read_table(sink.getvalue(), MOST)


def test_a_schema_without_end_is_refused() -> None:
    table = pa.table({f"column {i}": [1] for i in range(2000)})
    with pytest.raises(InputError, match="schema"):
        read_table(arrow(table), MOST)


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
        found = read_table(bytes(data[:length]), MOST)
    except (InputError, RefusedError):
        return
    n = len(found["vector"])
    assert all(len(column) == n <= MOST for column in found.values())


@given(st.binary(max_size=300))
def test_noise_is_refused(content: bytes) -> None:
    for read in (read_npy, read_table):
        with pytest.raises((InputError, RefusedError)):
            read(content, MOST)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_json_of_any_kind_is_an_object_or_refused(value: Any) -> None:
    import json

    text = json.dumps(value).encode()
    with pytest.raises(InputError):
        read_json(text, frozenset({"rows"}))
    wrapped = json.dumps({"rows": value}).encode()
    found = read_json(wrapped, frozenset({"rows"}))["rows"]
    assert repr(found) == repr(value)


HALF = "\ud800"


@pytest.mark.parametrize("bad", [HALF, {"tuple": [HALF]}, {"tuple": [{"tuple": [HALF]}]}])
def test_half_a_surrogate_is_no_label_however_deep_it_stands(bad: Any) -> None:
    with pytest.raises(LabelError, match="Unicode"):
        label_of(bad)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {"tuple": [1, float("nan")]}])
def test_what_no_label_equals_is_none(bad: Any) -> None:
    with pytest.raises(LabelError):
        label_of(bad)


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
    assert _values(encoded) == plain.to_pylist()
    assert _values(encoded.slice(1)) == plain.to_pylist()[1:]
    assert _values(flat.dictionary_encode()) == flat.to_pylist()


def test_a_long_value_that_many_rows_share_is_held_once() -> None:
    column = pa.chunked_array([pa.array(["x" * 100_000] * 1000).dictionary_encode()])
    tracemalloc.start()
    assert len(_values(column)) == 1000
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("shape", [(0, 10**30), (0, 2**62), (1, 16_385), (0, 16_385)])
def test_an_array_of_impossible_rows_is_refused(shape: tuple[int, int]) -> None:
    head = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    body = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
    with pytest.raises(InputError):
        read_npy(body, 1000)
