"""When a commit reaches the disk, and what may be lost if the machine (not the process) stops.

    "commit"            every call waits for the disk: nothing is lost
    "interval:100ms"    the disk is asked at most that long after a call: what is younger may be
                        lost, the last calls first; the file is never damaged
    "none"              the system writes when it likes: the file may be lost, and is then reported
                        as damaged

A process that is killed loses nothing in any of the three.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from everhash.errors import OptionError

SYNCHRONOUS = {"commit": "FULL", "interval": "NORMAL", "none": "OFF"}
UNITS = {"ms": 1e-3, "s": 1.0}


def read_durability(text: str) -> tuple[str, float]:
    """Return the kind of durability, and the interval in seconds.

    >>> read_durability("interval:100ms")
    ('interval', 0.1)
    """
    if text in ("commit", "none"):
        return text, 0.0
    found = re.fullmatch(r"interval:(\d{1,6})(ms|s)", text) if isinstance(text, str) else None
    if found is None or int(found[1]) == 0:
        raise OptionError(
            f"durability {text!r:.40} is unknown",
            hint='choose "commit", "interval:100ms" or "none"',
        )
    return "interval", int(found[1]) * UNITS[found[2]]


class Syncer:
    """Asks the disk for the write-ahead log, at most `seconds` after a commit."""

    def __init__(self, log: Path, seconds: float) -> None:
        self._log, self._seconds = log, seconds
        self._dirty, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="everhash-sync", daemon=True)
        self._thread.start()

    def committed(self) -> None:
        """Have the log synced before long: there is a new commit."""
        self._dirty.set()

    def close(self) -> None:
        """Stop, after asking the disk once more."""
        self._stop.set()
        self._dirty.set()
        self._thread.join()
        self._sync()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._dirty.wait()
            self._stop.wait(self._seconds)
            self._dirty.clear()
            try:
                self._sync()
            except OSError:
                self._dirty.set()  # asked again after the next interval, and by `close`

    def _sync(self) -> None:
        # locks are on the collection's own file: opening and closing its log releases none
        try:
            file = os.open(self._log, os.O_RDWR)
        except FileNotFoundError:
            return
        try:
            os.fsync(file)
        finally:
            os.close(file)
