"""A test's body in a process of its own, and children forked from there and killed.

Kernels are loaded before anything is forked, and OpenBLAS keeps to one thread: a fork copies only
the thread that calls it. What a body does to its process reaches no other test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
Say = Callable[[bytes], None]
"""How a child tells its parent how far it has come."""


def apart(body: Callable[..., Any], *arguments: Any, seconds: float = 600) -> Any:
    """Return what `body` returns in a fresh process; fail with its traceback if it raises.

    Arguments and result travel as JSON. Whatever the process has started ends with it.
    """
    program = [sys.executable, "-m", __name__, body.__module__, body.__name__]
    process = subprocess.Popen(
        [*program, json.dumps(arguments)],
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, errors = process.communicate(timeout=seconds)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 0, f"{body.__name__} failed:\n{errors}"
    return json.loads(said.splitlines()[-1])


class Child:
    """A forked process that runs `body`; use it in a `with` block, which ends it."""

    def __init__(self, body: Callable[[Say], None]) -> None:
        self._pipe, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._pipe)
            _run(body, lambda message: _write(writing, message))
        os.close(writing)
        self._status: int | None = None

    def hear(self, most: int = 1) -> bytes:
        """Wait for the next word; empty if the child has ended."""
        return os.read(self._pipe, most)

    def kill(self) -> bytes:
        """Send SIGKILL, wait for the end, and return what was said and not heard."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> bytes:
        """Wait for the end, and return what was said and not heard."""
        said = b""
        while word := self.hear(65_536):
            said += word
        if self._status is None:
            _, self._status = os.waitpid(self.pid, 0)
        killed = os.WIFSIGNALED(self._status) and os.WTERMSIG(self._status) == signal.SIGKILL
        assert killed or self._status == 0, f"the child failed with status {self._status}"
        return said

    @property
    def ended_well(self) -> bool:
        """Whether the child came to its own end."""
        return self._status == 0

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            _, self._status = os.waitpid(self.pid, 0)
        os.close(self._pipe)


def _write(pipe: int, message: bytes) -> None:
    os.write(pipe, message)


def _run(body: Callable[[Say], None], say: Say) -> NoReturn:
    status = 1
    try:
        body(say)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _main(module: str, name: str, arguments: str) -> None:
    from everhash import kernels

    kernels.load_all()
    result = getattr(import_module(module), name)(*json.loads(arguments))
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
