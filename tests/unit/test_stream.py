"""Which rows and labels are accepted, and what the errors say about others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from everhash import limits, stream
from everhash.errors import (
    DimensionError,
    FeatureTypeError,
    InputError,
    LabelError,
    LabelWarning,
    LimitError,
    NotFiniteError,
)
from everhash.stream import (
    MAX_FEATURE,
    as_label,
    as_labels,
    as_new_label,
    as_rows,
    labels_for,
    one_or_more,
)


class Sparse:
    """Looks like a SciPy matrix."""

    shape = (2, 2)

    def toarray(self) -> NDArray[np.float64]:
        return np.eye(2)


class AlwaysAmbiguous:
    """Hashable, but will not say whether it equals anything, as pd.NA and arrays do."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return np.array([True, False])


# Rows


@pytest.mark.parametrize(
    ("X", "error", "says"),
    [
        ([1.0, 2.0], InputError, r"got 1-d.*X.reshape\(1, -1\)"),
        (7, InputError, "got 0-d"),
        (
            np.zeros((2, 2, 2)),
            InputError,
            r"got 3-d of shape \(2, 2, 2\).*X.reshape\(len\(X\), -1\)",
        ),
        (np.zeros((0, 3)), InputError, "0 sample"),
        ([], InputError, "1-d"),
        (np.zeros((3, 0)), InputError, "0 feature"),
        ([[1, 2], [3]], InputError, "row 1: expected 2 features as in the rows before, got 1"),
        ([[1, 2], None], InputError, "row 1: expected numbers, got None"),
        ([[1, 2], 3], InputError, "row 1: expected a list of numbers, got int"),
        (pd.Series([[1, 2], [3]]), InputError, "row 1: expected 2 features .* got 1"),
        (pd.Series([[1, 2], None]), InputError, "row 1: expected numbers, got (None|nan)"),
        (pd.Series([[1, 2], "ab"]), InputError, "row 1: expected a list of numbers, got str"),
        (pd.Series(["a", "b"]), InputError, "got 1-d"),
        (pd.Series([np.eye(2), np.eye(2)]), InputError, "got 3-d"),
        (pa.array([[1.0, 2.0], [3.0]]), InputError, "row 1: expected 2 features"),
        ([["a", "b"]], FeatureTypeError, "must be numbers"),
        ([[1.0, "b"]], FeatureTypeError, "must be numbers"),
        ([[{}, 1.0]], FeatureTypeError, "must be numbers"),
        ([[10**400, 1]], FeatureTypeError, "must be numbers"),
        (np.array([["2020-01-01"]], "M8[D]"), FeatureTypeError, "datetime64"),
        (np.array([[3]], "m8[s]"), FeatureTypeError, "timedelta64"),
        ([[1 + 2j, 1]], InputError, "[Cc]omplex"),
        (Sparse(), InputError, "sparse"),
        (np.zeros((1, limits.DIMS + 1), np.int8), LimitError, str(limits.DIMS)),
    ],
)
def test_anything_but_a_table_of_numbers_is_refused(
    X: Any, error: type[InputError], says: str
) -> None:
    with pytest.raises(error, match=says):
        as_rows(X)


def test_strings_are_a_type_error_and_a_value_error() -> None:
    for builtin in (TypeError, ValueError):
        with pytest.raises(builtin):
            as_rows([["a"]])


def test_wrong_width_names_both_widths_and_who_expected_them() -> None:
    with pytest.raises(DimensionError, match="3 features, but MyHasher is expecting 4") as caught:
        as_rows(np.zeros((2, 3)), 4, owner="MyHasher")
    assert (caught.value.expected, caught.value.got) == (4, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38, -1e38, 1e300, MAX_FEATURE])
@pytest.mark.parametrize("row", [0, 3, 6])
def test_a_value_that_cannot_be_worked_with_is_reported_by_row(bad: float, row: int) -> None:
    X = np.ones((7, 3))
    X[row, 1] = bad
    X[6, 2] = bad
    with np.errstate(over="ignore"):
        singles = X.astype(np.float32)
    for rows in (X, singles):
        with pytest.raises(NotFiniteError, match=f"row {row} ") as caught:
            as_rows(rows)
        assert caught.value.row == row


def test_rows_that_were_checked_are_not_copied_again() -> None:
    rows = as_rows(np.ones((5, 3)))
    assert as_rows(rows, 3) is rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_just_below_the_largest_are_accepted(dtype: type[np.floating[Any]]) -> None:
    X = np.array([[MAX_FEATURE * 0.999, -MAX_FEATURE * 0.999]], dtype)
    np.testing.assert_array_equal(as_rows(X), X.astype(np.float32))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f2", "f4", "f8", "g", "?", "O"])
def test_every_real_number_type_becomes_contiguous_float32(dtype: str) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    rows = as_rows(X[:, ::-1])
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous
    np.testing.assert_array_equal(rows, [[0, 1], [1, 0], [1, 1]])


def test_the_smallest_integers_are_not_mistaken_for_infinity() -> None:
    X = np.array([[-128, 127]], np.int8)
    assert as_rows(X).tolist() == [[-128, 127]]
    assert as_rows(np.array([[-(2**63)]], np.int64)).tolist() == [[-(2.0**63)]]


def test_a_data_frame_is_a_table() -> None:
    assert as_rows(pd.DataFrame({"a": [1, 2], "b": [3.5, 4]})).tolist() == [[1, 3.5], [2, 4]]


def series_of(dtype: Any = None) -> Any:
    return lambda X: pd.Series(list(X), dtype=dtype)


COLUMNS: dict[str, Any] = {
    "list of lists": lambda X: X.tolist(),
    "tuple of tuples": lambda X: tuple(map(tuple, X.tolist())),
    "list of arrays": list,
    "series of lists": lambda X: pd.Series(X.tolist()),
    "series of arrays": series_of(),
    "series with an index": lambda X: pd.Series(list(X), index=range(len(X), 0, -1)),
    "frame of one column": lambda X: pd.DataFrame({"embedding": list(X)}),
    "frame": pd.DataFrame,
    "frame of nullable numbers": lambda X: pd.DataFrame(X).astype("Float32"),
    "objects": lambda X: np.array([*X.tolist(), None], object)[:-1],
    "table of objects": lambda X: X.astype(object),
    "arrow lists": lambda X: pa.array(X.tolist()),
    "arrow vectors": lambda X: pa.FixedSizeListArray.from_arrays(X.ravel(), X.shape[1]),
    "arrow chunks": lambda X: pa.chunked_array([X[:1].tolist(), X[1:].tolist()]),
    "series of arrow lists": lambda X: pd.Series(
        X.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float32()))
    ),
}


@pytest.mark.parametrize("form", COLUMNS)
@given(
    X=hnp.arrays(
        np.float32,
        st.tuples(st.integers(2, 5), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6, width=32),
    )
)
@settings(max_examples=10)
def test_rows_are_the_same_in_every_form(form: str, X: NDArray[np.float32]) -> None:
    rows = as_rows(COLUMNS[form](X))
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, X)


def test_a_gap_among_numbers_names_its_row() -> None:
    forms: list[Any] = [
        pd.DataFrame({"a": pd.array([1, 2, None], "Int64"), "b": [1.0, 2.0, 3.0]}),
        [[1, 2], [3, 4], [5, None]],
        pd.Series([[1, 2], [3, 4], [5, np.nan]]),
        pa.array([[1, 2], [3, 4], [5, None]]),
    ]
    for X in forms:
        with pytest.raises(NotFiniteError, match="row 2 "):
            as_rows(X)


# Labels


def nested(depth: int) -> Any:
    label: Any = "dog"
    for _ in range(depth):
        label = (label,)
    return label


@pytest.mark.parametrize(
    ("y", "says"),
    [
        ([1], "2 rows but 1 labels"),
        ([1, 2, 3], "2 rows but 3 labels"),
        (np.array([1, 2, 3]), "2 rows but 3 labels"),
        ({"a": 1, "b": 2}, "got dict"),
        ("ab", "got str"),
        (b"ab", "got bytes"),
        ({1, 2}, "got set"),
        (frozenset({1, 2}), "got frozenset"),
        (7, "got int"),
        ((label for label in "ab"), "got generator"),
        (np.array(7), r"shape \(\)"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
        ([["cat"], ["dog"]], "row 0: a list cannot be a label"),
        (["cat", {"a": 1}], "row 1: a dict cannot be a label"),
        (["cat", ("dog", [])], "row 1: a tuple cannot be a label"),
        (["cat", ("dog", float("nan"))], "row 1: a tuple cannot be a label"),
        (["cat", (1, (2, np.inf))], "row 1: a tuple cannot be a label"),
        (["cat", nested(65)], "row 1: a tuple cannot be a label"),
        (["cat", nested(3000)], "row 1: a tuple cannot be a label"),
        (["cat", 10**5000], "row 1: a int cannot be a label"),
        (["cat", {None}], "row 1: a NoneType cannot be a label"),
        (["cat", AlwaysAmbiguous()], "row 1: a AlwaysAmbiguous cannot be a label"),
        (["cat", np.float32("inf")], "NaN or infinity in row 1"),
        (["cat", {1, float("-inf")}], "NaN or infinity in row 1"),
        (["cat", {"dog", float("nan")}], "NaN or infinity in row 1"),
        (["cat", {pd.NA}], "row 1: a NAType cannot be a label"),
        (np.array([1, np.inf]), "NaN or infinity in row 1"),
        (np.array([np.nan, -np.inf], np.float32), "NaN or infinity in row 1"),
        (pd.Series([np.nan, np.inf]), "NaN or infinity in row 1"),
        (["cat", ""], r"row 1: an empty text cannot be a label \(pass None"),
        (["cat", {"dog", ""}], "row 1: an empty text"),
        (np.array(["cat", ""]), "row 1: an empty text"),
        (np.array(["cat", ""], object), "row 1: an empty text"),
        (pd.Series(["cat", ""]), "row 1: an empty text"),
    ],
)
def test_what_cannot_be_a_label_is_refused(y: Any, says: str) -> None:
    with pytest.raises(LabelError, match=says):
        as_labels(y, 2)


@pytest.mark.parametrize(
    "seven",
    [7, 7.0, np.int8(7), np.uint64(7), np.float16(7), np.float64(7), np.longdouble(7)],
)
def test_seven_is_one_label_whatever_its_type(seven: Any) -> None:
    labels = as_labels([7, seven, "7"], 3)
    assert labels.values == [7, "7"]
    assert labels.which.tolist() == [0, 0, 1]
    assert type(as_label(seven)) is int


def test_a_numpy_string_is_the_string() -> None:
    labels = as_labels(["owl", np.str_("owl"), np.bytes_(b"owl")], 3)
    assert labels.values == ["owl", b"owl"]
    assert [type(value) for value in labels.values] == [str, bytes]
    assert type(as_label(np.str_("owl"))) is str


def test_a_fraction_keeps_its_value_and_true_is_one() -> None:
    assert as_labels([2.5, np.float32(2.5), True, 1, np.bool_(True)], 5).values == [2.5, True]


def test_numpy_scalars_in_tuples_become_plain_too() -> None:
    label = as_label((np.int64(3), (np.str_("a"), np.float32(2))))
    assert repr(label) == "(3, ('a', 2))"


def test_labels_come_in_order_of_first_appearance() -> None:
    labels = as_labels(["b", {"c", "a"}, None, "b", "d", {"d", "a"}], 6)
    assert labels.values == ["b", "a", "c", "d"]
    assert labels.rows.tolist() == [0, 1, 1, 3, 4, 5, 5]
    assert labels.which.tolist() == [0, 1, 2, 0, 3, 1, 3]


@pytest.mark.parametrize("y", [None, [None, None], [set(), frozenset()], [None, set()]])
def test_rows_without_labels_have_no_steps(y: Any) -> None:
    labels = as_labels(y, 2)
    assert labels.values == []
    assert (labels.rows.tolist(), labels.which.tolist()) == ([], [])
    assert labels.rows.dtype == labels.which.dtype == np.int64


MISSING = [
    *(None, float("nan"), np.float16("nan"), np.float64("nan"), np.longdouble("nan")),
    *(pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT", "s")),
]


@given(st.lists(st.sampled_from(["cat", "dog", *MISSING]), min_size=1, max_size=8))
def test_whatever_stands_for_a_gap_is_no_label(y: list[Any]) -> None:
    expected = as_labels([label if isinstance(label, str) else None for label in y], len(y))
    column = np.empty(len(y), object)
    column[:] = y
    for given_as in (y, tuple(y), column, pd.Series(y, dtype=object)):
        labels = as_labels(given_as, len(y))
        assert labels.values == expected.values
        np.testing.assert_array_equal(labels.rows, expected.rows)
        np.testing.assert_array_equal(labels.which, expected.which)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g"])
@given(st.lists(st.none() | st.integers(-7, -2), min_size=1, max_size=8))
def test_nan_in_an_array_of_numbers_is_no_label(dtype: str, y: list[int | None]) -> None:
    expected = as_labels(y, len(y))
    column = np.array([np.nan if label is None else label for label in y], dtype)
    labels = as_labels(column, len(y))
    assert labels.values == expected.values
    assert labels.rows.dtype == labels.which.dtype == np.int64
    np.testing.assert_array_equal(labels.rows, expected.rows)
    np.testing.assert_array_equal(labels.which, expected.which)


@pytest.mark.parametrize("dtype", ["Int64", "string", "category", "object", "Float64"])
def test_a_series_with_a_gap_has_rows_without_a_label(dtype: str) -> None:
    values = ["7", None, "8", "7"] if dtype in ("string", "category") else [7, None, 8, 7]
    labels = as_labels(pd.Series(values, dtype=dtype), 4)
    assert labels.values == [value for value in values[:3] if value is not None]
    assert labels.rows.tolist() == [0, 2, 3]
    assert as_labels(pd.Series([7, None, 8, 7]), 4).values == [7, 8]


FORMS: dict[str, Any] = {
    "list": list,
    "series": pd.Series,
    "objects": lambda y: pd.Series(y, dtype=object),
    "nullable": lambda y: pd.Series(y, dtype="string"),
    "categories": lambda y: pd.Series(y, dtype="category"),
    "category": pd.Categorical,
    "NA": lambda y: [pd.NA if label is None else label for label in y],
    "NaN": lambda y: [float("nan") if label is None else label for label in y],
    "NaT": lambda y: [pd.NaT if label is None else label for label in y],
    "arrow": lambda y: pa.array(y, pa.string()),
    "arrow chunks": lambda y: pa.chunked_array([y[:1], y[1:]], pa.string()),
    "arrow dictionary": lambda y: pa.array(y, pa.string()).dictionary_encode(),
    "series of arrow": lambda y: pd.Series(y, dtype=pd.ArrowDtype(pa.string())),
}


@pytest.mark.parametrize("form", FORMS)
@given(y=st.lists(st.none() | st.sampled_from(["cat", "dog", "eel"]), min_size=1, max_size=8))
@settings(max_examples=20)
def test_labels_are_the_same_in_every_form(form: str, y: list[str | None]) -> None:
    expected, found = as_labels(y, len(y)), as_labels(FORMS[form](y), len(y))
    assert found.values == expected.values
    assert [type(value) for value in found.values] == [str] * len(found.values)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.which, expected.which)


def test_arrow_numbers_with_gaps_keep_every_digit() -> None:
    assert as_labels(pa.array([2**53 + 1, None]), 2).values == [2**53 + 1]


def test_a_single_label_is_one_and_never_its_characters() -> None:
    for one in ("cat", 7, 2.5, b"cat", np.str_("cat"), np.int8(7)):
        assert one_or_more(one) == [one]
        labels = labels_for(one, 3)
        assert labels.values == as_labels([one], 1).values
        assert labels.rows.tolist() == [0, 1, 2]
    several = ["cat", "dog"]
    assert one_or_more(several) is several
    assert labels_for(several, 2).values == several
    with pytest.raises(LabelError, match="3 rows but 2 labels"):
        labels_for(several, 3)


@pytest.mark.parametrize("y", [[-1, 0, 1], np.array([2, -1]), [-1.0, 0.0, np.nan], [{-1, 0}]])
def test_minus_one_among_whole_numbers_is_told_once(y: Any) -> None:
    """It means "no label" in scikit-learn, and is a label here."""
    stream._tell_of_minus_one.cache_clear()
    said = "pass None or NaN for rows without a label"
    with pytest.warns(LabelWarning, match=said) as warned:
        assert -1 in as_labels(y, len(y)).values
    assert warned[0].filename == __file__  # where somebody called, not where it was noticed
    assert -1 in as_labels(y, len(y)).values


@pytest.mark.parametrize(
    "y", [[-1, 1], [-1], [-2, -1, 0], [-1, "a"], [-1, 0.5], ["-1", "0"], [0, 1]]
)
def test_minus_one_that_is_plainly_a_label_is_no_surprise(y: Any) -> None:
    assert len(as_labels(y, len(y)).values) == len(set(y))


def test_a_label_read_from_a_file_may_be_empty() -> None:
    assert as_label("") == ""
    with pytest.raises(LabelError, match="row 3: an empty text"):
        as_new_label(np.str_(""), 3)


def test_a_tuple_is_one_label_and_a_frozenset_is_several() -> None:
    assert as_labels([("cat", "dog")], 1).values == [("cat", "dog")]
    assert as_labels([frozenset({"cat", "dog"})], 1).values == ["cat", "dog"]


def test_a_column_vector_and_a_series_are_labels() -> None:
    expected = as_labels([3, 1, 3], 3)
    for y in (np.array([[3], [1], [3]]), pd.Series([3, 1, 3]), (3, 1, 3)):
        labels = as_labels(y, 3)
        assert labels.values == expected.values
        np.testing.assert_array_equal(labels.which, expected.which)


SETS = """
import json
from everhash.stream import as_labels
words = {"ant", "bee", "cat", "dog", "eel", "fox", b"gnu", ("hen", 1), 5, 2.5, True, "5"}
print(json.dumps([[repr(word) for word in words], repr(as_labels([words], 1).values)]))
"""


def test_hash_randomisation_does_not_change_the_order_of_a_set() -> None:
    as_python_has_it, as_we_have_it = set(), set()
    for seed in ("1", "2", "3"):
        ran = subprocess.run(
            [sys.executable, "-c", SETS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        python, ours = json.loads(ran.stdout)
        as_python_has_it.add(tuple(python))
        as_we_have_it.add(ours)
    assert len(as_python_has_it) > 1
    assert len(as_we_have_it) == 1


FINITE: dict[str, Any] = {"allow_nan": False, "allow_infinity": False}
ELEMENTS: dict[str, dict[str, Any]] = {"f": FINITE, "g": FINITE, "U": {"min_size": 1}}
PLAIN_ARRAYS = st.sampled_from(["i1", "i8", "u1", "u8", "?", "U3", "f2", "f4", "f8", "g"]).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        st.integers(1, 12),
        elements=ELEMENTS.get(dtype[0]),
        fill=st.nothing(),
    )
)


@given(PLAIN_ARRAYS)
def test_a_plain_array_means_what_its_elements_mean(column: NDArray[Any]) -> None:
    fast = as_labels(column, len(column))
    for slow in (
        as_labels(list(column), len(column)),
        as_labels(column.astype(object), len(column)),
    ):
        assert fast.values == slow.values
        assert [type(value) for value in fast.values] == [type(value) for value in slow.values]
        np.testing.assert_array_equal(fast.rows, slow.rows)
        np.testing.assert_array_equal(fast.which, slow.which)


LABELS = st.one_of(
    st.integers(0, 6),
    st.text("ab", min_size=1, max_size=2),
    st.booleans(),
    st.tuples(st.integers(0, 2)),
)


@given(st.lists(st.none() | LABELS | st.frozensets(LABELS, max_size=3), min_size=1, max_size=8))
def test_steps_give_back_each_rows_labels(y: list[Any]) -> None:
    labels = as_labels(y, len(y))
    read: list[set[Any]] = [set() for _ in y]
    for row, which in zip(labels.rows, labels.which, strict=True):
        read[row].add(labels.values[which])
    given_sets = [
        set() if entry is None else set(entry) if isinstance(entry, frozenset) else {entry}
        for entry in y
    ]
    assert read == given_sets
    assert len(labels.which) == sum(map(len, given_sets))
    assert list(dict.fromkeys(labels.which.tolist())) == list(range(len(labels.values)))
    assert (np.diff(labels.rows) >= 0).all()
