"""What people put into payloads comes back as plain JSON values."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everhash
from everhash.sources.columns import ColumnChoice
from everhash.sources.payload_values import as_payloads
from everhash.wire.payloads import NotJsonError, as_json_value

NOON = datetime(2024, 5, 1, 12, 0, 0, 250_000)
BERLIN = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (np.bool_(True), True),
        (np.float32(0.1), 0.1),
        (np.float16(0.1), 0.1),
        (np.float64(0.1), 0.1),
        (np.longdouble(0.5), 0.5),
        (np.str_("a"), "a"),
        (np.array(3), 3),
        (np.array([1.5, np.nan]), [1.5, None]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ((1, ("a", None)), [1, ["a", None]]),
        (float("nan"), None),
        (np.float32("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT"), None),
        (Decimal("NaN"), None),
        (Decimal("12.50"), "12.50"),
        (Decimal("1e-3"), "0.001"),
        (Decimal("1e1000000"), "1E+1000000"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (date(2024, 5, 1), "2024-05-01"),
        (time(7, 5), "07:05:00"),
        (NOON, "2024-05-01T12:00:00.25"),
        (NOON.replace(tzinfo=UTC), "2024-05-01T12:00:00.25Z"),
        (NOON.replace(tzinfo=BERLIN), "2024-05-01T10:00:00.25Z"),
        (pd.Timestamp("2024-05-01 12:00:00.000000001"), "2024-05-01T12:00:00.000000001"),
        (pd.Timestamp("2024-05-01", tz="UTC"), "2024-05-01T00:00:00Z"),
        (np.datetime64("2024-05-01T12:00:00.500"), "2024-05-01T12:00:00.5"),
        ({"a": {"b": [np.int8(1)]}}, {"a": {"b": [1]}}),
    ],
)
def test_each_kind_of_value_has_one_json_form(value: Any, expected: Any) -> None:
    inside = ([value], [expected]), ({"k": value}, {"k": expected})
    for given_as, wanted in ((value, expected), *inside):
        found = as_json_value(given_as)
        assert found == wanted
        assert json.loads(json.dumps(found, allow_nan=False)) == wanted


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"a",
        timedelta(1),
        np.timedelta64(1, "s"),
        1j,
        object(),
        float("inf"),
        Decimal("inf"),
    ],
)
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    for given_as in (value, [value], {"k": value}):
        with pytest.raises(NotJsonError):
            as_json_value(given_as)
    with pytest.raises(NotJsonError, match="a key 1 that is not a text"):
        as_json_value({1: 2})


MOMENTS = st.datetimes(min_value=datetime(1700, 1, 1), max_value=datetime(2200, 1, 1))
COLUMNS: dict[str, tuple[Any, Any]] = {
    "moments": (MOMENTS, pa.timestamp("us")),
    "instants": (MOMENTS.map(lambda at: at.replace(tzinfo=UTC)), pa.timestamp("us", "UTC")),
    "dates": (st.dates(), pa.date32()),
    "times": (st.times(), pa.time64("us")),
    "decimals": (st.decimals(-999, 999, places=3), pa.decimal128(9, 3)),
    "floats": (st.floats(width=32, allow_infinity=False).map(np.float32), pa.float32()),
}


@pytest.mark.parametrize("kind", COLUMNS)
@given(data=st.data())
def test_a_column_of_a_table_and_a_value_become_the_same(kind: str, data: st.DataObject) -> None:
    values, arrow_type = COLUMNS[kind]
    value = data.draw(values)
    column = pa.array([value], arrow_type)
    assert as_payloads({"c": column}, ColumnChoice(payload="c"), "", 0) == [as_json_value(value)]


def test_rows_of_a_data_frame_are_payloads() -> None:
    frame = pd.DataFrame(
        {
            "title": ["boots", None],
            "price": [Decimal("12.50"), None],
            "seen": pd.to_datetime(["2024-05-01", None]),
            "stock": pd.array([3, None], "Int64"),
        }
    )
    with everhash.create(None, dim=2) as collection:
        collection.add(np.eye(2), ["a", "b"], payloads=frame.to_dict("records"))
        collection.add(np.eye(2), ["c", "d"], payloads=frame["seen"])
        found = [each.payload for each in collection.attachments(["a", "b", "c", "d"])]
    gaps = dict.fromkeys(frame.columns)
    assert found == [
        {"title": "boots", "price": "12.50", "seen": "2024-05-01T00:00:00", "stock": 3},
        gaps,
        "2024-05-01T00:00:00",
        None,
    ]
