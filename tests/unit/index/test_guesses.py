"""The label that an entry's word is taken for is that of the nearest codeword."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash import Index, OnlineHasher
from everhash.codes import pack_bits
from everhash.errors import CodebookWarning
from everhash.index.guesses import guess
from tests.conftest import Stream


@given(
    seed=st.integers(0, 2**32 - 1),
    labels=st.integers(0, 9),
    rho=st.integers(1, 4),
    bits=st.sampled_from([1, 5, 70]),
    coding=st.sampled_from(["home", "full"]),
)
def test_guesses_equal_brute_force_ties_to_the_label_that_came_first(
    seed: int, labels: int, rho: int, bits: int, coding: str
) -> None:
    rng = np.random.default_rng(seed)
    hasher = OnlineHasher(bits, rho, codebook="random", random_state=0).begin(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodebookWarning)  # words that labels share are ties
        hasher.assign(range(labels))
    mapping, usable = hasher.freeze(), rng.random(labels) < 0.7
    n, cycles = 20, len(mapping.functions)
    width = bits if coding == "home" else bits * cycles
    homes = rng.integers(0, cycles if coding == "home" else 1, n)
    words = rng.random((n, width)) < 0.5
    found = guess(mapping, coding, homes, pack_bits(words), usable)
    for row in range(n):
        far = {}
        for number in np.flatnonzero(usable).tolist():
            cycle = int(mapping.label_cycles[number])
            part = words[row].reshape(-1, bits)[cycle] if coding == "full" else words[row]
            if coding == "full" or cycle == homes[row]:
                far[number] = int((part != (mapping.words[number] > 0)).sum())
        best = min(far, key=lambda number: (far[number], number), default=-1)
        assert found.labels[row] == best
        assert best < 0 or found.distances[row] == far[best]


@pytest.mark.parametrize("coding", ["home", "full"])
def test_an_entry_is_taken_for_another_label_once_its_own_is_gone(
    digits: Stream, coding: str
) -> None:
    hasher = OnlineHasher(16, 4).partial_fit(digits.X[:600], digits.y[:600])
    index = Index(hasher, coding=coding)
    ids = index.add(digits.X[600:700])
    taken_for = {entry.guess for entry in index.get(ids)}
    assert len(taken_for) > 5
    hasher.drop_label(3)
    index.labels_changed()
    left = {entry.guess for entry in index.get(ids)}
    assert 3 not in left
    index.refresh()
    assert 3 not in {entry.guess for entry in index.get(ids)}
    assert (index.search(digits.X[700:705], 100).guesses != 3).all()
