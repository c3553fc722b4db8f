"""The hot loops: `reference` is the specification in NumPy, `compiled` the same names in Numba.

The rest of everhash asks for them through `load()`, for those of `search` through `load_search()`,
for those of `likeness` through `load_likeness()`, for those of `refresh` through `load_refresh()`,
for those of `peers` through `load_peers()` and for those of `forest` through `load_forest()`. They
compile on a machine's first use (some seconds, then cached on disk) and are there at once
afterwards.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def load() -> ModuleType:
    """Return `everhash.kernels.compiled`, compiled and ready to call."""
    return _load("everhash.kernels.compiled")


def load_search() -> ModuleType:
    """Return `everhash.kernels.search.ready`: the search kernels, compiled and ready to call."""
    return _load("everhash.kernels.search.ready")


def load_likeness() -> ModuleType:
    """Return `everhash.kernels.likeness.ready`: the likeness kernels, ready to call."""
    return _load("everhash.kernels.likeness.ready")


def load_refresh() -> ModuleType:
    """Return `everhash.kernels.refresh`, compiled and ready to call."""
    return _load("everhash.kernels.refresh")


def load_peers() -> ModuleType:
    """Return `everhash.kernels.peers`, compiled and ready to call."""
    return _load("everhash.kernels.peers")


def load_forest() -> ModuleType:
    """Return `everhash.kernels.forest`, compiled and ready to call."""
    return _load("everhash.kernels.forest")


def _load(name: str) -> ModuleType:
    ready = sys.modules.get(name)
    if ready is not None and hasattr(ready, "READY"):
        return ready
    with _one_compiler_at_a_time(), _cache_of_these_sources():
        return import_module(name)


@contextlib.contextmanager
def _one_compiler_at_a_time() -> Iterator[None]:
    """Hold a lock while compiling: two cold compilers on one cache can crash (numba #4807)."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    path = Path(tempfile.gettempdir()) / f"everhash-kernels-{os.getuid()}.lock"
    # the folder is everybody's: never follow a link that somebody else has put there
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(opened) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _cache_of_these_sources() -> Iterator[None]:
    """Cache where only these sources do: Numba compares a kernel's own file, not those it uses."""
    config: Any = import_module("numba").config
    named = config.CACHE_DIR
    config.CACHE_DIR = str(_cache_folder(named))
    try:
        yield
    finally:
        config.CACHE_DIR = named


def _cache_folder(named: str) -> Path:
    """Return a writable folder named after all kernel sources, in `named` if Numba was told so."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    own = Path(__file__).parent / "__pycache__"
    for base in [Path(named)] if named else [own, Path("~/.cache/everhash")]:
        with contextlib.suppress(OSError, RuntimeError):  # not writable, or nobody's home
            folder = base.expanduser() / f"kernels-{digest[:16]}"
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            for old in set(own.glob("kernels-*")) - {folder} if base == own else ():
                shutil.rmtree(old, ignore_errors=True)
            return folder
    temporary = tempfile.mkdtemp(prefix="everhash-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary)
