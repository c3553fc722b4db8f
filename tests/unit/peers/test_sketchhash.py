"""SketchHash: the sketch stands for all rows so far, and functions turn no more than they must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from everhash import load_hasher
from everhash.errors import ModelFileError, OptionError
from everhash.peers.online.sketchhash import SketchHash
from tests.conftest import Stream

Doubles = NDArray[np.float64]


def scatter_about_the_mean(X: NDArray[np.float32]) -> Doubles:
    apart = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    scatter: Doubles = apart.T @ apart
    return scatter


def strongest(X: NDArray[np.float32], bits: int) -> Doubles:
    """Return the projection onto the strongest principal directions of all rows at once."""
    vectors = np.linalg.eigh(scatter_about_the_mean(X))[1][:, -bits:]
    projection: Doubles = vectors @ vectors.T
    return projection


def test_four_points_worked_by_hand() -> None:
    hasher = SketchHash(bits=1, batch=2, sketch=4).begin(2)
    start = hasher.functions_[0].copy()

    # mean (.5, .5), rows +-(.5, -.5): they vary along (1, -1)
    hasher.partial_fit([[1, 0], [0, 1]])
    first = np.array([1, -1]) / np.sqrt(2)
    first *= np.sign(first @ start)
    np.testing.assert_allclose(hasher.functions_, [first], atol=1e-6)
    np.testing.assert_allclose(hasher.mean_, [0.5, 0.5], atol=1e-6)

    # mean (-.1, .7), rows +-(.7, .1), and sqrt(2 * 2 / 4) ((-.1, .7) - (.5, .5)) = (-.6, .2):
    # [[.5, -.5], [-.5, .5]] + [[.98, .14], [.14, .02]] + [[.36, -.12], [-.12, .04]]
    hasher.partial_fit([[0.6, 0.8], [-0.8, 0.6]])
    scatter = [[1.84, -0.48], [-0.48, 0.56]]
    np.testing.assert_allclose(hasher.sketch_.T @ hasher.sketch_, scatter, atol=1e-6)
    np.testing.assert_allclose(hasher.mean_, [0.2, 0.6], atol=1e-6)
    # its eigenvalues are 2 and 0.4, and (3, -1) belongs to the first
    second = np.array([3, -1]) / np.sqrt(10)
    second *= np.sign(second @ first)
    np.testing.assert_allclose(hasher.functions_, [second], atol=1e-6)
    # (1, 0) less the mean is (.8, -.6), of unit length
    margin = np.array([0.8, -0.6]) @ second
    np.testing.assert_allclose(hasher.margins([[1, 0]]), [[margin]], atol=1e-6)


@pytest.mark.parametrize("batch", [1, 7, 50])
def test_mean_and_scatter_are_those_of_all_rows_where_the_sketch_has_room(
    digits: Stream, batch: int
) -> None:
    X = digits.X[:350, 20:40]
    hasher = SketchHash(bits=4, sketch=40, batch=batch).partial_fit(X)
    assert hasher.seen_[0] == 350
    np.testing.assert_allclose(hasher.mean_, X.mean(axis=0, dtype=np.float64), atol=1e-9)
    np.testing.assert_allclose(hasher.sketch_.T @ hasher.sketch_, scatter_about_the_mean(X))


@pytest.mark.parametrize("batch", [16, 75])  # less and more than the rows that come at a time
def test_a_small_sketch_errs_no_more_than_frequent_directions_may(batch: int) -> None:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((1200, 40)) * 0.9 ** np.arange(40) + 3).astype(np.float32)
    hasher = SketchHash(bits=10, sketch=24, batch=batch).partial_fit(X)
    scatter = scatter_about_the_mean(X)
    errors = np.linalg.eigvalsh(scatter - hasher.sketch_.T @ hasher.sketch_)
    assert errors[0] > -1e-6 * errors[-1], "a sketch never sees more than there is"
    assert errors[-1] <= np.trace(scatter) / (12 + 1)
    assert errors[-1] > 0.01 * np.trace(scatter) / (12 + 1), "it did shrink"


def test_functions_are_an_orthogonal_basis_of_the_strongest_directions(digits: Stream) -> None:
    hasher = SketchHash(bits=8, batch=80).partial_fit(digits.X[:400])
    W = hasher.functions_.astype(np.float64)
    np.testing.assert_allclose(W @ W.T, np.eye(8), atol=1e-5)
    np.testing.assert_allclose(W.T @ W, strongest(digits.X[:400], 8), atol=1e-4)


def test_state_lives_on_between_batches(digits: Stream) -> None:
    hasher = SketchHash(bits=8).partial_fit(digits.X[:300])
    projection = hasher.functions_.T @ hasher.functions_
    of_all, of_last = (strongest(X, 8) for X in (digits.X[:300], digits.X[250:300]))
    assert np.abs(projection - of_all).max() < 1e-4
    assert np.abs(projection - of_last).max() > 0.1


def test_rows_wait_for_their_batch_and_every_function_changes_with_it(digits: Stream) -> None:
    hasher = SketchHash(bits=8, batch=30).begin(64)
    first = hasher.functions_.copy()
    hasher.partial_fit(digits.X[:29])
    np.testing.assert_array_equal(hasher.functions_, first)
    assert (hasher.versions_ == 0).all()
    hasher.partial_fit(digits.X[29:30])
    assert (hasher.functions_ != first).any(axis=1).all()
    assert (hasher.versions_ == 1).all()
    hasher.partial_fit(digits.X[30:100])
    assert (hasher.versions_ == 3).all()


def test_labels_do_not_matter(digits: Stream) -> None:
    plain, taught, many = (SketchHash(bits=8) for _ in range(3))
    plain.partial_fit(digits.X[:200])
    taught.partial_fit(digits.X[:200], digits.y[:200])
    many.partial_fit(digits.X[:200], [{int(label), "all"} for label in digits.y[:200]])
    for other in (taught, many):
        np.testing.assert_array_equal(plain.margins(digits.X), other.margins(digits.X))
    assert "all" in many.labels_


def test_order_and_signs_of_directions_do_not_turn_functions() -> None:
    rng = np.random.default_rng(0)
    hasher = SketchHash(bits=3, batch=20)
    X = rng.standard_normal((20, 3))
    hasher.partial_fit(X)
    first = hasher.functions_.copy()
    for strong in range(3):  # another direction is the strongest each time; their span is the same
        hasher.partial_fit(X * (1 + 9 * (np.arange(3) == strong)))
        np.testing.assert_allclose(hasher.functions_, first, atol=1e-5)


def test_more_rows_of_the_same_kind_flip_few_bits(digits: Stream) -> None:
    hasher = SketchHash(bits=16, batch=100).partial_fit(digits.X[:1000])
    before = hasher.transform(digits.X)
    hasher.partial_fit(digits.X[1000:1100])
    flipped = (hasher.transform(digits.X) != before).mean()
    assert 0 < flipped < 0.03  # a new rotation would flip half


def test_the_first_rotation_comes_from_the_seed(digits: Stream) -> None:
    X = digits.X[:150]
    one, other = (SketchHash(bits=8, random_state=seed).partial_fit(X) for seed in (0, 1))
    for hasher in (one, other):
        span = hasher.functions_.T @ hasher.functions_
        np.testing.assert_allclose(span, strongest(X, 8), atol=1e-4)
    turn = one.functions_ @ other.functions_.T
    np.testing.assert_allclose(turn @ turn.T, np.eye(8), atol=1e-4)
    assert np.abs(turn).max() < 0.99


@pytest.mark.parametrize("directions", [0, 1, 3])
def test_rows_that_vary_in_few_directions_still_get_orthogonal_functions(directions: int) -> None:
    rng = np.random.default_rng(0)
    X = 5 + rng.standard_normal((60, directions)) @ rng.standard_normal((directions, 10))
    hasher = SketchHash(bits=6, batch=20).partial_fit(X)
    W = hasher.functions_
    np.testing.assert_allclose(W @ W.T, np.eye(6), atol=1e-5)
    apart = X - X.mean(axis=0)
    np.testing.assert_allclose(apart @ W.T @ W, apart, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "value"), [("waited_", 50), ("waiting_", 3e37), ("mean_", -1e300), ("sketch_", 1e300)]
)
def test_a_file_whose_state_cannot_be_is_refused(
    digits: Stream, tmp_path: Path, name: str, value: float
) -> None:
    hasher = SketchHash(bits=8).partial_fit(digits.X[:170])
    getattr(hasher, name).flat[0] = value
    hasher.save(tmp_path / "m")
    with pytest.raises(ModelFileError):
        load_hasher(tmp_path / "m")


def test_a_sketch_has_twice_the_bits_at_least() -> None:
    X = np.random.default_rng(0).standard_normal((50, 128))
    assert SketchHash(bits=32).partial_fit(X).sketch_.shape == (200, 128)
    assert SketchHash(bits=128).partial_fit(X).sketch_.shape == (256, 128)
    with pytest.raises(OptionError, match="at most 20, half the rows of the sketch, got 21"):
        SketchHash(bits=21, sketch=40).partial_fit(X)
    with pytest.raises(OptionError, match="at most 128, the features, got 129"):
        SketchHash(bits=129).partial_fit(X)


@pytest.mark.parametrize(
    "options",
    [{"sketch": 201}, {"sketch": 0}, {"sketch": 10**6}, {"batch": 0}, {"batch": 10**6}],
    ids=str,
)
def test_bad_option_is_a_typed_error(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        SketchHash(bits=2, **options).partial_fit(np.eye(2))
