"""An explanation names the codeword that was compared, and no label where it was the bits."""

from __future__ import annotations

import numpy as np
import pytest

from everhash import Index, OnlineHasher, peers
from everhash.wire.options import WAYS
from tests.conftest import Stream


def test_labelled_entries_without_codewords_are_compared_by_their_bits(digits: Stream) -> None:
    hasher = peers.get("okh", bits=8, anchors=20).partial_fit(digits.X[:200], digits.y[:200])
    index = Index(hasher)
    index.add(digits.X[:30], y=digits.y[:30])
    found = index.search(digits.X[40:42], 5, "hamming", explain=True)
    assert (found.labels != None).all()  # noqa: E711 - each value of an array
    for far, whys in zip(found.scores, found.explanations, strict=True):
        assert [why.label for why in whys] == [None] * 5
        assert [(why.bits < 0).sum() for why in whys] == far.tolist()


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("coding", ["home", "full"])
def test_labelled_entries_are_compared_by_the_codeword_of_their_label(
    digits: Stream, coding: str, by: str
) -> None:
    hasher = OnlineHasher(bits=8).partial_fit(digits.X[:200], digits.y[:200])
    index = Index(hasher, coding=coding)
    index.add(digits.X[:60], y=[*digits.y[:30].tolist(), *[None] * 30])
    found = index.search(digits.X[40:42], 60, by, explain=True)
    for row, whys in enumerate(found.explanations):
        assert [why.label for why in whys] == found.labels[row].tolist()
    assert np.count_nonzero(found.labels == None) == 60  # noqa: E711 - each value of an array
