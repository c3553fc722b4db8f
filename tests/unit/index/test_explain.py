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
        meant = [why.meaning for why in whys]
        if by == "meaning":
            assert meant == found.scores[row].tolist()
        elif by != "relevance":
            assert meant == [None] * 60
    assert np.count_nonzero(found.labels == None) == 60  # noqa: E711 - each value of an array


def test_it_says_why_in_a_sentence(digits: Stream) -> None:
    hasher = OnlineHasher().partial_fit(digits.X[:200], digits.y[:200])
    index = Index(hasher)
    index.add(digits.X[:60], y=[*digits.y[:30].tolist(), *[None] * 30])
    asked = digits.X[40:41]
    found = index.search(asked, 60, "meaning")
    meant = dict(zip(found.ids[0].tolist(), found.scores[0].tolist(), strict=True))
    found = index.search(asked, 10, explain=True)
    for rank, explanation in enumerate(found.explanations[0]):
        assert explanation.meaning == pytest.approx(meant[found.ids[0, rank]], abs=1e-6)
        label, guess = found.labels[0, rank], found.guesses[0, rank]
        near = found.likeness[0, rank]
        farther = (found.likeness[0] < near).sum()
        name = f"taken for {guess}" if label is None else f"labelled {label}"
        assert found.why(0, rank) == (
            f"{found.scores[0, rank]:.2f}: {name}; what was learned gives "
            f"{explanation.meaning:.2f} that both have one label; nearer than {farther} of the "
            f"9 others (cosine {near:.2f})"
        )
    nothing = Index(OnlineHasher().partial_fit(digits.X[:1], [None]))
    nothing.add(digits.X[:5])
    sentence = nothing.search(asked, 2, explain=True).why(0, 0)
    assert "no label, and nothing was learned" in sentence
    far = index.search(asked, 2, "hamming", explain=True)
    assert far.why(0, 0).startswith(f"{far.scores[0, 0]:.4g}: ")
