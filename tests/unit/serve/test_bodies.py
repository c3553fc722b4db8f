"""Bodies from strangers: read as what they are, or refused; never believed."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.lib import format as npy_format

from everhash.errors import EverhashError, InputError, LabelError, TooLargeError
from everhash.serve.bodies import read_body, read_npy
from everhash.serve.fields import read_label
from everhash.serve.schemas import SearchRequest
from everhash.wire.media import JSON
from tests.unit.serve.serving import npy

MOST = 100
NUMBERS = ["<f2", "<f4", ">f8", "<i8", "<u2", "|i1"]
X = np.arange(12, dtype=np.float32).reshape(4, 3)


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
    with pytest.raises(TooLargeError):
        read_npy(content, MOST)


@given(st.binary(max_size=200), st.integers(0, 127), st.binary(min_size=1, max_size=8))
def test_a_damaged_array_is_refused_or_read(tail: bytes, place: int, change: bytes) -> None:
    content = bytearray(npy(X) + tail)
    content[place : place + len(change)] = change
    try:
        rows = read_npy(bytes(content), MOST)
    except InputError:
        return
    assert rows.ndim == 2
    assert rows.nbytes <= len(content)


@given(st.binary(max_size=300))
def test_noise_is_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        read_npy(content, MOST)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_json_of_any_kind_is_a_request_or_refused(value: Any) -> None:
    """Whatever stands in a field, what comes out is checked, and what is raised is ours."""
    with pytest.raises(InputError):
        read_body(SearchRequest, json.dumps(value).encode(), JSON)
    for field in SearchRequest.model_fields:
        try:
            found = read_body(SearchRequest, json.dumps({field: value}).encode(), JSON)
        except EverhashError:
            continue
        assert 1 <= found.k <= 1000
        assert 0 < found.recall <= 1
        assert found.rows is None or np.asarray(found.rows).dtype == np.float64


HALF = "\ud800"


@pytest.mark.parametrize("bad", [HALF, {"tuple": [HALF]}, {"tuple": [{"tuple": [HALF]}]}])
def test_half_a_surrogate_is_no_label_however_deep_it_stands(bad: Any) -> None:
    with pytest.raises(LabelError, match="Unicode"):
        read_label(bad)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {"tuple": [1, float("nan")]}])
def test_what_no_label_equals_is_none(bad: Any) -> None:
    with pytest.raises(LabelError):
        read_label(bad)


@pytest.mark.parametrize("shape", [(0, 10**30), (0, 2**62), (1, 16_385), (0, 16_385)])
def test_an_array_of_impossible_rows_is_refused(shape: tuple[int, int]) -> None:
    head = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    body = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
    with pytest.raises(InputError):
        read_npy(body, 1000)
