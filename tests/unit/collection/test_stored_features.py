"""Features of stored entries come back, or the error says why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import everhash
from everhash import Collection
from everhash.errors import InputError, OptionError, UnknownIdError
from tests.conftest import Stream


def test_features_of_unlabelled_entries_come_back_nearly_as_they_were(
    col: Collection, digits: Stream
) -> None:
    found = col.features(["f", "d", "f"])
    assert found.dtype == np.float32
    assert found.shape == (3, 64)
    np.testing.assert_allclose(found, digits.X[[5, 3, 5]], rtol=1e-3, atol=1e-2)
    assert col.features([]).shape == (0, 64)
    ids = col.search(found, 1, ids=list("def")).ids[:, 0]
    assert ids.tolist() == ["f", "d", "f"]


def test_features_that_are_not_kept_are_refused(col: Collection, digits: Stream) -> None:
    with pytest.raises(InputError, match="entry 'a' is known by its label") as caught:
        col.features(["d", "a"])
    assert caught.value.hint
    with pytest.raises(UnknownIdError):
        col.features(["nobody"])
    col.label(["d"], ["now"])
    with pytest.raises(InputError, match="entry 'd' is known by its label"):
        col.features(["d"])
    with everhash.create(None, dim=64, keep_features=False) as bare:
        bare.add(digits.X[:1])
        with pytest.raises(OptionError, match="features are not kept"):
            bare.features([0])


def test_methods_without_codewords_keep_features_of_all(digits: Stream) -> None:
    with everhash.create(None, dim=64, bits=8, method="mihash") as col:
        col.ingest(digits.X[:5], digits.y[:5])
        np.testing.assert_allclose(col.features([4, 0]), digits.X[[4, 0]], rtol=1e-3, atol=1e-2)


def test_a_reader_catches_up_for_features(path: Path, digits: Stream) -> None:
    with everhash.open(path) as col, everhash.open(path, readonly=True) as reader:
        np.testing.assert_array_equal(reader.features([5, 0]), col.features([5, 0]))
        col.add(digits.X[6:20])
        np.testing.assert_array_equal(reader.features([19, 0]), col.features([19, 0]))
        assert len(reader) == 19
