"""Sites to look at, and servers as users start them: `everhash serve`, each a process."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 180.0
"""Seconds until a server listens: kernels may have to be compiled first."""


class Site:
    """A service at an address."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        """Where it listens, once it is ready."""
        return self._url

    def get(self, route: str) -> Any:
        """Return what a route answers."""
        with urllib.request.urlopen(f"{self.url}{route}", timeout=PATIENCE) as answer:  # noqa: S310
            return json.load(answer)

    def post(self, route: str, body: Any) -> Any:
        """Return what a route answers to something sent."""
        request = urllib.request.Request(  # noqa: S310
            f"{self.url}{route}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return json.load(answer)

    def until(self, entries: int) -> Self:
        """Wait until so many entries have arrived and a refresh was the last thing to happen."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            stats = self.get("/stats")
            if stats["entries"] >= entries and stats["stale_bits"] == 0:
                return self
            time.sleep(0.1)
        raise AssertionError(f"{entries} entries have not arrived in {PATIENCE} s")


class Server(Site):
    """A process that serves; it ends with the block, in good order."""

    def __init__(self, *arguments: str | Path) -> None:
        super().__init__("")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "everhash", *map(str, arguments)],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put("")

    @property
    def url(self) -> str:
        """Where it listens, once it is ready."""
        said: list[str] = []
        while not self._url:
            said.append(self._lines.get(timeout=PATIENCE))
            assert said[-1], f"the server has ended: {''.join(said)}"
            if found := re.search(r"http://127\.0\.0\.1:\d+", said[-1]):
                self._wait_for(found[0])
                self._url = found[0]
        return self._url

    @staticmethod
    def _wait_for(url: str) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{url}/ready", timeout=PATIENCE):  # noqa: S310
                    return
            except urllib.error.HTTPError as error:  # not yet
                error.close()
            time.sleep(0.1)
        raise AssertionError(f"the server is not ready after {PATIENCE} s")

    def said(self) -> str:
        """Return what it has printed since it listens, once it has ended."""
        lines = []
        while line := self._lines.get(timeout=PATIENCE):
            lines.append(line)
        return "".join(lines)

    def stop(self) -> int:
        """End the process and return its exit code."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._process.wait()
            self._reader.join()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.stop() == 0


class Servers:
    """Servers by what they serve, started when they are first asked for, ended all together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._running: dict[str, Server] = {}

    def start(self, name: str, *arguments: str | Path) -> Server:
        """Return the server of this name; the first call starts it."""
        if name not in self._running:
            self._running[name] = self._stack.enter_context(Server(*arguments))
        return self._running[name]

    def demo(self, name: str, pace: float) -> Server:
        """Return a demo whose digits arrive at this pace."""
        file = self.folder / f"{name}.ever"
        options = ("--port", "0", "--pace", str(pace), "--file", file)
        return self.start(name, "demo", "--serve", *options)

    def close(self) -> None:
        """End them."""
        self._stack.close()
