"""What people find at the start: figures that repeat, agree with others' counts, and their page."""

from __future__ import annotations

import numpy as np
import pytest

from everhash.bench import few_labels, report
from everhash.bench.datasets import Dataset
from everhash.bench.experiment import Experiment
from everhash.bench.task import Row, Task
from everhash.errors import OptionError
from tests.conftest import Stream

PAGE = Experiment("found", "What people find", "", ())


@pytest.fixture(scope="module")
def data(digits: Stream) -> Dataset:
    return Dataset("digits", digits.X, digits.y, np.arange(len(digits.y)) % 5 == 0)


def task(protocol: str, rows: int, seed: int = 0) -> Task:
    return Task("few", "digits", "everhash", 16, seed, rows, protocol, queries=200)


@pytest.fixture(scope="module")
def rows(data: Dataset) -> list[Row]:
    tasks = [task("few", 2, seed) for seed in (0, 1)] + [task("half", 40)]
    return [
        {**each.as_row(), **few_labels.measure(each, data), "machine": "here", "jobs": 1}
        for each in tasks
    ]


def test_the_same_task_gives_the_same_figures(data: Dataset, rows: list[Row]) -> None:
    again = few_labels.measure(task("few", 2), data)
    assert {key: rows[0][key] for key in again} == again


def test_entries_and_labels_are_those_of_the_situation(data: Dataset, rows: list[Row]) -> None:
    assert [row["stream"] for row in rows] == [20, 20, 100]
    assert [row["ranked"] for row in rows] == [320, 320, 400]
    asked = few_labels.asked_by(task("half", 40), data)
    given = [label for label in asked.given if label is not None]
    assert sorted(map(given.count, {*given})) == [20] * 5


def test_likeness_finds_what_faiss_finds(rows: list[Row]) -> None:
    for row in rows:
        for part in ("first", "ten"):
            ways = row["ways"]
            assert ways["likeness"][part] == pytest.approx(ways["cosine"][part], abs=2e-3)


def test_other_classifiers_are_what_they_are_called(data: Dataset, rows: list[Row]) -> None:
    """With one row a label its mean and its nearest row are the same."""
    one = few_labels.measure(task("few", 1), data)["guessed"]
    assert one["means"] == one["nearest"]
    for row in rows[:2]:
        assert min(row["guessed"].values()) > 0.5
        assert row["guessed"]["everhash"] > row["guessed"]["logistic"] - 0.05
    assert rows[2]["guessed"] is None


def test_the_page_has_a_line_for_each_situation(rows: list[Row]) -> None:
    text = report.text(PAGE, rows)
    found, told = text.split("### Labels told")
    assert text.count("| digits ") == 3
    mean = np.mean([row["ways"]["relevance"]["first"] for row in rows[:2]])
    assert f"{mean:.3f} / " in found
    guessed = np.mean([row["guessed"]["logistic"] for row in rows[:2]])
    assert f"{guessed:.3f}" in told


def test_other_protocols_are_refused(data: Dataset) -> None:
    with pytest.raises(OptionError, match="guess"):
        few_labels.measure(task("guess", 1), data)
