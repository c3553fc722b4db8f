"""Progress bars."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.unit.cli.commands import COLUMNS, DIM, Write, output


def test_progress_goes_to_a_terminal_on_stderr_and_nowhere_else(
    tmp_path: Path, write: Write
) -> None:
    """Run `ingest` with a pseudo-terminal for stderr and a pipe for stdout."""
    path, table = tmp_path / "shop.ever", write()
    output("create", path, "--dim", DIM)
    ours, theirs = pty.openpty()
    ran = subprocess.Popen(
        [sys.executable, "-m", "everhash", "ingest", str(path), str(table), *COLUMNS],
        env={**os.environ, "COLUMNS": "200", "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass  # how Linux says that the other side is closed
    os.close(ours)
    printed, _ = ran.communicate()
    assert ran.returncode == 0
    assert printed.startswith("30 rows in ")
    assert printed.count("\n") == 1
    for word in ("checking", "ingesting", "30 of 30", "3 labels, 1 cycle, 32 bits wide"):
        assert word in seen.decode()
