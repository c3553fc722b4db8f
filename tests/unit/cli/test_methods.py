"""Collections that learn by a method of the literature, from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from everhash import peers
from everhash.errors import LimitError, OptionError, UnknownNameError
from tests.unit.cli.commands import DIM, answers, output, rows, stats

OPTIONS = {"hcoh": ["--classes", "5"], "hmoh": ["--classes", "5"]}


ONLINE = [name for name in peers.names() if peers.describe(name).online]


@pytest.mark.parametrize("method", ONLINE)
def test_a_collection_of_every_method_is_made_filled_searched_and_refreshed(
    tmp_path: Path, method: str
) -> None:
    path, source, queries = tmp_path / "c.ever", tmp_path / "rows.npz", tmp_path / "q.npy"
    X, y = rows(700)
    np.savez(source, X=X[:600], y=y[:600], id=[f"e{i}" for i in range(600)])
    np.save(queries, X[600:])
    bits = ["--bits", "4"] if method == "sketchhash" else ["--bits", "16"]  # at most the features
    options = ["--dim", DIM, "--method", method, *bits, *OPTIONS.get(method, [])]
    said = output("create", path, *options)
    assert (method in said) == (method not in ("everhash",))
    output(
        "ingest", path, source, "--features", "X", "--label", "y", "--id", "id", "--batch-rows", 250
    )
    found = stats(path)
    assert (found["entries"], found["labelled"], found["labels"]) == (600, 600, 3)
    assert found["method"] == ("everhash-sgd" if method == "paper" else method)
    assert (found["learned"] is None) == (method != "everhash")
    assert found["coded"] == (0 if peers.describe(method).codewords else 600)
    report = answers("refresh", path)
    assert report[0]["entries"] == found["coded"]
    assert stats(path)["stale_bits"] == 0
    labels = [match["found"][0]["label"] for match in answers("search", path, queries, "-k", 1)]
    assert len(labels) == 100
    assert np.mean([label == truth for label, truth in zip(labels, y[600:], strict=True)]) > 0.8
    assert output("verify", path).startswith("ok: 600 entries")


def test_a_batch_method_is_refused_since_a_collection_begins_without_rows(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="itq is a batch method"):
        output("create", tmp_path / "c.ever", "--dim", DIM, "--method", "itq")
    assert list(tmp_path.iterdir()) == []


def test_methods_lists_all_and_shows_one() -> None:
    listed = output("methods")
    assert all(name in listed for name in peers.names())
    shown = output("methods", "hcoh")
    assert "Hadamard" in shown
    assert "needs --classes" in shown
    assert "step=0.2" in shown
    assert [about["name"] for about in answers("methods")] == peers.names()
    assert "gradient steps" in output("methods", "everhash-sgd")
    (about,) = answers("methods", "mihash")
    assert about["year"] == 2017


def test_a_method_shows_the_options_of_its_own_learner() -> None:
    exact, sgd = (output("methods", name) for name in ("everhash", "everhash-sgd"))
    for option in ("learner=exact", "features=1000", "publish=1.2"):
        assert option in exact
        assert option not in sgd
    for option in ("learner=sgd", "step=1.0", "replay=10"):
        assert option in sgd
        assert option not in exact


def test_what_a_method_does_not_have_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "c.ever"
    with pytest.raises(UnknownNameError, match="no method 'simhash'"):
        output("create", path, "--dim", DIM, "--method", "simhash")
    with pytest.raises(OptionError, match="osh has no option --classes"):
        output("create", path, "--dim", DIM, "--method", "osh", "--classes", 3)
    with pytest.raises(OptionError, match="mihash has no option --labels-per-cycle"):
        output("create", path, "--dim", DIM, "--method", "mihash", "--labels-per-cycle", 3)
    for option, value in (("learner", "exact"), ("features", 9)):
        for method in ("mihash", "paper"):
            with pytest.raises(OptionError, match=f"{method} has no option --{option}"):
                output("create", path, "--dim", DIM, "--method", method, f"--{option}", value)
    assert list(tmp_path.iterdir()) == []


def test_one_class_too_many_is_refused_before_a_row_is_taken(tmp_path: Path) -> None:
    path, source = tmp_path / "c.ever", tmp_path / "rows.npz"
    X, y = rows(50)
    np.savez(source, X=X, y=y)
    output("create", path, "--dim", DIM, "--method", "hcoh", "--classes", 2)
    with pytest.raises(LimitError, match="can know 2"):
        output("ingest", path, source, "--features", "X", "--label", "y")
    assert stats(path)["entries"] == 0
