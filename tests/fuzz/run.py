"""Look for cases that break a promise: every test that draws, with fresh seeds, for some minutes.

    python -m tests.fuzz.run --minutes 10 [--seed SEED] [--jobs 2] [TEST ...]

Each job is a pytest with the plugin `tests.fuzz.fresh`. A find is a file that says how to repeat
it; what it shows becomes a fixed test. A test that hangs or takes its process down is a find too.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.fresh import LIMIT, write_find

ROOT = Path(__file__).resolve().parents[2]
GRACE = 30.0
"""Seconds that a job gets to end by itself when the time is over."""
HANGS = 3 * LIMIT
"""Seconds after which a test hangs: it has been told to end long before."""
EVERY = 30.0
"""Seconds from one line of progress to the next."""


@dataclass
class Seen:
    """What all jobs have noted."""

    cases: int = 0
    tests: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    finds: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"cases {self.cases:,}, tests {len(self.tests)}, finds {len(self.finds)}"


@dataclass
class Begun:
    """A test that has not ended."""

    test: str
    seed: int
    at: float


def read_notes(notes: Path, seen: Seen) -> Begun | None:
    """Add what a job has noted; return the test that has begun and not ended."""
    begun = None
    for line in notes.read_text().splitlines():
        match json.loads(line):
            case {"began": test, "seed": seed, "at": at}:
                begun = Begun(test, seed, at)
            case {"ended": test, "cases": cases, "cut": cut}:
                begun = None
                seen.cases += cases
                seen.tests.add(test)
                seen.cut |= {test} if cut else set()
            case {"find": find}:
                seen.finds.append(find)
    return begun


class Job:
    """A pytest that takes every n-th round; started again if a test takes it down."""

    def __init__(self, given: argparse.Namespace, number: int, folder: Path, until: float) -> None:
        self._given, self._number, self._folder, self._until = given, number, folder, until
        self._left_out: list[str] = []
        self.start()

    def start(self) -> None:
        """Begin with a round that this job has not begun."""
        starts, given = len(self._left_out), self._given
        self.notes = self._folder / f"{self._number}-{starts}.jsonl"
        self.output = self.notes.with_suffix(".txt")
        self.notes.touch()
        first = self._number + starts * given.jobs
        options = {
            "seed": given.seed,
            "until": self._until,
            "notes": self.notes,
            "finds": given.finds,
        }
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                    *("-p", "tests.fuzz.fresh", "--fuzz-rounds", str(first), str(given.jobs)),
                    *(f"--fuzz-{name}={value}" for name, value in options.items()),
                    *(f"--fuzz-without={test}" for test in self._left_out),
                    *map(str, given.tests),
                ],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to run, as every test is a find."""
        return self.process.poll() in (0, 1) and read_notes(self.notes, Seen()) is None

    def look_after(self) -> None:
        """Write down a test that hangs or has taken the process down, and go on without it."""
        begun, ended = read_notes(self.notes, Seen()), self.process.poll() is not None
        if begun is not None and (ended or time.time() - begun.at > HANGS):
            self.end()
            code, said = self.process.returncode, self.output.read_text()
            what = f"the process ended with {code}" if ended else f"it hung for {HANGS} seconds"
            find = write_find(self._given.finds, begun.test, begun.seed, [what, said])
            ended_so = {"ended": begun.test, "cases": 1, "cut": False}
            with self.notes.open("a") as notes:
                notes.writelines(
                    json.dumps(note) + "\n" for note in ({"find": str(find)}, ended_so)
                )
            self._left_out.append(begun.test)
            self.start()
        elif ended and not self.is_done:
            raise SystemExit(f"no test could be run:\n{self.output.read_text()}")

    def end(self) -> None:
        """End the process and all it has started: by Ctrl-C, or at once if that does not help."""
        for number in (signal.SIGINT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE / 3)


def run(given: argparse.Namespace, folder: Path) -> Seen:
    """Run the jobs until the time is over, and show how far they have come."""
    began = time.time()
    until = began + 60 * given.minutes
    jobs = [Job(given, number, folder, until) for number in range(given.jobs)]
    told = began
    try:
        while time.time() < until and not all(job.is_done for job in jobs):
            time.sleep(0.2)
            for job in jobs if time.time() < until else ():
                job.look_after()
            if time.time() - told > EVERY:
                told = time.time()
                say(f"{(told - began) / 60:.1f} of {given.minutes:g} minutes: {look(folder)}")
        for job in jobs:
            with suppress(subprocess.TimeoutExpired):
                job.process.wait(max(0.0, until + GRACE - time.time()))
    except KeyboardInterrupt:
        say("interrupted")
    finally:
        for job in jobs:
            job.end()
    return look(folder)


def look(folder: Path) -> Seen:
    """Return what all jobs have noted so far."""
    seen = Seen()
    for notes in sorted(folder.glob("*.jsonl")):
        read_notes(notes, seen)
    return seen


def say(text: object) -> None:
    """Print a line, at once."""
    print(text, flush=True)  # noqa: T201


def main() -> None:
    """Run what the command line asks for; end with 1 if there are finds."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to look")
    parser.add_argument("--seed", type=int, help="what to draw from; by default another every time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--finds", type=Path, default=ROOT / "fuzz-finds", help="folder for finds")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or tests; default: all")
    given = parser.parse_args()
    given.finds = given.finds.absolute()
    if given.seed is None:
        given.seed = secrets.randbits(32)
    say(f"seed {given.seed}, {given.minutes:g} minutes, {given.jobs} jobs")
    with tempfile.TemporaryDirectory(prefix="everhash-fuzz-") as folder:
        seen = run(given, Path(folder))
    for test in sorted(seen.cut):
        say(f"ended before it was done: {test}")
    for find in seen.finds:
        say(f"find: {find}")
    say(f"seed {given.seed}: {seen}")
    sys.exit(1 if seen.finds else 0)


if __name__ == "__main__":
    main()
