"""Cached kernels are those of the sources at hand, wherever they can be cached."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from everhash import kernels

# Stand-ins that compile in a second: one kernel, which contains code of another file.
USED = """
import numba

@numba.njit
def used():
    return 1
"""
KERNEL = """
import numba
from everhash.kernels.compiled import used

@numba.njit("i8()", cache=True)
def kernel():
    return used()

READY = True
"""
RUN = """
import numba
from everhash import kernels

kernel = kernels.load_refresh().kernel
found = "cached" if kernel.stats.cache_hits else "compiled"
print(found, kernel(), kernel.stats.cache_path, repr(numba.config.CACHE_DIR))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a small `everhash.kernels` with the real `__init__.py`."""
    folder = tmp_path / "everhash" / "kernels"
    folder.mkdir(parents=True)
    shutil.copy(kernels.__file__, folder)
    (folder.parent / "__init__.py").touch()
    (folder / "compiled.py").write_text(USED)
    (folder / "refresh.py").write_text(KERNEL)
    return folder


def run(package: Path, **settings: str) -> tuple[str, str, Path, str]:
    """Load and call the kernel in a new process."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    path = str(package.parents[1])
    own = dict.fromkeys(("PYTHONPATH", "HOME", "TMPDIR"), path)  # its own lock, too: no waiting
    environ = known | own | {"PYTHONDONTWRITEBYTECODE": "1"} | settings
    command = [sys.executable, "-W", "error", "-c", RUN]
    out = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout
    found, result, folder, config = out.split()
    return found, result, Path(folder), config


@pytest.mark.slow
def test_a_changed_source_makes_kernels_that_use_it_compile_again(package: Path) -> None:
    assert run(package)[:2] == ("compiled", "1")
    assert run(package)[:2] == ("cached", "1")
    (package / "compiled.py").write_text(USED.replace("return 1", "return 2"))
    assert run(package)[:2] == ("compiled", "2")
    assert run(package)[:2] == ("cached", "2")
    assert len(list((package / "__pycache__").glob("kernels-*"))) == 1


def test_where_the_package_cannot_be_written_to_the_home_folder_is_used(package: Path) -> None:
    (package / "__pycache__").touch()  # a file: nothing can be put into it, not even by root
    found, _, folder, _ = run(package)
    assert found == "compiled"
    assert folder.is_relative_to(package.parents[1] / ".cache" / "everhash")
    assert run(package)[0] == "cached"


def test_where_nothing_can_be_written_to_kernels_still_load(package: Path) -> None:
    (package / "__pycache__").touch()
    found, result, folder, _ = run(package, HOME=str(package / "__pycache__"))
    assert (found, result) == ("compiled", "1")
    assert not folder.exists()


def test_numba_cache_dir_is_respected_and_left_as_it_was(package: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    _, _, folder, config = run(package, NUMBA_CACHE_DIR=str(named))
    assert folder.is_relative_to(named)
    assert config == repr(str(named))
    assert run(package)[3] == "''"
