"""What a write does to a shard comes out of its bytes as it went in."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.cluster.effects import (
    Common,
    Part,
    Start,
    pack_common,
    pack_effects,
    pack_part,
    pack_start,
)
from everhash.cluster.effects_reading import (
    kind_of,
    read_common,
    read_effects,
    read_part,
    read_start,
)
from everhash.cluster.moved import NOBODY, Labelling, Moved, pick
from everhash.collection.attachments import KINDS
from everhash.index.features import StoredFeatures
from everhash.learn.following import everything, follower_of
from everhash.learn.hasher import OnlineHasher
from everhash.wire.ids import as_ids, plain_ids
from tests.conftest import Stream
from tests.contracts.twins import assert_same

DIM = 5

names = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=6),
    st.lists(
        st.one_of(st.text(min_size=1, max_size=64), st.integers(0, 99)), unique=True, max_size=6
    ),
)
data = st.one_of(st.none(), st.binary(max_size=9))


@st.composite
def labellings(draw: st.DrawFn, n: int) -> Labelling:
    pairs = st.tuples(st.integers(0, max(0, n - 1)), st.integers(0, 2**31))
    drawn = sorted(draw(st.lists(pairs, unique=True, max_size=8))) if n else []
    rows, numbers = np.array(drawn, np.int64).reshape(-1, 2).T.copy()
    return Labelling(rows, numbers, np.array([draw(st.booleans()) for _ in range(n)], np.bool_))


@st.composite
def stored(draw: st.DrawFn, n: int) -> StoredFeatures:
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return StoredFeatures.of(rng.normal(size=(n, DIM)).astype(np.float32))


@st.composite
def blobs(draw: st.DrawFn, n: int) -> dict[int, bytes | None]:
    numbers = st.integers(0, max(0, KINDS * n - 1))
    return draw(st.dictionaries(numbers, data, max_size=4)) if n else {}


@st.composite
def moved(draw: st.DrawFn) -> Moved:
    ids = as_ids(draw(names))
    n = len(ids)
    steps = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    arrivals = np.cumsum(np.array(steps, np.int64))
    return Moved(ids, arrivals, draw(stored(n)), draw(labellings(n)), draw(blobs(n)))


@st.composite
def parts(draw: st.DrawFn) -> Part:
    summed, relabelled, attached = (as_ids(draw(names)) for _ in range(3))
    signs = [draw(st.sampled_from([-1, 1])) for _ in range(len(summed))]
    return Part(
        summed=summed,
        signs=np.array(signs, np.int64),
        removed=as_ids(draw(names)),
        relabelled=relabelled,
        labels=draw(labellings(len(relabelled))),
        attached=attached,
        blobs=draw(blobs(len(attached))),
        added=draw(st.one_of(st.none(), moved())),
        adds_up=draw(st.booleans()),
        loose=draw(st.one_of(st.none(), stored(3))),
        sign=draw(st.sampled_from([-1, 1])),
    )


def assert_same_entries(one: Moved | None, other: Moved | None) -> None:
    if one is None or other is None:
        assert one is other
        return
    assert plain_ids(one.ids) == plain_ids(other.ids)
    assert_same([*one.labels, one.arrivals], [*other.labels, other.arrivals])
    assert_same(one.stored.rows, other.stored.rows)
    assert one.blobs == other.blobs


@given(part=parts())
def test_what_a_write_does_to_entries_is_read_as_it_was_packed(part: Part) -> None:
    read = read_part(pack_part(part), DIM)
    for name in ("summed", "removed", "relabelled", "attached"):
        assert plain_ids(getattr(read, name)) == plain_ids(getattr(part, name))
    assert_same(list(read.labels), list(part.labels))
    assert_same_entries(read.added, part.added)
    assert_same(read.signs, part.signs)
    assert (read.blobs, read.adds_up, read.sign) == (part.blobs, part.adds_up, part.sign)
    assert (read.loose is None) == (part.loose is None)
    if read.loose is not None and part.loose is not None:
        assert_same(read.loose.rows, part.loose.rows)


@given(one=moved(), other=moved())
def test_parts_of_entries_are_those_entries(one: Moved, other: Moved) -> None:
    both = Moved.joined([one, other])
    first, second = np.split(np.arange(len(both)), [len(one)])
    assert_same_entries(both.part(first), one)
    assert_same_entries(both.part(second), other)
    turned = both.part(np.arange(len(both))[::-1])
    assert plain_ids(turned.ids) == plain_ids(both.ids)[::-1]
    assert_same_entries(turned.part(np.arange(len(both))[::-1]), both)


@given(ids=names)
def test_some_ids_are_picked_from_any_list_alike(ids: list[Any]) -> None:
    chosen = np.arange(0, len(ids), 2)
    assert plain_ids(pick(as_ids(ids), chosen)) == plain_ids(as_ids(ids))[::2]
    assert len(pick(as_ids(ids), NOBODY)) == 0


@settings(max_examples=20)
@given(flags=st.tuples(*[st.booleans()] * 3), n=st.integers(0, 40), direction=st.booleans())
def test_what_all_shards_are_told_is_read_as_it_was_packed(
    digits: Stream, flags: tuple[bool, bool, bool], n: int, direction: bool
) -> None:
    lead = OnlineHasher(16, labels_per_cycle=4).begin(64)
    follower = follower_of(lead)
    if n:
        lead.partial_fit(digits.X[:n], digits.y[:n])
    turned = digits.X[0] / np.linalg.norm(digits.X[0]) if direction else None
    common = Common(everything(lead), 7, 3, turned, *flags)
    packed = pack_effects(pack_common(common), b"")
    assert kind_of(packed) == "write"
    first, second = read_effects(packed)
    assert second == b""
    read = read_common(first, follower)
    assert_same(list(read.solved), list(common.solved))
    assert_same(list(read[1:]), list(common[1:]))


def test_what_a_shard_begins_with_is_read_as_it_was_packed() -> None:
    start = Start(b"a model", 12, 3, np.eye(4, dtype=np.float32)[1], b"")
    packed = pack_start(start)
    assert kind_of(packed) == "start"
    assert_same(list(read_start(packed)), list(start))
