"""Labels with their cycle, entries, lessons and codeword."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import OnlineHasher, peers
from tests.conftest import Stream


def test_labels_say_how_each_of_them_stands(tmp_path: Path, digits: Stream) -> None:
    path = tmp_path / "c.ever"
    with everhash.create(path, dim=64, bits=8, labels_per_cycle=2) as col:
        assert col.labels() == []
        col.ingest(digits.X[:5], ["a", "b", {"a", "c"}, None, "a"])
        col.learn(digits.X[5:8], ["b", "d", "b"])
        col.add(digits.X[8:9], y=["e"])
        col.remove([0])
        col.label([3], ["c"])
        seen = col.labels()
        words = col.hasher.words_.copy()
        assert [(i.label, i.cycle, i.entries, i.lessons) for i in seen] == [
            ("a", 0, 2, 3),
            ("b", 0, 1, 3),
            ("c", 1, 2, 2),
            ("d", 1, 0, 1),
            ("e", 2, 1, 0),
        ]
        col.learn(digits.X[:1], ["f"])
    for info, word in zip(seen, words, strict=True):
        assert info.codeword is not None
        assert info.codeword.dtype == np.int8
        np.testing.assert_array_equal(info.codeword, word)
    with everhash.open(path, readonly=True) as reader:
        again = reader.labels()
        assert [(i.label, i.entries, i.lessons) for i in again[:5]] == [
            (i.label, i.entries, i.lessons) for i in seen
        ]


@pytest.mark.parametrize("hasher", [OnlineHasher.paper(8), peers.get("mihash", 8)], ids=["p", "m"])
def test_labels_of_methods_that_count_less_say_so(hasher: Any, digits: Stream) -> None:
    with everhash.create(None, dim=64, hasher=hasher) as col:
        col.ingest(digits.X[:4], ["a", {"a", "b"}, None, "b"])
        col.remove([0])
        seen = [(i.label, i.cycle, i.entries, i.lessons) for i in col.labels()]
        assert seen == [("a", 0, 1, None), ("b", 0, 2, None)]
        assert [i.codeword is None for i in col.labels()] == [not hasher.assigns_codewords] * 2


def test_a_thousand_labels_are_listed_in_no_time() -> None:
    from time import thread_time

    X = np.random.default_rng(0).standard_normal((1000, 8)).astype(np.float32)
    with everhash.create(None, dim=8, hasher=peers.get("everhash", 16, features=0)) as col:
        col.ingest(X, [f"label {i}" for i in range(1000)])
        seconds = []
        for _ in range(5):
            start = thread_time()
            assert len(col.labels()) == 1000
            seconds.append(thread_time() - start)
    assert min(seconds) < 0.05
