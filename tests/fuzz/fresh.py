"""A pytest plugin: tests that draw cases draw fresh ones, from a seed, until the time is over.

    python -m pytest -p tests.fuzz.fresh --fuzz-seed 7 TEST      repeat one find, made smaller
    python -m tests.fuzz.run --minutes 10                        look for some; see there

Tests that draw are found by themselves: those of Hypothesis, those that call it, and those that ask
for the fixture `drawn_seed`. All others are left out.
"""

from __future__ import annotations

import hashlib
import json
import platform
import random
import re
import shlex
import signal
import time
from collections.abc import Generator, Iterator
from importlib.metadata import version
from itertools import count, groupby, pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, core, is_hypothesis_test, settings
from hypothesis.statistics import collector

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120.0
"""Seconds after which a test is ended: others have to have their turn."""
DRAWING = {"given", "run_state_machine_as_test"}
"""Names of Hypothesis by which a function draws cases."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzz", "fresh cases")
    group.addoption("--fuzz-seed", type=int, default=0, help="what cases are drawn from")
    group.addoption("--fuzz-until", type=float, help="go on to this moment, in seconds since 1970")
    group.addoption("--fuzz-rounds", type=int, nargs=2, default=(0, 1), help="the first; a step")
    group.addoption("--fuzz-notes", type=Path, help="file for what happens, an object a line")
    group.addoption("--fuzz-without", action="append", default=[], help="a test to leave out")
    group.addoption("--fuzz-finds", type=Path, default=Path("fuzz-finds"), help="folder of finds")


def pytest_configure(config: pytest.Config) -> None:
    fresh: dict[str, Any] = {"derandomize": False, "database": None, "print_blob": True}
    if config.getoption("fuzz_until") is not None:
        # what was found must not be lost because the time is over before it is small
        fresh["phases"] = (Phase.explicit, Phase.generate, Phase.target)
    settings.register_profile("fuzz", **fresh)
    settings.load_profile("fuzz")
    config.pluginmanager.register(Fuzzing(config), "fuzzing")


def seed_of(seed: int, test: str, number: int) -> int:
    """Return the seed of a test in a round: any order and any number of jobs draw the same."""
    digest = hashlib.sha256(f"{seed} {number} {test}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def name_of(item: pytest.Item) -> str:
    """Return what names a test in the folder of the repository, wherever its file is."""
    path, inside = item.path, item.nodeid.partition("::")[2]
    file = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return f"{file.as_posix()}::{inside}"


def draws(item: pytest.Item) -> bool:
    """Whether a test draws cases."""
    function = getattr(item, "function", None)
    if "drawn_seed" in getattr(item, "fixturenames", ()):
        return True
    if is_hypothesis_test(function) or is_hypothesis_test(getattr(item, "obj", None)):
        return True
    return isinstance(function, FunctionType) and _draws(function, set())


def _draws(function: FunctionType, seen: set[str]) -> bool:
    """Whether a function calls Hypothesis, by itself or by another function of its module."""
    seen.add(function.__name__)
    names = set(_names(function.__code__))
    called = (function.__globals__.get(name) for name in names - seen)
    here = [one for one in called if isinstance(one, FunctionType)]
    return bool(names & DRAWING) or any(
        _draws(one, seen) for one in here if one.__module__ == function.__module__
    )


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield from _names(inside)


class Fuzzing:
    """Runs the tests that draw: once, or round after round until a moment."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seed: int = config.getoption("fuzz_seed")
        self.until: float | None = config.getoption("fuzz_until")
        self.finds: Path = config.getoption("fuzz_finds")
        self.found: set[str] = set(config.getoption("fuzz_without"))
        self.cases, self.current, self.is_cut = 0, self.seed, False

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what draws nothing, and samples that slow tests take of all there is."""
        left_out = [item for item in items if not draws(item) or self._is_exhaustive(item)]
        items[:] = [item for item in items if item not in left_out]
        self.config.hook.pytest_deselected(items=left_out)

    def _is_exhaustive(self, item: pytest.Item) -> bool:
        slow = item.get_closest_marker("slow") is not None
        return slow and "drawn_seed" in getattr(item, "fixturenames", ()) and self.until is not None

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run rounds, if there is a moment to end at; else the usual loop runs each test once."""
        if self.until is None or session.testsfailed or self.config.option.collectonly:
            return None
        for (number, item), (_, following) in pairwise(self._plan(session.items)):
            if time.time() >= self.until or self.found.issuperset(map(name_of, session.items)):
                break
            if name_of(item) not in self.found:
                self._run(item, number, following)
        return True

    def _plan(self, items: list[pytest.Item]) -> Iterator[tuple[int, pytest.Item]]:
        """Yield rounds and tests, a file's together; slow ones from the second round on."""
        first, step = self.config.getoption("fuzz_rounds")
        for number in count(first, step):
            files = [list(each) for _, each in groupby(items, lambda item: item.path)]
            random.Random(seed_of(self.seed, "", number)).shuffle(files)
            for item in (item for file in files for item in file):
                if number >= step or item.get_closest_marker("slow") is None:
                    yield number, item

    def _run(self, item: pytest.Item, number: int, following: pytest.Item) -> None:
        test = name_of(item)
        self.current, self.cases = seed_of(self.seed, test, number), 0
        self._note(began=test, seed=self.current, at=time.time())
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        self._note(ended=test, cases=max(1, self.cases), cut=self.is_cut)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Let Hypothesis and the fixture `drawn_seed` start from the seed of this test."""
        self.is_cut = False
        core.global_force_seed = self.config.option.drawn_seed = self.current

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None, None, None]:
        """Count cases, and end the test when its time is over."""
        if self.until is not None:
            signal.signal(signal.SIGALRM, self._cut)
            signal.setitimer(signal.ITIMER_REAL, max(0.01, min(LIMIT, self.until - time.time())))
        try:
            counting: Any = self._count
            with collector.with_value(counting):
                yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _cut(self, *_: object) -> None:
        self.is_cut = True
        pytest.skip("its time is over")

    def _count(self, statistics: Any) -> None:
        phases = [phase for name, phase in statistics.items() if name.endswith("-phase")]
        self.cases += sum(len(phase["test-cases"]) for phase in phases)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write down what a failing test says; an ended test may fail to tidy up."""
        report = yield
        if report.failed and not self.is_cut and self.until is not None:
            self.found.add(test := name_of(item))
            texts = [report.longreprtext, *(f"{name}\n{text}" for name, text in report.sections)]
            self._note(find=str(write_find(self.finds, test, self.current, texts)))
        return report

    def _note(self, **happened: object) -> None:
        notes = self.config.getoption("fuzz_notes")
        if notes is not None:
            with notes.open("a") as file:
                file.write(json.dumps(happened) + "\n")


def write_find(folder: Path, test: str, seed: int, texts: list[str]) -> Path:
    """Write the test, its seed, the command that repeats it, and what was seen."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "-", test.removeprefix("tests/"))[-120:].strip("-")
    path = folder / f"{name}-{seed}.txt"
    plugin = ["python", "-m", "pytest", "-p", "tests.fuzz.fresh"]
    used = [f"{name} {version(name)}" for name in ("hypothesis", "numpy", "numba")]
    lines = [
        f"test: {test}",
        f"seed: {seed}",
        f"repeat: {shlex.join([*plugin, '--fuzz-seed', str(seed), test])}",
        f"with: Python {platform.python_version()}, {', '.join(used)}",
    ]
    path.write_text("\n".join([*lines, "", *texts, ""]))
    return path
