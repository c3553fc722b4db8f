"""What the checks are written with: a stream to learn from, and errors that say what was broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.batch_method import BatchMethod

Make = Callable[[], StreamHasher]
"""Returns a hasher that has learned nothing, always with the same options."""


class CheckError(AssertionError):
    """A hasher has broken a promise. The message says which one, and what happened instead."""


class Stream(NamedTuple):
    """Labelled rows in the order of their arrival."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]

    def part(self, start: int, stop: int | None = None) -> Stream:
        """Return the rows from start to stop."""
        return Stream(self.X[start:stop], self.y[start:stop])


Check = Callable[[Make, Stream], None]


MIN_ROWS = 1600
"""Rows of a stream that has some left after the 1,000 during which a running centre moves."""


def sample_stream(
    rows: int = MIN_ROWS, features: int = 16, labels: int = 10, seed: int = 0
) -> Stream:
    """Return rows around one point a label, in an order that mixes labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, labels, rows)
    centres = 4 * rng.standard_normal((labels, features))
    X = centres[y] + rng.standard_normal((rows, features)) + 3
    return Stream(X.astype(np.float32), y)


def learn(hasher: StreamHasher, X: Any, y: Any = None) -> StreamHasher:
    """Learn rows by the call that this kind of hasher has: `fit` or `partial_fit`."""
    return hasher.fit(X, y) if isinstance(hasher, BatchMethod) else hasher.partial_fit(X, y)


def taught(make: Make, stream: Stream) -> StreamHasher:
    """Return a new hasher that has learned the stream."""
    return learn(make(), *stream)


def require(kept: Any, promise: str, found: str) -> None:
    """Raise a CheckError unless the promise was kept."""
    if not kept:
        raise CheckError(f"promised: {promise}; found: {found}")


def require_equal(one: Any, other: Any, promise: str, what: str) -> None:
    """Raise a CheckError unless two arrays are equal to the last bit."""
    first, second = np.asarray(one), np.asarray(other)
    if first.shape != second.shape:
        raise CheckError(f"promised: {promise}; found: {what} {first.shape}, not {second.shape}")
    differ = int(np.count_nonzero(first != second))
    require(differ == 0, promise, f"{differ} of {first.size} {what} differ")


def require_same(
    one: StreamHasher, other: StreamHasher, X: NDArray[np.float32], promise: str
) -> None:
    """Raise a CheckError unless two hashers know the same labels and hash rows alike."""
    require(one.labels_ == other.labels_, promise, f"labels {one.labels_} and {other.labels_}")
    require_equal(one.codewords_, other.codewords_, promise, "bits of codewords")
    require_equal(one.versions_, other.versions_, promise, "versions")
    require_equal(one.margins(X), other.margins(X), promise, "margins")


def require_refusal(call: Callable[[], Any], error: type[Exception], what: str) -> Exception:
    """Raise a CheckError unless a call raises this error; return the error it raised."""
    promise = f"{what} raises {error.__name__}"
    try:
        call()
    except error as raised:
        return raised
    except Exception as raised:
        raise CheckError(f"promised: {promise}; found: {raised!r:.200}") from raised
    raise CheckError(f"promised: {promise}; found: no error")
