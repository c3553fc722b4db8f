"""The README shows the committed rows, and `make bench-quick` says what differs from them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

from everhash.bench.rows import read_rows
from everhash.bench.task import Row

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "docs" / "results" / "found.jsonl"
NAMES = {
    "CLINC150": "clinc150",
    "Caltech-256 CNN": "caltech256-cnn",
    "CIFAR-10 CNN": "cifar10-cnn",
    "Fashion-MNIST": "fashion-mnist",
    "digits": "digits",
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for row in read_rows([COMMITTED]) if row["protocol"] == "unlabelled"]


def mean(rows: list[Row], dataset: str, way: str, figure: str) -> str:
    values = [row["ways"][way][figure] for row in rows if row["dataset"] == dataset]
    return f"{fmean(values):.3f}".lstrip("0")


def test_the_table_of_the_readme_is_that_of_the_rows(rows: list[Row]) -> None:
    lines = re.findall(r"^\| (.*?), .*?\| (.*?) \| (.*?) \| (.*?) \|", text(), re.MULTILINE)
    table = {NAMES[name]: cells for name, *cells in lines if name in NAMES}
    assert set(table) == set(NAMES.values())
    for dataset, (default, cosine, logistic) in table.items():
        for way, cell in (("relevance", default), ("cosine", cosine)):
            both = " / ".join(mean(rows, dataset, way, figure) for figure in ("first", "ten"))
            assert cell.replace("*", "") == both, f"{dataset}, {way}"
        assert logistic.replace("*", "") == mean(rows, dataset, "logistic", "first"), dataset


def test_the_table_of_the_start_is_that_of_the_rows() -> None:
    few = [row for row in read_rows([COMMITTED]) if row["protocol"] == "few"]
    lines = re.findall(r"^\| ([^|,]*) \| (.*?) \|$", text(), re.MULTILINE)
    table = {NAMES[name]: cells.split(" | ") for name, cells in lines if name in NAMES}
    assert set(table) == set(NAMES.values())
    for dataset, cells in table.items():
        for rows_a_label, part in ((1, cells[:3]), (5, cells[3:])):
            mine = [row for row in few if row["rows_a_label"] == rows_a_label]
            for way, cell in zip(("relevance", "cosine"), part, strict=False):
                both = (mean(mine, dataset, way, figure) for figure in ("first", "ten"))
                assert cell == " / ".join(both), (dataset, way)
            told = {
                name: fmean(row["guessed"][name] for row in mine if row["dataset"] == dataset)
                for name in ("everhash", "logistic", "means", "nearest")
            }
            ours = told.pop("everhash")
            assert part[2] == f"{ours:.3f}, {max(told.values()):.3f}".replace("0.", ".")


def text() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def quick(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    """Run it on one seed of digits, as on a machine without the shared sets."""
    command = [sys.executable, str(ROOT / "benchmarks" / "quick.py"), "--seeds", "1"]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, cwd=data, check=False
    )


@pytest.mark.slow
def test_a_figure_that_is_lower_than_the_committed_one_ends_it_with_1(
    rows: list[Row], tmp_path: Path
) -> None:
    mine = [row for row in rows if row["dataset"] == "digits" and row["seed"] == 0]
    same = quick("--sets", "digits", data=tmp_path)
    assert same.returncode == 0, same.stderr + same.stdout
    assert "1 runs compared with the committed rows" in same.stdout
    better = json.loads(json.dumps(mine[0]))
    better["ways"]["meaning"]["first"] = 1.0
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps(better) + "\n")
    worse = quick("--sets", "digits", "--committed", str(other), data=tmp_path)
    assert worse.returncode == 1
    assert "WORSE: digits, everhash, 32 bits, ways meaning first: 1.0" in worse.stdout
