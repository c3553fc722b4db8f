"""What is entered at ann-benchmarks, with a stand-in for its base class."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "ann_benchmarks"
HOME = "ann_benchmarks.algorithms"
DIM = 20


class BaseANN:
    """As much of the real one as is inherited."""

    res: list[Any]

    def get_batch_results(self) -> list[Any]:
        return self.res


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    """Import module.py from where it will stand."""
    base = ModuleType(f"{HOME}.base.module")
    base.__dict__["BaseANN"] = BaseANN
    parents = [ModuleType(name) for name in ("ann_benchmarks", HOME, f"{HOME}.base")]
    with pytest.MonkeyPatch.context() as patch:
        for there in (*parents, base):
            patch.setitem(sys.modules, there.__name__, there)
        spec = importlib.util.spec_from_file_location(
            f"{HOME}.everhash.module", FOLDER / "module.py"
        )
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        yield loaded


def bits(n: int, width: int, seed: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.random.default_rng(seed).random((n, width)) < 0.5


def brute_force(X: Any, queries: Any, n: int) -> list[list[int]]:
    distances = (queries[:, None] != X[None]).sum(axis=2)
    nearest: list[list[int]] = np.argsort(distances, axis=1, kind="stable")[:, :n].tolist()
    return nearest


@settings(max_examples=25, deadline=None)
@given(
    width=st.sampled_from([1, 2, 7, 16, 63, 64, 65, 100, 128, 200]),
    entries=st.integers(1, 300),
    n=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_are_searched_exactly(
    module: ModuleType, width: int, entries: int, n: int, seed: int
) -> None:
    X, queries = bits(entries, width, seed), bits(5, width, seed + 1)
    algorithm = module.EverhashBits("hamming")
    algorithm.fit(X)
    expected = brute_force(X, queries, n)
    assert [algorithm.query(q, n).tolist() for q in queries] == expected
    algorithm.batch_query(queries, n)
    assert [found.tolist() for found in algorithm.get_batch_results()] == expected


@pytest.mark.parametrize("width", [256, 800])
def test_bits_of_the_public_sets_widths_are_searched_exactly(
    module: ModuleType, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 700)  # entries and queries come in several parts
    X, queries = bits(2000, width, 0), bits(900, width, 1)
    X[1500:] = X[:500]  # ties
    algorithm = module.EverhashBits("hamming")
    algorithm.fit(X)
    algorithm.batch_query(queries, 10)
    found = [places.tolist() for places in algorithm.get_batch_results()]
    assert found[:50] + found[-50:] == brute_force(X, queries[np.r_[:50, -50:0]], 10)


def test_bits_may_come_as_numbers(module: ModuleType) -> None:
    X = bits(50, 30, 0)
    algorithm = module.EverhashBits("hamming")
    algorithm.fit(X.astype(np.uint8))
    assert algorithm.query(X[7].astype(np.uint8), 1).tolist() == [7]


@pytest.mark.parametrize("metric", ["angular", "euclidean"])
@pytest.mark.parametrize("distance", ["hamming", "asymmetric"])
def test_vectors_are_found_and_exactly_if_all_are_candidates(
    module: ModuleType, metric: str, distance: str
) -> None:
    rng = np.random.default_rng(0)
    X, queries = rng.standard_normal((500, DIM)), rng.standard_normal((10, DIM))
    X[3] = 0  # no direction, and no division by nothing
    algorithm = module.EverhashFloats(metric, "lsh", 64)
    algorithm.fit(X)
    algorithm.set_query_arguments(distance, 500)
    if metric == "euclidean":
        expected = ((X[None] - queries[:, None]) ** 2).sum(axis=2).argsort(axis=1)[:, :10]
    else:
        lengths = np.linalg.norm(X, axis=1)
        expected = (-(queries @ X.T) / np.where(lengths > 0, lengths, 1)).argsort(axis=1)[:, :10]
    assert [algorithm.query(q, 10).tolist() for q in queries] == expected.tolist()
    algorithm.set_query_arguments(distance, 100)
    algorithm.batch_query(queries, 10)
    found = algorithm.get_batch_results()
    shares = [len(set(a) & set(b)) / 10 for a, b in zip(found, expected.tolist(), strict=True)]
    assert np.mean(shares) > 0.5
    algorithm.set_query_arguments(distance, 1)
    assert len(algorithm.query(queries[0], 10)) == 10


def test_results_are_no_longer_than_there_are_entries_and_none_stands_twice(
    module: ModuleType,
) -> None:
    rows = np.random.default_rng(0).standard_normal((4, DIM))
    vectors = module.EverhashFloats("euclidean", "itq", 4)
    vectors.fit(rows)
    assert sorted(vectors.query(rows[0], 10).tolist()) == [0, 1, 2, 3]
    same = module.EverhashBits("hamming")
    same.fit(np.ones((4, 9), np.bool_))
    assert same.query(np.zeros(9, np.bool_), 10).tolist() == [0, 1, 2, 3]


def test_what_is_not_offered_is_refused(module: ModuleType) -> None:
    with pytest.raises(NotImplementedError, match="not by jaccard"):
        module.EverhashBits("jaccard")
    with pytest.raises(NotImplementedError, match="no hamming distance"):
        module.EverhashFloats("hamming", "lsh", 64)
    with pytest.raises(NotImplementedError, match="at most 1000"):
        module.EverhashFloats("angular", "lsh", 64).set_query_arguments("hamming", 1001)


def test_every_setting_of_the_config_can_be_built_and_asked(module: ModuleType) -> None:
    text = (FOLDER / "config.yml").read_text()
    assert re.findall(r"module: (\S+)", text) == [f"{HOME}.everhash"] * 2
    entries = text.split("constructor: ")[1:]
    points = {"EverhashBits": ("hamming",), "EverhashFloats": ("angular", "euclidean")}
    assert [entry.split()[0] for entry in entries] == list(points)
    names = set()
    for entry, (constructor, metrics) in zip(entries, points.items(), strict=True):
        X = bits(60, DIM, 0) if "hamming" in metrics else bits(60, DIM, 0) + np.float32(0.5)
        for metric, (args, query_args) in product(metrics, _groups(entry)):
            for arguments in product(*args):
                told = [DIM if value == "@dimension" else value for value in arguments]
                algorithm = getattr(module, constructor)(metric, *told)
                algorithm.fit(X)
                for asked in product(*query_args):
                    if asked:
                        algorithm.set_query_arguments(*asked)
                    assert algorithm.query(X[5], 3)[0] == 5
                    names.add((metric, str(algorithm)))
    assert len(names) == 1 + 2 * 5 * 10  # each has a name of its own


def _groups(entry: str) -> list[tuple[list[Any], list[Any]]]:
    """Return args and query_args of each run group, which are written as JSON has them."""
    groups = re.findall(r"\n {8}args: (\[.*\])(?:\n {8}query_args: (\[.*\]))?", entry)
    assert groups
    return [(json.loads(args), json.loads(asked or "[]")) for args, asked in groups]
