"""A step of somebody's first day, and a day: its steps in one folder, one after the other."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

SHELL = shutil.which("bash") or "/bin/sh"


@dataclass(frozen=True)
class Step:
    """A command for a shell, and what a person should read in the answer."""

    command: str
    expects: str = ""
    """A regular expression that the answer has to contain, standard error included."""
    code: int = 0
    """The exit code it has to end with."""
    serves: bool = False
    """Whether it runs in the background, and answers at http://127.0.0.1:$PORT, until the end."""


@dataclass(frozen=True)
class Answer:
    """What a step has printed, how it ended, and how long it took."""

    step: Step
    text: str
    code: int
    seconds: float

    @property
    def problem(self) -> str:
        """What is not as a person should see it; empty if all is well."""
        if self.code != self.step.code:
            return f"exit code {self.code}, not {self.step.code}"
        if not re.search(self.step.expects, self.text):
            return f"no {self.step.expects!r} in the answer"
        return "a traceback" if "Traceback (most recent call last)" in self.text else ""


def python(code: str, expects: str = "") -> Step:
    """Return the step of running a few lines of Python."""
    return Step(f"python - <<'END'\n{code.strip()}\nEND", expects)


class Day:
    """Runs steps in a folder; what they serve ends with the day."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        own = {"PATH": path, "PORT": str(port), "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
        self._environment = {**os.environ, **(environment or {}), **own}
        self._address = f"http://127.0.0.1:{port}"
        self._serving: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Day:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._serving:
            process.terminate()
            process.wait(60)

    def run(self, steps: tuple[Step, ...]) -> Iterator[Answer]:
        """Yield the answer to each step."""
        for step in steps:
            start = time.perf_counter()
            text, code = self._serve(step) if step.serves else self._run(step)
            yield Answer(step, text, code, time.perf_counter() - start)

    def _run(self, step: Step) -> tuple[str, int]:
        done = subprocess.run(
            [SHELL, "-c", step.command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=900,
            check=False,
        )
        return done.stdout.decode(), done.returncode

    def _serve(self, step: Step) -> tuple[str, int]:
        """Start a server, and return what it has printed once it answers."""
        said = self._folder / "served.txt"
        command = f"exec {step.command}"  # so that the process to end is the server, not a shell
        with said.open("wb") as output:
            process = subprocess.Popen(
                [SHELL, "-c", command],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._serving.append(process)
        for _ in range(300):
            if process.poll() is not None:
                return said.read_text(), process.returncode
            with suppress(httpx.TransportError):  # it does not listen yet
                if httpx.get(f"{self._address}/ready", timeout=5).is_success:
                    return said.read_text(), 0
            time.sleep(1)
        return said.read_text(), -1
