"""A lock for threads of one process that refuses those of a child forked from it.

A thread of the parent may have had the lock at the fork, and nobody would ever release it in the
child: so the child is told before it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class ProcessLock:
    """A reentrant lock.

    Args:
        check: raises in a process that must not take it.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        self._check, self._lock = check, threading.RLock()

    def acquire(self, timeout: float = -1) -> bool:
        """Take the lock; return whether that was possible in `timeout` seconds."""
        self._check()
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def __enter__(self) -> None:
        self._check()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
