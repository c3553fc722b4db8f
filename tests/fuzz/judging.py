"""Open files nobody should trust, each under a limit of memory, and report what came of it.

    python -m tests.fuzz.judging GOOD < paths       one JSON object a line

GOOD is a file that can be opened, to load and compile everything that this takes beforehand.

It is a process of its own, so that what a file makes SQLite, NumPy or safetensors allocate counts
whoever allocates it, and so that a crash is a result and not the end of the test.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import everhash
from everhash.errors import EverhashError
from tests.fuzz.samples import reading

MEGABYTE = 2**20
ROOM = 64 * MEGABYTE
"""Bytes that opening a file may take, beyond twice its length."""
HANGS = 300.0
"""Seconds after which a file has hung the process, however busy the machine is."""


def address_space() -> int:
    """Return how much memory this process has asked for."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def limited(path: Path, call: Callable[[Path], list[str]]) -> dict[str, Any]:
    """Make a call under the limit; return what it says or the error it raises, and its work."""
    size = path.stat().st_size if path.is_file() else 0
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + 2 * size + ROOM, hard))
    worked = time.process_time()
    try:
        result: dict[str, Any] = {"says": call(path)}
    except Exception as error:  # what is not typed is what we look for
        typed = isinstance(error, EverhashError)
        result = {"error": type(error).__name__, "typed": typed, "says": [str(error)]}
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    return {**result, "seconds": time.process_time() - worked}


def read(path: Path) -> list[str]:
    with everhash.open(path, readonly=True) as collection:
        reading(collection)
    return []


def write(path: Path) -> list[str]:
    with everhash.open(path):
        return []


def verify(path: Path) -> list[str]:
    return list(everhash.verify(path).problems)


CALLS: dict[str, Callable[[Path], list[str]]] = {"read": read, "write": write, "verify": verify}


def main(good: str) -> None:
    for call in CALLS.values():
        assert call(Path(good)) == []
    warnings.simplefilter("error")
    for line in sys.stdin:
        path = Path(line.rstrip("\n"))
        faulthandler.dump_traceback_later(HANGS, exit=True)
        report = {name: limited(path, call) for name, call in CALLS.items()}
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
