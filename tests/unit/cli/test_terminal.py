"""Progress bars, and why a command takes long."""

from __future__ import annotations

import io
import logging
import os
import pty
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from everhash import kernels
from everhash.cli.terminal import waiting
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


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("reason", ["", "copying everything"])
def test_a_terminal_shows_that_kernels_compile_while_they_do(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with waiting(reason):
        assert shown.getvalue() == ""
        with kernels.announce("compiling [some] kernels"):
            until = monotonic() + 60  # it is drawn several times a second
            while "compiling [some] kernels" not in shown.getvalue():
                assert monotonic() < until
    assert kernels.announce is kernels.log_once


def test_a_terminal_shows_nothing_when_nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with waiting():
        pass
    assert shown.getvalue() == ""


def test_elsewhere_the_log_says_once_that_kernels_compile(caplog: pytest.LogCaptureFixture) -> None:
    with waiting():
        for _ in range(2):
            with kernels.announce("compiling a kernel of this test"):
                pass
    assert caplog.record_tuples == [
        ("everhash.kernels", logging.WARNING, "compiling a kernel of this test")
    ]
