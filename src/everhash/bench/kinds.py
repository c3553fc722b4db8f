"""The kinds of measurement. A new kind is a function and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from everhash.bench import deep, few_labels, found, growth, retrieval
from everhash.bench.costs import scale, speed
from everhash.bench.datasets import Dataset
from everhash.bench.likeness import measure as likeness
from everhash.bench.task import Task


class Kind(NamedTuple):
    """A function that measures a task, and what it needs."""

    measure: Callable[[Task, Dataset], dict[str, Any]]
    alone: bool = False
    """Whether it measures times, so that nothing else may run beside it."""
    needs_data: bool = True
    """Whether it gets the task's data set; some make or load their rows themselves."""
    needs_images: bool = False
    """Whether it loads the images of `everhash.bench.images`."""


NO_DATA = Dataset(
    "none", np.empty((0, 1), np.float32), np.empty(0, np.int64), np.empty(0, np.bool_)
)
"""Passed to kinds that need no data set."""
PROTOCOLS = retrieval.PROTOCOLS | few_labels.PROTOCOLS
"""What is done to labels, in a few words."""
KINDS = {
    "retrieval": Kind(retrieval.measure),
    "growth": Kind(growth.measure),
    "found": Kind(found.measure),
    "few": Kind(few_labels.measure),
    "deep": Kind(deep.measure, needs_data=False, needs_images=True),
    "scale": Kind(scale.measure, alone=True, needs_data=False),
    "speed": Kind(speed.measure, alone=True, needs_data=False),
    "likeness": Kind(likeness.measure, alone=True, needs_data=False),
}
