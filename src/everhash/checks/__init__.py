"""What a hasher promises, as checks that anybody can run on a method of their own.

everhash.checks.check_hasher(lambda: MyHasher(bits=16))    # all that apply, or a CheckError
everhash.checks.names()                                    # for pytest.mark.parametrize
everhash.checks.get("check_same_seed")                     # one, to call with a maker and a stream

A check takes a function that returns a new hasher, and a stream of labelled rows to learn from. It
needs neither pytest nor a data set; `sample_stream` makes rows. everhash's own methods pass all.
"""

from __future__ import annotations

from everhash.checks import batch, every, online
from everhash.checks.judging import MIN_ROWS, Check, CheckError, Make, Stream, sample_stream
from everhash.errors import InputError, UnknownNameError
from everhash.peers.batch_method import BatchMethod
from everhash.peers.registry import names as methods

__all__ = ["CheckError", "Stream", "check_hasher", "get", "names", "sample_stream"]

_KINDS = {"every": every.CHECKS, "online": online.CHECKS, "batch": batch.CHECKS}
_ALL: dict[str, Check] = {check.__name__: check for checks in _KINDS.values() for check in checks}
_LOADS = {"check_save_and_load", "check_assigned_labels_are_saved"}


def names(kind: str | None = None) -> list[str]:
    """Return the names of all checks, or of those for "every" hasher, "online" or "batch" ones.

    >>> names("batch")[0]
    'check_streams_are_refused'
    """
    if kind is not None and kind not in _KINDS:
        raise UnknownNameError(f"no kind of checks {kind!r}", hint=f"there are {', '.join(_KINDS)}")
    chosen = _ALL.values() if kind is None else _KINDS[kind]
    return [check.__name__ for check in chosen]


def get(name: str) -> Check:
    """Return a check by its name."""
    if name not in _ALL:
        raise UnknownNameError(f"no check {name!r}", hint=f"there are {', '.join(_ALL)}")
    return _ALL[name]


def check_hasher(make: Make, stream: Stream | None = None) -> list[str]:
    """Run every check that applies, and return their names. A broken promise is a CheckError.

    Files are checked for methods that `everhash.peers` lists: `load_hasher` reads no others.

    Args:
        make: returns a hasher that has learned nothing, always with the same options.
        stream: what to learn from, 1,600 rows or more; `sample_stream()` by default.
    """
    hasher, rows = make(), sample_stream() if stream is None else stream
    if len(rows.X) < MIN_ROWS:
        raise InputError(f"{len(rows.X)} rows, checks need {MIN_ROWS}", hint="pass a longer stream")
    kind = "batch" if isinstance(hasher, BatchMethod) else "online"
    ran = [*names("every"), *names(kind)]
    if hasher.method not in methods():
        ran = [name for name in ran if name not in _LOADS]
    for name in ran:
        get(name)(make, rows)
    return ran
