"""Files that appear under their name whole or not at all, also if the power is lost.

A file is written under another name, synced, and only then given its own; then the folder is
synced, so that the name lasts too.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

NO_FOLDERS = (errno.EINVAL, errno.ENOTSUP)
"""What file systems say that cannot sync a folder: they keep names by other means, or not."""


def appear(partial: Path, path: Path) -> None:
    """Give a complete file its name as well. A file that has it already is never replaced."""
    sync(partial)
    os.link(partial, path)  # unlike a rename it never replaces a file
    try:
        sync(path.parent)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def take_place(partial: Path, path: Path) -> None:
    """Give a complete file its name, in place of the file that has it."""
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until the disk has a file, or a folder's names."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if not (path.is_dir() and error.errno in NO_FOLDERS):
            raise
    finally:
        os.close(file)
