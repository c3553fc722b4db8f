"""What every hasher promises, whether it learns from a stream or from all rows at once."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from everhash.checks.judging import (
    Check,
    Make,
    Stream,
    learn,
    require,
    require_equal,
    require_refusal,
    require_same,
    taught,
)
from everhash.codes import Codes
from everhash.errors import (
    DimensionError,
    InputError,
    LabelError,
    NotFiniteError,
    NotFittedError,
)
from everhash.index.hasher import Hasher
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.model_file import load_hasher


def active_bits(hasher: StreamHasher) -> int:
    """Return how many bits of a codeword are not 0."""
    return hasher.bits if hasher.assigns_codewords else 0


def check_protocol(make: Make, stream: Stream) -> None:
    """A hasher is a `Hasher`, and `width_`, `versions_`, `encode` and `transform` agree."""
    hasher = taught(make, stream)
    promise = "a hasher follows the Hasher protocol"
    require(isinstance(hasher, Hasher), promise, f"{type(hasher).__name__} lacks part of it")
    codes = hasher.encode(stream.X[:5])
    require(isinstance(codes, Codes), promise, f"encode returned {type(codes).__name__}")
    widths = (codes.width, hasher.width_, len(hasher.versions_), hasher.codewords_.shape[1])
    require(len(set(widths)) == 1, "codes, width_, versions_ and codewords_ agree", f"{widths}")
    require_equal(codes.unpack(), hasher.transform(stream.X[:5]), "encode packs transform", "bits")
    known, met = len(hasher.codewords_), len(set(stream.y.tolist()))
    require(known == len(hasher.labels_) == met, "each label has a row in codewords_", f"{known}")
    active, expected = (hasher.codewords_ != 0).sum(axis=1), active_bits(hasher)
    promise = f"a codeword has {expected} active bits"
    require(bool((active == expected).all()), promise, f"{sorted(set(active.tolist()))}")


def check_rows_alone(make: Make, stream: Stream) -> None:
    """A row gets the same bits alone and among others."""
    hasher = taught(make, stream)
    X = stream.X[:40]
    margins = hasher.margins(X)
    promise = "a row's margins do not depend on the rows beside it"
    for row in range(len(X)):
        require_equal(hasher.margins(X[row : row + 1])[0], margins[row], promise, "margins")
    require_equal(hasher.margins(X[7:]), margins[7:], promise, "margins")


def check_same_seed(make: Make, stream: Stream) -> None:
    """The same seed and stream give the same bytes."""
    one, other = taught(make, stream), taught(make, stream)
    promise = "the same seed and stream give the same bytes"
    require_same(one, other, stream.X, promise)
    require(one.to_bytes() == other.to_bytes(), promise, "to_bytes() differs")


def check_save_and_load(make: Make, stream: Stream) -> None:
    """A loaded hasher is the saved one, and learns on exactly as that one would have."""
    half = len(stream.X) // 2
    hasher = taught(make, stream.part(0, half))
    with tempfile.TemporaryDirectory() as folder:
        hasher.save(Path(folder) / "hasher")
        loaded = load_hasher(Path(folder) / "hasher")
    promise = "a loaded hasher equals the saved one"
    require(type(loaded) is type(hasher), promise, f"it is of type {type(loaded).__name__}")
    require(loaded.to_bytes() == hasher.to_bytes(), promise, "to_bytes() differs")
    require_same(hasher, loaded, stream.X, promise)
    for one in (hasher, loaded):
        learn(one, *stream.part(half))
    require_same(hasher, loaded, stream.X, "a loaded hasher learns on as the saved one")


def check_before_learning(make: Make, stream: Stream) -> None:
    """What was learned cannot be asked for before anything was."""
    hasher = make()
    require_refusal(lambda: hasher.margins(stream.X[:3]), NotFittedError, "margins before learning")
    require_refusal(lambda: hasher.labels_, NotFittedError, "labels_ before learning")
    require_refusal(lambda: hasher.width_, NotFittedError, "width_ before learning")


def check_bad_rows(make: Make, stream: Stream) -> None:
    """Bad input is refused by a typed ValueError, and leaves the hasher as it was."""
    d, some = stream.X.shape[1], stream.part(0, len(stream.X) // 2)
    hasher, twin = taught(make, some), taught(make, some)
    ones = np.ones((2, d))
    bad: dict[str, tuple[Any, list[Any], type[Exception]]] = {
        "an empty batch": (np.ones((0, d)), [], InputError),
        "one axis": (np.ones(d), [1], InputError),
        "y of another length": (ones, [1], LabelError),
        "NaN": (np.vstack([ones[:1], np.full((1, d), np.nan)]), [1, 2], NotFiniteError),
        "infinity": (np.vstack([ones[:1], np.full((1, d), np.inf)]), [1, 2], NotFiniteError),
        "an unhashable label": (ones, [1, [2]], LabelError),
        "an infinite label": (ones, [1, float("inf")], LabelError),
    }
    for what, (X, y, error) in bad.items():
        for one in (hasher, make()):
            raised = require_refusal(partial(learn, one, X, y), error, what)
            require(isinstance(raised, ValueError), f"{what} raises a ValueError", repr(raised))
    wide = np.ones((2, d + 1))
    require_refusal(lambda: hasher.margins(wide), DimensionError, "hashing rows of another width")
    require_same(hasher, twin, stream.X, "a refused call leaves the hasher as it was")


def check_bad_row_is_named(make: Make, stream: Stream) -> None:
    """A row that is not finite is refused by its number."""
    X, y = stream.X[:9].copy(), stream.y[:9]
    X[6, 2] = np.nan
    raised: Any = require_refusal(lambda: learn(make(), X, y), NotFiniteError, "NaN in row 6")
    named = raised.row == 6 and "row 6" in str(raised)
    require(named, "the error names the row that is not finite", str(raised))


def check_frozen_mapping(make: Make, stream: Stream) -> None:
    """A frozen mapping does not move when its hasher learns on."""
    half = len(stream.X) // 2
    hasher = taught(make, stream.part(0, half))
    frozen, before = hasher.freeze(), hasher.margins(stream.X)
    promise = "a frozen mapping hashes as the hasher did when it was frozen"
    require_equal(frozen.margins(frozen.measure(stream.X)), before, promise, "margins")
    scores, words = frozen.scores(frozen.measure(stream.X)), hasher.codewords_
    close = np.allclose(scores, before @ words.T, rtol=0, atol=1e-3)
    require(close, "scores are margins times codewords", "they differ by more than 0.001")
    learn(hasher, *stream.part(half))
    require_equal(frozen.margins(frozen.measure(stream.X)), before, promise, "margins")
    moved = frozen.version != hasher.version_
    require(moved, "version_ changes with every change of the mapping", f"still {frozen.version}")


CHECKS: tuple[Check, ...] = (
    check_protocol,
    check_rows_alone,
    check_same_seed,
    check_save_and_load,
    check_before_learning,
    check_bad_rows,
    check_bad_row_is_named,
    check_frozen_mapping,
)
