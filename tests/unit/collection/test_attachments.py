"""Attachments come back as given, stay with their entry, and are refused as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everhash
from everhash import Attachment, Collection, limits
from everhash.collection.attachments import COMPACT, image_type
from everhash.errors import ClosedError, InputError, LimitError, ReadOnlyError, UnknownIdError
from everhash.store.transaction import Transaction
from tests.conftest import Stream
from tests.unit.collection.conftest import GIF, JPEG, PAYLOADS, PICTURES, PNG, WEBP, rows_in


def test_payloads_and_thumbnails_come_back_as_they_were_given(
    col: Collection, digits: Stream
) -> None:
    n = len(PAYLOADS)
    pictures = [*PICTURES.values(), *[None] * (n - 4)]
    ids = col.add(digits.X[:n], payloads=PAYLOADS, thumbnails=pictures)
    more = col.ingest(digits.X[:1], ["new"], payloads=[{"x": 1}])
    found = col.attachments(ids)
    assert found == [Attachment(*pair) for pair in zip(PAYLOADS, pictures, strict=True)]
    assert [type(one.payload) for one in found] == [type(payload) for payload in PAYLOADS]
    assert col.attachments([*more, "a", *more]) == [
        Attachment({"x": 1}),
        Attachment(),
        Attachment({"x": 1}),
    ]
    assert col.attachments([]) == []


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner | st.none(), max_size=4)
        | st.dictionaries(st.text(max_size=5), inner | st.none(), max_size=4)
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """A file with one entry."""
    path = tmp_path_factory.mktemp("one") / "c.ever"
    with everhash.create(path, dim=2, bits=2, durability="none") as made:
        made.add([[1.0, 2.0]], ["x"])
        yield made


@given(value=VALUES)
@settings(max_examples=100)
def test_any_json_value_comes_back_or_is_too_large(one: Collection, value: Any) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        with pytest.raises(InputError, match="payload 0 is no JSON"):
            one.attach(["x"], payloads=[value])
        return
    if len(text) > limits.PAYLOAD:
        with pytest.raises(LimitError):
            one.attach(["x"], payloads=[value])
        return
    one.attach(["x"], payloads=[value])
    (found,) = one.attachments(["x"])
    assert repr(found.payload) == repr(value)


def test_attach_replaces_leaves_and_takes_away(col: Collection) -> None:
    col.attach(["a", "d"], payloads=[1, 2], thumbnails=[PNG, GIF])
    col.attach(["d", "b"], payloads=[None, "two"])
    assert col.attachments(list("abd")) == [
        Attachment(1, PNG),
        Attachment("two"),
        Attachment(None, GIF),
    ]
    col.attach(["a"], thumbnails=[WEBP])
    col.attach(["d"], thumbnails=[None])
    col.attach(["b"])
    assert col.attachments(list("abd")) == [Attachment(1, WEBP), Attachment("two"), Attachment()]
    col.attach(np.array([], np.int64), payloads=[])


def test_attachments_stay_while_the_entry_changes(col: Collection, digits: Stream) -> None:
    col.attach(list("acdf"), payloads=list("acdf"), thumbnails=[PNG, None, GIF, None])
    before = col.attachments(list("abcdef"))
    col.label(["d", "a"], ["new", {"several", "labels"}])
    col.learn(digits.X[:300], digits.y[:300])
    col.refresh()
    assert col.attachments(list("abcdef")) == before


def test_a_removed_entry_has_no_attachments_and_the_file_forgets_them(path: Path) -> None:
    assert [number for number, _ in rows_in(path)] == [0, 1, 2, 5]
    with everhash.open(path) as col:
        with pytest.raises(UnknownIdError):
            col.attachments([3])
        with pytest.raises(UnknownIdError):
            col.attach([3], payloads=[1])
        col.remove([0, 1, 2, 4, 5])
    assert rows_in(path) == []
    assert everhash.verify(path).problems == ()


def test_reopened_copied_and_restored_they_are_the_same(path: Path, tmp_path: Path) -> None:
    with everhash.open(path) as col:
        before = col.attachments([0, 1, 2, 4])
        col.snapshot(tmp_path / "copy.ever")
    everhash.restore(tmp_path / "copy.ever", tmp_path / "again.ever")
    for name in ("c.ever", "copy.ever", "again.ever"):
        assert everhash.verify(tmp_path / name).problems == ()
        with everhash.open(tmp_path / name) as col:
            assert col.attachments([0, 1, 2, 4]) == before
            col.attach([4], payloads=[4], thumbnails=[JPEG])
            assert col.attachments([4]) == [Attachment(4, JPEG)]
    assert before == [
        Attachment({"n": 0}, PNG),
        Attachment({"n": 1}),
        Attachment(None, GIF),
        Attachment(),
    ]


def test_many_at_once_and_one_at_a_time_give_the_same_file(tmp_path: Path) -> None:
    n, X = 100, np.random.default_rng(0).standard_normal((100, 4)).astype(np.float32)
    payloads = [{"i": i} if i % 3 else None for i in range(n)]
    with everhash.create(tmp_path / "a", dim=4, bits=4, durability="none") as col:
        col.add(X, payloads=payloads)
        expected = [Attachment(payload) for payload in payloads]
        assert col.attachments(range(n)) == expected
        col.remove(range(0, n, 2))
        assert col.attachments(range(1, n, 2)) == expected[1::2]
    with everhash.create(tmp_path / "b", dim=4, bits=4, durability="none") as col:
        for i in range(n):
            col.add(X[i : i + 1], payloads=[payloads[i]])
        col.remove(range(0, n, 2))
    assert rows_in(tmp_path / "a") == rows_in(tmp_path / "b")
    for name in ("a", "b"):
        assert everhash.verify(tmp_path / name).problems == ()


@pytest.mark.parametrize("kind", PICTURES)
def test_an_image_type_is_known_by_its_first_bytes(kind: str) -> None:
    assert image_type(PICTURES[kind]) == f"image/{kind}"
    assert image_type(PICTURES[kind][1:]) is None


CIRCLE: list[Any] = []


CIRCLE.append(CIRCLE)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


REFUSED: dict[str, tuple[dict[str, Any], type[InputError], str]] = {
    "too few": ({"payloads": [1]}, InputError, "2 entries but 1 payloads"),
    "too many": ({"thumbnails": [None] * 3}, InputError, "2 entries but 3 thumbnails"),
    "a text": ({"payloads": "ab"}, InputError, "must be a list, got a str"),
    "an object": ({"payloads": {"a": 1, "b": 2}}, InputError, "must be a list, got a dict"),
    "a set": ({"payloads": {1, 2}}, InputError, "must be a list, got a set"),
    "bytes": ({"thumbnails": PNG}, InputError, "must be a list, got a bytes"),
    "a number": ({"thumbnails": 7}, InputError, "must be a list, got a int"),
    "infinity inside": ({"payloads": [1, [float("inf")]]}, InputError, "payload 1 is no JSON"),
    "bytes as payload": ({"payloads": [1, b"x"]}, InputError, "payload 1 is no JSON"),
    "a set as payload": ({"payloads": [{1}, 1]}, InputError, "payload 0 is no JSON.*sorted list"),
    "a duration": ({"payloads": [timedelta(1), 1]}, InputError, "0 is no JSON: it has a timedelta"),
    "a frame": ({"payloads": pd.DataFrame({"a": [1], "b": [2]})}, InputError, "to_dict.*records"),
    "half a character": ({"payloads": ["\ud800", 1]}, InputError, "payload 0 is no JSON"),
    "a circle": ({"payloads": [CIRCLE, 1]}, LimitError, "payload 0 is nested deeper"),
    "a number of 5,000 digits": ({"payloads": [10**5000, 1]}, InputError, "payload 0 is no JSON"),
    "keys that are numbers": ({"payloads": [{1: 2}, 1]}, InputError, "a key 1 that is not a text"),
    "a long text": (
        {"payloads": [1, "x" * 4095]},
        LimitError,
        "payload 1 takes 4097 bytes, at most 4096",
    ),
    "a long text in UTF-8": ({"payloads": ["é" * 2048, 1]}, LimitError, "takes 4098 bytes"),
    "65 lists": ({"payloads": [nested(65), 1]}, LimitError, "nested deeper than 64"),
    "2,000 lists": ({"payloads": [nested(2000), 1]}, LimitError, "nested deeper than 64"),
    "a million lists": ({"payloads": [nested(10**6), 1]}, LimitError, "nested deeper than 64"),
    "a text as thumbnail": ({"thumbnails": ["GIF89a", PNG]}, InputError, "0 is no picture but a s"),
    "no picture": ({"thumbnails": [PNG, b"<svg/>"]}, InputError, "thumbnail 1 is no picture"),
    "nothing at all": ({"thumbnails": [PNG, b""]}, InputError, "thumbnail 1 is no picture"),
    "another RIFF": ({"thumbnails": [PNG, b"RIFF0000WAVE"]}, InputError, "1 is no picture"),
    "a large picture": (
        {"thumbnails": [PNG + bytes(32_768), PNG]},
        LimitError,
        "thumbnail 0 takes 32816 bytes, at most 32768",
    ),
}


CALLS: dict[str, Callable[..., object]] = {
    "add": lambda col, X, given: col.add(X, ["x", "y"], **given),
    "ingest": lambda col, X, given: col.ingest(X, ["new", None], ["x", "y"], **given),
    "attach": lambda col, X, given: col.attach(["a", "d"], **given),
}


EVERYWHERE = ("too few", "a long text", "no picture", "a large picture")
"""Also tried with `add` and `ingest`, which check attachments as `attach` does."""


@pytest.mark.parametrize("col", ["filed"], indirect=True)
@pytest.mark.parametrize(
    ("call", "name"),
    [
        *(("attach", name) for name in REFUSED),
        *((call, name) for call in ("add", "ingest") for name in EVERYWHERE),
    ],
)
def test_what_is_refused_changes_nothing(
    col: Collection, digits: Stream, call: str, name: str
) -> None:
    given, kind, says = REFUSED[name]
    col.attach(["a"], payloads=["kept"])
    before, state = col.stats(), col._loaded
    with pytest.raises(kind, match=says) as caught:
        CALLS[call](col, digits.X[:2], given)
    assert type(caught.value) is kind
    assert caught.value.hint
    assert col._loaded is state, "refused before anything had changed"
    assert col.stats() == before
    assert "new" not in col.hasher.labels_
    assert col.attachments(list("ad")) == [Attachment("kept"), Attachment()]


@pytest.mark.parametrize(
    "given",
    [
        {"payloads": ["x" * 4094, nested(64)]},
        {"thumbnails": [PNG + bytes(32_768 - len(PNG)), bytearray(GIF)]},
    ],
)
def test_what_just_fits_is_kept(col: Collection, given: dict[str, Any]) -> None:
    col.attach(list("ad"), **given)
    found = [one.payload or one.thumbnail for one in col.attachments(list("ad"))]
    assert found == next(iter(given.values()))


def test_ids_that_are_unknown_or_stand_twice_are_refused(col: Collection) -> None:
    with pytest.raises(UnknownIdError):
        col.attach(["a", "nobody"], payloads=[1, 2])
    with pytest.raises(InputError, match="an id is given twice"):
        col.attach(["a", "a"], payloads=[1, 2])
    with pytest.raises(UnknownIdError):
        col.attachments(["a", "nobody"])
    assert col.attachments(["a"]) == [Attachment()]


def test_a_transaction_that_fails_leaves_nothing_of_it(
    path: Path, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Transaction.attach

    def fail(change: Transaction, blobs: Any) -> None:
        real(change, blobs)
        raise RuntimeError("in mid-call")

    before = rows_in(path)
    with everhash.open(path) as col:
        attached = col.attachments([0, 1, 2, 4, 5])
        with monkeypatch.context() as broken:
            broken.setattr(Transaction, "attach", fail)
            for call in (
                lambda: col.attach([0, 4], payloads=[None, 1], thumbnails=[JPEG, JPEG]),
                lambda: col.remove([0]),
                lambda: col.ingest(digits.X[:1], ["new"], payloads=["new"]),
            ):
                with pytest.raises(RuntimeError, match="in mid-call"):
                    call()
                assert col.attachments([0, 1, 2, 4, 5]) == attached
                assert len(col) == 5
        assert "new" not in col.hasher.labels_
        assert rows_in(path) == before
        assert col.ingest(digits.X[:1], ["new"], payloads=["new"]) == [6]
        assert col.attachments([6]) == [Attachment("new")]
    assert everhash.verify(path).problems == ()


def test_a_reader_catches_up_to_read_attachments(path: Path, digits: Stream) -> None:
    with everhash.open(path) as col, everhash.open(path, readonly=True) as reader:
        col.attach([0, 4], payloads=["newer", "first"], thumbnails=[None, None])
        col.remove([1])
        (new,) = col.add(digits.X[:1], payloads=["new"])
        assert len(reader) == 5, "it has not moved on"
        assert reader.attachments([0, 2, 4, new]) == [
            Attachment("newer"),
            Attachment(None, GIF),
            Attachment("first"),
            Attachment("new"),
        ]
        assert [entry.id for entry in reader.entries()] == [0, 2, 4, 5, new], "of the same state"
        assert not reader.catch_up()
        with pytest.raises(UnknownIdError):
            reader.attachments([1])
        with pytest.raises(ReadOnlyError):
            reader.attach([0], payloads=[1])


def test_a_reader_of_the_first_version_sees_the_first_attachment(
    tmp_path: Path, digits: Stream
) -> None:
    path = tmp_path / "c.ever"
    with everhash.create(path, dim=64, bits=8) as col:
        col.add(digits.X[:3])
        with everhash.open(path, readonly=True) as reader:
            assert reader.attachments([0]) == [Attachment()]
            col.attach([0], payloads=[1])
            assert reader.attachments([0]) == [Attachment(1)]
            assert not reader.catch_up()


def test_after_close_nothing_can_be_asked(col: Collection) -> None:
    col.close()
    for call in (
        lambda: col.attachments(["a"]),
        lambda: col.attach(["a"], payloads=[1]),
        lambda: col.features(["d"]),
        col.labels,
    ):
        with pytest.raises(ClosedError, match="is closed"):
            call()


def test_what_the_encoder_writes_it_writes_again() -> None:
    for payload in PAYLOADS:
        text = COMPACT.encode(payload)
        assert COMPACT.encode(json.loads(text)) == text
