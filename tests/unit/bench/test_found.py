"""What people find: figures that repeat, agree with FAISS and brute force, and their page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash.bench import experiment, found, report
from everhash.bench.datasets import Dataset
from everhash.bench.experiment import Experiment
from everhash.bench.task import Row, Task
from everhash.errors import OptionError
from everhash.matches import Matches
from everhash.metrics import average_precision
from tests.conftest import Stream

PROTOCOLS = ("unlabelled", "unseen", "strict")
PAGE = Experiment("found", "What people find", "", ())


@pytest.fixture(scope="module")
def data(digits: Stream) -> Dataset:
    return Dataset("digits", digits.X, digits.y, np.arange(len(digits.y)) % 5 == 0)


def task(protocol: str, seed: int = 0) -> Task:
    return Task("found", "digits", "everhash", 16, seed, 30, protocol, 0.3, queries=100)


@pytest.fixture(scope="module")
def rows(data: Dataset) -> list[Row]:
    tasks = [task(protocol, seed) for protocol in PROTOCOLS for seed in (0, 2)]
    return [
        {**each.as_row(), **found.measure(each, data), "machine": "here", "jobs": 1}
        for each in tasks
    ]


def test_the_same_task_gives_the_same_figures(data: Dataset, rows: list[Row]) -> None:
    again = found.measure(task("unseen"), data)
    first = next(row for row in rows if row["protocol"] == "unseen")
    assert {key: first[key] for key in again} == again


def test_likeness_finds_what_faiss_finds(rows: list[Row]) -> None:
    for row in rows:
        assert row["ways"]["likeness"]["first"] == pytest.approx(row["ways"]["cosine"]["first"])
        assert row["ways"]["likeness"]["map"] == pytest.approx(
            row["ways"]["cosine"]["map"], abs=1e-3
        )
    assert [row["differing"]["stored"] for row in rows if row["protocol"] == "unseen"] == [0, 0]


def test_relevance_is_hardly_worse_than_the_better_of_meaning_and_likeness(
    rows: list[Row],
) -> None:
    for row in rows:
        ways = row["ways"]
        for figure in ("first", "ten", "map"):
            better = max(ways["meaning"][figure], ways["likeness"][figure])
            assert ways["relevance"][figure] > better - 0.03


def test_labels_never_learned_are_half_of_the_queries_and_meaning_cannot_name_them(
    rows: list[Row],
) -> None:
    for row in rows[2:4]:
        assert row["novel"]["meaning"]["first"] < 0.1
        assert row["novel"]["likeness"]["first"] > 0.8
        assert row["asked"] % 2 == 0


def test_entries_without_labels_are_other_rows_than_those_that_are_learned(
    data: Dataset, rows: list[Row]
) -> None:
    for row in rows[4:]:
        assert row["stream"] == 300
        assert row["ranked"] == np.sum(~data.is_query) - row["stream"]
        assert row["ways"]["meaning"]["ten"] > row["ways"]["cosine"]["ten"]
        assert row["ways"]["logistic"]["first"] > 0.8


def test_other_protocols_are_refused(data: Dataset) -> None:
    with pytest.raises(OptionError, match="guess"):
        found.measure(Task("found", "digits", "everhash", 8, protocol="guess"), data)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1))
def test_entries_are_tied_only_if_score_and_likeness_are(
    entries: list[tuple[int, int, bool]],
) -> None:
    ordered = sorted(entries, key=lambda entry: entry[:2], reverse=True)
    scores, likeness = np.array([entry[:2] for entry in ordered], np.float32).T[:, None]
    relevant = np.array([entry[2] for entry in ordered])[None]
    nothing: Any = np.empty((1, len(ordered)), object)
    matches = Matches(
        nothing,
        scores,
        likeness,
        nothing,
        nothing,
        np.array([len(ordered)]),
        scores[:, 0],
        ["meaning"],
    )
    expected = average_precision(-(10 * scores + likeness), relevant)
    np.testing.assert_allclose(average_precision(found.ranks(matches), relevant), expected)


def test_the_page_tells_each_part(rows: list[Row]) -> None:
    text = report.text(PAGE, rows)
    assert "## Labels learned" in text
    assert "## Labels never learned" in text
    assert "## No entry has a label" in text
    mean = np.mean([row["ways"]["meaning"]["first"] for row in rows[:2]])
    assert f"{mean:.3f} ± " in text
    assert report.text(PAGE, rows[::-1]) == text


def test_a_part_of_the_rows_is_a_page_too(rows: list[Row]) -> None:
    assert "## Labels never learned" not in report.text(PAGE, rows[:2])
    assert "## Labels learned" not in report.text(PAGE, rows[2:])
    assert "## No entry has a label" not in report.text(PAGE, rows[:4])


def test_the_experiment_asks_for_five_sets_and_every_protocol() -> None:
    tasks = experiment.load("found").tasks()
    assert {(each.dataset, each.protocol) for each in tasks} == {
        (name, protocol)
        for name in ("clinc150", "caltech256-cnn", "cifar10-cnn", "digits", "fashion-mnist")
        for protocol in (*PROTOCOLS, "few", "half")
    }
