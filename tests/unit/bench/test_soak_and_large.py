"""The soak and the growth to millions, both made small; and that a soak would see what is lost."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash.bench import datasets
from tests.conftest import missing

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import scripts as they import each other."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    known = set(sys.modules)
    yield importlib.import_module
    for name in {path.stem for path in SCRIPTS.glob("*.py")} - known:
        sys.modules.pop(name, None)


def run(name: str, *options: str) -> None:
    """Run a script, and show what it said if it fails."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / name), *options],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_soak_of_seconds_with_two_kills_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "soak.jsonl"
    options = ("--minutes", "0.3", "--kill-every", "5", "--entries", "300", "--data", "digits")
    run("soak.py", *options, "--calls", "50", "--out", str(out))
    about, *rounds = map(json.loads, out.read_text().splitlines())
    assert about["violations"] == []
    assert len(rounds) >= 2
    assert "**Violations: 0**" in out.with_suffix(".md").read_text()
    assert out.with_suffix(".png").stat().st_size > 10_000


@pytest.mark.slow
def test_a_thousand_entries_grow_as_millions_do(tmp_path: Path) -> None:
    if not all(map(datasets.is_here, ("cifar10-cnn", "caltech256-gist"))):
        missing("the four sets of large.py are not on this machine")
    out = tmp_path / "large.jsonl"
    sizes = ("--entries", "500", "1000", "--labels", "20", "600", "--learn", "500")
    run("large.py", "grow", "flat", "page", *sizes, "--out", str(out))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["entries"] for row in rows if row["part"] == "grow"] == [500, 1000] * 2
    assert "**Up to 180,208 entries every row is real" in out.with_suffix(".md").read_text()


def test_labels_are_split_until_there_are_enough(script: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 5)).astype(np.float32), rng.integers(0, 7, 400)
    finer = script("large_rows").split(X, y, 50)
    assert len(np.unique(finer)) == 50
    assert all(len(np.unique(y[finer == label])) == 1 for label in range(50))
    assert len(np.unique(script("large_rows").split(X, y, 3))) == 3


def test_real_rows_come_first_and_each_once(script: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 5)).astype(np.float32), rng.integers(0, 4, 300)
    rows = script("large_rows").Rows(X, y, 8)
    calls = list(rows.calls(0, 500, 64))
    given = np.concatenate([call.X for call in calls])
    assert (len(given), rows.real) == (500, 270)
    known = {row.tobytes() for row in X} - {row.tobytes() for row in rows.queries}
    assert {row.tobytes() for row in given[:270]} == known
    assert not known & {row.tobytes() for row in given[270:]}


def line(name: str, **effect: Any) -> dict[str, Any]:
    whole = {"put": {}, "gone": [], "label": None, **effect}
    return {"begin": whole} if name == "begin" else {"end": name}


def test_a_soak_knows_kept_and_dropped_and_sees_what_is_lost(script: Any) -> None:
    model = script("soak_model").Model()
    for each in (line("begin", put={"a": "x", "b": None}), line("ingest")):
        model.take(each)
    assert model.settle({"a": "x", "b": None}) == "between calls"
    model.take(line("begin", label=("x", "y")))
    assert model.settle({"a": "y", "b": None}) == "call kept"
    model.take(line("begin", gone=["a"]))
    assert model.settle({"a": "y", "b": None}) == "call dropped"
    model.take(line("begin"))
    assert model.settle({"a": "y", "b": None}) == "in a call that changes nothing"
    assert model.settle({"a": "z", "c": None}) == "1 lost, 1 more, 1 with other labels"


def test_half_a_line_that_a_kill_left_is_cut_off(script: Any, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    follower = script("soak_model").Follower(path)
    path.write_text('{"n": 1}\n{"n": 2')
    assert follower.lines() == [{"n": 1}]
    follower.drop_rest()
    with path.open("a") as file:
        file.write('{"n": 3}\n')
    assert follower.lines() == [{"n": 3}]
