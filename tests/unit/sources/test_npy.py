"""NumPy files: any order, arrays by name, and hostile headers."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash import limits
from everhash.errors import FeatureTypeError, IdError, InputError, LabelError, LimitError
from everhash.sources import count_rows, read
from tests.unit.sources.samples import labels_of, payloads, refused, same, sample, whole, write_npz


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">i2"])
def test_npy_of_any_order_and_byte_order(order: Any, dtype: str, tmp_path: Path) -> None:
    X = np.arange(12).reshape(6, 2).astype(dtype, order=order)
    np.save(tmp_path / "a.NPY.npy", X)
    np.testing.assert_array_equal(whole(tmp_path / "a.NPY.npy", batch_rows=4).X, X)


def test_an_empty_npy_is_no_batches(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.empty((0, 5)))
    assert list(read(tmp_path / "a.npy")) == []
    assert count_rows(tmp_path / "a.npy") == 0


def test_arrays_of_an_npz_are_found_by_name(tmp_path: Path) -> None:
    rows = sample(4)
    np.savez(tmp_path / "a.npz", emb=rows.X, kind=rows.y, sku=rows.ids, y=[1])
    same(whole(tmp_path / "a.npz", features="emb", label="kind", id="sku"), rows)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array(["a", "é", ""]), ["a", "é", ""]),
        (np.array([1, 2, 3], ">i2"), [1, 2, 3]),
        (np.array([0.1, np.nan, 2], np.float32), [0.1, None, 2]),
        (np.array([True, False, True]), [True, False, True]),
        (
            np.array(["2024-05-01", "NaT", "2024-05-03"], "M8[D]"),
            ["2024-05-01", None, "2024-05-03"],
        ),
        (np.array(["2024-05-01T10:30"] * 3, "M8[s]"), ["2024-05-01T10:30:00"] * 3),
        (np.array([["a", "b"]] * 3), [["a", "b"]] * 3),
        (np.arange(12).reshape(3, 2, 2), [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]),
        (np.asfortranarray([[1, 2], [3, 4], [5, 6]]), [[1, 2], [3, 4], [5, 6]]),
    ],
    ids=str,
)
def test_an_npz_gives_its_arrays(array: Any, expected: list[Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)), about=array, n=[7, 8, 9])
    for rows in (1, 2, 10):
        found = payloads(tmp_path / "a.npz", "about", features=None, batch_rows=rows)
        assert found == expected
        both = payloads(tmp_path / "a.npz", ["n", "about"], features=None, batch_rows=rows)
        assert both[0] == {"n": 7, "about": expected[0]}


def test_an_array_of_an_npz_may_have_two_uses(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), y=["a", "b"], ids=[7, 9])
    (batch,) = read(tmp_path / "a.npz", payload=["y", "ids"])
    assert batch.payloads == [{"y": "a", "ids": 7}, {"y": "b", "ids": 9}]
    assert (labels_of(batch), batch.ids) == (["a", "b"], [7, 9])


@pytest.mark.parametrize(
    ("arrays", "options", "error", "says"),
    [
        ({"Z": np.ones((2, 2))}, {}, InputError, "no column 'X' .*'Z'"),
        ({"X": np.ones((2, 2))}, {"label": "kind"}, InputError, "no column 'kind'"),
        ({"X": np.ones(2)}, {}, InputError, r"array 'X': expected a 2-d .* shape \(2,\)"),
        ({"X": np.array([["a"]])}, {}, FeatureTypeError, "array 'X': features must be numbers.*U1"),
        ({"X": np.ones((2, 2)), "y": [1]}, {}, LabelError, "2 rows but 1 labels"),
        ({"X": np.ones((2, 2)), "y": 1}, {}, LabelError, "2 rows but 0 labels"),
        ({"X": np.ones((2, 2)), "ids": [1]}, {}, IdError, "2 rows but 1 ids"),
        ({"X": np.ones((2, 2)), "ids": [0.5, 1]}, {}, IdError, "row 0: expected an id, got 0.5"),
        ({"X": np.ones((1, limits.DIMS + 1), "i1")}, {}, LimitError, str(limits.DIMS)),
    ],
)
def test_an_npz_that_cannot_be_used_is_named(
    arrays: Any, options: dict[str, str], error: Any, says: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    refused(error, f"^{tmp_path}/a.npz: .*{says}", tmp_path / "a.npz", **options)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.array(["a"]), "2 rows but 1 values of 'about'"),
        (np.array("a"), "2 rows but 0 values of 'about'"),
        (np.array([b"a", b"b"]), "array 'about': expected texts, numbers.* got |S1"),
        (np.array([1j, 2j]), "array 'about': .* got complex128"),
        (np.array([1, 2], "m8[s]"), "array 'about': .* got timedelta"),
        (np.empty((2, 0)), "array 'about': .* shape"),
        (np.array([1, np.inf]), "column 'about', row 1: .*got infinity"),
        (np.array(["a", None], object), "array 'about': .*pickle"),
    ],
    ids=str,
)
def test_an_array_that_cannot_be_a_payload_is_named(array: Any, says: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), about=array)
    refused(InputError, f"a.npz: .*{says}", tmp_path / "a.npz", payload="about")


def npy_bytes(
    shape: Any, descr: str = "'<f4'", data: bytes = b"", version: bytes = b"\1\0"
) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    size = len(text) + 1
    length = size.to_bytes(2 if version == b"\1\0" else 4, "little")
    return b"\x93NUMPY" + version + length + text.encode() + b"\n" + data


HOSTILE = {
    "huge shape": npy_bytes("(10**15, 4)".replace("10**15", str(10**15))),
    "shape beyond any integer": npy_bytes(f"({2**62}, {2**62})"),
    "negative shape": npy_bytes("(-4, -4)", data=bytes(64)),
    "one row more than there is": npy_bytes("(5, 2)", data=bytes(32)),
    "no shape": npy_bytes("None"),
    "code for a shape": npy_bytes("__import__('os').getcwd()"),
    "deep nesting": npy_bytes("(" * 5000),
    "huge header": npy_bytes(" " * 20_000 + "(1, 1)", version=b"\2\0", data=bytes(4)),
    "header longer than the file": b"\x93NUMPY\2\0\xff\xff\xff\xff{",
    "unknown version": npy_bytes("(1, 1)", version=b"\7\0"),
    "pickle": npy_bytes("(1, 1)", "'|O'", b"cos\ngetcwd\n(tR."),
    "structure": npy_bytes("(1, 1)", "[('a', '<f4')]", bytes(4)),
    "structure of objects": npy_bytes("(1, 1)", "[('a', '|O')]", bytes(8)),
    "items of no size": npy_bytes("(1000000000, 1)", "'|V0'"),
    "not an array": b"PK\3\4",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_npy_is_refused_before_anything_is_allocated(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(HOSTILE[name])
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", HOSTILE[name])
    tracemalloc.start()
    try:
        refused(InputError, "a.npy: ", tmp_path / "a.npy")
        refused(InputError, "a.npz: array 'X': ", tmp_path / "a.npz")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_what_needs_pickle_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, None]], object))
    refused(InputError, "a.npy: .*pickle.*dtype=str", tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), y=np.array(["a", None], object))
    refused(InputError, "a.npz: array 'y': .*pickle.*dtype=str", tmp_path / "a.npz")


def test_a_flipped_bit_in_an_npz_is_noticed(tmp_path: Path) -> None:
    path = write_npz(sample(), tmp_path / "a.npz")
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    refused(InputError, "a.npz: .*CRC", path)
