"""`everhash demo --serve`: the order of its stream, its pictures, and the file it leaves."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import everhash
from everhash import cli, limits
from everhash.cli.demo import BITS, DIM
from everhash.cli.demo_serve import DARKEST, FIRST, SCALE, SIDE, Scans, payload, png, watchable
from everhash.errors import OptionError
from tests.conftest import Stream


@pytest.fixture
def scans(digits: Stream) -> Scans:
    hidden = np.arange(len(digits.y)) % 4 == 0
    return Scans(digits.X, digits.y, hidden)


def test_the_stream_goes_label_by_label_and_then_mixes(scans: Scans) -> None:
    arriving = watchable(scans, np.random.default_rng(0))
    first = 10 * FIRST
    np.testing.assert_array_equal(arriving.y[:first], np.repeat(np.arange(10), FIRST))
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
            (1 - grey[::SCALE, ::SCALE]) * DARKEST, pixels.reshape(SIDE, SIDE), atol=0.1
        )
        assert len(data) < 400


def test_a_payload_carries_the_row_exactly_and_fits(scans: Scans) -> None:
    for pixels, digit in zip(scans.X, scans.y, strict=True):
        carried = payload(pixels, int(digit))
        np.testing.assert_array_equal(np.float32(carried["vector"]), pixels)
        assert len(json.dumps(carried)) < limits.PAYLOAD


@pytest.mark.parametrize("pace", ["0", "-3", "nan", "inf"])
def test_a_pace_that_is_none_is_refused(tmp_path: Path, pace: str) -> None:
    file = tmp_path / "demo.ever"
    ran = CliRunner().invoke(cli.app, ["demo", "--serve", "--pace", pace, "--file", str(file)])
    assert isinstance(ran.exception, OptionError)
    assert f"--pace must be above 0, got {float(pace)}" in str(ran.exception)
    assert not file.exists()


@pytest.mark.parametrize("option", ["--pace", "--port"])
def test_what_is_for_watching_needs_something_to_watch(tmp_path: Path, option: str) -> None:
    file = tmp_path / "demo.ever"
    ran = CliRunner().invoke(cli.app, ["demo", option, "3", "--file", str(file)])
    assert isinstance(ran.exception, OptionError)
    assert ran.exception.hint == "add --serve"
    assert not file.exists()


def test_a_file_is_replaced_if_all_its_entries_are_ours(tmp_path: Path, scans: Scans) -> None:
    picture = str(tmp_path / "demo.png")
    for name, carried, replaced in (
        ("ours", [payload(scans.X[0], 3)], True),
        ("foreign", [{"digit": 3}], False),
    ):
        file = tmp_path / f"{name}.ever"
        with everhash.create(file, dim=DIM, bits=BITS) as collection:
            collection.ingest(scans.X[:1], ["a label made up on the page"], payloads=carried)
        options = ["demo", "--file", str(file), "--picture", picture]
        ran = CliRunner().invoke(cli.app, options)
        assert (ran.exception is None) == replaced
        with everhash.open(file, readonly=True) as collection:
            assert len(collection) == (1500 if replaced else 1)
