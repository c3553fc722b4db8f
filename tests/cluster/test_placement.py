"""An id has a slot for ever, a slot has one shard, and growth moves no more than it must."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everhash.cluster.placement import SLOTS, Table, slots_of
from everhash.errors import OptionError
from everhash.wire.ids import Id

numbers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(min_size=1, max_size=64) | st.just("\ud800")  # no valid text, yet an id
ids = st.lists(numbers | texts, max_size=6)
growths = st.lists(st.integers(1, 30), min_size=1, max_size=4)


def grow(counts: list[int]) -> list[Table]:
    """Return the tables of a cluster that grows by these numbers of shards, and settles."""
    tables = [Table.of(counts[0])]
    for seq, more in enumerate(counts[1:], 2):
        tables.append(tables[-1].grown(len(tables[-1].born) + more, seq))
        tables.append(tables[-1].settled())
    return tables


@given(ids)
def test_an_id_has_one_slot_alone_or_among_others(some: list[Id]) -> None:
    slots = slots_of(some).tolist()
    assert slots == [slots_of([one])[0] for one in some]
    assert all(0 <= slot < SLOTS for slot in slots)


@given(st.lists(numbers, max_size=20))
def test_numbers_have_the_same_slots_in_an_array_and_in_a_list(some: list[int]) -> None:
    assert slots_of(np.array(some, np.int64)).tolist() == slots_of(list(some)).tolist()


@pytest.mark.parametrize("some", [np.arange(100_000), [f"sku-{n}" for n in range(20_000)]])
def test_ids_spread_evenly(some: list[Id]) -> None:
    counts = np.bincount(slots_of(some), minlength=SLOTS)
    expected = len(some) / SLOTS
    assert abs(counts - expected).max() < 7 * expected**0.5


@given(growths)
def test_every_slot_has_a_shard_and_shards_have_as_many_slots_within_one(counts: list[int]) -> None:
    for table in grow(counts):
        shares = Counter(table.target or table.slots)
        assert set(shares) == set(table.born)
        assert max(shares.values()) - min(shares.values()) <= 1


@given(growths)
def test_growth_moves_slots_to_new_shards_only(counts: list[int]) -> None:
    for before, after in zip(tables := grow(counts), tables[1:], strict=False):
        if after.target is None:
            assert after.slots == before.target
            continue
        moving = after.moving.tolist()
        takers = {after.target[slot] for slot in moving}
        assert takers.isdisjoint(before.born)
        shares = Counter(after.target)
        assert len(moving) == sum(shares[new] for new in after.born if new not in before.born)


@given(growths, ids)
def test_an_entry_is_sought_where_it_was_and_where_it_goes(
    counts: list[int], some: list[Id]
) -> None:
    for table in grow(counts):
        holders = table.holders(some)
        for place, (home, target) in enumerate(
            zip(table.homes(some).tolist(), table.targets(some).tolist(), strict=True)
        ):
            asked = {shard for shard, places in holders.items() if place in places}
            assert asked == {home, target}


def test_new_entries_stay_with_the_old_shard_until_all_have_moved() -> None:
    old = Table.of(1)
    moving = old.grown(2, seq=5)
    some = np.arange(100)
    assert moving.homes(some).tolist() == old.homes(some).tolist()
    assert moving.moved_to(7).homes(some).tolist() == old.homes(some).tolist()
    assert moving.settled().homes(some).tolist() == moving.targets(some).tolist()
    assert set(moving.settled().homes(some).tolist()) == {0, 1}


def test_new_shards_begin_with_the_write_that_adds_them() -> None:
    assert Table.of(2).grown(4, seq=9).born == {0: 1, 1: 1, 2: 9, 3: 9}


def test_a_table_that_names_other_shards_has_another_version() -> None:
    tables = grow([2, 1, 2])
    assert [table.version for table in tables] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("shards", [0, -1, SLOTS + 1])
def test_impossible_numbers_of_shards_are_refused(shards: int) -> None:
    with pytest.raises(OptionError, match="not possible"):
        Table.of(shards)


def test_a_cluster_grows_by_one_growth_at_a_time_and_never_shrinks() -> None:
    table = Table.of(3)
    with pytest.raises(OptionError, match="has 3 shards already"):
        table.grown(3, seq=2)
    with pytest.raises(OptionError, match="grows already"):
        table.grown(4, seq=2).grown(5, seq=3)
