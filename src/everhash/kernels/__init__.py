"""The hot loops: `reference` is the specification in NumPy, `compiled` the same names in Numba.

The rest of everhash asks for them through `load()`, for those of `search` through `load_search()`,
for those of `likeness` through `load_likeness()`, for those of `refresh` through `load_refresh()`,
for those of `peers` through `load_peers()` and for those of `forest` through `load_forest()`.
A kernel compiles on a machine's first use of it (a second or so, then cached on disk) and is there
at once afterwards; a kernel that nobody uses is never compiled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any, ClassVar

logger = logging.getLogger(__name__)


class Kernels:
    """The kernels of a module, each compiled or read from the cache when it is first asked for.

    From then on it is a plain attribute, so that a call costs no more than Numba's own.
    """

    seconds_waited: ClassVar = 0.0
    """Seconds in which kernels were compiled or read."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        start = perf_counter()
        value = getattr(import_module(self._module), name)
        import_module("everhash.kernels.compiling").make_ready(value)
        setattr(self, name, value)
        Kernels.seconds_waited += perf_counter() - start
        return value


_COMPILED = Kernels("everhash.kernels.compiled")
_SEARCH = Kernels("everhash.kernels.search.ready")
_LIKENESS = Kernels("everhash.kernels.likeness.ready")
_REFRESH = Kernels("everhash.kernels.refresh")
_PEERS = Kernels("everhash.kernels.peers")
_FOREST = Kernels("everhash.kernels.forest")


def load() -> Kernels:
    """Return the kernels of `everhash.kernels.compiled`."""
    return _COMPILED


def load_search() -> Kernels:
    """Return the kernels of `everhash.kernels.search.ready`."""
    return _SEARCH


def load_likeness() -> Kernels:
    """Return the kernels of `everhash.kernels.likeness.ready`."""
    return _LIKENESS


def load_refresh() -> Kernels:
    """Return the kernels of `everhash.kernels.refresh`."""
    return _REFRESH


def load_peers() -> Kernels:
    """Return the kernels of `everhash.kernels.peers`."""
    return _PEERS


def load_forest() -> Kernels:
    """Return the kernels of `everhash.kernels.forest`."""
    return _FOREST


def load_all(*, peers: bool = True) -> None:
    """Compile all kernels or read them from the cache, so that nothing later waits for one.

    Without `peers`, only what collections by our own method use.
    """
    own = (_COMPILED, _REFRESH, _SEARCH, _LIKENESS, _FOREST)
    for kernels in (*own, _PEERS) if peers else own:
        for name in import_module(kernels._module).__all__:
            getattr(kernels, name)


def clock() -> float:
    """Return a clock's seconds that stands still while kernels compile: for the speed of work."""
    return perf_counter() - Kernels.seconds_waited


@cache
def _log(message: str) -> None:
    logger.warning(message)


@contextmanager
def log_once(message: str) -> Iterator[None]:
    """Log why the body takes long, unless this process has said so before."""
    _log(message)
    yield


announce: Callable[[str], AbstractContextManager[object]] = log_once
"""Surrounds the compiling of each kernel, never the reading of one from the cache."""
