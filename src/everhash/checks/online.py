"""What a hasher promises that learns from a stream."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from everhash.checks.every import active_bits
from everhash.checks.judging import (
    Check,
    Make,
    Stream,
    require,
    require_equal,
    require_refusal,
    require_same,
    taught,
)
from everhash.errors import DimensionError, LimitError, OptionError
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.method import Method
from everhash.peers.model_file import load_hasher


def mixed_labels(stream: Stream) -> list[Any]:
    """Return a mix of single labels, rows without a label and rows with two labels."""
    known = sorted(set(stream.y.tolist()))
    after = dict(pairwise([*known, known[0]]))
    return [
        None if row % 7 == 0 else {label, after[label]} if row % 11 == 0 else label
        for row, label in enumerate(stream.y.tolist())
    ]


def learns_unlabelled(hasher: StreamHasher) -> bool:
    """Whether rows without labels teach the hasher something."""
    blind = isinstance(hasher, Method) and not hasher.about.supervised
    return blind or getattr(hasher, "learn_unlabelled", False) is True


def check_batch_boundaries(make: Make, stream: Stream) -> None:
    """How rows fall into calls of partial_fit changes no bit."""
    X, y = stream.X, mixed_labels(stream)
    whole = make().partial_fit(X, y)
    parts, rng = make(), np.random.default_rng(0)
    cuts = np.unique(rng.integers(1, len(X), 6)).tolist()
    for start, end in pairwise([0, *cuts, len(X)]):
        parts.partial_fit(X[start:end], y[start:end])
    require_same(whole, parts, X, f"batches cut at {cuts} learn what one batch does")


def check_one_row_at_a_time(make: Make, stream: Stream) -> None:
    """A stream handed over row by row teaches what it does as one batch."""
    whole, rows = taught(make, stream), make()
    for row in range(len(stream.X)):
        rows.partial_fit(*stream.part(row, row + 1))
    require_same(whole, rows, stream.X, "one row at a time learns what one batch does")


def check_versions(make: Make, stream: Stream) -> None:
    """A function whose version stands still gives the same bits; version_ moves with any."""
    most = 2 * len(stream.X) // 3
    hasher = taught(make, stream.part(0, most))
    moved = False
    for start in range(most, len(stream.X), 2):
        bits, versions, stamp = hasher.transform(stream.X), hasher.versions_, hasher.version_
        hasher.partial_fit(*stream.part(start, start + 2))
        still = hasher.versions_[: len(versions)] == versions
        after = hasher.transform(stream.X)[:, : len(versions)]
        promise = "an unchanged version means unchanged bits"
        require_equal(bits[:, still], after[:, still], promise, "bits")
        same = hasher.width_ == len(versions) and bool(still.all())
        promise = "version_ stands still exactly while all of versions_ do"
        require((hasher.version_ == stamp) == same, promise, f"{stamp} -> {hasher.version_}")
        moved |= not still.all()
    require(moved, "a third of the stream changes some function", "no version moved")


def check_unlabelled_rows(make: Make, stream: Stream) -> None:
    """Rows without labels teach nothing to a method that needs labels, once its centre is still."""
    known = 2 * len(stream.X) // 3
    hasher = taught(make, stream.part(0, known))
    before, versions = hasher.margins(stream.X), hasher.versions_
    rest = stream.X[known:]
    hasher.partial_fit(rest)
    hasher.partial_fit(rest, [None] * len(rest))
    if learns_unlabelled(hasher):
        return
    promise = "rows without labels teach nothing"
    require_equal(hasher.margins(stream.X), before, promise, "margins")
    require_equal(hasher.versions_, versions, promise, "versions")


def check_codewords_stay(make: Make, stream: Stream) -> None:
    """A label keeps its codeword, and new bits of it are inactive."""
    hasher, words = make(), dict[Any, Any]()
    for rows in np.array_split(np.argsort(stream.y, kind="stable"), 12):
        hasher.partial_fit(stream.X[rows], stream.y[rows])
        for label, word in zip(hasher.labels_, hasher.codewords_, strict=True):
            known = words.setdefault(label, word)
            require_equal(word[: len(known)], known, f"{label!r} keeps its codeword", "bits")
            added = word[len(known) :]
            require(not added.any(), "widening adds only inactive bits", f"{added.tolist()}")


def check_other_width(make: Make, stream: Stream) -> None:
    """Rows of another width than the first ones are refused, and change nothing."""
    some = stream.part(0, len(stream.X) // 2)
    hasher, twin = taught(make, some), taught(make, some)
    narrow = np.ones((2, stream.X.shape[1] - 1))
    what = "learning rows of another width"
    require_refusal(lambda: hasher.partial_fit(narrow, [1, 2]), DimensionError, what)
    require_same(hasher, twin, stream.X, "a refused call leaves the hasher as it was")


def check_new_labels(make: Make, stream: Stream) -> None:
    """New labels are welcome in mid-stream, unless the method must know their number."""
    third = len(stream.X) // 3
    some, later = stream.part(0, third), stream.X[third : 2 * third]
    hasher, twin = taught(make, some), taught(make, some)
    known, new = len(hasher.labels_), [("new", row % 30) for row in range(len(later))]
    if isinstance(hasher, Method) and hasher.about.needs_class_count:
        what = "a label more than `classes` says"
        raised = require_refusal(lambda: hasher.partial_fit(later, new), LimitError, what)
        require("classes" in str(raised), "the error names the option `classes`", str(raised))
        require_same(hasher, twin, stream.X, "a refused label leaves the hasher as it was")
        return
    hasher.partial_fit(later, new)
    total = known + len(set(new))
    promise = "labels never seen before are learned"
    require(len(hasher.labels_) == total, promise, f"{len(hasher.labels_)} labels, not {total}")


def check_options_stay(make: Make, stream: Stream) -> None:
    """Bits cannot change once learning has begun."""
    hasher = taught(make, stream.part(0, 50))
    if "bits" in hasher.get_params():
        hasher.set_params(bits=hasher.bits + 1)
        what = "changing bits in mid-stream"
        more = stream.part(50, 60)
        raised = require_refusal(lambda: hasher.partial_fit(*more), OptionError, what)
        says = "once learning has begun" in str(raised)
        require(says, "the error says that learning has begun", str(raised))


def check_assigned_labels(make: Make, stream: Stream) -> None:
    """Labels that are assigned have codewords before any row of theirs comes."""
    known = 2 * len(stream.X) // 3
    hasher = taught(make, stream.part(0, known))
    n_labels, versions = len(hasher.labels_), hasher.versions_
    bits, old = hasher.transform(stream.X), hasher.labels_[0]
    hasher.assign(["owl", old, "owl", "lark"])
    added = hasher.labels_[n_labels:]
    require(added == ["owl", "lark"], "assign numbers labels in order, each once", f"{added}")
    active, expected = (hasher.codewords_[n_labels:] != 0).sum(axis=1), active_bits(hasher)
    promise = f"an assigned label has {expected} active bits"
    require(bool((active == expected).all()), promise, f"{active.tolist()}")
    still = hasher.versions_[: len(versions)] == versions
    after = hasher.transform(stream.X)[:, : len(versions)]
    promise = "an unchanged version means unchanged bits"
    require_equal(after[:, still], bits[:, still], promise, "bits")


def check_assigned_labels_are_saved(make: Make, stream: Stream) -> None:
    """Labels that were assigned are saved, and learned after loading as before."""
    known = 2 * len(stream.X) // 3
    hasher = taught(make, stream.part(0, known)).assign(["owl", "lark"])
    with tempfile.TemporaryDirectory() as folder:
        hasher.save(Path(folder) / "hasher")
        loaded = load_hasher(Path(folder) / "hasher")
    later = stream.X[known : known + 100]
    for one in (hasher, loaded):
        one.partial_fit(later, ["lark"] * len(later))
    require_same(hasher, loaded, stream.X, "a loaded hasher learns assigned labels alike")


CHECKS: tuple[Check, ...] = (
    check_batch_boundaries,
    check_one_row_at_a_time,
    check_versions,
    check_unlabelled_rows,
    check_codewords_stay,
    check_other_width,
    check_new_labels,
    check_options_stay,
    check_assigned_labels,
    check_assigned_labels_are_saved,
)
