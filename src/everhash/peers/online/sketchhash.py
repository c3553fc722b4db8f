"""Online Sketching Hashing (Leng, Wu, Cheng, Bai, Lu, CVPR 2015). Needs no labels.

    paper                   here
    W                       functions_      (bits, d), a function a row
    mu, n                   mean_, seen_    running mean of the rows, and how many they are
    sketch B, l             sketch_, sketch (l, d) rows with B^T B close to the rows' scatter
    V                       `_top`          the sketch's strongest right singular vectors
    R                       `_turn`         a rotation of V

Rows are learned `batch` at a time, and wait until there are as many. A batch X_B of n_B rows with
mean m moves the mean, and adds to the sketch its rows less their own mean, and one row more,

    sqrt(n n_B / (n + n_B)) (m - mu),

with which their scatter is exactly that of all rows about the mean of all (zero mean sketching).
The sketch keeps l rows by frequent directions (Liberty, KDD 2013). When rows would not fit, with
B = U S V^T,

    B <- sqrt(max(S^2 - theta, 0)) V^T,    theta = the square of singular value number l/2 + 1,

which leaves l/2 rows at most. Of the rows A that were added it stays true that

    0 <= |A x|^2 - |B x|^2 <= |A|_F^2 / (l/2 + 1)    for every x of unit length.

Functions are the strongest directions V of the sketch, rotated so that variance spreads over all of
them: W = R V. They see rows from the running mean.

Defaults: batch 50 and sketch 200 as in the release of MIHash, which adapted the authors' code. No
kernel. Beyond 100 bits the sketch is twice the bits: after it has shrunk l/2 directions are left.

Where we differ, on purpose:
  * The rotation is drawn anew with each batch by the authors, and with it every bit. Ours turns the
    new directions to where the functions stood (orthogonal Procrustes), and functions start at
    random, so that the first rotation is random and those after it change no more than they must.
    Signs and order of singular vectors, which mean nothing, then have no say. On CNN features of
    CIFAR-10 an entry of 32 bits flips 36 bits in the 40 batches of 2,000 rows, instead of 626, or
    163 with one rotation and signs that are kept; mAP is the same.
  * State lives on between batches. The release loses mean, count and sketch, and so its functions
    are those of the last batch.
  * The sketch shrinks when a batch would not fit instead of when a row would not, and holds
    orthogonal rows from batch to batch, so that one decomposition a batch serves both the shrinking
    and the functions. The bound above holds for any moment of shrinking.
  * Where rows vary in fewer directions than there are bits, the other functions stay as near to
    where they were as being orthogonal allows: for rows that vary as those did they do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from everhash.errors import OptionError
from everhash.learn.model_format import require
from everhash.learn.options import whole_number
from everhash.learn.views import Centred, View
from everhash.peers.batched import BatchedMethod, batch_size
from everhash.peers.description import Description
from everhash.peers.method import Counts, Doubles, Floats, Layout
from everhash.peers.options import option
from everhash.stream import MAX_FEATURE

MIN_AUTO_SKETCH = 200
"""Rows of a sketch whose size is left to the bits, at least."""
MAX_SKETCH = 4096
"""Rows of a sketch."""
FAINT = 1e-12
"""Directions with less than this share of the strongest one's variance are rounding errors."""


def sketch_rows(name: str, value: Any) -> int | None:
    """Return an option that says how many rows a sketch has; None leaves it to the bits."""
    if value is None:
        return None
    rows = whole_number(name, value, least=2, most=MAX_SKETCH)
    if rows % 2:
        raise OptionError(f"{name} must be even, got {rows}")
    return rows


@dataclass(eq=False, repr=False)
class SketchHash(BatchedMethod):
    """The strongest directions of all rows so far, from a sketch of them, and rotated."""

    about: ClassVar = Description(
        name="sketchhash",
        title="Online Sketching Hashing",
        year=2015,
        citation="C. Leng, J. Wu, J. Cheng, X. Bai, H. Lu: Online Sketching Hashing, IEEE "
        "Conference on Computer Vision and Pattern Recognition, 2015",
        supervised=False,
        needs="nothing",
        codewords=False,
        batch=50,
    )
    max_value: ClassVar[float] = MAX_FEATURE  # rows wait as they came
    sketch: int | None = option(None, sketch_rows)
    batch: int = option(50, batch_size)
    mean_: Doubles = field(init=False)
    """(d,) mean of the rows learned."""
    seen_: Counts = field(init=False)
    """(1,) how many those are."""
    sketch_: Doubles = field(init=False)
    """(sketch, d) orthogonal rows, the longest first; zeros where there is room."""

    def _read_options(self, n_features: int, first: bool) -> dict[str, Any]:
        options = super()._read_options(n_features, first)
        bits, half = options["bits"], _sketch_size(options) // 2
        if bits > n_features:
            raise OptionError(f"bits must be at most {n_features}, the features, got {bits}")
        if bits > half:
            raise OptionError(
                f"bits must be at most {half}, half the rows of the sketch, got {bits}",
                hint=f"pass a larger sketch; it may have {MAX_SKETCH} rows",
            )
        return options

    def _layout(self) -> Layout:
        d = self.n_features_in_
        return super()._layout() | {
            "mean_": (np.float64, (d,)),
            "seen_": (np.int64, (1,)),
            "sketch_": (np.float64, (_sketch_size(self._begun), d)),
        }

    def _start(self) -> None:
        self.functions_[:] = self._random_functions()

    @property
    def _view(self) -> View:
        return Centred(self.mean_.astype(np.float32))

    def _take(self, X: Floats, step_rows: Counts, step_labels: Counts) -> None:  # noqa: ARG002
        """Learn all rows as they are. Labels do not matter: every row waits as number 0."""
        self._learn(X, np.zeros(len(X), np.int64))

    def _learn_batch(self, Z: Floats, labels: Counts) -> None:  # noqa: ARG002
        """Add a batch to the sketch, and turn to where that points."""
        self._sketch(self._centred(Z.astype(np.float64)))
        self._turn()

    def _centred(self, rows: Doubles) -> Doubles:
        """Move the mean, and return rows whose scatter adds to that of all rows before."""
        n, more = int(self.seen_[0]), len(rows)
        mean = rows.mean(axis=0)
        apart = mean - self.mean_
        self.mean_ += more / (n + more) * apart
        self.seen_ += more
        return np.vstack([rows - mean, np.sqrt(n * more / (n + more)) * apart])

    def _sketch(self, rows: Doubles) -> None:
        """Add rows to the sketch, which shrinks where they would not fit."""
        half = len(self.sketch_) // 2
        for start in range(0, len(rows), half):
            part = rows[start : start + half]
            held = self.sketch_[: self.sketch_.any(axis=1).sum()]
            if len(held) + len(part) > len(self.sketch_):
                held = shrunk(held, half)
            held = orthogonal(np.vstack([held, part]))
            self.sketch_[:] = 0
            self.sketch_[: len(held)] = held

    def _turn(self) -> None:
        """Turn the sketch's strongest directions to where the functions are, and serve them."""
        top = self.sketch_[: len(self.functions_)]
        lengths = np.linalg.norm(top, axis=1)
        found = lengths**2 > FAINT * lengths[0] ** 2
        top = top[found] / lengths[found, None]
        basis = top if found.all() else filled_up(top, self.functions_)
        left, _, right = np.linalg.svd(self.functions_ @ basis.T)
        self.functions_[:] = left @ right @ basis
        self.updates_ += 1

    def _check_state(self) -> None:
        super()._check_state()
        require(bool((np.abs(self.mean_) < MAX_FEATURE).all()), "the mean is out of range")
        most = 2 * MAX_FEATURE * np.sqrt(float(self.seen_[0]) * len(self.mean_))
        require(bool((np.abs(self.sketch_) <= most).all()), "the sketch is longer than its rows")


def _sketch_size(options: dict[str, Any]) -> int:
    return int(options["sketch"] or min(MAX_SKETCH, max(MIN_AUTO_SKETCH, 2 * options["bits"])))


def orthogonal(rows: Doubles) -> Doubles:
    """Return orthogonal rows with the same scatter B^T B, the longest first, at most d of them.

    >>> orthogonal(np.array([[3.0, 0.0], [4.0, 0.0]])).round(9).__abs__().tolist()
    [[5.0, 0.0], [0.0, 0.0]]
    """
    _, turns = np.linalg.eigh(rows @ rows.T)
    turned: Doubles = turns[:, ::-1].T[: rows.shape[1]] @ rows
    return turned


def shrunk(rows: Doubles, half: int) -> Doubles:
    """Return the first `half` of orthogonal rows, their squares less that of the row after them.

    >>> shrunk(np.array([[5.0, 0.0], [0.0, 3.0]]), 1).tolist()
    [[4.0, 0.0]]
    """
    squares = (rows**2).sum(axis=1)
    share = np.divide(squares[half], squares[:half], out=np.ones(half), where=squares[:half] > 0)
    shorter: Doubles = np.sqrt(np.maximum(1 - share, 0))[:, None] * rows[:half]
    return shorter


def filled_up(top: Doubles, functions: Floats) -> Doubles:
    """Return as many orthogonal directions as functions: `top`, then functions less those."""
    basis: Doubles = np.linalg.qr(np.vstack([top, functions]).T)[0].T[: len(functions)]
    return basis
