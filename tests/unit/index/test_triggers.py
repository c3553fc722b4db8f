"""When the policies call for a refresh."""

from __future__ import annotations

import pytest

from everhash import Index, OnlineHasher
from everhash.errors import OptionError
from everhash.index.triggers import EveryRows, ExpectedFlips, MutualInformation
from tests.conftest import Stream


@pytest.fixture
def hasher(digits: Stream) -> OnlineHasher:
    return OnlineHasher(bits=16, labels_per_cycle=4).partial_fit(digits.X[:1200], digits.y[:1200])


def test_every_rows_counts_rows(hasher: OnlineHasher, digits: Stream) -> None:
    index = Index(hasher)
    trigger = EveryRows(25)
    due = [trigger.due(index, digits.X[:10]) for _ in range(6)]
    assert due == [False, False, True, False, True, False]


def test_expected_flips_is_due_once_bits_are_wrong(hasher: OnlineHasher, digits: Stream) -> None:
    index = Index(hasher)
    index.add(digits.X[:50])
    trigger = ExpectedFlips(0.001)
    assert not trigger.due(index, digits.X[:1])
    hasher.partial_fit(digits.X[1200:], (digits.y[1200:] + 1) % 10).publish()  # another meaning
    assert trigger.due(index, digits.X[:1])
    index.refresh()
    assert not trigger.due(index, digits.X[:1])


def test_mutual_information_is_due_when_the_mapping_has_learned(digits: Stream) -> None:
    hasher = OnlineHasher(16, None, learner="sgd", center=digits.X.mean(axis=0))
    hasher.partial_fit(digits.X[:20], digits.y[:20])
    index = Index(hasher)
    index.add(digits.X[:50])
    trigger = MutualInformation(0.02)
    assert not trigger.due(index, digits.X[:200], digits.y[:200])
    hasher.partial_fit(digits.X[200:1000], digits.y[200:1000])
    assert trigger.due(index, digits.X[200:400], digits.y[200:400])
    index.refresh()
    assert not trigger.due(index, digits.X[400:500], digits.y[400:500])


def test_impossible_options_are_refused() -> None:
    with pytest.raises(OptionError, match="rows must be at least 1"):
        EveryRows(0)
    with pytest.raises(OptionError, match="flips must be at least 0"):
        ExpectedFlips(-1)
    with pytest.raises(OptionError, match="sample must be at least 2"):
        MutualInformation(sample=1)
