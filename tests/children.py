"""How tests start processes whose parent ignores Ctrl-C, as a script does with background jobs.

Other children need nothing: `tests/conftest.py` sees to it that they start with default signals.
"""

from __future__ import annotations

import shutil
import sys

SHELL = shutil.which("sh") or "/bin/sh"


def ignoring_interrupts(*arguments: object) -> list[str]:
    """Return the command that runs Python with these arguments, and with SIGINT ignored."""
    python = [sys.executable, *map(str, arguments)]
    return [SHELL, "-c", 'trap "" INT; exec "$@"', "sh", *python]
