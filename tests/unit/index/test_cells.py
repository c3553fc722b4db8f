"""Cells: what they hold, what a search of them finds, and what it looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from everhash import Index, OnlineHasher, kernels
from everhash.index.cells import Cells, unit
from everhash.index.features import Pages, StoredFeatures
from everhash.index.likeness import Likeness
from everhash.kernels.likeness import reference
from everhash.wire.options import WAYS

Floats = NDArray[np.float32]
D = 40


def rows_around(n: int, centres: int, seed: int, d: int = D) -> Floats:
    """Rows around some centres: near neighbours are in one cell or in a few."""
    rng = np.random.default_rng(seed)
    middle = np.random.default_rng(0).standard_normal((centres, d))
    rows = middle[rng.integers(0, centres, n)] + 0.7 * rng.standard_normal((n, d))
    return rows.astype(np.float32)


def index_of(X: Floats, *, make: bool = True) -> Index:
    hasher = OnlineHasher(16, random_state=0, features=20)
    hasher.partial_fit(X[:50])
    index = Index(hasher)
    index.add(X)
    if make:
        make_cells(index)
    return index


def make_cells(index: Index) -> None:
    for _ in index.cell_steps():
        pass


def found_share(index: Index, Q: Floats, k: int = 10, **options: Any) -> float:
    """The share of the nearest entries that a search finds."""
    found = index.search(Q, k, "likeness", **options).ids
    options.pop("recall", None)
    truth = index.search(Q, k, "likeness", exact=True, **options).ids
    both = [len(np.intersect1d(a, b)) for a, b in zip(found, truth, strict=True)]
    return float(np.mean(both) / truth.shape[1])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 400),
    n_cells=st.integers(1, 20),
    k=st.sampled_from([1, 3, 10, 100]),
    first=st.integers(1, 8),
    recall=st.sampled_from([0.5, 0.98, 0.999]),
    wanted=st.sampled_from([1, 5, 50, 1000]),
    sigmas=st.sampled_from([0.0, 1.0, 3.0]),
    gone=st.floats(0, 0.9),
    filtered=st.booleans(),
)
def test_search_cells_compiled_equals_reference(
    seed: int,
    n: int,
    n_cells: int,
    k: int,
    first: int,
    recall: float,
    wanted: int,
    sigmas: float,
    gone: float,
    filtered: bool,
) -> None:
    rng = np.random.default_rng(seed)
    X, Q = rows_around(n, 5, seed), unit(rows_around(3, 5, seed + 1))
    coder = Likeness.draw(D)
    coder.meet(X)
    codes, queries = coder.encode(X), coder.queries(Q)
    middles = rng.random(n_cells, np.float32)
    cells = Cells(unit(rows_around(n_cells, 5, seed + 2)), middles, coder.width - 1, n)
    half = n // 2
    cells.append(cells.nearest(X[:half]))
    cells.lists(codes[:half])  # the rest is listed later
    cells.append(cells.nearest(X[half:]))
    removed = np.flatnonzero(rng.random(n) < gone)
    cells.remove(removed)
    numbers, allowed = cells.numbers.copy(), np.empty(0, np.uint8)
    if filtered:
        allowed = (rng.random(n) < 0.5).astype(np.uint8)
        numbers[allowed == 0] = -1
    pages = Pages(StoredFeatures.of(X).halves.view(np.uint16), np.arange(n, dtype=np.int32))
    bounds = cells.bounds(Q, recall)
    search = kernels.load_likeness().search_cells
    scores, places, looked = search(
        *cells.lists(codes),
        bounds,
        allowed,
        codes,
        *queries,
        coder.size,
        *pages,
        Q,
        k,
        first,
        wanted,
        np.float32(sigmas),
    )
    words, along, scale = reference.parts(codes)
    estimates = coder.estimates(codes, queries)
    spread = reference.error_bounds(along, scale, 0 * queries.step, queries.rest, coder.size)
    reach = estimates + (spread - np.float32(reference.SLACK)) * np.float32(sigmas / reference.SURE)
    exact = pages.cosines(Q, np.arange(n))
    signs = ~queries.planes[:, 7]
    if coder.size % 64:
        signs[:, -1] &= np.uint64(2 ** (coder.size % 64) - 1)
    for row in range(len(Q)):
        distances = np.bitwise_count(words ^ signs[row]).sum(axis=1).astype(np.int64)
        want = reference.search_cells(
            bounds[row],
            numbers.astype(np.int64),
            distances,
            reach[row],
            exact[row],
            k,
            first,
            wanted,
        )
        near = np.sort(reach[row])
        if sigmas and (np.diff(near) < 1e-6).any():  # rounding decides who is compared
            continue
        m = len(want[1])
        assert places[row, :m].tolist() == want[1].tolist()
        np.testing.assert_array_equal(scores[row, :m], want[0])
        assert (places[row, m:] == -1).all()
        assert looked[row] == want[2]


@settings(max_examples=30)
@given(seed=st.integers(0, 999), n=st.integers(1, 60), d=st.sampled_from([1, 2, 7, 64, 385]))
def test_cosines_are_those_of_the_halves(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * 10.0 ** rng.integers(-4, 4)).astype(np.float32)
    X[rng.random(n) < 0.1] = 0
    stored, Q = StoredFeatures.of(X), unit(rng.standard_normal((4, d)).astype(np.float32))
    pages = Pages(stored.halves.view(np.uint16), np.arange(n, dtype=np.int32))
    found = pages.cosines(Q, np.arange(n))
    np.testing.assert_allclose(found, reference.cosines(stored.halves, Q), atol=2e-6)
    places = rng.integers(-1, n, (4, 5))
    own = pages.own_cosines(Q, places)
    want = np.where(places < 0, np.nan, np.take_along_axis(found, np.maximum(places, 0), axis=1))
    np.testing.assert_array_equal(own, want)


@pytest.mark.parametrize("centres", [20, 400])
def test_a_search_keeps_its_promise(centres: int) -> None:
    index, Q = index_of(rows_around(6000, centres, 1)), rows_around(300, centres, 2)
    assert index.stats()["cells"] > 50
    assert found_share(index, Q) >= 0.98
    assert found_share(index, Q, recall=0.9) >= 0.9
    assert found_share(index, Q, recall=1) == 1


@pytest.mark.parametrize("share", [0.9, 0.8, 0.05])
def test_a_filter_loses_nothing(share: float) -> None:
    index, Q = index_of(rows_around(6000, 50, 1)), rows_around(100, 50, 2)
    names = [str(i) for i in np.random.default_rng(3).integers(0, 1000, 6000)]
    index.label(range(6000), names)
    wanted = [name for name in {*names} if int(name) < 1000 * share]
    assert found_share(index, Q, labels=wanted) >= 0.98
    assert found_share(index, Q, labels=wanted, recall=1) == 1
    found = index.search(Q, 10, "likeness", labels=wanted)
    assert {*found.labels.reshape(-1).tolist()} <= {*wanted}


def test_entries_come_and_go_in_cells() -> None:
    X, Q = rows_around(6000, 50, 1), rows_around(100, 50, 2)
    index = index_of(X)
    index.search(Q, 10, "likeness")
    index.remove(range(0, 3000, 2))
    index.add(rows_around(1500, 50, 5))
    index.add(rows_around(50, 50, 6), range(3000, 3050), replace=True)
    found = index.search(Q, 10, "likeness")
    assert index.has(found.ids.reshape(-1)).all()
    assert found_share(index, Q) >= 0.98
    before = found.ids.tolist()
    index.compact()
    assert index.search(Q, 10, "likeness").ids.tolist() == before
    assert index.stats()["cells"] > 50


def test_cells_depend_on_the_rows_and_not_on_their_order() -> None:
    X = rows_around(2000, 30, 1)
    X[:16] = X[0]  # the direction of likeness codes comes from the first rows
    mixed = np.concatenate([X[:16], np.random.default_rng(4).permutation(X[16:])])
    first, second = index_of(X), index_of(mixed)
    assert first.cells is not None
    assert second.cells is not None
    np.testing.assert_array_equal(first.cells.centroids, second.cells.centroids)


def test_searches_between_the_steps_see_the_old_cells() -> None:
    X, Q = rows_around(3000, 50, 1), rows_around(20, 50, 2)
    index = index_of(X, make=False)
    before = index.search(Q, 10, "likeness").ids.tolist()
    for step, _ in enumerate(index.cell_steps()):
        assert index.stats()["cells"] == 1
        assert index.search(Q, 10, "likeness").ids.tolist() == before
        if step == 3:
            index.remove([int(before[0][0])])
            index.add(rows_around(20, 50, 7))
            before = index.search(Q, 10, "likeness").ids.tolist()
    assert index.stats()["cells"] > 40
    assert found_share(index, Q) >= 0.97


def test_a_compaction_ends_the_making_of_cells() -> None:
    index = index_of(rows_around(1500, 20, 1), make=False)
    steps = index.cell_steps()
    next(steps)
    index.remove(range(700))
    index.compact()
    assert list(steps) == []
    assert index.stats()["cells"] == 1
    make_cells(index)
    assert index.stats()["cells"] == 28


def test_an_empty_index_gives_the_same_shapes_by_every_way() -> None:
    hasher = OnlineHasher(16, random_state=0, features=20)
    hasher.partial_fit(rows_around(50, 5, 1), [i % 3 for i in range(50)])
    index, Q = Index(hasher), rows_around(4, 5, 2)
    shapes = {
        (by, exact): tuple(
            getattr(index.search(Q, 7, by, exact=exact), name).shape
            for name in ("ids", "scores", "likeness", "labels", "guesses", "counts")
        )
        for by in WAYS
        for exact in (False, True)
    }
    assert len({*shapes.values()}) == 1, shapes


def test_one_pair_has_one_likeness() -> None:
    X, Q = rows_around(300, 5, 1), rows_around(8, 5, 2)
    hasher = OnlineHasher(16, random_state=0, features=20)
    hasher.partial_fit(X, [i % 3 for i in range(300)])
    index = Index(hasher)
    index.add(X, y=[i % 3 if i % 2 else None for i in range(300)])
    alike = index.search(Q, 300, "likeness")
    for options in ({}, {"exact": True}, {"ids": list(range(300))}):
        meant = index.search(Q, 300, "meaning", **options)
        for row in range(len(Q)):
            seen = dict(zip(alike.ids[row].tolist(), alike.likeness[row].tolist(), strict=True))
            shown = [seen[name] for name in meant.ids[row].tolist()]
            assert meant.likeness[row].tolist() == shown


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 60, 130])
def test_cells_of_few_entries_find_them_all(n: int) -> None:
    index = index_of(rows_around(max(n, 50), 3, n))
    index.remove(list(range(n, max(n, 50))))
    make_cells(index)
    assert index.stats()["cells"] == round(n**0.5)
    assert found_share(index, rows_around(5, 3, 99), k=n, recall=1) == 1


def test_no_cells_are_made_of_entries_that_are_gone() -> None:
    index = index_of(rows_around(60, 3, 0), make=False)
    steps = index.cell_steps()
    index.remove(list(range(60)))
    assert list(steps) == []
    assert index.stats()["cells"] == 1


@pytest.mark.parametrize("alike", [1, 7, 3000])
def test_an_exact_search_in_a_batch_is_one_query_at_a_time(alike: int) -> None:
    X = np.repeat(rows_around(6000 // alike, 5, alike), alike, axis=0)  # many equal cosines
    index, Q = index_of(X), rows_around(20, 5, 1)
    together = index.search(Q, 10, "likeness", exact=True)
    for row, query in enumerate(Q):
        alone = index.search(query[None], 10, "likeness", exact=True)
        assert (alone.ids[0] == together.ids[row]).all()
        assert (alone.scores[0] == together.scores[row]).all()
