"""Listings by a text in id or payload, and by a label, held against looking at everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everhash
from everhash.collection import finding
from everhash.collection.collection import Collection
from everhash.errors import LimitError, OptionError, UnknownNameError
from everhash.index.entries import Entry

WORDS = [
    "boot",
    "Boots",
    "BOO",
    "\u00dfoo",
    "STRASSE",
    'quo"te',
    "line\nbreak",
    "\\",
    "7",
    "null",
    "\u01c5",
]
TEXTS = st.one_of(st.sampled_from(WORDS), st.text('boO7\u00df\\"s\n', max_size=3))
PAYLOADS = st.recursive(
    st.one_of(TEXTS, st.integers(0, 9), st.booleans()),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
IDS = st.one_of(st.integers(0, 99), st.text("boO7-", min_size=1, max_size=4))
LABELS = st.sampled_from([None, "boots", 7, "7", {"boots", 7}, ("pair", 2)])


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    """Entries of all kinds, some of them removed."""
    ids = draw(st.lists(IDS, min_size=1, max_size=12, unique=True))
    payloads = [draw(st.none() | PAYLOADS) for _ in ids]
    labels = ["boots", *(draw(LABELS) for _ in ids[1:])]
    method = draw(st.sampled_from(["everhash", "mihash"]))
    collection = everhash.create(None, 3, 8, method=method)
    X = np.random.default_rng(0).normal(size=(len(ids), 3)).astype(np.float32)
    collection.learn(X[:2].repeat(2, axis=0), ["boots", 7, "7", ("pair", 2)][: 2 * len(X[:2])])
    collection.add(X, ids, labels, payloads=payloads)
    collection.remove(draw(st.lists(st.sampled_from(ids), max_size=3)))
    return collection


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif isinstance(value, str):
        yield value


def has(entry: Entry, payload: Any, text: str, label: Any) -> bool:
    """The specification."""
    if label is not None and label not in entry.labels:
        return False
    name = entry.id.casefold() if isinstance(entry.id, str) else None
    by_id = str(entry.id) == text.strip() if name is None else text.casefold() in name
    said = any(text.casefold() in value.casefold() for value in texts_of(payload))
    return not text or by_id or said


@settings(deadline=None, max_examples=150)
@given(
    collections(), TEXTS, st.sampled_from([None, "boots", 7]), st.booleans(), st.integers(1, 4),
    st.integers(1, 20), st.integers(0, 8),
)  # fmt: skip
def test_a_listing_has_the_entries_that_looking_at_all_of_them_finds(
    collection: Collection,
    text: str,
    label: Any,
    unlabelled: bool,
    looks: int,
    limit: int,
    start: int,
) -> None:
    with collection, pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "LOOKS", looks)
        if label is not None and collection.hasher.unknown([label]):
            with pytest.raises(UnknownNameError, match=repr(label)):
                collection.page(label=label)
            return
        everything = list(collection.entries(start))
        payloads = [each.payload for each in collection.attachments(e.id for e in everything)]
        expected = [
            entry.id
            for entry, payload in zip(everything, payloads, strict=True)
            if has(entry, payload, text, label) and not (unlabelled and entry.labels)
        ]
        found: list[Any] = []
        place: int | None = start
        while place is not None:
            page = collection.page(place, limit, unlabelled=unlabelled, text=text, label=label)
            assert len(page.entries) == limit or page.next is None
            assert page.next is None or page.next > place
            found, place = found + [entry.id for entry in page.entries], page.next
        assert found == expected
        if not unlabelled:
            through = collection.entries(start, text=text, label=label)
            assert [entry.id for entry in through] == expected


def test_a_listing_ends_before_stop() -> None:
    with everhash.create(None, 3, 8) as collection:
        X = np.eye(3, dtype=np.float32)
        collection.ingest(X, ["a", "b", "a"], payloads=["Red", "red", "tired"])
        assert [entry.id for entry in collection.entries(1, text="RED")] == [1, 2]
        assert [entry.id for entry in collection.entries(0, 2, text="red")] == [0, 1]
        assert [entry.id for entry in collection.entries(0, 2, label="a")] == [0]
        assert collection.page(0, 1, 2, text="red").next == 1
        assert collection.page(1, 1, 2, text="red").next is None
        assert collection.page(0, 2, label="a").next is None
        assert collection.page(0, 1, label="a").next == 2
        assert collection.page(unlabelled=True, label="a").entries == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [(7, OptionError), (b"red", OptionError), ("\ud800", OptionError), ("x" * 257, LimitError)],
)
def test_what_is_no_text_is_refused(text: Any, kind: type[Exception]) -> None:
    with everhash.create(None, 3, 8) as collection, pytest.raises(kind, match="text"):
        collection.page(text=text)
