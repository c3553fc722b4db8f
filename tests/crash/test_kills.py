"""The command that kills many times: it finds nothing wrong here, and would say so if it did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash import kills
from tests.crash.apart import apart
from tests.crash.killing import Kill
from tests.crash.rounds import Writers
from tests.crash.script import Script


@pytest.mark.slow
def test_thirty_kills_and_every_fault_of_two_calls_violate_nothing(tmp_path: Path) -> None:
    out = tmp_path / "kills.md"
    assert kills.main(["--kills", "30", "--faults", "--calls", "2", "--out", str(out)]) == 0
    page = out.read_text()
    assert "**Violations: 0**" in page
    assert "## 30 kills at random instants" in page
    assert "| memory     | lasting  |" in page
    rows = out.with_suffix(".jsonl").read_text().splitlines()
    assert [json.loads(row)["part"] for row in rows] == list(kills.PARTS)


def test_a_file_that_lost_a_call_is_a_violation(tmp_path: Path) -> None:
    violations = apart(lose_a_call, str(tmp_path))
    assert len(violations) == 1
    assert "not a state that was expected" in violations[0]


def lose_a_call(folder: str) -> list[str]:
    """Kill a writer once, and take the states for those of a call later."""
    writers = Writers(Path(folder), "0")
    script = writers._script
    writers._script = Script(script.calls, script.states[2:])
    writers.kill(1)
    return writers.record.violations


def test_where_a_kill_came_is_told_by_the_last_word() -> None:
    said = {
        b"": "while opening",
        b"o": "between calls",
        b"o(": "in a call",
        b"o(.": "between calls",
    }
    said[b"o(.c"] = "while closing and opening again"
    assert {words: Kill.after(words).where for words in said} == said
    assert Kill.after(b"o(.(").done == 1
