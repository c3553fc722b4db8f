"""Files of the exact learner, right checksum and all, whose parts contradict each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from everhash import OnlineHasher, load_hasher
from everhash.errors import ModelFileError
from everhash.learn.row_memory import FIRST_ROWS
from tests.fuzz.test_model_file import (
    Arrays,
    Edit,
    both,
    craft,
    edited,
    put,
    refused,
    stream,
    swap,
    tell,
)

COMMON = {
    "codewords",
    "center",
    "mean",
    "counts",
    "solved",
    "published",
    "classifiers",
    "changes",
    "losses",
    "label_rows",
    "label_right",
    "trust_rows",
    "trust_right",
    "best_scores",
    "pooled",
    "latest",
    "unlabelled",
}
MEANING = ("trust_rows", "trust_right", "best_scores")
"""Files that were written before these were counted have none of them."""
KEPT = COMMON | {"few", "few_rows", "few_labels"}
SUMMED = COMMON | {"total", "label_sums", "gram", "factor", "within"}
COUNTERS = ("n_features", "lessons", "publications", "published_rows", "searched_rows", "penalty")
RECORDED = ("offered", "rows", "right", "loss")


def saved(rows: int, path: Path) -> tuple[str, Arrays]:
    """State and arrays of a good file: 4 features, 3 bits, 5 labels in 3 cycles of 2."""
    X, y = stream(rows, d=4, labels=5)
    OnlineHasher(bits=3, labels_per_cycle=2, features=6).partial_fit(X, y).save(path)
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["everhash"])
        return about["state"], {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Arrays]:
    """A file from when rows were kept."""
    return saved(60, tmp_path_factory.mktemp("kept") / "model")


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Arrays]:
    """A file from when rows were summed up."""
    return saved(FIRST_ROWS + 200, tmp_path_factory.mktemp("summed") / "model")


def test_files_hold_the_documented_parts_and_load_when_crafted(
    kept: tuple[str, Arrays], summed: tuple[str, Arrays], tmp_path: Path
) -> None:
    assert (set(kept[1]), set(summed[1])) == (KEPT, SUMMED)
    for victim in (kept, summed):
        loaded = load_hasher(craft(tmp_path / "model", *victim, {"version": "2"}))
        assert json.loads(victim[0])["labels"] == loaded.labels_


def test_files_without_trust_and_best_scores_load_with_none_counted(
    kept: tuple[str, Arrays], summed: tuple[str, Arrays], tmp_path: Path
) -> None:
    for state, arrays in (kept, summed):
        assert all(arrays[name].any() for name in MEANING)
        older = {name: array for name, array in arrays.items() if name not in MEANING}
        loaded = load_hasher(craft(tmp_path / "model", state, older))
        unlearned = OnlineHasher(bits=3).begin(4)
        np.testing.assert_array_equal(loaded.trust_, unlearned.trust_)
        X, y = stream(200, d=4, labels=5)
        assert (loaded.posterior(X).novelty == 1).all()
        loaded.partial_fit(X, y)
        assert (loaded.posterior(X).novelty < 1).any()


def test_rows_without_a_label_that_cannot_have_been_kept_are_refused(
    kept: tuple[str, Arrays], tmp_path: Path
) -> None:
    state, arrays = kept
    one = np.ones((1, 4), np.float16)
    for wrong in (one, one.astype(np.int16), one[:, :3], one[0], np.float16("inf") * one):
        refused(craft(tmp_path / "model", state, {**arrays, "unlabelled": wrong}))
    met = json.dumps({**json.loads(state), "unlabelled": {"met": 1}})
    assert load_hasher(craft(tmp_path / "model", met, {**arrays, "unlabelled": one}))


@pytest.mark.parametrize("name", sorted((KEPT | SUMMED) - {"unlabelled"}))
def test_an_array_of_another_type_shape_or_none_at_all_is_refused(
    name: str, kept: tuple[str, Arrays], summed: tuple[str, Arrays], tmp_path: Path
) -> None:
    for state, arrays in (victim for victim in (kept, summed) if name in victim[1]):
        array = arrays[name]
        with np.errstate(over="ignore"):
            narrow = array.astype(np.float16)
        for other in (
            narrow,
            array.astype(np.int16),
            array[:-1],
            np.concatenate([array, array[:1]]),
            array[None],
            array[..., None],
            array[:0],
        ):
            refused(craft(tmp_path / "model", state, {**arrays, name: np.array(other, order="C")}))
        missing = {key: value for key, value in arrays.items() if key != name}
        refused(craft(tmp_path / "model", state, missing), f"array .{name}. is missing")


@pytest.mark.parametrize("name", ["center", "mean", "classifiers", "few", "factor", "gram"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_numbers_that_no_learning_gives_are_refused(
    name: str,
    value: float,
    kept: tuple[str, Arrays],
    summed: tuple[str, Arrays],
    tmp_path: Path,
) -> None:
    for state, arrays in (victim for victim in (kept, summed) if name in victim[1]):
        kind = np.float64 if name == "gram" else arrays[name].dtype
        changed = arrays[name].astype(kind)
        changed.reshape(-1)[-1] = value
        refused(craft(tmp_path / "model", state, {**arrays, name: changed}))


@pytest.mark.parametrize("value", [-1, 0.5, "0", None, True, [0], 2**62, 10**1000])
def test_counters_that_count_nothing_are_refused(
    value: Any, summed: tuple[str, Arrays], tmp_path: Path
) -> None:
    for name in COUNTERS:
        refused(edited(summed, tell(name, value), tmp_path / "model"), "expected a count")
    for name in RECORDED:
        refused(edited(summed, tell(f"record.{name}", value), tmp_path / "model"))
    if value is not None:
        refused(edited(summed, tell("rows", value), tmp_path / "model"), "expected a count")


IN_SUMS: dict[str, tuple[Edit, str]] = {
    "fewer rows than labels have": (tell("rows", 3), "more rows than there are|not a sum"),
    "rows instead of sums": (tell("rows", None), "array .few. is missing"),
    "a view that still moves": (tell("settled", False), "more rows"),
    "settled as a number": (tell("settled", 1), "true or false"),
    "an inverse as a text": (tell("has_inverse", "yes"), "true or false"),
    "a penalty nobody tries": (tell("penalty", 24), "count below 24"),
    "a sum no rows have": (put("total", 0, 2**30), "total is not a sum"),
    "a label's sum no rows have": (put("label_sums", (0, 0), 2**30), "label_sums is not a sum"),
    "a label's sum beyond its rows": (put("counts", 0, 0), "beyond what their rows"),
    "half a row": (swap("total", np.full(70, 0.5)), "total is not a sum"),
    "products below zero": (put("gram", 0, -1), "products do not fit"),
    "products of other rows": (put("gram", 0, 0), "products do not fit"),
    "a factor with a hole": (put("factor", 0, 0.0), "factor is invalid"),
    "a mean far away": (put("mean", 0, 7.0), "longer than any row"),
    "more right than scored": (tell("record.right", 10**6), "more rows were right"),
    "more scored than came": (tell("record.rows", 10**6), "more rows were right"),
    "a label more right than scored": (put("label_right", 0, 10**6), "of a label were right"),
    "a word more right than counted": (put("trust_right", 0, 10**15), "more words were right"),
    "words beyond counting": (swap("trust_rows", np.full(4, 2**61)), "than can be counted"),
    "words fewer than none": (put("trust_right", 1, -1), "count below 0"),
    "scores fewer than none": (put("best_scores", 127, -1), "count below 0"),
    "scores beyond counting": (swap("best_scores", np.full(128, 2**60)), "than can be counted"),
    "words of another length": (swap("trust_rows", np.zeros(5, np.int64)), "array 'trust_rows'"),
    "no temperature": (tell("record.inverse_temperature", 0.0), "temperature"),
    "a temperature as a count": (tell("record.inverse_temperature", 8), "temperature"),
    "no record": (tell("record", None), "bad state"),
    "another number of features": (tell("params.features", 7), "array"),
    "as many features as memory": (tell("params.features", 16_000), "array"),
    "more features than supported": (tell("params.features", 10**9), "features must be"),
    "options of the other learner": (tell("params.step", 0.5), "option of the sgd learner"),
    "the other learner": (tell("params.learner", "sgd"), "not of sgd"),
    "no such learner": (tell("params.learner", "pickle"), "unknown"),
    "a label that is gone but has rows": (tell("labels", [0, 1, None, 3, 4]), "without a name"),
    "a label twice": (tell("labels", [0, 1, 2, 3, 3]), "listed twice"),
    "other words": (put("codewords", (0, 0), 0), "codewords hold"),
    "cycles beyond the labels": (swap("changes", np.zeros(4, np.int64)), "changes"),
}
IN_ROWS: dict[str, tuple[Edit, str]] = {
    "a label of a row that is not there": (put("few_rows", -1, 60), "do not fit them"),
    "rows out of order": (put("few_rows", 0, 5), "do not fit them"),
    "a label nobody has": (put("few_labels", 0, 5), "do not fit them"),
    "another count": (put("counts", 0, 1), "match the kept rows"),
    "more published than kept": (tell("published_rows", 61), "published than kept"),
    "nothing published, but an inverse": (tell("published_rows", 0), "nothing can be learned"),
    "rows beyond the largest": (put("few", (0, 0), 3e37), "too many or out of range"),
    "a label twice": (
        both(
            lambda _, arrays: put("few_rows", 1, int(arrays["few_rows"][0]))(_, arrays),
            lambda _, arrays: put("few_labels", 1, int(arrays["few_labels"][0]))(_, arrays),
        ),
        "do not fit them",
    ),
    "sums instead of rows": (tell("rows", 60), "array .within. is missing"),
}


@pytest.mark.parametrize("name", IN_SUMS)
def test_sums_that_contradict_each_other_are_refused(
    name: str, summed: tuple[str, Arrays], tmp_path: Path
) -> None:
    edit, says = IN_SUMS[name]
    refused(edited(summed, edit, tmp_path / "model"), says)


@pytest.mark.parametrize("name", IN_ROWS)
def test_kept_rows_that_contradict_each_other_are_refused(
    name: str, kept: tuple[str, Arrays], tmp_path: Path
) -> None:
    edit, says = IN_ROWS[name]
    refused(edited(kept, edit, tmp_path / "model"), says)


def test_products_of_no_rows_still_give_finite_functions(
    summed: tuple[str, Arrays], tmp_path: Path
) -> None:
    """A matrix may pass every check and still have a negative eigenvalue."""
    state, arrays = summed
    rng = np.random.default_rng(0)
    forged = arrays["gram"].copy()
    width = len(arrays["total"])
    diagonal = np.cumsum(np.arange(1, width + 1)) - 1
    off = np.setdiff1d(np.arange(len(forged)), diagonal)
    forged[off] = rng.integers(-(10**6), 10**6, len(off))
    loaded = load_hasher(craft(tmp_path / "model", state, {**arrays, "gram": forged}))
    assert isinstance(loaded, OnlineHasher)
    X, y = stream(600, d=4, labels=5)
    assert np.isfinite(loaded.partial_fit(X, y).publish().margins(X)).all()


def test_every_array_cut_short_is_a_typed_error(summed: tuple[str, Arrays], tmp_path: Path) -> None:
    state, arrays = summed
    for name in arrays:
        changed = {**arrays, name: arrays[name].reshape(-1)[: arrays[name].size // 2].copy()}
        with pytest.raises(ModelFileError):
            load_hasher(craft(tmp_path / "model", state, changed))
