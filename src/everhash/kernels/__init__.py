"""The hot loops: `reference` is the specification in NumPy, `compiled` the same names in Numba.

The rest of everhash asks for them through `load()`, for those of `search` through `load_search()`
and for those of `refresh` through `load_refresh()`; they compile on a machine's first use (some
seconds, then cached on disk) and are there at once afterwards.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType


def load() -> ModuleType:
    """Return `everhash.kernels.compiled`, compiled and ready to call."""
    return _load("everhash.kernels.compiled")


def load_search() -> ModuleType:
    """Return `everhash.kernels.search.ready`: the search kernels, compiled and ready to call."""
    return _load("everhash.kernels.search.ready")


def load_refresh() -> ModuleType:
    """Return `everhash.kernels.refresh`, compiled and ready to call."""
    return _load("everhash.kernels.refresh")


def _load(name: str) -> ModuleType:
    ready = sys.modules.get(name)
    if ready is not None and hasattr(ready, "READY"):
        return ready
    with _one_compiler_at_a_time():
        return import_module(name)


@contextlib.contextmanager
def _one_compiler_at_a_time() -> Iterator[None]:
    """Hold a lock while compiling: two cold compilers on one cache can crash (numba #4807)."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    path = Path(tempfile.gettempdir()) / f"everhash-kernels-{os.getuid()}.lock"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
