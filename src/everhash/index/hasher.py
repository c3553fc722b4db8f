"""What an index needs of a hasher, and what it makes of one that can say less."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.errors import NotFittedError
from everhash.learn.mapping import FrozenMapping
from everhash.learn.posterior import Posterior, nothing_learned
from everhash.learn.stream_hasher import StreamHasher
from everhash.learn.trust import prior_trust


@runtime_checkable
class Hasher(Protocol):
    """Hash functions and labels: all that `Index(hasher)` needs.

    `OnlineHasher` and all methods of `everhash.peers` keep this protocol, and so may a class of
    your own. Of the hashers of this package an index also asks how likely labels are, how far words
    may be trusted, and how often functions were solved anew. A class of your own is not asked: its
    probabilities are 0, so a search by meaning, which is the default, ranks by likeness alone.

    A hasher never sees an index, and an index never trains a hasher: they meet in `freeze`, the
    functions that stored bits are computed with, and in `versions_`, which says how often each
    function has changed, so that an index re-encodes only the bits that went stale.

    A collection asks for more: it writes its hasher to its file, so `everhash.create` takes only
    the hashers of this package.
    """

    @property
    def assigns_codewords(self) -> bool:
        """Whether each label has a codeword, by which its entries are ranked."""
        ...

    @property
    def bits(self) -> int:
        """k, the hash functions of a cycle."""
        ...

    @property
    def n_features_in_(self) -> int:
        """Features of a row; missing until the hasher has seen one."""
        ...

    @property
    def n_cycles_(self) -> int:
        """Cycles now."""
        ...

    @property
    def width_(self) -> int:
        """Bits now: k for each cycle."""
        ...

    @property
    def versions_(self) -> NDArray[np.int64]:
        """(width,) how often each function has changed; an unchanged count means unchanged bits."""
        ...

    @property
    def version_(self) -> int:
        """One number for all functions; it grows with every change and every new function."""
        ...

    @property
    def labels_(self) -> list[Hashable]:
        """Labels in order of arrival; a label's place here is its number. None if it is gone."""
        ...

    @property
    def words_(self) -> NDArray[np.int8]:
        """(n_labels, k) of -1 and +1: each label's codeword on its cycle; zeros without one."""
        ...

    @property
    def label_cycles_(self) -> NDArray[np.int64]:
        """(n_labels,) the cycle of each label."""
        ...

    def numbers(self, labels: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return the numbers of known labels; an unknown one is an error."""
        ...

    def check_room(self, labels: list[Hashable]) -> None:
        """Raise if these labels cannot all be assigned; change nothing."""
        ...

    def assign(self, labels: Iterable[Any]) -> object:
        """Give new labels their numbers, and codewords where the method has them."""
        ...

    def margins(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return (n, width) real values whose signs are the bits, as `freeze().margins` does.

        X is what the caller of `search` passed: check it, for example by `everhash.stream.as_rows`.
        """
        ...

    def freeze(self) -> FrozenMapping:
        """Return the functions as they are now; further learning does not change what it holds."""
        ...


def n_features_of(hasher: Hasher) -> int:
    """Return the features of a row, or raise if the hasher has seen none yet."""
    known = getattr(hasher, "n_features_in_", None)
    if known is None:
        raise NotFittedError
    return int(known)


def posterior_of(hasher: Hasher, rows: NDArray[np.float32]) -> Posterior:
    """Return how likely each label is for rows, and how novel they are.

    A hasher of another package says neither: its probabilities are 0, so likeness alone ranks.
    """
    if isinstance(hasher, StreamHasher):
        return hasher.posterior(rows)
    return nothing_learned(len(rows), len(hasher.words_))


def trust_of(hasher: Hasher) -> NDArray[np.float32]:
    """Return (bits + 1,) how often words at each distance have the label they are taken for."""
    return hasher.trust_ if isinstance(hasher, StreamHasher) else prior_trust(hasher.bits)


def rows_learned(hasher: Hasher) -> NDArray[np.int64] | None:
    """Return (n_labels,) how many rows of each label were learned; None if that is unknown."""
    return getattr(hasher, "label_counts_", None) if isinstance(hasher, StreamHasher) else None


def generation_of(hasher: Hasher) -> int:
    """Return how often all functions were solved as a whole; -1 if that is unknown."""
    return hasher.generation_ if isinstance(hasher, StreamHasher) else -1
