"""Speed against what people would use instead.

An item is what is measured and the peer it is compared with; see `everhash.bench.costs.races`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from everhash.bench.costs import races, timing
from everhash.bench.costs.races import Outcome
from everhash.bench.costs.search import FLAT, IVF, PRODUCT, USEARCH
from everhash.bench.costs.synthetic import SYNTHETIC
from everhash.bench.datasets import Dataset
from everhash.bench.task import Task
from everhash.errors import DataMissingError, OptionError
from everhash.learn.options import whole_number

MAX_SIZE, MAX_FEATURES = 100_000_000, 100_000
A_ROW, A_QUERY = "us a row", "us a query"


class Item(NamedTuple):
    """How something is measured, in which unit, and how much faster than the peer it should be."""

    measure: Callable[[Task, int], Outcome]
    unit: str
    wanted: float | None = None
    """The ratio of the first prototypes, on another machine; None where there was none."""
    real: bool = False
    """Whether the task must name a data set; otherwise rows and codes are synthetic."""
    takes_features: bool = False
    """Whether the task may say how many features its rows have."""


def measure(task: Task, _data: Dataset) -> dict[str, Any]:
    """Return how long ours and its peer took, and how many times faster ours is."""
    what, peer, size = read_options(task)
    item = ITEMS[what, peer]
    try:
        outcome = item.measure(task, size)
    except DataMissingError as error:
        outcome = Outcome(None, None, f"left out: {error}")
    known = outcome.ours is not None and outcome.peer is not None
    return {
        "what": what,
        "ours": outcome.ours,
        "peer": outcome.peer,
        "peer_name": peer,
        "ratio": outcome.peer / outcome.ours if known else None,  # type: ignore[operator]
        "wanted": item.wanted,
        "unit": item.unit,
        "note": outcome.note,
        "load": timing.load(),
    }


def read_options(task: Task) -> tuple[str, str, int]:
    """Return what a task measures, its peer and its size; raise if they make no sense."""
    options = dict(task.options)
    what, peer, size = (options.pop(name, None) for name in ("what", "peer", "size"))
    item = ITEMS.get((what, peer))
    if item is None:
        known = "; ".join(f"{what} / {peer}" for what, peer in ITEMS)
        raise OptionError(
            f"cannot compare {what!r} with {peer!r}", hint=f"expected one of: {known}"
        )
    if item.takes_features and "features" in options:
        whole_number("features", options.pop("features"), least=1, most=MAX_FEATURES)
    if options:
        raise OptionError(
            f"{what} has no option {min(options)!r}",
            hint="expected what, peer and size" + (", or features" * item.takes_features),
        )
    if item.real == (task.dataset == SYNTHETIC):
        wanted = "a real one" if item.real else repr(SYNTHETIC)
        raise OptionError(f"{what} needs {wanted} as its data set, got {task.dataset!r}")
    return what, peer, whole_number("size", size, least=1, most=MAX_SIZE)


def _searches() -> dict[tuple[str, str], Item]:
    """Return every search contest, at once and one by one, against each peer in it."""
    wanted = {
        ("search, uniform codes, at once", "FAISS flat"): 6.0,
        ("search, uniform codes, one by one", "FAISS flat"): 3.6,
        ("search, clustered codes, at once", "FAISS flat"): 115.0,
        ("search, clustered codes, at once", "FAISS IVF"): 5.7,
    }
    items = {}
    for codes in races.CONTESTS:
        known = {"FAISS flat": FLAT}
        if codes.startswith("asymmetric"):
            known = {"matrix product": PRODUCT}
        elif "clustered" in codes:
            known["FAISS IVF"] = IVF
        elif "uniform" in codes:
            known["usearch"] = USEARCH
        for way, figure in races.WAYS.items():
            for peer, name in known.items():
                run = partial(races.searching, codes, figure, name)
                key = f"{codes}, {way}", peer
                items[key] = Item(run, A_QUERY, wanted.get(key), real="real" in codes)
    return items


SQLITE, ALL_BITS = "SQLite", "full re-encoding"
GRADIENT = "learning, gradient steps"
ITEMS: dict[tuple[str, str], Item] = {
    (GRADIENT, "NumPy"): Item(partial(races.learning, "NumPy"), A_ROW, 6.4, takes_features=True),
    (GRADIENT, "scikit-learn"): Item(
        partial(races.learning, "scikit-learn"), A_ROW, 60.0, takes_features=True
    ),
    ("encoding, 1 cycle", "BLAS"): Item(partial(races.encoding, 1), A_ROW, takes_features=True),
    ("encoding, 13 cycles", "BLAS"): Item(partial(races.encoding, 13), A_ROW, takes_features=True),
    **_searches(),
    ("refresh, gradient steps, bits", ALL_BITS): Item(
        partial(races.refreshing, "bits"), "bits an entry and refresh", 6.7, real=True
    ),
    ("refresh, gradient steps, time", ALL_BITS): Item(
        partial(races.refreshing, "time"), "us an entry and refresh", real=True
    ),
    ("store, labelled rows", SQLITE): Item(partial(races.storing, "labelled"), A_ROW),
    ("store, open and answer", SQLITE): Item(races.opening, "ms"),
    ("store, learned rows", SQLITE): Item(partial(races.storing, "learned"), A_ROW),
    ("store, unlabelled rows", SQLITE): Item(partial(races.storing, "unlabelled"), A_ROW),
    ("store, one-row commits", SQLITE): Item(races.committing, "us a commit"),
}
"""By what is measured, and by peer."""
