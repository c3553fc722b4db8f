"""Sums do not depend on who else computes: BLAS has one thread while anybody needs that."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from everhash.learn import blas


class Libraries:
    """Stands in for the BLAS libraries of a process, which may have two threads."""

    threads = 2

    def limit(self, limits: int) -> Any:
        stack, before = ExitStack(), self.threads
        self.threads = limits
        stack.callback(setattr, self, "threads", before)
        return stack


def test_blocks_that_overlap_have_one_thread_until_the_last_ends(monkeypatch: Any) -> None:
    libraries = Libraries()
    monkeypatch.setattr(blas, "_libraries", lambda: libraries)
    first, second = blas.one_thread(), blas.one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert libraries.threads == 1
    second.__exit__(None, None, None)
    assert libraries.threads == 2
    with blas.one_thread():
        assert libraries.threads == 1
    assert libraries.threads == 2
