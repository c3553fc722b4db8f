"""Runs of experiments: the same figures again, nothing twice, nothing lost, own files and plans."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash import Index, OnlineHasher, peers
from everhash.bench import experiment, growth, retrieval, runner
from everhash.bench.baselines import BASELINES, COSINE, LOGISTIC
from everhash.bench.costs.refresh import keep_fresh
from everhash.bench.datasets import Dataset
from everhash.bench.experiment import Experiment, Runs, named, parse
from everhash.bench.protocols import ORDERS
from everhash.bench.rows import RowFile, read_rows
from everhash.bench.runner import Failure, Source
from everhash.bench.task import Row, Task
from everhash.errors import InputError, OptionError, UnknownNameError
from tests.conftest import Stream

UNTIMED = {"seconds": 0, "encoding": 0}
FEW = Experiment(
    "few", "Few", "", (Runs("digits", methods="paper,onehot,itq", bits=(8, 16), seeds=2),)
)


@pytest.fixture(scope="module")
def data(digits: Stream) -> Dataset:
    return Dataset("digits", digits.X, digits.y, np.arange(len(digits.y)) % 5 == 0)


@pytest.mark.parametrize(
    "method", ["everhash", "everhash-sgd", "hcoh", "onehot", "mihash", "itq", *BASELINES]
)
@pytest.mark.parametrize("protocol", retrieval.PROTOCOLS)
def test_a_task_gives_the_same_figures_again(data: Dataset, method: str, protocol: str) -> None:
    task = Task("retrieval", "digits", method, 16, 0, 20, protocol, 0.5, entries=500, queries=50)
    one, two = (retrieval.measure(task, data) for _ in range(2))
    assert {**one, **UNTIMED} == {**two, **UNTIMED}
    has_words = method == LOGISTIC or (method != COSINE and peers.describe(method).codewords)
    if protocol == "out-of-scope":
        assert ("auroc" in one) == (has_words or method == COSINE)
        assert one.get("auroc", 0.9) > 0.5
    elif protocol == "unlabelled" and method != COSINE:
        assert 0.1 < one["mixed"]["asymmetric"].average <= 1
    else:
        assert 0.1 < one["mapping"]["asymmetric"].average <= 1
        assert ("codeword" in one) == (has_words and protocol != "unseen")
        assert set(one["bytes"]) == {"mapping", "codeword"} & set(one)
        assert one["mapping"]["asymmetric"].first >= one["mapping"]["asymmetric"].ten - 0.1


@pytest.mark.parametrize("learner", ["exact", "sgd"])
def test_entries_are_refreshed_when_functions_have_changed_and_only_then(
    data: Dataset, learner: str
) -> None:
    hasher = OnlineHasher(16, learner=learner)
    index, stream = Index(hasher), np.arange(1400)
    reports = [each for (each,) in keep_fresh(hasher, data, stream, np.arange(1400, 1500), [index])]
    assert all(report.bits_recomputed + report.bits_certified > 0 for report in reports)
    assert (len(reports) == 13) == (learner == "sgd")
    assert index.stale_bits() == index.verify() == 0


def test_a_small_set_is_split_so_that_something_is_left_of_every_label(digits: Stream) -> None:
    bare = Dataset("digits", digits.X, digits.y, np.zeros(len(digits.y), np.bool_))
    split = retrieval.split_of(Task("retrieval", "digits", "paper", rows_a_label=200), bare)
    learned, asked = (np.bincount(digits.y[rows]) for rows in (split.stream, split.queries))
    assert (asked == 34).all()
    assert (learned == 70).all()


@pytest.mark.parametrize("order", ORDERS)
def test_growth_ends_with_all_labels_and_its_area_is_the_mean(data: Dataset, order: str) -> None:
    task = Task("growth", "digits", "everhash", 16, 0, 40, order, entries=500, queries=50)
    figures = growth.measure(task, data)
    seen = [point["labels"] for point in figures["curve"]]
    assert seen == sorted(seen)
    assert seen[-1] == 10
    assert figures["curve"][-1]["rows"] == figures["stream"] == 400
    for stored in ("mapping", "codeword"):
        values = [point[stored]["hamming"].average for point in figures["curve"]]
        assert figures["area"][stored]["hamming"] == pytest.approx(np.mean(values))


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_changes_nothing_but_the_order_of_the_stream(data: Dataset, order: str) -> None:
    task = Task("retrieval", "digits", "paper", 16, 0, 20)
    usual, ordered = (
        retrieval.split_of(replace(task, protocol=protocol), data) for protocol in ("strict", order)
    )
    np.testing.assert_array_equal(ordered.stream, ORDERS[order](data.y, usual.stream, 0))
    np.testing.assert_array_equal(ordered.entries, usual.entries)
    np.testing.assert_array_equal(ordered.queries, usual.queries)


def test_unknown_protocols_are_refused(data: Dataset) -> None:
    for measure in (retrieval.measure, growth.measure):
        with pytest.raises(OptionError, match="guess"):
            measure(Task("retrieval", "digits", "paper", 8, protocol="guess"), data)


def untimed(row: Row) -> Row:
    return {key: row[key] for key in row if key not in {*UNTIMED, "taken", "jobs"}}


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_rows(tmp_path: Path) -> None:
    tasks = FEW.tasks()
    whole, cut = RowFile(tmp_path / "whole.jsonl"), tmp_path / "cut.jsonl"
    assert runner.run(tasks, whole, jobs=2, report=lambda _: None) == []
    lines = (tmp_path / "whole.jsonl").read_bytes().split(b"\n")
    cut.write_bytes(b"\n".join(lines[:3]) + b"\n" + lines[3][: len(lines[3]) // 2])
    told: list[Row | Failure] = []
    again = RowFile(cut)
    assert runner.run(tasks, again, report=told.append) == []
    assert len(told) == len(tasks) - 3
    key = lambda row: repr(Task.of(row))  # noqa: E731 - said once, used twice
    got, expected = (sorted(read_rows([path]), key=key) for path in (cut, whole.path))
    assert [untimed(row) for row in got] == [untimed(row) for row in expected]
    assert len(got) == len(tasks) == 12
    told.clear()
    assert runner.run(tasks, RowFile(cut), report=told.append) == []
    assert told == []


@pytest.mark.slow
def test_a_task_that_fails_is_told_and_does_not_end_the_others(tmp_path: Path) -> None:
    tasks = [Task("retrieval", name, "paper", 8, rows_a_label=5) for name in ("nothing", "digits")]
    file = RowFile(tmp_path / "rows.jsonl")
    (failure,) = runner.run(tasks, file, report=lambda _: None)
    assert failure.task.dataset == "nothing"
    assert "no dataset 'nothing'" in failure.why
    assert [row["dataset"] for row in file.rows] == ["digits"]


@pytest.mark.slow
def test_a_set_of_ones_own_is_run_by_its_columns(tmp_path: Path, digits: Stream) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, vectors=digits.X[:600], kind=np.array([f"digit {y}" for y in digits.y[:600]]))
    task = Task("retrieval", "own", "everhash", 16, rows_a_label=20)
    file = RowFile(tmp_path / "rows.jsonl")
    source = Source("own", path, "vectors", "kind")
    assert runner.run([task], file, source=source, report=lambda _: None) == []
    assert file.rows[0]["codeword"]["asymmetric"][0] > 0.5


@given(st.integers(0, 200))
def test_rows_are_read_up_to_a_torn_line_and_appended_after_it(
    tmp_path_factory: pytest.TempPathFactory, end: int
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    file = RowFile(path)
    tasks = [Task("retrieval", "digits", "paper", bits) for bits in (8, 16, 32)]
    for task in tasks[:2]:
        file.append({**task.as_row(), "mapping": {"hamming": (0.5, 0.4, float("nan"))}})
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - end % len(content)])
    whole = path.read_bytes().count(b"\n")
    again = RowFile(path)
    assert again.done == set(tasks[:whole])
    again.append(tasks[2].as_row())
    assert [Task.of(row) for row in read_rows([path])] == [*tasks[:whole], tasks[2]]


LISTED = json.dumps({**Task("retrieval", "digits", "paper").as_row(), "options": {"step": [1]}})


@pytest.mark.parametrize("line", ["{}", "[1]", "nothing", '{"kind": 1}', "null", LISTED])
def test_lines_that_are_no_rows_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="line 1"):
        read_rows([path])


@pytest.mark.parametrize("name", experiment.names())
def test_every_experiment_has_tasks_that_can_be_told_apart(name: str) -> None:
    loaded = experiment.load(name)
    tasks = loaded.tasks()
    assert len(tasks) == len(set(tasks)) > 5
    assert [task.seed for task in tasks] == sorted(task.seed for task in tasks)
    assert loaded.title
    assert loaded.text
    for task in tasks:
        assert Task.of(json.loads(json.dumps(task.as_row()))) == task


def test_the_paper_is_run_with_every_method_and_three_orderings_of_online_ones() -> None:
    tasks = experiment.load("table1").tasks()
    assert {task.method for task in tasks} == {*peers.names(), *BASELINES}
    for name in peers.names():
        about, seeds = peers.describe(name), {task.seed for task in tasks if task.method == name}
        fewest = 3 if about.online and not about.stores_rows else 1
        assert len(seeds) >= fewest


@pytest.mark.parametrize("name", ["table1", "table2", "growth", "updates"])
def test_both_learners_stand_beside_the_paper(name: str) -> None:
    by_set: dict[str, set[str]] = {}
    for task in experiment.load(name).tasks():
        by_set.setdefault(task.dataset, set()).add(task.method)
    assert all({"everhash", "everhash-sgd", "paper"} <= methods for methods in by_set.values())


def test_groups_of_methods() -> None:
    assert named("all", "") == [*peers.names(), *BASELINES]
    assert set(named("online", "")) | set(named("batch", "")) == set(named("all", ""))
    assert named(["batch", "itq", "paper"], "")[-1] == "paper"
    with pytest.raises(UnknownNameError, match="nonsense"):
        named("paper,nonsense", "here")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("title = ", "Invalid"),
        ('title = "x"', "no \\[\\[runs\\]\\]"),
        ('[[runs]]\nkind = "retrieval"', "must name a dataset"),
        ('[[runs]]\ndataset = "digits"\nkind = "guess"', "no kind 'guess'"),
        ('[[runs]]\ndataset = "digits"\nurl = "x"', "unknown url"),
        ('code = "x"\n[[runs]]\ndataset = "digits"', "unknown code"),
    ],
)
def test_a_plan_that_cannot_be_read_says_why(content: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse(content, "mine")


def test_a_plan_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[runs]]\ndataset = "digits"\nmethods = ["paper"]\noptions = [{step = 0.5}, {}]\n'
    )
    loaded = experiment.load(str(path))
    assert [task.variant for task in replace(loaded).tasks()[:2]] == ["paper (step=0.5)", "paper"]
    with pytest.raises(UnknownNameError, match="table1"):
        experiment.load("table9")
