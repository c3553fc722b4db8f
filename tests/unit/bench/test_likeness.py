"""Search by likeness beside peers: rows are the same everywhere, exact answers are found."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash.bench import datasets, experiment, report
from everhash.bench.experiment import Experiment
from everhash.bench.kinds import KINDS, NO_DATA
from everhash.bench.likeness import engines, race, rows
from everhash.bench.likeness import measure as likeness
from everhash.bench.likeness.child import Child, ChildError, Place, Worker
from everhash.bench.likeness.rows import CLINC, DIM, RowSource
from everhash.bench.reporting.document import Plot
from everhash.bench.reporting.layouts.likeness import fastest
from everhash.bench.runner import Failure, measure
from everhash.bench.task import Row, Task, as_options
from everhash.errors import DataMissingError, OptionError

SIZE, QUERIES = 600, 20
SOURCE = RowSource("synthetic")
BARE = Experiment("mine", "Mine", "One sentence.", ())


def task(dataset: str = "synthetic", **options: Any) -> Task:
    return Task("likeness", dataset, "everhash", queries=QUERIES, options=as_options(options))


def measured(**options: Any) -> Row:
    row = measure(task(**options), 1, None)
    assert not isinstance(row, Failure), row
    return row


@pytest.fixture(scope="module")
def raced() -> Row:
    """Race ours and FAISS Flat, each in processes of its own."""
    return measured(part="search", size=SIZE, rounds=1, engines="FAISS Flat")


@pytest.fixture(scope="module")
def truth() -> rows.Counts:
    X, Q = np.concatenate(list(SOURCE.blocks(SIZE))), SOURCE.queries(QUERIES)
    return np.argsort(-(Q @ X.T), axis=1, kind="stable")[:, : engines.K]


def test_a_row_says_what_every_engine_found_and_cost(raced: Row) -> None:
    assert (raced["part"], raced["size"], raced["rounds"]) == ("search", SIZE, 1)
    assert "faiss-cpu" in raced["packages"]
    assert list(raced["engines"]) == ["everhash", "FAISS Flat"]
    for name, each in raced["engines"].items():
        assert "note" not in each
        assert len(each["settings"]) == len(engines.ENGINES[name].settings)
        assert all(each[figure] > 0 for figure in ("build", "save", "disk", "first_answer"))
        assert {"anon", "file", "built_anon", "holds"} <= set(each)
        for setting in each["settings"]:
            assert 0 < setting["recall"] <= 1
            assert setting["asked"] == QUERIES
            assert min(setting[figure] for figure in ("batch", "single", "single_ms")) > 0


def test_exact_answers_are_all_found(raced: Row) -> None:
    for name, setting in (("everhash", "exact=True"), ("FAISS Flat", "")):
        found = raced["engines"][name]["settings"]
        assert [each["recall"] for each in found if each["setting"] == setting] == [1.0]


@pytest.mark.parametrize("name", engines.ENGINES)
def test_every_engine_finds_most_at_its_slowest_setting(
    name: str, truth: rows.Counts, tmp_path: Path
) -> None:
    place = Place(name, tmp_path / "index", SOURCE, SIZE, QUERIES)
    if name == "usearch" and find_spec("usearch") is None:
        with pytest.raises(OptionError, match="usearch is not installed"):
            Worker(place)
        return
    built = Worker(place).build()
    assert built["build"] > 0
    worker = Worker(place)
    worker.open()
    known = engines.ENGINES[name].settings
    found = [race.recall_of(worker.answers(setting, QUERIES), truth) for setting in known]
    assert found[-1] >= 0.98
    assert found[-1] == max(found)
    assert len(worker.singles(known[0], 15, 25)) == 10


def test_what_fails_in_a_child_is_said_and_ends_no_other(tmp_path: Path) -> None:
    with Child(Place("FAISS Flat", tmp_path / "none", SOURCE, SIZE, QUERIES)) as child:
        with pytest.raises(ChildError, match="none"):
            child.ask(Worker.open)
        with pytest.raises(ChildError):
            child.ask(Worker.answers, {}, QUERIES)


def test_blocks_are_the_same_rows_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK", 70)
    first, second = (np.concatenate(list(SOURCE.blocks(150))) for _ in range(2))
    assert first.shape == (150, DIM)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-5)
    others = (next(RowSource("synthetic", 1).blocks(70)), next(SOURCE.blocks(70, start=3)))
    for other in others:
        assert not np.allclose(first[:70], other)


def test_queries_are_sentences_that_no_row_is_made_of() -> None:
    source = RowSource(CLINC)
    if not datasets.is_here("clinc150"):
        with pytest.raises(DataMissingError):
            source.check()
        return
    data = datasets.load("clinc150")
    held_out = rows.unit(data.X[data.is_query])
    assert all((held_out == query).all(axis=1).any() for query in source.queries(5))
    bases, X = rows.unit(data.X[~data.is_query]), next(source.blocks(200))
    nearest = (X @ bases.T).max(axis=1)  # 1 / sqrt(1 + NOISE ** 2), but for noise
    assert np.median(nearest) == pytest.approx((1 + rows.NOISE**2) ** -0.5, abs=0.01)


def test_inserts_beside_searches_and_while_growing() -> None:
    beside = measured(part="inserts", size=300, seconds=1)
    assert beside["inserts"]["n"] == 200
    assert 0 < beside["inserts"]["rate"] <= 202
    for part in ("idle", "searches", "inserts"):
        figures = beside[part]
        assert 0 < figures["median"] <= figures["p99"] <= figures["longest"]
    growing = measured(part="growing", size=200, to=320)
    assert growing["inserts"]["n"] == 120
    assert 200 < growing["inserts"]["longest_at"] <= growing["to"] == 320
    assert growing["searches"]["n"] == 2
    text = report.text(BARE, [beside, growing])
    assert "## Inserts beside searches" in text
    assert "| synthetic, 200 entries | 320 |" in text


def with_peer(row: Row) -> Row:
    """Return a row with a peer that is fast where it finds little, and one that is missing."""
    every = {"batch": 1e9, "single": 1e9, "single_ms": 1e-6, "asked": QUERIES}
    settings = [
        {"setting": "hasty", "recall": 0.9, **every},
        {"setting": "careful", "recall": 0.99, **every, "batch": 1e-3},
    ]
    flat = row["engines"]["FAISS Flat"]
    made = {"FAISS IVF": {**flat, "settings": settings}, "usearch": {"note": "not installed"}}
    return {**row, "engines": {**row["engines"], **made}}


def test_a_report_compares_at_equal_recall(raced: Row) -> None:
    row = with_peer(raced)
    assert fastest(row, "batch")["FAISS IVF"].setting == "careful"
    assert fastest(row, "single", 0.5)["FAISS IVF"].setting == "hasty"
    text = report.text(BARE, [row])
    assert "## At equal recall" in text
    assert "- usearch: not installed" in text
    assert f"synthetic, {SIZE} entries, one by one: FAISS IVF, 0.00" in text
    assert f"synthetic, {SIZE} entries, in one call: FAISS IVF" not in text
    assert row["machine"] in " ".join(text.split())


def test_the_figure_shows_both_ways_of_asking(raced: Row, tmp_path: Path) -> None:
    plots = [part for part in report.parts(BARE, [raced]) if isinstance(part, Plot)]
    assert [len(plot.panels) for plot in plots] == [2]
    assert all(panel.log_y and panel.rates for panel in plots[0].panels)
    written = report.write(BARE, [raced], tmp_path)
    assert {path.name for path in written} == {"mine.md", "mine-recall.png", "mine-recall.svg"}


@pytest.mark.parametrize(
    "options",
    [
        {"part": "flying", "size": 10},
        {"part": "search"},
        {"part": "search", "size": 0},
        {"part": "search", "size": 10, "engines": "mine"},
        {"part": "inserts", "size": 10, "to": 20},
        {"part": "growing", "size": 20, "to": 20},
    ],
)
def test_what_cannot_be_measured_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        KINDS["likeness"].measure(task(**options), NO_DATA)
    with pytest.raises(OptionError, match="leave --data out"):
        KINDS["likeness"].measure(task("digits", part="search", size=10), NO_DATA)


def test_every_run_of_the_experiment_can_be_measured() -> None:
    assert KINDS["likeness"].alone
    tasks = experiment.load("likeness").tasks()
    assert {likeness.read_options(each)[0] for each in tasks} == set(likeness.PARTS)
    assert {each.dataset for each in tasks} == set(rows.SOURCES)
