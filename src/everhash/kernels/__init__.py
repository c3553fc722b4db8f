"""The hot loops: `reference` is the specification in NumPy, `compiled` the same names in Numba.

The rest of everhash asks for them through `load()`, which compiles on a machine's first use (some
seconds, then cached on disk) and is immediate afterwards.
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
    ready = sys.modules.get("everhash.kernels.compiled")
    if ready is not None and hasattr(ready, "READY"):
        return ready
    with _one_compiler_at_a_time():
        return import_module("everhash.kernels.compiled")


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
