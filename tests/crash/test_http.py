"""A server killed, or asked to stop, while clients write: what it answered is in the file."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import everhash
from everhash.serve.app import make_app
from everhash.serve.server import bind, run
from tests.crash.apart import Child, Say, apart
from tests.crash.script import DIM, LABELS, check_sound, create

WRITERS = 3
OPENED = b"o"
CHANGES: dict[str, dict[str, Any]] = {
    "/label": {"labels": [1], "new": True},
    "/unlabel": {},
    "/update": {"rows": [[1.0] * DIM]},
}
"""What is done to an entry that is there, and what else the request says."""
LONGEST = 0.02
"""Seconds from the last answer that is waited for to the kill, at most."""


def test_sigkill_loses_nothing_that_was_answered(tmp_path: Path, thorough: bool) -> None:
    rounds = 20 if thorough else 5
    seen = apart(kill_servers, str(tmp_path), rounds)
    assert seen["rounds"] == rounds
    assert seen["answered"] > 5 * rounds
    assert seen["cut off"] > 0


def test_sigterm_answers_what_is_under_way_and_loses_nothing(
    tmp_path: Path, thorough: bool
) -> None:
    rounds = 6 if thorough else 2
    seen = apart(stop_servers, str(tmp_path), rounds)
    assert seen["rounds"] == rounds
    assert seen["answered"] >= 10 * rounds


def kill_servers(folder: str, rounds: int) -> Counter[str]:
    """Kill a server in the middle of writes, look at its file, go on with the same file."""
    path, rng, seen = Path(folder, "killed.ever"), random.Random(5), Counter[str]()
    create(path).close()
    kept: set[str] = set()
    for number in range(rounds):
        writers = Writers(number)
        with served(path, writers.port_of) as child:
            writers.start(answers=rng.randint(1, 20))
            time.sleep(LONGEST * rng.random())
            child.kill()
            writers.join()
        check_sound(path)
        kept = check_kept(path, kept | writers.answered, kept | writers.sent)
        seen.update(rounds=1, answered=len(writers.answered))
        seen["cut off"] += len(writers.sent - writers.answered)
    return seen


def stop_servers(folder: str, rounds: int) -> Counter[str]:
    """Ask a server to stop in the middle of writes; it ends well, and its file has all of them."""
    path, seen = Path(folder, "stopped.ever"), Counter[str]()
    create(path).close()
    kept: set[str] = set()
    for number in range(rounds):
        writers = Writers(number)
        with served(path, writers.port_of) as child:
            writers.start(answers=10)
            os.kill(child.pid, signal.SIGTERM)
            child.wait()
            assert child.ended_well
            writers.join()
        assert not path.with_name(path.name + "-wal").exists()
        kept = check_kept(path, kept | writers.answered, kept | writers.sent)
        seen.update(rounds=1, answered=len(writers.answered))
    return seen


def served(path: Path, port_of: Any) -> Child:
    """Return a child that serves a file, once it listens; `port_of` is told the port."""
    import pyarrow  # noqa: F401 - here, or every child would take its time for it

    listening = bind("127.0.0.1", 0)
    port_of(listening)
    child = Child(partial(serve, path, listening))
    listening.close()
    assert child.hear() == OPENED
    return child


def serve(path: Path, listening: socket.socket, say: Say) -> None:
    """What a child does."""
    app = make_app(partial(everhash.open, path))
    say(OPENED)
    with suppress(SystemExit):  # how a server that was asked to stop ends
        run(app, listening)


def check_kept(path: Path, answered: set[str], sent: set[str]) -> set[str]:
    """Return the ids in a file: all that were answered, and none that was not sent."""
    with everhash.open(path, readonly=True) as collection:
        kept = {str(entry.id) for entry in collection.entries()}
    assert answered <= kept, f"lost: {sorted(answered - kept)}"
    assert kept <= sent
    return kept


class Writers:
    """Clients that write entry after entry until their server is gone."""

    def __init__(self, number: int) -> None:
        self.sent: set[str] = set()
        self.answered: set[str] = set()
        self._number, self._port = number, 0
        self._threads = [
            threading.Thread(target=self._write, args=(writer,), daemon=True)
            for writer in range(WRITERS)
        ]

    def port_of(self, listening: socket.socket) -> None:
        """Take the port to write to."""
        self._port = listening.getsockname()[1]

    def start(self, answers: int) -> None:
        """Begin, and wait for so many answers."""
        for thread in self._threads:
            thread.start()
        end = time.monotonic() + 60
        while len(self.answered) < answers:
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.001)

    def join(self) -> None:
        """Wait until all have seen that the server is gone."""
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _write(self, writer: int) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        rng, number = random.Random(writer), 0
        with suppress(OSError, HTTPException):
            while True:
                name = f"{self._number}-{writer}-{number}"
                row = [float(rng.randrange(17)) for _ in range(DIM)]
                body = {"rows": [row], "labels": [rng.choice([None, number % LABELS])]}
                self.sent.add(name)
                route = rng.choice(["/ingest", "/upsert", "/add"])
                if _posted(connection, route, {**body, "ids": [name]}):
                    self.answered.add(name)
                    number += 1
                    change = rng.choice([*CHANGES, None])
                    if change is not None:
                        _posted(connection, change, {"ids": [name], **CHANGES[change]})
                else:
                    time.sleep(0.01)
        connection.close()


def _posted(connection: HTTPConnection, route: str, body: dict[str, Any]) -> bool:
    """Whether a write was answered; if not, the service is not open yet, or closing."""
    headers = {"Content-Type": "application/json"}
    connection.request("POST", route, json.dumps(body), headers=headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status in (200, 503), answer.status
    return answer.status == 200
