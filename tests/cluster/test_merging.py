"""What several shards find together is what one index with all entries finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.cluster.merging import judged, merge_found, merge_pages, merge_refreshed
from everhash.cluster.questions import Found, PagePart
from everhash.cluster.shard_index import ShardIndex
from everhash.index.entries import Entry
from everhash.index.index import Index
from everhash.learn.hasher import OnlineHasher
from everhash.matches import Matches
from tests.contracts.twins import ALL, PROBES, TRUTH, assert_same

WAYS = ("meaning", "likeness", "asymmetric", "hamming")
USUAL = float(np.median(np.unique(TRUTH[:400], return_counts=True)[1]))
"""Rows of a usual label that the hasher has learned."""
FEW = 12
"""Rows to choose from: entries that are alike tie, and go by their order of arrival."""


@pytest.fixture(name="hasher", scope="module")
def make_hasher() -> OnlineHasher:
    return OnlineHasher(8, labels_per_cycle=4).partial_fit(ALL[:400], TRUTH[:400])


class Spread:
    """Entries in one index, and the same spread over several."""

    def __init__(self, hasher: OnlineHasher, seed: int, n: int, shards: int) -> None:
        rng = np.random.default_rng(seed)
        rows, named = rng.integers(0, FEW, n), rng.random(n) < 0.6
        labels = [
            int(TRUTH[row]) if there else None for row, there in zip(rows, named, strict=True)
        ]
        self.one = Index(hasher)
        self.one.add(ALL[rows], list(range(n)), labels)
        self.homes = rng.integers(0, shards, n)
        self.shards = []
        for shard in range(shards):
            mine = np.flatnonzero(self.homes == shard)
            index = ShardIndex(hasher)
            assert self.one.coder is not None
            index.take_coder(self.one.coder)
            if len(mine):
                index.add(ALL[rows[mine]], mine, [labels[i] for i in mine.tolist()])
            self.shards.append(index)

    def found(self, name: str, *arguments: Any, **options: Any) -> list[Found]:
        return [
            Found(matches, _arrivals(matches), _estimates(index, matches, arguments[0]), None, 1.0)
            for index in self.shards
            for matches in [getattr(index, name)(*arguments, **options)]
        ]


def _estimates(index: ShardIndex, matches: Matches, X: Any) -> Any:
    """Return by what entries of equal score were chosen."""
    arrivals = _arrivals(matches)
    if matches.by[0] not in ("relevance", "meaning") or not (arrivals >= 0).any():
        return matches.likeness
    places = np.full(arrivals.shape, -1, np.int64)
    places[arrivals >= 0] = index.places_of(arrivals[arrivals >= 0])
    return index.estimates_at(X, places)


def _arrivals(matches: Matches) -> Any:
    """Return when entries arrived, which their ids say here; -1 where there is none."""
    arrivals = np.full(matches.ids.shape, -1, np.int64)
    there = np.arange(matches.ids.shape[1]) < matches.counts[:, None]
    arrivals[there] = matches.ids[there].astype(np.int64)
    return arrivals


@settings(max_examples=30)
@given(
    seed=st.integers(0, 999),
    n=st.sampled_from([1, 5, 40, 150]),
    shards=st.integers(1, 5),
    k=st.sampled_from([1, 3, 10, 200]),
    unlabelled=st.booleans(),
)
def test_searches_of_shards_merge_to_that_of_one_index(
    hasher: OnlineHasher, seed: int, n: int, shards: int, k: int, unlabelled: bool
) -> None:
    spread = Spread(hasher, seed, n, shards)
    rows = np.concatenate([PROBES[:3], ALL[:4]])
    for by in WAYS:
        options: dict[str, Any] = {"unlabelled": unlabelled, "explain": by != "likeness"}
        expected = spread.one.search(rows, k, by, **options)
        merged = merge_found(spread.found("search", rows, k, by, **options), k, [])
        assert_same(merged, expected)


@settings(max_examples=20)
@given(seed=st.integers(0, 999), shards=st.integers(1, 5), r=st.floats(0, 1))
def test_searches_within_a_radius_merge_to_that_of_one_index(
    hasher: OnlineHasher, seed: int, shards: int, r: float
) -> None:
    spread = Spread(hasher, seed, 60, shards)
    for by, radius in (("meaning", r), ("likeness", r), ("hamming", 8 * r), ("asymmetric", -r)):
        expected = spread.one.search_radius(PROBES[:4], radius, by)
        merged = merge_found(spread.found("search_radius", PROBES[:4], radius, by), None, [])
        assert_same(merged, expected)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 999),
    n=st.sampled_from([1, 5, 40, 150]),
    shards=st.integers(1, 5),
    k=st.sampled_from([1, 3, 20, 200]),
    unlabelled=st.booleans(),
)
def test_entries_of_shards_are_judged_together_as_those_of_one_index(
    hasher: OnlineHasher, seed: int, n: int, shards: int, k: int, unlabelled: bool
) -> None:
    spread = Spread(hasher, seed, n, shards)
    rows = np.concatenate([PROBES[:3], ALL[:4]])
    options: dict[str, Any] = {"labels": None, "ids": None, "unlabelled": unlabelled}
    options |= {"exact": False}
    options |= {"recall": 1.0, "explain": False}
    expected = spread.one.search(rows, k, unlabelled=unlabelled)
    found = [part._replace(rows_a_label=USUAL) for part in spread.found("pool", rows, k, **options)]
    assert_same(merge_found(judged(found, k, k), k, []), expected)
    del options["recall"]
    for r in (0.0, 0.4, 0.9):
        within = spread.one.search_radius(rows, r, "relevance", unlabelled=unlabelled)
        found = spread.found("pool_radius", rows, r, **options)
        found = [part._replace(rows_a_label=USUAL) for part in found]
        assert_same(merge_found(judged(found, None, r), None, []), within)


def test_shards_that_are_missing_are_named(hasher: OnlineHasher) -> None:
    found = Spread(hasher, 0, 20, 3).found("search", PROBES[:2], 5, "meaning")
    assert merge_found(found[:2], 5, [2]).missing == [2]


@given(
    homes=st.lists(st.integers(0, 3), max_size=40),
    limit=st.integers(1, 12),
    start=st.integers(0, 20),
    by_text=st.booleans(),
)
def test_pages_of_shards_merge_to_the_next_entries(
    homes: list[int], limit: int, start: int, by_text: bool
) -> None:
    arrived = len(homes)
    parts = []
    for shard in range(4):
        mine = [i for i, home in enumerate(homes) if home == shard and i >= start]
        later = mine[limit] if len(mine) > limit else None
        entries = [Entry(i, (), None, None) for i in mine[:limit]]
        parts.append(PagePart(entries, mine[:limit], later, arrived))
    page = merge_pages(parts, limit, by_text=by_text, arrived=arrived)
    expected = list(range(start, arrived))
    assert [entry.id for entry in page.entries] == expected[:limit]
    assert page.next == (expected[limit] if len(expected) > limit else None)


def test_the_last_refresh_of_all_shards_adds_up() -> None:
    assert merge_refreshed([None, None]) is None
    names = ("entries", "entries_touched", "bits_recomputed", "bits_certified", "bits_flipped")
    counts: dict[str, Any] = dict.fromkeys((*names, "homes_checked", "homes_moved"), 2)
    counts |= {"seconds": 1.0, "dry_run": False}
    old = {"at": "2026-01-02T00:00:01", "write": 7, **counts}
    new = {"at": "2026-01-02T00:00:01", "write": 9, **counts}
    later = {**new, "at": "2026-01-02T00:00:02", "seconds": 3.0}
    merged = merge_refreshed([old, new, None, later])
    assert merged is not None
    assert (merged["at"], merged["entries"], merged["seconds"]) == (later["at"], 4, 3.0)
    assert "write" not in merged
