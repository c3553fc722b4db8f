"""Deep methods that learn from images, and others that learn from features of the same images.

The task's data set says what is learned from: "cifar10-images", or a feature set of CIFAR-10. Each
has the same split: so many training images of each label are learned and are entries too, queries
are drawn from the test images, and all other test images are entries.
"""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter, process_time
from typing import Any

import numpy as np

from everhash.bench import datasets, images, retrieval
from everhash.bench.counts import ScoreRange, Shelf
from everhash.bench.datasets import Dataset
from everhash.bench.images import ImageSet
from everhash.bench.protocols import Split, rank_within_label
from everhash.bench.scoring import Scores
from everhash.bench.task import Task
from everhash.errors import OptionError
from everhash.peers import deep
from everhash.peers.deep.deep_method import DeepMethod

FEATURES = ("cifar10-gist", "cifar10-cnn")


def measure(task: Task, _data: Dataset) -> dict[str, Any]:
    """Return the figures of a task."""
    known = (images.NAME, *FEATURES)
    if task.dataset not in known or task.protocol != "strict":
        raise OptionError(
            f"no images of {task.dataset!r} by protocol {task.protocol!r}",
            hint=f"expected the protocol strict and one of: {', '.join(known)}",
        )
    there = images.load()
    split = split_of(task, there)
    if task.dataset != images.NAME:
        return retrieval.figures_of(task, features_of(task.dataset), split)
    if task.method not in deep.names():
        raise OptionError(
            f"{task.method} learns from features, not from images",
            hint=f"expected one of: {', '.join(deep.names())}",
        )
    return of_network(task, there, split)


def split_of(task: Task, there: ImageSet) -> Split:
    """Return which images are learned, in order, which are entries, and which are queries."""
    rng = np.random.default_rng(task.seed)
    learned, tested = (
        rng.permutation(rows) for rows in np.split(np.arange(len(there.y)), [there.n_train])
    )
    stream = learned[rank_within_label(there.y[learned]) < task.rows_a_label]
    queries_a_label = task.queries // len(np.unique(there.y))
    asked = rank_within_label(there.y[tested]) < queries_a_label
    entries = rng.permutation(np.concatenate([stream, tested[~asked]]))
    return Split(stream, entries[: task.entries], tested[asked])


@lru_cache(maxsize=2)
def features_of(name: str) -> Dataset:
    """Return a feature set with the rows of the images, in their order."""
    whole, there = datasets.load(name), images.load()
    y = whole.y[there.row]
    return Dataset(name, whole.X[there.row], y, np.zeros(len(y), np.bool_), whole.classes)


def of_network(task: Task, there: ImageSet, split: Split) -> dict[str, Any]:
    """Return the figures of a deep method."""
    method = deep.get(task.method, task.bits, random_state=task.seed, **dict(task.options))
    start, worked = perf_counter(), process_time()
    method.fit(there.images[split.stream], there.y[split.stream])
    figures: dict[str, Any] = {
        "seconds": perf_counter() - start,
        "processor": process_time() - worked,
        "epochs": len(method.losses_),
    }
    start = perf_counter()
    entries = method.encode(there.images[split.entries])
    figures["encoding"] = perf_counter() - start
    figures["mapping"] = scores(method, there, split, Shelf(entries, there.y[split.entries]))
    return {
        **retrieval.sizes(there.y, split),
        **figures,
        "bytes": {"mapping": task.bits / 8},
        "width": method.width_,
    }


def scores(method: DeepMethod, there: ImageSet, split: Split, shelf: Shelf) -> dict[str, Any]:
    """Return how well the entries of a shelf are found."""
    queries, labels = there.images[split.queries], there.y[split.queries]
    by_bits = shelf.by_hamming(method.encode(queries), labels)
    by_margins = shelf.by_margins(method.margins(queries), labels)
    return Scores(ScoreRange.of(by_bits), ScoreRange.of(by_margins))._asdict()
