"""Trees as arrays: they say what scikit-learn's say, and a file of them leads nobody astray."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from everhash import Index, kernels, load_hasher
from everhash.errors import LimitError, ModelFileError
from everhash.kernels import peer_reference
from everhash.learn.centering import unit_rows
from everhash.learn.model_format import pack_model, unpack_model
from everhash.peers.batch.shecc import TreeShECC
from everhash.peers.forest import Forest, said_by, tree_of
from everhash.peers.views import VIEWS
from tests.conftest import Stream

CENTER = np.array([1, 0], np.float32)


def places(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def by_hand(**changed: np.ndarray) -> Forest:
    """Two trees for bit 0, the second a leaf, and one for bit 1."""
    arrays: dict[str, Any] = {
        "center": CENTER,
        # feature 0 <= .5 ? (feature 1 <= 0 ? -1 : 2) : 4 | -1 | feature 1 <= .7 ? 3 : -3
        "features": places(0, 1, 0, 0, 0, 0, 1, 0, 0),
        "numbers": np.array([0.5, 0, -1, 2, 4, -1, 0.7, 3, -3], np.float32),
        "rights": places(4, 3, 0, 0, 0, 0, 8, 0, 0),
        "roots": places(0, 5, 6),
        "bits": places(0, 0, 1),
    }
    return Forest(**(arrays | changed))


def test_votes_by_hand() -> None:
    # seen from (1, 0): (.6, .8) is right at the first node; (0, -1) left and left; (-.8, .6) left
    # and right. The second tree takes 1 from each. .8 is above .7, the others are not
    X = np.array([[1.6, 0.8], [1, -2], [-3, 3]], np.float32)
    votes = np.array([[4 - 1, -3], [-1 - 1, 3], [2 - 1, 3]])
    lengths = np.sqrt([[18], [13], [10]])
    np.testing.assert_allclose(by_hand().of(X), votes / lengths, rtol=1e-6)
    assert by_hand().width == by_hand().n_features == 2
    assert by_hand().is_sound()


@pytest.mark.parametrize("lower", [np.float32(3), np.nextafter(np.float32(3), np.float32(4))])
def test_a_threshold_between_two_neighbouring_numbers_keeps_them_apart(lower: np.float32) -> None:
    # their middle is no float32, and the nearest one may be the upper of the two
    Z = np.array([[lower], [np.nextafter(lower, np.float32(4))]], np.float32)
    grown = DecisionTreeClassifier().fit(Z, [-1, 1])
    tree = tree_of(grown, grown.tree_.value[:, 0, 1] - grown.tree_.value[:, 0, 0])
    assert said_by(tree, Z).tolist() == grown.predict(Z).tolist() == [-1, 1]


def test_a_tree_says_what_scikit_learns_tree_says(digits: Stream) -> None:
    Z = unit_rows(digits.X, digits.X.mean(axis=0))
    grown = DecisionTreeClassifier(max_depth=6, random_state=0).fit(Z, digits.y % 2)
    tree = tree_of(grown, grown.tree_.value[:, 0, 1])
    np.testing.assert_allclose(said_by(tree, Z), grown.predict_proba(Z)[:, 1], rtol=1e-6)


def test_trees_that_grow_best_node_first_are_refused(digits: Stream) -> None:
    grown = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0).fit(digits.X, digits.y)
    with pytest.raises(ValueError, match="left child"):
        tree_of(grown, np.zeros(grown.tree_.node_count))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 150), t=st.integers(1, 6))
def test_votes_compiled_equal_reference(seed: int, n: int, t: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    Z = rng.standard_normal((n, d)).astype(np.float32)
    trees = []
    for _ in range(t):
        grown = DecisionTreeClassifier(max_depth=3, random_state=0)
        grown.fit(Z, rng.integers(0, 2, n))
        trees.append(tree_of(grown, rng.standard_normal(grown.tree_.node_count)))
    sizes = [len(tree.numbers) for tree in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    rights = [
        np.where(tree.rights > 0, tree.rights + root, 0)
        for tree, root in zip(trees, roots, strict=True)
    ]
    bits = np.sort(rng.integers(0, 3, t)).astype(np.int32)
    arrays = (
        np.concatenate([tree.features for tree in trees]),
        np.concatenate([tree.numbers for tree in trees]),
        np.concatenate(rights).astype(np.int32),
        roots.astype(np.int32),
        bits,
    )
    one, two = np.zeros((n, 3), np.float32), np.zeros((n, 3), np.float32)
    kernels.load_forest().add_votes(Z, *arrays, one)
    peer_reference.add_votes(Z, *arrays, two)
    np.testing.assert_array_equal(one, two)
    alone = np.zeros((1, 3), np.float32)
    kernels.load_forest().add_votes(Z[-1:], *arrays, alone)
    np.testing.assert_array_equal(alone, one[-1:], "a row does not depend on its neighbours")


HOSTILE: dict[str, dict[str, np.ndarray]] = {
    "a child beyond the nodes": {"rights": places(9, 3, 0, 0, 0, 0, 8, 0, 0)},
    "a child of another tree": {"rights": places(5, 3, 0, 0, 0, 0, 8, 0, 0)},
    "a child before its parent": {"rights": places(4, 3, 0, 0, 0, 0, 1, 0, 0)},
    "a child that is its parent": {"rights": places(4, 1, 0, 0, 0, 0, 8, 0, 0)},
    "both children are one": {"rights": places(4, 2, 0, 0, 0, 0, 8, 0, 0)},
    "a child below 0": {"rights": places(4, 3, 0, 0, 0, 0, -1, 0, 0)},
    "no leaf at the end": {"rights": places(4, 3, 0, 0, 0, 0, 8, 0, 9)},
    "a feature no row has": {"features": places(2, 1, 0, 0, 0, 0, 1, 0, 0)},
    "a feature below 0": {"features": places(-1, 1, 0, 0, 0, 0, 1, 0, 0)},
    "fewer features than nodes": {"features": places(0, 1)},
    "fewer numbers than nodes": {"numbers": np.ones(3, np.float32)},
    "numbers whose sum overflows": {"numbers": np.full(9, 9e36, np.float32)},
    "a number that is none": {"numbers": np.array([0.5, np.nan] * 4 + [0], np.float32)},
    "an infinite number": {"numbers": np.array([0.5, np.inf] * 4 + [0], np.float32)},
    "a root beyond the nodes": {"roots": places(0, 5, 9)},
    "a root below 0": {"roots": places(0, -5, 6)},
    "a first root that is not the first node": {"roots": places(1, 5, 6)},
    "roots in no order": {"roots": places(0, 6, 5)},
    "two trees with one root": {"roots": places(0, 5, 5)},
    "fewer bits than trees": {"bits": places(0, 1)},
    "a bit without a tree": {"bits": places(0, 0, 2)},
    "a first bit without a tree": {"bits": places(1, 1, 2)},
    "bits in no order": {"bits": places(0, 1, 0)},
    "a bit below 0": {"bits": places(-1, 0, 1)},
    "no trees": {"roots": places(), "bits": places()},
    "wide places": {"roots": np.array([0, 5, 6])},
}


@pytest.mark.parametrize("changed", HOSTILE.values(), ids=list(HOSTILE))
def test_a_forest_that_leads_astray_is_refused(changed: dict[str, np.ndarray]) -> None:
    assert VIEWS["forest"].read(by_hand().arrays()) is not None
    assert VIEWS["forest"].read(by_hand().arrays() | changed) is None


@pytest.fixture(scope="module")
def hasher(digits: Stream) -> TreeShECC:
    return TreeShECC(bits=4).fit(digits.X[:300], digits.y[:300])


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("rights_", lambda array: array + 1),
        ("features_", lambda array: array + 10_000),
        ("roots_", lambda array: array[:-1]),
        ("bits_", lambda array: array * 2),
        ("bits_", lambda array: array * 0),
        ("numbers_", lambda array: np.full_like(array, 1e37)),
        ("roots_", lambda array: array[:0]),
    ],
)
def test_a_file_whose_trees_do_not_fit_is_refused(
    hasher: TreeShECC, tmp_path: Path, name: str, spoil: Any
) -> None:
    text, arrays = unpack_model(hasher.to_bytes(), "model")
    arrays[name] = spoil(arrays[name])
    path = tmp_path / "model"
    path.write_bytes(pack_model(json.loads(text), arrays))
    with pytest.raises(ModelFileError, match="trees"):
        load_hasher(path)


def test_rows_do_not_depend_on_their_neighbours(hasher: TreeShECC, digits: Stream) -> None:
    whole = hasher.margins(digits.X[:200])
    cut = [hasher.margins(digits.X[start : start + 7]) for start in range(0, 200, 7)]
    np.testing.assert_array_equal(np.vstack(cut)[:200], whole)


def test_an_index_follows_trees_that_are_grown_anew(digits: Stream) -> None:
    hasher = TreeShECC(bits=8).fit(digits.X[:300], digits.y[:300])
    index = Index(hasher)
    index.add(digits.X[:200])
    hasher.fit(digits.X[300:600], digits.y[300:600])
    index.refresh()
    fresh = Index(hasher)
    fresh.add(digits.X[:200])
    followed, found = (one.search(digits.X[600:620]) for one in (index, fresh))
    np.testing.assert_array_equal(followed.ids, found.ids)
    np.testing.assert_array_equal(followed.scores, found.scores)


def test_more_bits_than_a_forest_may_have_are_a_limit(digits: Stream) -> None:
    with pytest.raises(LimitError, match="bits"):
        TreeShECC(bits=10_000).fit(digits.X[:20], digits.y[:20])
