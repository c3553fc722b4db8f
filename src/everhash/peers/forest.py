"""Decision trees as arrays, and rows as trees see them.

A fitted tree of scikit-learn becomes a few numbers a node, so that a file of them names no code.
All trees are stored in one list of nodes, each node before its children, its left child right
after it:

    features    (m,) the feature a node asks for
    numbers     (m,) what an inner node compares it with; what a leaf says
    rights      (m,) place of the right child; 0 at a leaf, as no child comes first
    roots       (t,) place of each tree's first node, in rising order
    bits        (t,) the bit a tree votes on, in rising order

A row goes on to the left where its feature is at most the node's number. What a leaf says holds the
weight of its tree already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash import kernels
from everhash.errors import LimitError
from everhash.learn.centering import unit_rows
from everhash.learn.model_format import require
from everhash.learn.views import Centred, View
from everhash.peers.batch_method import BatchMethod
from everhash.peers.method import Floats, Layout
from everhash.stream import MAX_FEATURE

Places = NDArray[np.int32]

MAX_BITS = 4096
"""Bits a forest may have: its functions are an identity matrix."""


class Tree(NamedTuple):
    """One tree; places are counted from its root."""

    features: Places
    numbers: Floats
    rights: Places


def tree_of(fitted: Any, spoken: NDArray[np.floating[Any]]) -> Tree:
    """Return a fitted tree of scikit-learn. What a leaf says stands at its place in `spoken`.

    scikit-learn compares float32 features with float64 thresholds. So do we when a threshold is
    rounded down to the next float32.
    """
    nodes = fitted.tree_
    leaf = nodes.children_left < 0
    if (nodes.children_left[~leaf] != np.flatnonzero(~leaf) + 1).any():
        raise ValueError("a left child must follow its parent")
    exact = nodes.threshold
    near = exact.astype(np.float32)
    below = np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
    return Tree(
        features=np.where(leaf, 0, nodes.feature).astype(np.int32),
        numbers=np.where(leaf, spoken, below).astype(np.float32),
        rights=np.where(leaf, 0, nodes.children_right).astype(np.int32),
    )


def said_by(tree: Tree, Z: Floats) -> Floats:
    """Return (n,) what a tree says of rows."""
    votes = np.zeros((len(Z), 1), np.float32)
    only = np.zeros(1, np.int32)
    kernels.load_forest().add_votes(Z, *tree, only, only, votes)
    return votes[:, 0]


@dataclass(frozen=True, eq=False)
class Forest(Centred):
    """Rows as trees vote on them: the sum of a bit's trees, all bits scaled to unit length.

    The functions that go with it are the identity matrix.
    """

    features: Places
    numbers: Floats
    rights: Places
    roots: Places
    bits: Places
    kind: ClassVar[str] = "forest"
    LAYOUT: ClassVar = Centred.LAYOUT | {
        "features": (np.int32, 1),
        "numbers": (np.float32, 1),
        "rights": (np.int32, 1),
        "roots": (np.int32, 1),
        "bits": (np.int32, 1),
    }

    @property
    def width(self) -> int:
        """Numbers a seen row has."""
        return int(self.bits[-1]) + 1

    def of(self, X: Floats) -> Floats:
        """Return (n, b) seen rows."""
        votes = np.zeros((len(X), self.width), np.float32)
        kernels.load_forest().add_votes(
            unit_rows(X, self.center),
            self.features,
            self.numbers,
            self.rights,
            self.roots,
            self.bits,
            votes,
        )
        return unit_rows(votes, np.zeros(self.width, np.float32))

    def is_sound(self) -> bool:
        """Whether every row finds its way through every tree to one of that tree's leaves."""
        m, t = len(self.numbers), len(self.roots)
        if not (len(self.features) == len(self.rights) == m and len(self.bits) == t > 0):
            return False
        if self.roots[0] != 0 or self.bits[0] != 0:
            return False
        ends = np.append(self.roots[1:], m)
        if not (self.roots < ends).all() or not np.isin(np.diff(self.bits), (0, 1)).all():
            return False
        inner = np.flatnonzero(self.rights)
        end = ends[np.searchsorted(self.roots, inner, side="right") - 1]
        # behind the left child and in the same tree: a walk takes no more steps than it has nodes
        right = self.rights[inner]
        forward = bool(((inner + 1 < right) & (right < end)).all())
        known = bool(((self.features >= 0) & (self.features < self.n_features)).all())
        # no sum of votes can be beyond the largest number
        return forward and known and float(np.abs(self.numbers).sum(dtype=np.float64)) < MAX_FEATURE


class ForestMethod(BatchMethod):
    """A method whose bits are votes of trees. A subclass plants them (`_plant`)."""

    features_: Places
    numbers_: Floats
    rights_: Places
    roots_: Places
    bits_: Places

    def _layout(self) -> Layout:
        return super()._layout() | {
            f"{name}_": (dtype, (None,) * axes)
            for name, (dtype, axes) in Forest.LAYOUT.items()
            if name != "center"
        }

    def _read_options(self, n_features: int, first: bool) -> dict[str, Any]:
        options = super()._read_options(n_features, first)
        if options["bits"] > MAX_BITS:
            raise LimitError(f"{options['bits']} bits, at most {MAX_BITS} are supported")
        return options

    @property
    def _seen_width(self) -> int:
        return int(self._begun["bits"])

    @property
    def _view(self) -> View:
        trees = (self.features_, self.numbers_, self.rights_, self.roots_, self.bits_)
        return Forest(self.mean_, *trees)

    def _plant(self, trees: Iterable[tuple[int, Tree]]) -> None:
        """Let these be the trees, each with the bit it votes on, in the order of bits."""
        bits, planted = zip(*trees, strict=True)
        sizes = [len(tree.numbers) for tree in planted]
        roots = np.cumsum([0, *sizes[:-1]])
        shifts = np.repeat(roots, sizes)
        rights = np.concatenate([tree.rights for tree in planted])
        self.features_ = np.concatenate([tree.features for tree in planted])
        self.numbers_ = np.concatenate([tree.numbers for tree in planted])
        self.rights_ = np.where(rights > 0, rights + shifts, 0).astype(np.int32)
        self.roots_ = roots.astype(np.int32)
        self.bits_ = np.array(bits, np.int32)
        self.functions_[:] = np.eye(len(self.functions_))

    def _check_state(self) -> None:
        super()._check_state()
        view = self._view
        fits = view.is_sound() and view.width == self._seen_width
        require(fits, "arrays of the trees do not fit each other")
