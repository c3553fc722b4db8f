"""What a reader of a page has open: a shell, a Python, and servers.

Commands of a page share one shell, Python blocks one interpreter; both stand in the same folder. A
server is started on a free port; whatever the page says of its port means that one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tests.docs.pages import ROOT, Block

MARK = "=== end of the answer ==="
SECONDS = 600
"""After which everything that a page has started is killed."""
PORT = "8765"
"""What `everhash serve` listens at unless it is told otherwise."""


class Talk:
    """A process that answers requests, one after the other; its answers end with a mark."""

    def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ask(self, request: str) -> tuple[str, int]:
        """Return what a request prints, and its exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        lines: list[str] = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return "".join(lines).removesuffix("\n"), int(line.split()[-1])
            lines.append(line)
        return "".join(lines) + "\n(and it ended, or was ended)", -1

    def end(self) -> None:
        """Let the process end by itself, as a reader does, and kill what is left."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SECONDS / 20)
        end(self.process)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process that leads a session, and all of that session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and all it has started, and wait for it."""
    kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()


def stop(server: subprocess.Popen[str]) -> None:
    """End a server as Ctrl-C does, so that it closes its file."""
    server.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        server.wait(SECONDS / 20)
    end(server)


class Session:
    """One reader of one page, in a folder that may have what an earlier reader has left."""

    def __init__(self, folder: Path, private: Path) -> None:
        self._private = private
        (private / ".curlrc").write_text('silent\nshow-error\nnoproxy = "*"\n')
        known = {name: text for name, text in os.environ.items() if "EVERHASH_KEY" not in name}
        path = f"{Path(sys.executable).parent}{os.pathsep}{known['PATH']}"
        self._environment = {**known, "PATH": path, "CURL_HOME": str(private), "COLUMNS": "110"}
        self.folder = folder
        self._servers: dict[str, tuple[subprocess.Popen[str], str]] = {}
        self._shell = Talk(["bash"], folder, self._environment)
        self._python = Talk(
            [sys.executable, "-u", str(ROOT / "tests" / "docs" / "interpreter.py"), MARK],
            folder,
            self._environment,
        )
        self._shell.ask(self._then_mark("set -o pipefail"))
        self._started = [self._shell.process, self._python.process]
        self._watch = threading.Timer(SECONDS, self._kill)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.cancel()
        self._end()

    def _kill(self) -> None:
        for process in self._started:
            kill(process)

    def _end(self) -> None:
        for process, _ in self._servers.values():
            stop(process)
        self._shell.end()
        self._python.end()

    def here(self, text: str) -> str:
        """Return a text of the page with the ports that its servers really have."""
        for written, (_, port) in self._servers.items():
            text = re.sub(rf"\b{written}\b", port, text)
        return text

    def command(self, command: str) -> tuple[str, int]:
        """Run a command in the shell; return what it prints, and its exit code."""
        told = self._shell.ask(self._then_mark(self.here(command)))
        self.folder = Path((self._private / "folder").read_text().removesuffix("\n"))
        pairs = (self._private / "environment").read_text().split("\0")
        self._environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        return told

    def _then_mark(self, command: str) -> str:
        """Return what makes the shell run a command, note where it stands then, and say so."""
        notes = shlex.quote(str(self._private))
        return (
            f"{{ {command}\n}} < /dev/null; _code=$?; pwd > {notes}/folder; "
            f"env -0 > {notes}/environment; printf '\\n%s %d\\n' '{MARK}' $_code"
        )

    def python(self, block: Block, page: Path) -> tuple[str, int]:
        """Run a block of Python; return what it prints, and 0 if it went well."""
        request = {
            "text": self.here(block.text),
            "page": str(page),
            "line": block.line,
            "doctest": block.tag == "console",
            "folder": str(self.folder),
            "environment": self._environment,
        }
        return self._python.ask(json.dumps(request))

    def serve(self, command: str) -> tuple[str, int]:
        """Start a server on a free port of this machine; return its first line when it is ready."""
        arguments = shlex.split(command, comments=True)
        written = option(arguments, "--port") or PORT
        option(arguments, "--host")
        if written in self._servers:  # the reader has ended that one
            stop(self._servers.pop(written)[0])
        process = subprocess.Popen(
            [*arguments, "--port", "0"],
            cwd=self.folder,
            env={**self._environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        assert process.stdout is not None
        told = process.stdout.readline()
        found = re.search(r"http://\S+:(\d+)", told)
        if found is None:
            rest = process.stdout.read()
            end(process)
            return told + rest, process.returncode or 1
        self._servers[written] = process, found[1]
        _wait_until_ready(found[1])
        return told.replace("://0.0.0.0", "://127.0.0.1"), 0


def option(arguments: list[str], name: str) -> str | None:
    """Take an option and its value out of arguments, and return the value.

    >>> arguments = ["serve", "--port", "9000", "shop.ever"]
    >>> option(arguments, "--port"), arguments
    ('9000', ['serve', 'shop.ever'])
    """
    if name not in arguments:
        return None
    place = arguments.index(name)
    value = arguments[place + 1]
    del arguments[place : place + 2]
    return value


def _wait_until_ready(port: str) -> None:
    for _ in range(SECONDS * 10):
        with suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/ready").is_success:
                return
        time.sleep(0.1)
    raise TimeoutError("the server was not ready in time")
