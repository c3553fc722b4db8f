"""What a method promises that learns from all its rows at once."""

from __future__ import annotations

from everhash.checks.judging import (
    Check,
    Make,
    Stream,
    require,
    require_equal,
    require_refusal,
    taught,
)
from everhash.errors import LabelError, NotFittedError, NotOnlineError
from everhash.peers.batch_method import BatchMethod


def batch(make: Make) -> BatchMethod:
    """Return a new hasher, known to be a batch method."""
    hasher = make()
    if not isinstance(hasher, BatchMethod):
        raise TypeError(f"{type(hasher).__name__} is not a batch method")
    return hasher


def check_streams_are_refused(make: Make, stream: Stream) -> None:
    """`partial_fit` and `begin` raise an error that says to call fit."""
    hasher = batch(make)
    raised = require_refusal(lambda: hasher.partial_fit(*stream), NotOnlineError, "partial_fit")
    require("fit(X, y)" in str(raised), "the error says to call fit(X, y)", str(raised))
    require_refusal(lambda: hasher.begin(stream.X.shape[1]), NotOnlineError, "begin")
    require_refusal(lambda: hasher.margins(stream.X), NotFittedError, "margins before fit")


def check_fit_again(make: Make, stream: Stream) -> None:
    """Each fit moves every version."""
    half = len(stream.X) // 2
    hasher = taught(make, stream.part(0, half))
    versions, version = hasher.versions_, hasher.version_
    hasher.fit(*stream.part(half))
    promise = "each fit moves every version"
    found = f"{versions.tolist()} -> {hasher.versions_.tolist()}"
    require(bool((hasher.versions_ > versions).all()), promise, found)
    require(hasher.version_ > version, "each fit moves version_", f"{hasher.version_}")


def check_progress(make: Make, stream: Stream) -> None:
    """Reported progress rises, and ends at 1."""
    shares: list[float] = []
    batch(make).fit(*stream, progress=shares.append)
    rises = shares == sorted(set(shares)) and shares[-1:] == [1.0]
    require(rises, "reported progress rises to 1", f"{shares[-5:]}")


def check_labels_needed(make: Make, stream: Stream) -> None:
    """Labels are asked for exactly where the method needs them."""
    hasher = batch(make)
    if hasher.about.supervised:
        raised = require_refusal(lambda: hasher.fit(stream.X), LabelError, "fit without labels")
        says = "no row has one" in str(raised)
        require(says, "the error says that no row has a label", str(raised))
        return
    blind, seeing = batch(make).fit(stream.X), batch(make).fit(*stream)
    promise = "labels change nothing for a method that needs none"
    require_equal(blind.margins(stream.X), seeing.margins(stream.X), promise, "margins")


CHECKS: tuple[Check, ...] = (
    check_streams_are_refused,
    check_fit_again,
    check_progress,
    check_labels_needed,
)
