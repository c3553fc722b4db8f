"""Advice against exact arithmetic and against counting every code matrix."""

from __future__ import annotations

import itertools
import json
import math
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import limits
from everhash.errors import LimitError, OptionError
from everhash.learn.advice import advise
from everhash.learn.hasher import OnlineHasher


def share_of_matrices(bits: int, rho: int, *, up_to_complement: bool) -> Fraction:
    """Count the rho x bits sign matrices whose columns all differ, out of all of them."""
    full = 2**rho - 1
    good = 0
    for columns in itertools.product(range(2**rho), repeat=bits):
        if up_to_complement:
            folded = {min(column, full ^ column) for column in columns}
            good += len(folded) == bits and 0 not in folded
        else:
            good += len(set(columns)) == bits
    return Fraction(good, 2 ** (rho * bits))


TINY = [(bits, rho) for bits in range(1, 7) for rho in range(1, 7) if bits * rho <= 12]


@pytest.mark.parametrize(("bits", "rho"), TINY)
def test_both_chances_equal_the_count_over_all_code_matrices(bits: int, rho: int) -> None:
    advice = advise(labels=rho, bits=bits, labels_per_cycle=rho)
    paper = share_of_matrices(bits, rho, up_to_complement=False)
    folded = share_of_matrices(bits, rho, up_to_complement=True)
    assert advice.unique_paper == pytest.approx(float(paper), rel=1e-14, abs=0)
    assert advice.unique == pytest.approx(float(folded), rel=1e-14, abs=0)


@pytest.mark.parametrize("bits", [1, 2, 5, 16, 32, 64])
def test_the_papers_formula_is_kept_to_rounding(bits: int) -> None:
    for rho in range(1, 25):
        words = 2**rho
        exact = Fraction(math.perm(words, bits), words**bits)
        advice = advise(labels=100, bits=bits, labels_per_cycle=rho)
        assert advice.unique_paper == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_the_papers_own_setting_gives_the_known_chances() -> None:
    advice = advise(labels=397, bits=32)
    assert advice.labels_per_cycle == 20
    assert round(advice.unique_paper, 4) == 0.9995
    assert round(advice.unique, 3) == 0.999
    assert advice.unique < advice.unique_paper
    assert advice.warnings == ()


def test_few_labels_are_judged_by_the_labels_there_are() -> None:
    advice = advise(labels=3, bits=2, labels_per_cycle=10)
    assert advice.unique_paper == float(share_of_matrices(2, 3, up_to_complement=False))
    assert advice.unique == float(share_of_matrices(2, 3, up_to_complement=True))


@pytest.mark.parametrize("bits", [1, 7, 8, 32])
def test_width_is_k_for_each_cycle(bits: int) -> None:
    for labels, rho in itertools.product((1, 2, 19, 20, 21, 40, 41), (1, 3, 20)):
        advice = advise(labels, bits=bits, labels_per_cycle=rho)
        cycles = math.ceil(Fraction(labels, rho))
        assert (advice.labels, advice.bits, advice.labels_per_cycle) == (labels, bits, rho)
        assert (advice.cycles, advice.width) == (cycles, bits * cycles)
        assert advice.entry_bytes == math.ceil(bits / 8)
        assert advice.full_entry_bytes == math.ceil(bits * cycles / 8)
        assert advice.codeword_bytes == labels * math.ceil(bits / 8)
        assert advice.stale_bits_full == bits
        assert advice.stale_bits_home == bits / cycles


def test_the_width_and_the_mapping_are_what_a_hasher_ends_up_with() -> None:
    labels, d = 23, 3
    hasher = OnlineHasher(bits=4).partial_fit(np.eye(labels, d), list(range(labels)))
    advice = advise(labels, bits=4)
    assert (advice.cycles, advice.width) == (hasher.n_cycles_, hasher.width_)
    assert advice.functions_bytes_per_feature == 2 * hasher.width_ * np.dtype(np.float32).itemsize


@pytest.mark.parametrize("bits", range(1, 13))
def test_a_warning_for_each_link_of_the_condition_that_fails_and_none_besides(bits: int) -> None:
    for labels, rho in itertools.product((1, 2, 3, 4, 5, 8, 63, 64, 256, 257), (1, 2, 3, 4, 8, 64)):
        warned = advise(labels, bits=bits, labels_per_cycle=rho).warnings
        links = (2**bits >= 16 * labels, labels >= rho, 2 ** min(rho, labels) >= bits)
        assert len(warned) == links.count(False), (labels, rho, warned)
        holds = 2**bits >= 16 * labels and labels >= rho and 2**rho >= bits
        assert (warned == ()) == holds


@pytest.mark.parametrize(
    ("labels", "bits", "rho", "says"),
    [
        (17, 4, 8, "share a word"),
        (16, 4, 8, "lie close together"),
        (2, 4, 2, "lie close together"),
        (7, 10, 8, "never fill a cycle"),
        (100, 32, 4, "must learn the same bipartition"),
    ],
)
def test_each_warning_says_what_follows(labels: int, bits: int, rho: int, says: str) -> None:
    advice = advise(labels, bits=bits, labels_per_cycle=rho)
    assert any(says in warning for warning in advice.warnings)


@pytest.mark.parametrize("name", ["labels", "rows", "dim", "bits", "labels_per_cycle"])
@pytest.mark.parametrize(
    "value", [0, -1, 2.5, 8.0, True, "8", "x", [8], np.nan, np.inf, 1j, np.float32(8)]
)
def test_what_is_no_count_is_an_option_error(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"labels": 10, "bits": 8, "labels_per_cycle": 5, name: value}
    with pytest.raises(OptionError, match=f"{name} must be a whole number of at least 1"):
        advise(**arguments)


@pytest.mark.parametrize(
    ("labels", "bits", "rho"),
    [
        (limits.LABELS + 1, 8, 1000),
        (10**100, 8, None),
        (2, limits.WIDTH, 1),
        (limits.LABELS, 32, 1),
        (10, limits.WIDTH + 1, None),
        (10, 10**15, None),
    ],
)
def test_more_than_is_supported_is_a_limit_error_at_once(
    labels: int, bits: int, rho: int | None
) -> None:
    start = time.thread_time()
    with pytest.raises(LimitError, match=f"{limits.WIDTH}"):
        advise(labels, bits=bits, labels_per_cycle=rho)
    assert time.thread_time() - start < 0.1


def test_the_limits_themselves_are_supported() -> None:
    assert advise(limits.LABELS, labels_per_cycle=limits.LABELS).cycles == 1
    widest = advise(1, bits=limits.WIDTH)
    assert (widest.width, widest.unique) == (limits.WIDTH, 0.0)


@pytest.mark.parametrize("count", [int, np.int8, np.int64, np.uint16])
def test_as_dict_is_ready_for_json_whatever_integers_came_in(count: type) -> None:
    given = {"rows": 120, "dim": 50, "bits": 6, "labels_per_cycle": 4}
    advice = advise(count(100), **{name: count(value) for name, value in given.items()})
    read = json.loads(json.dumps(advice.as_dict()))
    assert read["warnings"]
    assert read["setting"][0] == {"option": "dim", "value": 50, "why": advice.setting[0].why}
    assert advice == advise(100, rows=120, dim=50, bits=6, labels_per_cycle=4)


def test_every_choice_has_a_reason_and_makes_a_collection() -> None:
    advice = advise(1000, rows=10**6, dim=384)
    chosen = {choice.option: choice.value for choice in advice.setting}
    assert all(choice.why for choice in advice.setting)
    assert chosen == {
        "dim": 384,
        "bits": 32,
        "labels_per_cycle": "auto",
        "learner": "exact",
        "features": 1000,
        "keep_features": "all",
        "likeness": True,
    }
    kept = {name: chosen.pop(name) for name in ("dim", "keep_features", "likeness")}
    with everhash.create(None, hasher=OnlineHasher(**chosen), **kept) as collection:
        assert collection.hasher.n_features_in_ == 384


def test_your_own_choice_is_kept() -> None:
    chosen = {each.option: each for each in advise(100, bits=64, labels_per_cycle=5).setting}
    assert (chosen["bits"].value, chosen["labels_per_cycle"].value) == (64, 5)
    assert chosen["bits"].why.startswith("your choice")


def test_rows_too_wide_for_sums_are_advised_gradient_steps() -> None:
    learners = {
        dim: {each.option: each.value for each in advise(100, dim=dim).setting}["learner"]
        for dim in (384, 4096, limits.DIMS)
    }
    assert learners == {384: "exact", 4096: "exact", limits.DIMS: "sgd"}


@pytest.mark.parametrize(
    ("labels", "rows", "says"),
    [
        (1, None, "one label tells nothing apart"),
        (10, 1000, "scanned by plain cosine in a millisecond"),
        (10, 40, "fewer than 5 rows of each"),
        (10, 10**6, "logistic regression"),
        (10, 10**6, "nobody has taught"),
    ],
)
def test_it_says_when_something_else_does_as_well(labels: int, rows: int | None, says: str) -> None:
    assert any(says in line for line in advise(labels, rows=rows).consider)


def test_it_does_not_speak_against_everhash_without_a_reason() -> None:
    assert len(advise(100, rows=10**6).consider) == 2  # what holds for all data


def test_without_dim_nothing_is_said_that_depends_on_it() -> None:
    advice = advise(100, rows=10**6)
    assert advice.disk_bytes is advice.learner_bytes is advice.learning_seconds is None
    assert advise(100, dim=384).disk_bytes is None


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("dim", [64, 384])
def test_sizes_are_those_of_a_real_file(labelled: bool, dim: int, tmp_path: Path) -> None:
    rows, labels = 20_000, 50
    advice = advise(labels, rows=rows, dim=dim)
    X = np.random.default_rng(0).normal(size=(rows, dim)).astype(np.float32)
    y = [number % labels for number in range(rows)]
    with everhash.create(tmp_path / "a.ever", dim=dim) as collection:
        collection.learn(X[:200], y[:200])
        collection.add(X, y=y if labelled else None)
        model = len(collection.hasher.to_bytes())
    entries = sum(file.stat().st_size for file in tmp_path.iterdir()) - model
    expected = advice.labelled_disk_bytes if labelled else advice.unlabelled_disk_bytes
    assert entries / rows == pytest.approx(expected, rel=0.15)  # the file has pages of its own
