"""Cached kernels are those of the sources at hand, wherever they can be cached.

A process says that it compiles when it does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from everhash import kernels

pytestmark = pytest.mark.slow

# Stand-ins that compile in a second: one kernel, which contains code of another file.
USED = """
from everhash.kernels.compiling import inner

@inner
def used():
    return 1
"""
KERNEL = """
from everhash.kernels.compiled import used
from everhash.kernels.compiling import kernel

__all__ = ["answer"]

@kernel("i8()")
def answer():
    return used()
"""
RUN = """
from concurrent.futures import ThreadPoolExecutor

import numba
from everhash import kernels
from everhash.kernels.compiling import READY

load = kernels.load_refresh()
assert not READY, "nothing is compiled before it is asked for"
with ThreadPoolExecutor(8) as pool:
    (result,) = set(pool.map(lambda _: load.answer(), range(8)))
found = "compiled" if READY["answer"].compiled else "cached"
print(found, result, load.answer.stats.cache_path, repr(numba.config.CACHE_DIR))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a small `everhash.kernels` with the real machinery."""
    folder = tmp_path / "everhash" / "kernels"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "disk_cache.py", "compiling.py"):
        shutil.copy(Path(kernels.__file__).with_name(name), folder)
    (folder.parent / "__init__.py").touch()
    (folder / "compiled.py").write_text(USED)
    (folder / "refresh.py").write_text(KERNEL)
    return folder


class Run(NamedTuple):
    found: str
    result: str
    folder: Path
    config: str
    said: str


READ_ONLY = """
import tempfile
new, package = tempfile.TemporaryFile, {package!r}

def refuse(*args, dir=None, **options):
    if str(dir).startswith(package):
        raise PermissionError(dir)
    return new(*args, dir=dir, **options)

tempfile.TemporaryFile = refuse  # what Numba tries, too; modes do not stop root
"""


def run(package: Path, first: str = "", **settings: str) -> Run:
    """Call the kernel in a new process, by eight threads at once."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    path = str(package.parents[1])
    own = dict.fromkeys(("PYTHONPATH", "HOME", "TMPDIR"), path)  # its own lock, too: no waiting
    environ = known | own | {"PYTHONDONTWRITEBYTECODE": "1"} | settings
    command = [sys.executable, "-W", "error", "-c", first + RUN]
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    found, result, folder, config = done.stdout.split()
    return Run(found, result, Path(folder), config, done.stderr)


@pytest.mark.slow
def test_a_changed_source_makes_kernels_that_use_it_compile_again(package: Path) -> None:
    assert run(package)[:2] == ("compiled", "1")
    assert run(package)[:2] == ("cached", "1")
    (package / "compiled.py").write_text(USED.replace("return 1", "return 2"))
    assert run(package)[:2] == ("compiled", "2")
    assert run(package)[:2] == ("cached", "2")
    assert len(list((package / "__pycache__").glob("kernels-*"))) == 1


def test_a_process_says_once_that_it_compiles_and_nothing_when_it_does_not(package: Path) -> None:
    (line,) = run(package).said.splitlines()
    assert line.startswith("compiling search kernels for this machine")
    assert str(package / "__pycache__") in line
    assert "`python -m everhash.kernels`" in line
    assert run(package).said == ""


def test_where_the_package_cannot_be_written_to_the_home_folder_is_used(package: Path) -> None:
    (package / "__pycache__").touch()  # a file: nothing can be put into it, not even by root
    first = run(package)
    assert first.found == "compiled"
    assert first.folder.is_relative_to(package.parents[1] / ".cache" / "everhash")
    assert run(package)[0] == "cached"


def test_where_nothing_can_be_written_to_kernels_still_load(package: Path) -> None:
    (package / "__pycache__").touch()
    nowhere = run(package, HOME=str(package / "__pycache__"))
    assert nowhere[:2] == ("compiled", "1")
    assert not nowhere.folder.exists()
    assert "every process again" in nowhere.said
    assert "NUMBA_CACHE_DIR" in nowhere.said


@pytest.mark.parametrize("home", ["home", "nowhere"])
def test_kernels_of_a_read_only_install_are_used(package: Path, home: str) -> None:
    assert run(package).found == "compiled"
    read_only = READ_ONLY.format(package=str(package))
    folder = package.parents[1] / "home" if home == "home" else package / "__init__.py" / "no"
    later = run(package, read_only, HOME=str(folder))
    assert later.found == "cached"
    assert later.said == ""
    assert later.folder.is_relative_to(folder) == (home == "home")
    assert later.folder.exists() == (home == "home")


def test_numba_cache_dir_is_respected_and_left_as_it_was(package: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    told = run(package, NUMBA_CACHE_DIR=str(named))
    assert told.folder.is_relative_to(named)
    assert told.config == repr(str(named))
    assert run(package).config == "''"


LOCK = """
import sys
from pathlib import Path
from everhash.kernels import disk_cache
with disk_cache.one_compiler_at_a_time():
    for base in map(Path, sys.argv[1:]):
        for lock in base.rglob("*.lock"):
            found = lock.stat(), lock.parent.stat()
            print(lock.parent, *(oct(each.st_mode & 0o777) for each in found))
"""


def locked(package: Path, home: str, temporary: Path) -> list[str]:
    """Return folder and modes of the lock that a new process holds."""
    environ = os.environ | {"PYTHONPATH": str(package.parents[1]), "HOME": home}
    command = [sys.executable, "-c", LOCK, home, str(temporary)]
    environ["TMPDIR"] = str(temporary)
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_the_lock_is_where_nobody_else_can_hold_it(package: Path, tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "shared"
    for folder in (home, temporary):
        folder.mkdir(mode=0o777)
    own = str(home / ".cache" / "everhash" / "locks")
    assert locked(package, str(home), temporary) == [own, "0o600", "0o700"]
    nowhere = str(package / "__init__.py")  # a file: there is no folder in it, not even for root
    shared = temporary / f"everhash-locks-{os.getuid()}"
    assert locked(package, nowhere, temporary) == [str(shared), "0o600", "0o700"]
    shutil.rmtree(shared)
    (temporary / "elsewhere").mkdir()
    shared.symlink_to(temporary / "elsewhere")  # somebody was here first
    left, *modes = locked(package, nowhere, temporary)
    assert modes == ["0o600", "0o700"]
    assert Path(left).name not in (shared.name, "elsewhere")


# Reads beyond a row, in memory that is there all the same.
BEYOND = """
import numpy as np
from everhash.kernels.compiling import kernel

__all__ = ["answer"]

@kernel("i8()")
def answer():
    row = np.zeros(8, np.int64)[:2]
    total = 0
    for i in range(3):
        total += row[i]
    return total
"""


def test_checked_kernels_are_kept_apart_and_raise_beyond_an_array(package: Path) -> None:
    (package / "refresh.py").write_text(BEYOND)
    assert run(package)[:2] == ("compiled", "0")
    for _ in range(2):  # compiled, then from the cache
        with pytest.raises(subprocess.CalledProcessError) as raised:
            run(package, NUMBA_BOUNDSCHECK="1")
        assert "IndexError" in raised.value.stderr
    assert run(package)[:2] == ("cached", "0"), "these are still there"
    kept = [folder.name.split("-")[0] for folder in (package / "__pycache__").glob("*-*")]
    assert sorted(kept) == ["checked", "kernels"]
