"""`everhash demo --serve`: the order of its stream, its payloads and its thumbnails."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from matplotlib.image import imread

from everhash import limits
from everhash.cli.demo_serve import BLACK, FIRST_ROWS, SCALE, SIDE, Scans, payload, png, watchable
from tests.conftest import Stream


@pytest.fixture
def scans(digits: Stream) -> Scans:
    hidden = np.arange(len(digits.y)) % 4 == 0
    return Scans(digits.X, digits.y, hidden)


def test_the_stream_goes_label_by_label_and_then_mixes(scans: Scans) -> None:
    arriving = watchable(scans, np.random.default_rng(0))
    first = 10 * FIRST_ROWS
    np.testing.assert_array_equal(arriving.y[:first], np.repeat(np.arange(10), FIRST_ROWS))
    assert len(np.unique(arriving.y[first : first + 50])) == 10
    rows = np.column_stack([arriving.X, arriving.y, arriving.hidden])
    expected = np.column_stack([scans.X, scans.y, scans.hidden])
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(expected, axis=0))
    assert len(rows) == len(expected)
    again = watchable(scans, np.random.default_rng(0))
    np.testing.assert_array_equal(arriving.X, again.X)


def test_a_picture_is_the_digit_itself_and_small(scans: Scans) -> None:
    for pixels in scans.X[:20]:
        data = png(pixels)
        grey = imread(io.BytesIO(data), format="png")
        assert grey.shape == (SIDE * SCALE, SIDE * SCALE)
        np.testing.assert_allclose(
            (1 - grey[::SCALE, ::SCALE]) * BLACK, pixels.reshape(SIDE, SIDE), atol=0.1
        )
        assert len(data) < 400


def test_a_payload_holds_the_row_exactly_and_fits(scans: Scans) -> None:
    for pixels, digit in zip(scans.X, scans.y, strict=True):
        made = payload(pixels, int(digit))
        np.testing.assert_array_equal(np.float32(made["vector"]), pixels)
        assert len(json.dumps(made)) < limits.PAYLOAD
