"""The sample that pairs are drawn from: uniform, fair to both kinds of pairs, and never ahead."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from everhash.errors import ModelFileError
from everhash.learn.model_format import pack_model, unpack_model
from everhash.peers.method import Floats
from everhash.peers.model_file import hasher_from_bytes
from everhash.peers.online.adapthash import AdaptHash
from everhash.peers.options import option
from everhash.peers.reservoir import PairMethod, excess, sample_count

N = 60
ROWS = np.eye(N, dtype=np.float32)
"""Rows that can be told by the place of their 1."""


@dataclass(eq=False, repr=False)
class Recorder(PairMethod):
    """Learns nothing, and records which rows it was shown as pairs."""

    assigns_codewords: ClassVar[bool] = False
    sample: int = option(10, sample_count)
    pairs: list[tuple[int, int, bool]] = field(init=False, default_factory=list)

    def _start(self) -> None:
        pass

    def _learn_pair(self, pair: Floats, alike: bool) -> None:
        newer, older = pair.argmax(axis=1).tolist()
        self.pairs.append((newer, older, alike))


def recorded(labels: list[Any], sample: int = 10, seed: int = 0) -> Recorder:
    return Recorder(1, sample, random_state=seed).partial_fit(ROWS[: len(labels)], labels)


LABELS = [row % 3 for row in range(N)]


def test_the_sample_is_uniform_over_all_rows_so_far() -> None:
    runs, kept = 600, np.zeros(N, int)
    for seed in range(runs):
        kept += recorded(LABELS, sample=10, seed=seed).kept_.sum(axis=0).astype(int)
    assert kept.sum() == 10 * runs
    # each row is kept in a sixth of the runs, 100 times, give or take 9
    assert kept.min() > 55
    assert kept.max() < 145


def test_a_sample_holds_different_rows_with_their_own_labels() -> None:
    hasher = recorded(LABELS)
    rows = hasher.kept_.argmax(axis=1)
    assert len(set(rows.tolist())) == 10
    assert hasher.kept_labels_.tolist() == [LABELS[row] for row in rows]
    assert hasher.met_[0] == N


def test_every_row_after_the_first_meets_one_that_came_before_it() -> None:
    for seed in range(50):
        pairs = recorded(LABELS, seed=seed).pairs
        assert [newer for newer, _, _ in pairs] == list(range(1, N))
        assert all(older < newer for newer, older, _ in pairs)


def test_pairs_are_alike_where_labels_are_and_that_is_half_of_them() -> None:
    pairs = [pair for seed in range(100) for pair in recorded(LABELS, seed=seed).pairs]
    assert all(alike == (LABELS[newer] == LABELS[older]) for newer, older, alike in pairs)
    # from the fourth row on, nearly always, there are partners of both kinds
    late = [alike for newer, _, alike in pairs if newer > 10]
    assert 0.47 < np.mean(late) < 0.53  # of 4,900, where chance strays by 0.007


def test_all_kept_rows_of_the_wanted_kind_have_the_same_chance() -> None:
    older = np.array([recorded(LABELS[:11], seed=seed).pairs[-1][1] for seed in range(900)])
    counts = np.bincount(older, minlength=10)
    # row 10 has label 1, like rows 1, 4, 7: half of the time one of them, else one of the others
    assert all(100 < counts[row] < 200 for row in (1, 4, 7))
    assert all(35 < counts[row] < 100 for row in (0, 2, 3, 5, 6, 8, 9))


def test_where_only_one_kind_is_kept_the_partner_is_of_that_kind() -> None:
    assert all(alike for _, _, alike in recorded(["one"] * N).pairs)
    assert not any(alike for _, _, alike in recorded(list(range(N))).pairs)


def test_batches_and_rows_without_labels_change_no_pair() -> None:
    whole = recorded(LABELS).pairs
    parts = Recorder()
    for start, end in pairwise([0, 1, 2, 30, 31, N]):
        parts.partial_fit(ROWS[start:end], LABELS[start:end])
        parts.partial_fit(ROWS[:7])
    assert parts.pairs == whole
    assert recorded(LABELS, seed=1).pairs != whole


def test_a_row_with_two_labels_is_two_lessons() -> None:
    hasher = recorded(["a", {"a", "b"}, "b"])
    assert [newer for newer, _, _ in hasher.pairs] == [1, 1, 2]
    assert hasher.met_[0] == 4


def test_excess_counts_bits_and_is_whole_where_it_should_be() -> None:
    assert excess(7, True, near=3.2, far=16) == pytest.approx(3.8)
    assert excess(3, True, near=3.2, far=16) == 0
    assert excess(7, False, near=3.2, far=16) == 9
    assert excess(16, False, near=3.2, far=16) == 0
    assert (1 - 0.9) * 10 < 1, "floats say that 2 bits of 10 are more than 1 too many"
    assert excess(2, True, near=(1 - 0.9) * 10, far=9) == 1


def test_a_file_whose_sample_holds_a_label_nobody_has_is_refused() -> None:
    hasher = AdaptHash(bits=4, sample=5).partial_fit(ROWS[:20], LABELS[:20])
    text, arrays = unpack_model(hasher.to_bytes(), "model")
    forged = arrays["kept_labels_"].copy()
    forged[2] = 3
    with pytest.raises(ModelFileError, match="unknown labels"):
        hasher_from_bytes(pack_model(json.loads(text), {**arrays, "kept_labels_": forged}), "model")
