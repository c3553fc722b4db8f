"""The SQLite that Python is linked with, and whether it has the WAL-reset bug.

Before 3.51.3 (mended in 3.50.7 and 3.44.6 too) a file can be damaged if one connection writes
while another writes the log back: https://sqlite.org/wal.html#walresetbug. Everhash lets one
connection do both, so the bug can strike only where another program writes to the file.
"""

from __future__ import annotations

import logging
import sqlite3
from functools import cache
from pathlib import Path

VERSION = sqlite3.sqlite_version
FIXED = (3, 51, 3)
BACKPORTS = {(3, 44): 6, (3, 50): 7}
"""Older releases that were mended: the patch from which on."""

logger = logging.getLogger(__name__)


def has_wal_reset_bug(version: str = VERSION) -> bool:
    """Return whether a version of SQLite has the bug.

    >>> [has_wal_reset_bug(each) for each in ("3.40.1", "3.44.6", "3.49.2", "3.51.2", "3.51.3")]
    [True, False, True, True, False]
    """
    major, minor, patch = (int(number) for number in [*version.split("."), "0", "0"][:3])
    if (major, minor) in BACKPORTS:
        return patch < BACKPORTS[major, minor]
    return (major, minor, patch) < FIXED


@cache
def warn_of_bug(name: Path | str) -> None:
    """Log once a file that somebody else writes to it, and that this SQLite may not survive it."""
    if has_wal_reset_bug():
        logger.warning(
            "somebody else writes to %s: SQLite %s can damage a file that two write; "
            "3.51.3 does not (https://sqlite.org/wal.html#walresetbug)",
            name,
            VERSION,
        )
