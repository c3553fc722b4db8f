"""Spectral Hashing: the smoothest waves in the box that rows fill."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from everhash import load_hasher
from everhash.errors import LimitError, OptionError
from everhash.peers.batch.sh import SH, smoothest
from everhash.peers.views import VIEWS
from everhash.peers.waves import Waves
from tests.conftest import Stream

# opposites, so that their mean is zero; the first axis is (1, 0), as most rows lie near it
ROWS = np.array([[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]], np.float32)


def test_codes_by_hand() -> None:
    # the box is [-.8, .8] x [-.6, .6], of sides 1.6 and 1.2. Frequencies over pi are k / 1.6 and
    # k / 1.2: .625, .833, 1.25 and then 1.667 and more
    hasher = SH(bits=3).fit(ROWS)
    assert hasher.mean_.tolist() == [0, 0]
    lengths = np.linalg.norm(hasher.waves_, axis=1) / math.pi
    np.testing.assert_allclose(lengths, [1 / 1.6, 1 / 1.2, 2 / 1.6], rtol=1e-6)

    def waves(x: float, y: float) -> list[float]:
        return [
            math.cos(math.pi * (x + 0.8) / 1.6),
            math.cos(math.pi * (y + 0.6) / 1.2),
            math.cos(math.pi * (x + 0.8) / 0.8),
        ]

    for row in [(1.0, 0.0), (0.6, 0.8), (-0.28, -0.96), (0.8, 0.6), (-0.8, -0.6)]:
        wanted = np.array(waves(*row))
        got = hasher.margins(np.array([row], np.float32))[0]
        np.testing.assert_allclose(got, wanted / np.linalg.norm(wanted), atol=1e-5)
    # in words: left half, lower half, not in the middle
    assert hasher.transform(ROWS).tolist() == [[-1, -1, 1], [-1, 1, 1], [1, -1, 1], [1, 1, 1]]


@pytest.mark.parametrize("bits", [1, 4, 9, 40])
def test_no_other_wave_is_smoother(bits: int) -> None:
    sides = np.array([2.0, 1.1, 0.7, 0.3, 1e-6])
    _, frequencies = smoothest(sides, bits)
    every = sorted(
        k * math.pi / side for side, k in itertools.product(sides, range(1, 4 * bits + 1))
    )
    np.testing.assert_allclose(frequencies, every[:bits])


def test_waves_solve_the_eigenproblem_they_stand_for() -> None:
    # on an evenly filled segment the cosines are eigenvectors of the path's Laplacian, with a slope
    # of zero at the walls; n points, each in the middle of its share of the segment
    n, side = 60, 1.7
    places = (np.arange(n) + 0.5) * side / n
    path = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    path[0, 0] = path[-1, -1] = 1
    _, frequencies = smoothest(np.array([side]), 5)
    for frequency in frequencies:
        wave = np.cos(frequency * places)
        ratio = (path @ wave) @ wave / (wave @ wave)
        np.testing.assert_allclose(path @ wave, ratio * wave, atol=1e-9)


def test_a_long_axis_gets_several_bits_before_a_short_one_gets_its_first() -> None:
    axes, frequencies = smoothest(np.array([1.0, 0.3]), 4)
    assert axes.tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(frequencies / math.pi, [1, 2, 3, 1 / 0.3])


def test_there_may_be_more_bits_than_features() -> None:
    hasher = SH(bits=20).fit(ROWS)
    assert hasher.transform(ROWS).shape == (4, 20)
    assert len(np.unique(hasher.waves_, axis=0)) == 20


def test_rows_that_are_all_one_break_nothing() -> None:
    hasher = SH(bits=4).fit(np.ones((5, 3)))
    assert np.isfinite(hasher.margins(np.eye(3))).all()


def test_neighbours_have_nearer_codes_than_other_rows(digits: Stream) -> None:
    hasher = SH(bits=32).fit(digits.X[:1200])
    codes = hasher.transform(digits.X[1200:]).astype(np.int64)
    Z = digits.X[1200:] - hasher.mean_
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    cosines, agreement = Z @ Z.T, codes @ codes.T / 32
    near, far = cosines > np.quantile(cosines, 0.95), cosines < np.median(cosines)
    assert agreement[near].mean() > agreement[far].mean() + 0.3


def test_waves_are_a_view_of_a_file(digits: Stream, tmp_path: Path) -> None:
    hasher = SH(bits=12).fit(digits.X)
    view = hasher.freeze().view
    assert VIEWS[view.kind] is Waves
    read = Waves.read(view.arrays())
    assert read is not None
    assert read.same_as(view)
    torn = view.arrays() | {"phases": np.zeros(3, np.float32)}
    assert Waves.read(torn) is None
    hasher.save(tmp_path / "m")
    np.testing.assert_array_equal(
        load_hasher(tmp_path / "m").margins(digits.X), hasher.margins(digits.X)
    )


@pytest.mark.parametrize("options", [{"bits": 0}, {"bits": 5000}, {"random_state": -1}], ids=str)
def test_bad_options_are_typed_errors(options: dict[str, int]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        SH(**options).fit(ROWS)


def test_far_too_many_bits_are_an_error_of_ours() -> None:
    with pytest.raises((OptionError, LimitError)):
        SH(bits=10**9).fit(ROWS)
