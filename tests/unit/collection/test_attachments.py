"""What entries carry comes back as it was given, goes with its entry, and is refused as a whole."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everhash
from everhash import Attachment, Collection, OnlineHasher, limits, peers
from everhash.collection.attachments import COMPACT, image_type
from everhash.errors import (
    CollectionFileError,
    InputError,
    LimitError,
    OptionError,
    ReadOnlyError,
    UnknownIdError,
)
from everhash.store.transaction import Transaction
from tests.conftest import Stream

PNG, JPEG = b"\x89PNG\r\n\x1a\n" + bytes(40), b"\xff\xd8\xff\xe0" + bytes(40)
GIF, WEBP = b"GIF89a" + bytes(40), b"RIFF\x24\0\0\0WEBPVP8 " + bytes(20)
PICTURES = {"png": PNG, "jpeg": JPEG, "gif": GIF, "webp": WEBP}
PAYLOADS = [
    {"name": "é ✓", "n": [1, 2.5, None, True]},
    [],
    "",
    0,
    False,
    -1e-300,
    2**70,
    "\x00\x1f",
]


@pytest.fixture(params=["filed", "in memory"])
def col(request: pytest.FixtureRequest, tmp_path: Path, digits: Stream) -> Iterator[Collection]:
    """Three labelled digits a, b, c and three unlabelled d, e, f that carry nothing."""
    path = tmp_path / "c.ever" if request.param == "filed" else None
    with everhash.create(path, dim=64, bits=8) as made:
        made.ingest(digits.X[:3], digits.y[:3], list("abc"))
        made.add(digits.X[3:6], list("def"))
        yield made


@pytest.fixture
def path(tmp_path: Path, digits: Stream) -> Path:
    """A file with entries 0 to 5: 0 carries both, 1 a payload, 2 a thumbnail; 3 was removed."""
    path = tmp_path / "c.ever"
    with everhash.create(path, dim=64, bits=8) as made:
        made.add(
            digits.X[:6],
            payloads=[{"n": 0}, {"n": 1}, None, "gone", None, None],
            thumbnails=[PNG, None, GIF, JPEG, None, None],
        )
        made.remove([3])
    return path


def rows_in(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT number, data FROM attached").fetchall()


# What comes back


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


def test_what_an_entry_carries_stays_while_the_entry_changes(
    col: Collection, digits: Stream
) -> None:
    col.attach(list("acdf"), payloads=list("acdf"), thumbnails=[PNG, None, GIF, None])
    before = col.attachments(list("abcdef"))
    col.label(["d", "a"], ["new", {"several", "labels"}])
    col.learn(digits.X[:300], digits.y[:300])
    col.refresh()
    assert col.attachments(list("abcdef")) == before


def test_what_was_removed_carries_nothing_and_the_file_forgets_it(path: Path) -> None:
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
    n, X = 400, np.random.default_rng(0).standard_normal((400, 4)).astype(np.float32)
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
def test_pictures_are_told_by_their_first_bytes(kind: str) -> None:
    assert image_type(PICTURES[kind]) == f"image/{kind}"
    assert image_type(PICTURES[kind][1:]) is None


# What is refused

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
    "NaN": ({"payloads": [1, float("nan")]}, InputError, "payload 1 is no JSON"),
    "infinity inside": ({"payloads": [1, [float("inf")]]}, InputError, "payload 1 is no JSON"),
    "bytes as payload": ({"payloads": [1, b"x"]}, InputError, "payload 1 is no JSON"),
    "a set as payload": ({"payloads": [{1}, 1]}, InputError, "payload 0 is no JSON"),
    "an array": ({"payloads": [np.ones(2), 1]}, InputError, "payload 0 is no JSON"),
    "half a character": ({"payloads": ["\ud800", 1]}, InputError, "payload 0 is no JSON"),
    "a circle": ({"payloads": [CIRCLE, 1]}, InputError, "payload 0 is no JSON"),
    "a number of 5,000 digits": ({"payloads": [10**5000, 1]}, InputError, "payload 0 is no JSON"),
    "keys that are numbers": ({"payloads": [{1: 2}, 1]}, InputError, "not be read as it was"),
    "a tuple": ({"payloads": [(1, 2), 1]}, InputError, "not be read as it was"),
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


@pytest.mark.parametrize("col", ["filed"], indirect=True)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", REFUSED)
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
    with pytest.raises(InputError, match="an id stands twice"):
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
        carried = col.attachments([0, 1, 2, 4, 5])
        with monkeypatch.context() as broken:
            broken.setattr(Transaction, "attach", fail)
            for call in (
                lambda: col.attach([0, 4], payloads=[None, 1], thumbnails=[JPEG, JPEG]),
                lambda: col.remove([0]),
                lambda: col.ingest(digits.X[:1], ["new"], payloads=["new"]),
            ):
                with pytest.raises(RuntimeError, match="in mid-call"):
                    call()
                assert col.attachments([0, 1, 2, 4, 5]) == carried
                assert len(col) == 5
        assert "new" not in col.hasher.labels_
        assert rows_in(path) == before
        assert col.ingest(digits.X[:1], ["new"], payloads=["new"]) == [6]
        assert col.attachments([6]) == [Attachment("new")]
    assert everhash.verify(path).problems == ()


# Versions of the file


def version_of(path: Path) -> tuple[int, set[str]]:
    with closing(sqlite3.connect(path)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        tables = file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return version, {name for (name,) in tables}


def test_a_file_is_of_the_first_version_until_something_is_attached(
    tmp_path: Path, digits: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, first = tmp_path / "c.ever", (1, {"head", "part"})
    with everhash.create(path, dim=64, bits=8) as col:
        col.add(digits.X[:3], payloads=[None] * 3)
        col.attach([0], thumbnails=[None])
        col.remove([2])
        assert col.attachments([0]) == [Attachment()]
        with monkeypatch.context() as broken:
            broken.setattr("everhash.store.transaction.write_head", None)
            with pytest.raises(TypeError):
                col.attach([0], payloads=[1])
        assert version_of(path) == first
        col.attach([0], payloads=[1])
        assert version_of(path) == (2, {"head", "part", "attached"})
    with everhash.open(path) as col:
        col.attach([0], payloads=[None])
        assert col.attachments([0, 1]) == [Attachment(), Attachment()]


def test_a_file_of_a_later_version_is_refused_with_a_hint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 3")
    with pytest.raises(
        CollectionFileError, match=r"version 3, this everhash reads 1 to 2.*upgrade"
    ):
        everhash.open(path)


# Readers


def test_a_reader_gets_what_its_own_entries_carry_by_now(path: Path, digits: Stream) -> None:
    with everhash.open(path) as col, everhash.open(path, readonly=True) as reader:
        col.attach([0, 4], payloads=["newer", "first"], thumbnails=[None, None])
        col.remove([1])
        (new,) = col.add(digits.X[:1], payloads=["new"])
        assert reader.attachments([0, 1, 2, 4]) == [
            Attachment("newer"),
            Attachment(),
            Attachment(None, GIF),
            Attachment("first"),
        ]
        assert len(reader) == 5, "it has not moved on"
        with pytest.raises(UnknownIdError):
            reader.attachments([new])
        assert reader.catch_up()
        assert reader.attachments([new]) == [Attachment("new")]
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
            assert reader.catch_up()
            assert reader.attachments([0]) == [Attachment(1)]


def test_after_close_nothing_can_be_asked(col: Collection) -> None:
    col.close()
    for call in (
        lambda: col.attachments(["a"]),
        lambda: col.attach(["a"], payloads=[1]),
        lambda: col.features(["d"]),
        col.labels,
    ):
        with pytest.raises(ReadOnlyError, match="is closed"):
            call()


# Files that lie


def forge(path: Path, number: int, data: Any, check: Any = None) -> None:
    """Put something in place of a blob, and have checksums and counts agree with it."""
    raw = data if isinstance(data, bytes) else str(data).encode()
    total = zlib.crc32(f"{number}".encode(), zlib.crc32(raw)) if check is None else check
    with closing(sqlite3.connect(path)) as file:
        file.execute("INSERT OR REPLACE INTO attached VALUES (?, ?, ?)", (number, total, data))
        file.commit()
    recount(path)


def recount(path: Path, **told: Any) -> None:
    """Have the head say what is there, or anything else."""
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute("SELECT checksum FROM attached").fetchall()
        about = json.loads(file.execute("SELECT about FROM head").fetchone()[0])
        about["attached"] = len(rows)
        about["attached_tally"] = sum(row[0] for row in rows if isinstance(row[0], int))
        text = json.dumps({**about, **told})
        file.execute("UPDATE head SET about = ?, checksum = ?", (text, zlib.crc32(text.encode())))
        file.commit()


HOSTILE: dict[str, tuple[int, Any]] = {
    "NaN": (0, b"NaN"),
    "infinity": (0, b"[1e999]"),
    "null": (0, b"null"),
    "no JSON": (0, b"{"),
    "nothing": (0, b""),
    "JSON twice": (0, b"1 1"),
    "JSON with spaces": (0, b"[1, 2]"),
    "a key twice": (0, b'{"a":1,"a":2}'),
    "no UTF-8": (0, b'"\xff"'),
    "half a character": (0, b'"\xed\xa0\x80"'),
    "UTF-16": (0, "[1]".encode("utf-16")),
    "2,000 lists": (0, b"[" * 2000 + b"]" * 2000),
    "65 lists": (0, b"[" * 65 + b"]" * 65),
    "a long payload": (0, b'"' + b"x" * 4095 + b'"'),
    "a payload of a megabyte": (0, b'"' + b"x" * 2**20 + b'"'),
    "a payload of text": (0, "1"),
    "a payload of a number": (0, 1),
    "no picture": (1, b"<svg onload='alert(1)'/>"),
    "a large picture": (1, PNG + bytes(32_768)),
    "a picture of a megabyte": (1, PNG + bytes(2**20)),
    "a picture of text": (1, "GIF89a"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_forged_blob_is_refused_when_it_is_read_and_named_by_verify(
    path: Path, name: str
) -> None:
    number, data = HOSTILE[name]
    forge(path, number, data)
    (problem,) = everhash.verify(path).problems
    assert f"attached {number}" in problem
    with everhash.open(path) as col:
        with pytest.raises(CollectionFileError, match=f"attached {number}"):
            col.attachments([2, 0])
        assert col.attachments([1, 2]) == [Attachment({"n": 1}), Attachment(None, GIF)]
        col.attach([0], payloads=["good"], thumbnails=[PNG])
        assert col.attachments([0]) == [Attachment("good", PNG)]
    assert everhash.verify(path).problems == ()


@pytest.mark.parametrize("check", [0, -1, 2**62, "text", 1.5, b"x"])
def test_a_wrong_checksum_is_noticed(path: Path, check: Any) -> None:
    forge(path, 0, b"1", check)
    assert "attached 0 is damaged" in everhash.verify(path).problems[0]
    with everhash.open(path) as col, pytest.raises(CollectionFileError, match="0 is damaged"):
        col.attachments([0])


@pytest.mark.parametrize("number", [12, 13, 2**62, -1, -(2**63)])
def test_blobs_of_entries_that_never_were_are_refused(path: Path, number: int) -> None:
    """The next entry would carry them."""
    forge(path, number, b"1")
    with pytest.raises(CollectionFileError, match="entries that are not there"):
        everhash.open(path)
    assert "entries that are not there" in everhash.verify(path).problems[0]


def test_verify_names_blobs_that_are_missing_or_left_over(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ever"
    shutil.copy(path, copy)
    forge(copy, 6, b"1")
    assert everhash.verify(copy).problems == ("attached 6: its entry was removed",)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM attached WHERE number = 0")
        file.commit()
    (problem,) = everhash.verify(path).problems
    assert "attached blobs are missing" in problem


@pytest.mark.parametrize(
    "told",
    [
        {"attached": "4"},
        {"attached": -1},
        {"attached": True},
        {"attached": None},
        {"attached_tally": 1.5},
        {"attached_tally": -1},
    ],
    ids=str,
)
def test_a_head_with_no_counts_is_damaged(path: Path, told: dict[str, Any]) -> None:
    recount(path, **told)
    with pytest.raises(CollectionFileError, match="head is damaged"):
        everhash.open(path)
    assert "head is damaged" in everhash.verify(path).problems[0]


def test_a_head_that_counts_wrong_is_named_by_verify(path: Path) -> None:
    for told in ({"attached": 3}, {"attached_tally": 7}):
        recount(path, **told)
        assert "more than the head counts" in everhash.verify(path).problems[0]
    recount(path, attached=10**9)
    assert "entries that are not there" in everhash.verify(path).problems[0]


def test_a_head_that_counts_too_few_is_not_counted_below_zero(path: Path) -> None:
    recount(path, attached=0, attached_tally=0)
    with everhash.open(path) as col:
        for call in (lambda: col.remove([0]), lambda: col.attach([0], payloads=[None])):
            with pytest.raises(CollectionFileError, match="more is attached than the head counts"):
                call()
        assert len(col) == 5
        assert col.attachments([0]) == [Attachment({"n": 0}, PNG)]
    everhash.open(path).close()


@pytest.mark.parametrize(
    "statement",
    ["PRAGMA user_version = 1", "DROP TABLE attached", "CREATE INDEX i ON attached (checksum)"],
)
def test_a_table_that_does_not_fit_the_version_is_refused(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
        file.commit()
    with pytest.raises(CollectionFileError, match="other tables than a collection"):
        everhash.open(path)


def test_reading_does_not_load_what_claims_to_be_long(path: Path) -> None:
    import tracemalloc

    forge(path, 0, PNG + bytes(50_000_000))
    with everhash.open(path) as col:
        tracemalloc.start()
        with pytest.raises(CollectionFileError, match="attached 0 is damaged"):
            col.attachments([0])
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()


def test_what_the_encoder_writes_it_writes_again() -> None:
    for payload in PAYLOADS:
        text = COMPACT.encode(payload)
        assert COMPACT.encode(json.loads(text)) == text


# Features


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


# Labels


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
            ("c", 1, 2, 1),
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
    from time import perf_counter

    X = np.random.default_rng(0).standard_normal((1000, 8)).astype(np.float32)
    with everhash.create(None, dim=8, bits=16) as col:
        col.ingest(X, [f"label {i}" for i in range(1000)])
        seconds = []
        for _ in range(5):
            start = perf_counter()
            assert len(col.labels()) == 1000
            seconds.append(perf_counter() - start)
    assert min(seconds) < 0.05
