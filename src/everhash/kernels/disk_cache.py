"""Where compiled kernels are kept, and one process at a time that may add to them."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba


class Folder(NamedTuple):
    """Where Numba caches."""

    path: Path
    is_kept: bool
    """Whether it outlives this process."""


@contextlib.contextmanager
def one_compiler_at_a_time() -> Iterator[None]:
    """Hold a lock while compiling: two cold compilers on one cache can crash (numba #4807)."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    named: str = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    name = hashlib.sha256(f"{_kernels_name()} {named}".encode()).hexdigest()[:16]
    opened = os.open(_own_folder() / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(opened) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def _own_folder() -> Path:
    """Return a folder that only this user can use: whoever can open a lock can hold it for ever."""
    temporary = Path(tempfile.gettempdir()) / f"everhash-locks-{os.getuid()}"
    for path in ("~/.cache/everhash/locks", temporary):
        with contextlib.suppress(OSError, RuntimeError):  # no rights, or nobody's home
            folder = Path(path).expanduser()
            folder.mkdir(0o700, parents=True, exist_ok=True)
            found = folder.lstat()  # in the temporary folder anybody may have made it, or a link
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                folder.chmod(0o700)
                tempfile.TemporaryFile(dir=folder).close()
                return folder
    return _until_exit("everhash-locks-")


@contextlib.contextmanager
def cache_of_these_sources() -> Iterator[Folder]:
    """Cache where only these sources do: Numba compares a kernel's own file, not those it uses."""
    config: Any = numba.config
    named = config.CACHE_DIR
    folder = cache_folder(named)
    config.CACHE_DIR = str(folder.path)
    try:
        yield folder
    finally:
        config.CACHE_DIR = named


@cache
def cache_folder(named: str) -> Folder:
    """Return a writable folder named after all kernel sources, in `named` if Numba was told so.

    Numba reads no folder that it cannot write to. What a read-only install has compiled is copied.
    """
    name = _kernels_name()
    own = Path(__file__).parent / "__pycache__"
    bases = [Path(named)] if named else [own, Path("~/.cache/everhash")]
    folders = []
    for base in bases:
        with contextlib.suppress(RuntimeError):  # nobody's home
            folders.append(base.expanduser() / name)
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            if folder.parent == own:
                for old in set(own.glob(f"{name.split('-')[0]}-*")) - {folder}:
                    shutil.rmtree(old, ignore_errors=True)
            _fill(folder, folders)
            return Folder(folder, is_kept=True)
    temporary = _until_exit("everhash-kernels-")
    _fill(temporary, folders)
    return Folder(temporary, is_kept=False)


@cache
def _kernels_name() -> str:
    """Return a name for what these sources compile to, which differs if indices are checked."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    kind = "checked" if numba.config.BOUNDSCHECK else "kernels"  # type: ignore[attr-defined]
    return f"{kind}-{digest[:16]}"


def _until_exit(prefix: str) -> Path:
    """Return a new folder of this process."""
    temporary = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _fill(folder: Path, sources: list[Path]) -> None:
    """Copy the first of these folders that has files into an empty one, all of it or nothing."""
    if any(folder.iterdir()):
        return
    for source in sources:
        with contextlib.suppress(OSError):
            files = [file for file in source.rglob("*") if file.is_file()]
            if files:
                part = Path(tempfile.mkdtemp(dir=folder.parent))
                for file in files:  # not their modes: these must be writable
                    to = part / file.relative_to(source)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, to)
                part.replace(folder)
                return
