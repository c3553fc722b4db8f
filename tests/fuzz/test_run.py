"""`make fuzz` finds what is planted and keeps its time; elsewhere everybody draws the same."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz.fresh import seed_of

ROOT = Path(__file__).resolve().parents[2]
PLANTED = """
import os, time
from hypothesis import given, settings, strategies as st

@given(st.integers(0, 10**6))
@settings(max_examples=5)  # so few that some seeds pass
def test_of_one_number(n):
    assert n < 900_000

def test_that_draws_nothing():
    raise AssertionError("it must not be run")
"""
CRASHING = """
import os

def test_that_takes_its_process_down(drawn_seed):
    os._exit(7)
"""
FIXTURE = """
import pytest

@pytest.fixture
def drawn_seed(request):
    return request.config.getoption("drawn_seed", 0)
"""
ENDLESS = """
import time
from hypothesis import given, strategies as st

@given(st.integers())
def test_without_end(n):
    while True:
        time.sleep(0.01)
"""
FIRST_CASES = """
import sys
from hypothesis import given, strategies as st
{imports}
cases = []

@given(st.lists(st.integers() | st.text() | st.floats(allow_nan=False)))
def test_drawing(case):
    cases.append(case)

def test_telling():
    open({told!r}, "w").write(repr(cases))
"""


def python(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": "", **environment},  # as a newcomer has it
        capture_output=True,
        text=True,
        check=False,
    )


def fuzz(folder: Path, minutes: float, **files: str) -> tuple[int, str, list[Path]]:
    """Look for finds in planted files; return the exit code, what was said, and the finds."""
    tests, finds = folder / "planted", folder / "finds"
    tests.mkdir()
    for name, text in files.items():
        (tests / f"{name}.py").write_text(text)
    options = ("--minutes", minutes, "--seed", 5, "--jobs", 1, "--finds", finds)
    ran = python("-m", "tests.fuzz.run", *options, tests)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout, sorted(finds.glob("*"))


@pytest.mark.slow
def test_a_planted_bug_is_found_and_its_command_finds_it_again(tmp_path: Path) -> None:
    code, said, finds = fuzz(tmp_path, 5, test_planted=PLANTED)
    assert code == 1
    assert said.startswith("seed 5, ")
    assert re.search(r"\nseed 5: cases \d+, tests 1, finds 1\n$", said), said
    (find,) = finds
    told = find.read_text()
    assert "test_of_one_number" in told
    assert "reproduce_failure" in told
    (command,) = re.findall(r"^repeat: python (.+)$", told, re.MULTILINE)
    again = python(*shlex.split(command))
    assert again.returncode == 1
    assert "assert 900000 < 900000" in again.stdout, "it is made smaller, too"


@pytest.mark.slow
def test_a_test_that_takes_its_process_down_is_a_find(tmp_path: Path) -> None:
    code, said, finds = fuzz(tmp_path, 5, test_planted=CRASHING, conftest=FIXTURE)
    assert (code, len(finds)) == (1, 1), said
    assert "the process ended with 7" in finds[0].read_text()


@pytest.mark.slow
def test_it_ends_in_time_whatever_a_test_does(tmp_path: Path) -> None:
    began = time.monotonic()
    code, said, finds = fuzz(tmp_path, 0.4, test_planted=ENDLESS)
    assert (code, finds) == (0, []), said
    assert "ended before it was done: " in said
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_tests_that_draw_are_found_by_themselves() -> None:
    chosen = ("contracts/test_index.py", "cluster/test_simulation.py", "contracts/test_hashers.py",
              "fuzz/test_http.py", "unit/test_codes.py", "unit/index/test_postings.py")  # fmt: skip
    ran = python(
        *("-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"),
        *("-p", "tests.fuzz.fresh", *(f"tests/{file}" for file in chosen)),
    )
    for name in (
        "test_after_any_history_it_answers_as_the_model_does",
        "test_promises_hold_whatever_fails",
        "test_batch_boundaries_do_not_matter",
        "test_no_request_breaks_the_service_or_the_document",
        "TestHistory::runTest",
    ):
        assert name in ran.stdout, ran.stdout + ran.stderr
    assert "test_removing_everything_and_starting_again" not in ran.stdout


def test_a_seed_belongs_to_a_test_and_a_round() -> None:
    seeds = {seed_of(a, b, c) for a in range(3) for b in ("a", "b") for c in range(3)}
    assert len(seeds) == 18
    assert seed_of(1, "a", 2) == seed_of(1, "a", 2) < 2**32


def first_cases(folder: Path, imports: str, **environment: str) -> str:
    """Return the cases that the profile of all tests draws, in a process of its own."""
    told, test = folder / "cases.txt", folder / "test_cases.py"
    test.write_text(FIRST_CASES.format(imports=imports, told=str(told)))
    (folder / "conftest.py").write_text("from tests.conftest import settings\n")
    ran = python("-m", "pytest", "-q", "-p", "no:cacheprovider", test, **environment)
    assert ran.returncode == 0, ran.stdout
    return told.read_text()


def test_everybody_draws_the_same_cases_whatever_is_loaded_or_set(tmp_path: Path) -> None:
    one = first_cases(tmp_path, "", PYTHONHASHSEED="1", CI="")
    other = first_cases(tmp_path, "import everhash.metrics", PYTHONHASHSEED="2", CI="true")
    assert one == other
    assert len(one) > 1000
