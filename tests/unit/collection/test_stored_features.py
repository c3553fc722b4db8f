"""Features of stored entries come back, or the error says why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import everhash
from everhash import Collection
from everhash.errors import OptionError, UnknownIdError
from tests.conftest import Stream


def test_features_come_back_nearly_as_they_were(col: Collection, digits: Stream) -> None:
    found = col.features(["f", "a", "d", "f"])
    assert found.dtype == np.float32
    assert found.shape == (4, 64)
    np.testing.assert_allclose(found, digits.X[[5, 0, 3, 5]], rtol=1e-3, atol=1e-2)
    assert col.features([]).shape == (0, 64)
    for by in ("relevance", "meaning", "likeness"):
        ids = col.search(found, 1, by, ids=list("adef")).ids[:, 0]
        assert ids.tolist() == ["f", "a", "d", "f"]


def test_features_that_are_not_kept_are_refused(digits: Stream) -> None:
    with everhash.create(None, dim=64, keep_features="unlabelled") as col:
        col.add(digits.X[:2], ["a", "d"], ["label", None])
        with pytest.raises(OptionError, match="features of entry 'a' are not kept") as caught:
            col.features(["d", "a"])
        assert caught.value.hint
        with pytest.raises(UnknownIdError):
            col.features(["nobody"])
        col.label(["d"], ["now"])
        with pytest.raises(OptionError, match="features of entry 'd' are not kept"):
            col.features(["d"])
    with everhash.create(None, dim=64, keep_features="none") as bare:
        bare.add(digits.X[:1])
        with pytest.raises(OptionError, match="features of entry 0 are not kept"):
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


def test_a_part_that_one_call_writes_twice_is_read_as_it_is_in_the_file(digits: Stream) -> None:
    """Replacing an entry makes room in its part, and the new one has the parts merged."""
    with everhash.create(None, dim=64) as col:
        col.ingest(digits.X[:4], digits.y[:4])
        for i in range(4, 10):
            col.ingest(digits.X[i : i + 1], digits.y[i : i + 1])
        col.upsert(digits.X[20:21], [0], [3])
        ids = [entry.id for entry in col.entries()]
        np.testing.assert_allclose(
            col.features(ids), digits.X[[*range(1, 10), 20]], rtol=1e-3, atol=1e-2
        )
