"""`everhash export`: every entry in every format, so that `everhash ingest` reads it back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import parquet
from typer.testing import CliRunner

import everhash
from everhash import cli
from tests.unit.cli.commands import DIM, GIF, PNG, WIDE, Ended, answers, output, rows


def ran(*arguments: object) -> Ended:
    """Run a command that succeeds, and may have something to say."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env=WIDE)
    assert result.exit_code == 0, result.output
    return Ended(0, result.stdout, result.stderr)


def test_export_writes_every_entry_in_every_format(shop: Path, tmp_path: Path) -> None:
    with everhash.open(shop) as collection:
        entries = list(collection.entries())
        first, second, third = (entry.id for entry in entries[:3])
        collection.attach([first, second], payloads=[{"é": [1, None]}, ""])
        collection.attach([second, third], thumbnails=[GIF, GIF])
        features = collection.features([entry.id for entry in entries])
    payloads = [{"é": [1, None]}, "", *[None] * 38]
    pictures = [None, GIF, GIF, *[None] * 37]
    expected = [
        {
            "id": entry.id,
            "labels": list(entry.labels),
            "features": [np.float32(value) for value in row],
            "payload": payload,
            "thumbnail": None if picture is None else "R0lGODlhAAAAAAAAAAAA",
            "guess": entry.guess,
            "home": entry.home,
            "code": None if entry.code is None else _hex(entry.code),
        }
        for entry, row, payload, picture in zip(entries, features, payloads, pictures, strict=True)
    ]
    out = tmp_path / "out.jsonl"
    assert output("export", shop, out) == f"40 entries in {out}\n"
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [{**line, "features": list(map(np.float32, line["features"]))} for line in lines] == (
        expected
    )

    texts = [None if one is None else json.dumps(one, ensure_ascii=False) for one in payloads]
    texts[0] = '{"é":[1,null]}'
    for ending in ("parquet", "arrow"):
        out = tmp_path / f"out.{ending}"
        assert answers("export", shop, out) == [{"file": str(out), "entries": 40}]
        table = parquet.read_table(out) if ending == "parquet" else pa.ipc.open_file(out).read_all()
        assert [json.loads(text) for text in table.column("id").to_pylist()] == [
            row["id"] for row in expected
        ]
        assert table.column("labels").to_pylist() == [row["labels"] for row in expected]
        assert table.column("features").to_pylist() == features.tolist()
        assert table.column("payload").to_pylist() == texts
        assert table.column("thumbnail").to_pylist() == pictures
        for name in ("guess", "home", "code"):
            assert table.column(name).to_pylist() == [row[name] for row in expected]

    out = tmp_path / "out.csv"
    assert ran("export", shop, out).err == (
        f"note: {out}: a CSV has no thumbnails; .parquet, .arrow and .jsonl do\n"
        f"note: {out}: a CSV does not tell ids such as 7 and '7' apart; .parquet and .jsonl do\n"
    )
    with out.open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [line["id"] for line in cells] == [str(row["id"]) for row in expected]
    assert [json.loads(line["labels"]) for line in cells] == [row["labels"] for row in expected]
    assert [line["code"] or None for line in cells] == [row["code"] for row in expected]
    assert [line["payload"] or None for line in cells] == texts
    assert [[np.float32(line[f"f{i}"]) for i in range(DIM)] for line in cells] == [
        row["features"] for row in expected
    ]


def _hex(bits: NDArray[np.bool_]) -> str:
    """Bit t in bit t % 8 of byte t // 8."""
    total = bytearray(-(-len(bits) // 8))
    for t in np.flatnonzero(bits).tolist():
        total[t // 8] |= 1 << t % 8
    return total.hex()


def test_export_keeps_numbers_as_numbers_in_parquet(tmp_path: Path) -> None:
    X, _ = rows(4)
    with everhash.create(tmp_path / "n.ever", dim=DIM) as collection:
        collection.ingest(X, [{1, 2}, 2, None, 3], [5, 6, 7, 8])
    output("export", tmp_path / "n.ever", tmp_path / "n.parquet")
    table = parquet.read_table(tmp_path / "n.parquet")
    assert table.column("id").to_pylist() == [5, 6, 7, 8]
    assert table.column("labels").to_pylist() == [[1, 2], [2], [], [3]]


def test_export_of_the_hasher_is_its_model_file(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.safetensors"
    assert output("export", shop, out) == f"the hasher of 3 labels in {out}\n"
    hasher = everhash.load_hasher(out)
    with everhash.open(shop, readonly=True) as collection:
        np.testing.assert_array_equal(hasher.versions_, collection.hasher.versions_)


NUMBERS, TEXTS = st.integers(-(10**17), 10**17), st.text("ab7é -,\"'\n", min_size=1, max_size=5)
JSON = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | TEXTS | st.just(""),
    lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(TEXTS, inner),
    max_leaves=4,
)
LABELS = {
    "texts": TEXTS,
    "numbers": NUMBERS.filter(lambda number: number != -1),
    "any": TEXTS | st.integers(2, 9) | st.booleans() | st.just(2.5) | st.just(("a", 1, b"c")),
}
IDS = {
    "numbers": NUMBERS,
    "texts": TEXTS.filter(lambda text: not text.isdigit()),
    "any": NUMBERS | TEXTS,
}


def drawn(data: st.DataObject, labels: str, ids: str) -> dict[str, Any]:
    """Draw what some entries have."""
    n = data.draw(st.integers(1, 8))
    names, one = IDS[ids], LABELS[labels]
    pictures = st.none() | st.sampled_from([GIF, PNG])

    def column(values: Any) -> Any:
        return data.draw(st.lists(values, min_size=n, max_size=n))

    return {
        "X": np.random.default_rng(n).normal(size=(n, DIM)).astype(np.float32),
        "y": column(st.none() | one | st.frozensets(one, max_size=3)),
        "ids": data.draw(st.lists(names, min_size=n, max_size=n, unique_by=lambda v: (type(v), v))),
        "payloads": column(st.none() | JSON),
        "thumbnails": column(pictures),
    }


@pytest.mark.parametrize(
    ("ending", "labels", "ids"),
    [
        *(("parquet", "any", "any"), ("parquet", "texts", "numbers")),
        *(("parquet", "numbers", "texts"), ("arrow", "any", "any"), ("jsonl", "any", "any")),
        *(("csv", "any", "numbers"), ("csv", "texts", "texts")),
    ],
)
@given(data=st.data())
@settings(max_examples=2)
def test_what_export_writes_ingest_reads_back(
    ending: str,
    labels: str,
    ids: str,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """With no option but --create, and so that searches find the same."""
    made = drawn(data, labels, ids)
    if ending == "csv":
        made["thumbnails"] = [None] * len(made["ids"])
    folder = tmp_path_factory.mktemp("trip")
    old, new, file = folder / "old.ever", folder / "new.ever", folder / f"out.{ending}"
    with everhash.create(old, dim=DIM, durability="none") as collection:
        collection.ingest(**made)
    assert ran("export", old, file).err == ""
    assert ran("ingest", new, file, "--create").err.startswith(f"taken: {file}: features from f")
    with everhash.open(old, readonly=True) as a, everhash.open(new, readonly=True) as b:
        entries = list(a.entries())
        assert list(map(repr, b.entries())) == list(map(repr, entries))
        names = [entry.id for entry in entries]
        assert list(map(repr, b.attachments(names))) == list(map(repr, a.attachments(names)))
        np.testing.assert_array_equal(b.features(names), a.features(names))
        queries = np.random.default_rng(0).normal(size=(3, DIM)).astype(np.float32)
        expected, found = a.search(queries, 5), b.search(queries, 5)
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl", "csv"])
@pytest.mark.parametrize("keep", ["unlabelled", "none"])
def test_features_that_are_not_kept_are_told(
    keep: str, ending: str, tmp_path: Path, failing: Any
) -> None:
    old, out = tmp_path / "old.ever", tmp_path / f"out.{ending}"
    with everhash.create(old, dim=DIM, keep_features=keep) as collection:
        collection.ingest(rows(3)[0], ["a", None, "b"])
    whose = {"unlabelled": "labelled", "none": "all"}[keep]
    assert ran("export", old, out).err == (
        f"note: {out}: features of {whose} entries are not kept, so ingest cannot read them back\n"
    )
    ended = failing("ingest", tmp_path / "new.ever", out, "--create")
    assert ended.code == 2
    assert "null" in ended.err
    assert not (tmp_path / "new.ever").exists()
