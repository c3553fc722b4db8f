"""JSON lines: an object a line; errors name the line."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.errors import FeatureTypeError, IdError, InputError, LabelError, LimitError
from everhash.sources import infer, jsonl, read
from tests.unit.sources.samples import GIF, refused, whole

PICTURE = base64.b64encode(GIF).decode()


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_columns_of_known_names_are_taken(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.jsonl",
        {"id": 7, "features": [1, 2.5], "labels": ["a", "b"], "payload": {"n": [1]}, "price": 3},
        {"id": "7", "features": [3, 4], "labels": [], "payload": None, "thumbnail": PICTURE},
        {"id": -1, "features": [5, 6], "labels": "c"},
    )
    (batch,) = read(path)
    assert batch.X.tolist() == [[1, 2.5], [3, 4], [5, 6]]
    assert batch.y == [{"a", "b"}, set(), "c"]
    assert batch.ids == [7, "7", -1]
    assert batch.payloads == [{"n": [1]}, None, None]
    assert batch.thumbnails == [None, GIF, None]
    assert str(infer(path)) == (
        "features from features; label from labels; id from id; thumbnail from thumbnail; "
        "payload from payload"
    )


def test_columns_may_be_named_and_numbers_are_features(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.ndjson",
        {"a": 1, "b": 2, "kind": 3, "title": "x", "at": {"deep": True}},
        {"a": 4, "b": 5, "kind": None, "title": None},
    )
    (batch,) = read(path, label="kind", payload=["title", "at"])
    assert batch.X.tolist() == [[1, 2], [4, 5]]
    assert batch.y == [3, None]
    assert batch.payloads == [{"title": "x", "at": {"deep": True}}, None]
    assert whole(path, features="b", label="kind").X.tolist() == [[2], [5]]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    payloads=st.lists(VALUES, min_size=1, max_size=7),
    batch_rows=st.integers(1, 9),
    gaps=st.booleans(),
)
@settings(max_examples=30)
def test_batches_put_together_are_the_whole_file(
    payloads: list[Any], batch_rows: int, gaps: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"features": [i, -i], "payload": each} for i, each in enumerate(payloads)]
    path.write_text(("\n\n" if gaps else "\n").join(map(json.dumps, rows)), encoding="utf-8")
    batches = list(read(path, batch_rows=batch_rows))
    assert [each for batch in batches for each in batch.payloads or ()] == payloads
    assert [x for batch in batches for x in batch.X[:, 0]] == list(range(len(payloads)))


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ('{"features": [1, 2]}\n\n{"features": [3', InputError, "line 3: expected JSON"),
        ('{"features": [1, 2]}\n[1, 2]', InputError, "line 2: expected an object, got a list"),
        ('{"features": [1, 2]}\n{"features": [1]}', InputError, "line 2: expected 2 .* got 1"),
        ('{"features": [1, 2]}\n{}', FeatureTypeError, "line 2: expected numbers in features"),
        ('{"features": [1, 2]}\n{"features": [1, "2"]}', FeatureTypeError, 'line 2: .*got "2"'),
        ('{"features": [1, 2]}\n{"features": [1, null]}', FeatureTypeError, "line 2: .*got null"),
        ('{"a": 1, "b": 2}\n{"a": 1, "b": "x"}', FeatureTypeError, "line 2: .* in a, b, got"),
        ('{"features": [1e400, 1]}\n{"features": [1%s, 2]}' % ("0" * 400), FeatureTypeError, "1"),
        ('{"features": [1], "id": 1}\n{"features": [1], "id": 1.5}', IdError, "line 2: .*1.5"),
        ('{"features": [1], "id": 1}\n{"features": [1]}', IdError, "line 2: expected an id"),
        ('{"features": [1], "label": {"a": 1}}', LabelError, "line 1: .*cannot be a label"),
        ('{"features": [1], "label": [[1]]}', LabelError, "line 1: .*cannot be a label"),
        ('{"name": "a"}', InputError, "no column of numbers"),
        ("\udcff{}", InputError, "line 1: expected JSON"),
        ("[" * 100_000, InputError, "line 1: expected JSON"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_line(
    text: str, error: type[InputError], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(error, f"^{path}: .*{says}", path)


def test_thumbnails_that_are_no_base64_are_refused_where_they_are_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"features": [1], "thumbnail": "https://example.org/a.png"})
    (batch,) = read(path)
    assert batch.thumbnails is None
    refused(InputError, "line 1: expected a picture in base64", path, thumbnail="thumbnail")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 50)
    path = lines(tmp_path / "a.jsonl", {"features": [1] * 10}, {"features": [1] * 100})
    refused(LimitError, "line 2: at most 50 bytes", path)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n \n")
    assert list(read(tmp_path / "a.jsonl")) == []
    assert infer(tmp_path / "a.jsonl") is None
    (tmp_path / "b.jsonl").write_bytes(b'\xef\xbb\xbf{"features": [1]}')
    assert whole(tmp_path / "b.jsonl").X.tolist() == [[1]]
