"""Times: every point and every race can be run, says what it measured, and is held to be right."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.bench import datasets, experiment
from everhash.bench.costs import codes, races, scale, speed, store, timing
from everhash.bench.costs.learning import (
    learn_compiled,
    learn_numpy,
    learn_sklearn,
    make_stream,
    make_words,
)
from everhash.bench.costs.store import Calls, plain_sqlite, records, store_rows
from everhash.bench.kinds import KINDS, NO_DATA
from everhash.bench.runner import Failure, measure
from everhash.bench.task import Task, as_options
from everhash.errors import OptionError
from everhash.index.index import Index

POINTS = [(what, axis) for what, each in scale.WHAT.items() for axis in each.axes]
PACKAGES = {"FAISS": "faiss", "usearch": "usearch"}
FEW = ("rows", "labelled", "unlabelled")
SMALL = {"search": 300, "asymmetric search": 300, "store": 300, "refresh": 100}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run few rounds, small scenes, and every race anew."""
    monkeypatch.setattr(timing, "PATIENCE", 0.0)
    for name in ("CALL", "BATCH", "AT_LEAST"):
        monkeypatch.setattr(scale, name, 100)
    monkeypatch.setattr(scale.Scene, "rows", 300)
    for name, what in scale.WHAT.items():
        small = {key: min(getattr(what.usual, key), 300) for key in FEW}
        monkeypatch.setitem(scale.WHAT, name, what._replace(usual=replace(what.usual, **small)))
    monkeypatch.setattr(races, "SEARCH_ROUNDS", 1)
    monkeypatch.setattr(store, "SINGLES", 2)
    for kept in (races.learning_times, races.search_times, races.real_codes, races.refresh_costs):
        kept.cache_clear()


def point(what: str, axis: str, size: Any, method: str = "everhash", bits: int = 16) -> Task:
    options = as_options({"what": what, "axis": axis, "size": size})
    return Task("scale", "synthetic", method, bits, options=options)


def item(what: str, peer: str, size: Any = None, **more: int) -> Task:
    real = speed.ITEMS[what, peer].real
    size = SMALL.get(what.partition(",")[0], 200) if size is None else size
    options = as_options({"what": what, "peer": peer, "size": size, **more})
    bits = 64 if "search" in what else 16
    return Task(
        "speed",
        "digits" if real else "synthetic",
        "everhash",
        bits,
        rows_a_label=20,
        options=options,
    )


@pytest.mark.parametrize(("what", "axis"), POINTS)
def test_every_point_says_what_was_timed(what: str, axis: str) -> None:
    row = measure(point(what, axis, 32, bits=32), 1, None)
    assert not isinstance(row, Failure), row
    assert (row["what"], row["axis"], row["size"]) == (what, axis, 32)
    assert row["unit"].startswith("per ")
    assert row["rounds"] >= timing.ROUNDS
    assert row["seconds"] > 0


def test_the_one_vs_rest_classifier_is_a_contrast_for_labels() -> None:
    """Its functions grow with the labels, ours with the cycles."""
    _, _, few = scale.point_of(point("learning", "labels", 40, "onehot", bits=0))
    hasher = few.taught(few.source(), 100)
    assert (hasher.method, hasher.width_) == ("onehot", 40)
    figures = scale.measure(point("learning", "labels", 40, "onehot", bits=0), NO_DATA)
    assert figures["seconds"] > 0


@given(st.integers(0, 250), st.integers(0, 250))
@settings(max_examples=10)
def test_a_scene_has_the_entries_it_says(labelled: int, unlabelled: int) -> None:
    scene = scale.Scene(width=16, features=4, labelled=labelled, unlabelled=unlabelled)
    source = scene.source()
    index = Index(scene.taught(source, 100))
    scene.fill(index, source)
    stats = index.stats()
    assert (stats["labelled"], stats["unlabelled"]) == (scene.labelled, scene.unlabelled)


@pytest.mark.parametrize(
    "task",
    [
        point("flying", "rows", 10),
        point("learning", "colours", 10),
        point("learning", "rows", 0),
        point("learning", "rows", "many"),
        point("open", "labels", 10),
        replace(point("learning", "rows", 10), dataset="digits"),
        replace(point("learning", "rows", 10), options=(("axis", "rows"), ("speed", 1))),
        replace(item(speed.GRADIENT, "NumPy"), dataset="digits"),
        replace(item("refresh, gradient steps, bits", "full re-encoding"), dataset="synthetic"),
        replace(
            item(speed.GRADIENT, "NumPy"),
            options=as_options({"what": speed.GRADIENT, "peer": "me"}),
        ),
        item(speed.GRADIENT, "NumPy", size=-1),
        item(speed.GRADIENT, "NumPy", features=0),
        item("search, uniform codes, at once", "FAISS flat", features=64),
        replace(item("search, uniform codes, at once", "FAISS flat"), bits=48),
    ],
    ids=lambda task: task.variant,
)
def test_what_cannot_be_timed_is_refused(task: Task) -> None:
    with pytest.raises(OptionError):
        KINDS[task.kind].measure(task, NO_DATA)


def test_every_run_of_the_experiments_can_be_timed() -> None:
    for name in ("speed", "sizes"):
        for task in experiment.load(name).tasks():
            speed.read_options(task)
    sizes: dict[tuple[str, str, str], list[int]] = {}
    for task in experiment.load("scale").tasks():
        what, axis, scene = scale.point_of(task)
        curve = sizes.setdefault((task.method, what, axis), [])
        curve.append(getattr(scene, scale.AXES[axis]))
    assert all(max(curve) >= 2**4 * min(curve) for curve in sizes.values())
    assert {"everhash", "onehot"} == {method for method, _, axis in sizes if axis == "labels"}


def test_nothing_runs_beside_what_is_timed() -> None:
    assert all(KINDS[name].alone and not KINDS[name].needs_data for name in ("scale", "speed"))


@pytest.mark.parametrize(("what", "peer"), speed.ITEMS)
def test_every_item_is_held_against_its_peer(what: str, peer: str) -> None:
    row = measure(item(what, peer), 1, None)
    assert not isinstance(row, Failure), row
    assert (row["what"], row["peer_name"]) == (what, peer)
    assert row["ours"] > 0
    package = PACKAGES.get(peer.partition(" ")[0])
    if package is not None and find_spec(package) is None:
        assert row["peer"] is row["ratio"] is None
    else:
        assert row["ratio"] == row["peer"] / row["ours"]
    assert row["wanted"] is None or row["wanted"] > 1
    assert row["unit"]
    assert row["note"]


@pytest.mark.parametrize("what", [speed.GRADIENT, "encoding, 1 cycle"])
def test_rows_may_have_another_number_of_features(what: str) -> None:
    peer = "NumPy" if what == speed.GRADIENT else "BLAS"
    assert speed.measure(item(what, peer), NO_DATA)["note"].startswith("d = 512;")
    assert speed.measure(item(what, peer, features=24), NO_DATA)["note"].startswith("d = 24;")


@pytest.mark.parametrize(
    ("what", "peer", "package"),
    [
        ("uniform codes", "FAISS flat", "faiss"),
        ("uniform codes", "usearch", "usearch"),
        ("clustered codes", "FAISS flat", "faiss"),
    ],
)
def test_a_missing_peer_is_said_to_be_missing(
    what: str, peer: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("faiss", "usearch", "usearch.index"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    codes.load_faiss.cache_clear()
    try:
        figures = speed.measure(item(f"search, {what}, at once", peer), NO_DATA)
    finally:
        codes.load_faiss.cache_clear()
    assert figures["ours"] > 0
    assert figures["peer"] is None
    assert figures["ratio"] is None
    assert f"{package} is not installed: pip install 'everhash[bench]'" in figures["note"]


@pytest.mark.slow
def test_the_benchmark_is_imported_without_its_extras() -> None:
    hidden = ["matplotlib", "faiss", "usearch"]
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
        "import everhash.cli.bench, everhash.bench.report, everhash.bench.runner\n"
        "from everhash.bench.reporting import figures, labels"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("what", "peer"), [each for each, about in speed.ITEMS.items() if about.real]
)
def test_missing_data_leave_an_item_out(
    what: str, peer: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(datasets, "folders", lambda: [tmp_path])
    task = replace(item(what, peer), dataset="cifar10-gist")
    figures = speed.measure(task, NO_DATA)
    assert figures["ours"] is figures["peer"] is figures["ratio"] is None
    assert figures["note"].startswith("left out: there is no data set cifar10-gist (cifar10_")


@given(rows=st.integers(1, 60), d=st.integers(20, 40), k=st.integers(1, 4))
@settings(max_examples=10)
def test_all_learners_learn_the_same(rows: int, d: int, k: int) -> None:
    """Otherwise their times would not compare."""
    (Z, y), words = make_stream(rows, d), make_words(k)
    ours = learn_compiled(Z, y, words, mean=False)
    np.testing.assert_allclose(learn_numpy(Z, y, words), ours, atol=1e-5)
    np.testing.assert_allclose(learn_sklearn(Z, y, words), ours, atol=1e-5)


def test_wrong_results_stop_a_race() -> None:
    made = codes.make_clustered(64, 300)
    expected = codes.expect_hamming(made)
    distances, places = made.segment().nearest_hamming(made.queries, codes.K)
    expected.check(slice(0, len(distances)), distances, places)
    distances[1, 3] += 1
    with pytest.raises(RuntimeError, match="wrong distances"):
        expected.check(slice(0, len(distances)), distances, places)


@pytest.mark.parametrize("kind", ["labelled", "unlabelled"])
def test_plain_sqlite_keeps_what_a_collection_keeps(kind: str, tmp_path: Path) -> None:
    call = Calls().next(7)
    with plain_sqlite(tmp_path / "plain.sqlite") as insert:
        assert insert(kind, call) > 0
    database = sqlite3.connect(tmp_path / "plain.sqlite")
    kept = database.execute("SELECT id, value FROM entries ORDER BY id").fetchall()
    database.close()
    assert kept == list(records(kind, call))
    assert [label for _, label in records("labelled", call)] == call.y.tolist()


def test_taking_in_gives_a_time_for_every_call(tmp_path: Path) -> None:
    times = store_rows(tmp_path, "labelled", 60, 20)
    assert [len(times) for times in times[:4]] == [3, 3, 3, 3]
    assert times.path.stat().st_size > times.empty


def test_a_race_goes_on_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    contestants: dict[str, Callable[[], object]] = {
        "a": lambda: turns.append("a"),
        "b": lambda: turns.append("b"),
    }
    best = timing.race(contestants, least=3)
    assert turns == ["a", "b"] * 3
    assert all(0 <= taken < math.inf for taken in best.values())
    monkeypatch.setattr(timing, "PATIENCE", 60.0)
    timing.race(contestants, least=3)
    assert turns == ["a", "b"] * (3 + timing.MAX_ROUNDS)
