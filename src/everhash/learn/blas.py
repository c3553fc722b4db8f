"""BLAS on one thread.

Products of a few hundred rows gain little from a second thread and, on a busy machine, wait long
for it; and sums are cut up by the number of threads: results would depend on the machine's cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_limit = ExitStack()
_blocks = 0
"""How many blocks are under way; the limit is the process's, not a thread's."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold all BLAS libraries of this process to one thread for a while.

    Blocks of several threads may overlap: the first sets the limit, the last lifts it. If each
    lifted its own, the others would go on with as many threads as there are cores.
    """
    global _blocks  # noqa: PLW0603 - it belongs to the process, as the limit does
    with _lock:
        if _blocks == 0:
            _limit.enter_context(_libraries().limit(limits=1))
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0:
                _limit.close()


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401 - it brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
