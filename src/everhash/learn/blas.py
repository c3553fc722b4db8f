"""BLAS on one thread.

Products of a few hundred rows gain little from a second thread and, on a busy machine, wait long
for it; and sums are cut up by the number of threads: results would depend on the machine's cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold all BLAS libraries of this process to one thread for a while."""
    with _libraries().limit(limits=1):
        yield


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
