"""`everhash export`: every entry in every format."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

import everhash
from tests.unit.cli.commands import DIM, output, rows


def test_export_writes_every_entry_in_every_format(shop: Path, tmp_path: Path) -> None:
    output("label", shop, "new", "sku-3")
    gif = b"GIF89a" + bytes(9)
    with everhash.open(shop) as collection:
        entries = list(collection.entries())
        first, second, third = (entry.id for entry in entries[:3])
        collection.attach([first, second], payloads=[{"é": [1, None]}, ""])
        collection.attach([second, third], thumbnails=[gif, gif])
    payloads = [{"é": [1, None]}, "", *[None] * 38]
    pictures = [None, gif, gif, *[None] * 37]
    expected = [
        {
            "id": entry.id,
            "labels": list(entry.labels),
            "guess": entry.guess,
            "home": entry.home,
            "code": None if entry.code is None else _hex(entry.code),
            "payload": payload,
            "thumbnail": None if picture is None else "R0lGODlhAAAAAAAAAAAA",
        }
        for entry, payload, picture in zip(entries, payloads, pictures, strict=True)
    ]
    out = tmp_path / "out.jsonl"
    assert output("export", shop, out) == f"40 entries in {out}\n"
    assert [json.loads(line) for line in out.read_text().splitlines()] == expected

    output("export", shop, tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    texts = [None if one is None else json.dumps(one, ensure_ascii=False) for one in payloads]
    assert table == [
        {**row, "id": str(row["id"]), "payload": text, "thumbnail": picture}
        for row, text, picture in zip(expected, texts, pictures, strict=True)
    ]

    output("export", shop, tmp_path / "out.csv")

    with (tmp_path / "out.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["id"] for line in lines] == [str(row["id"]) for row in expected]
    assert [json.loads(line["labels"]) for line in lines] == [row["labels"] for row in expected]
    assert [line["code"] or None for line in lines] == [row["code"] for row in expected]
    assert [line["payload"] or None for line in lines] == texts
    assert [line["thumbnail"] or None for line in lines] == [row["thumbnail"] for row in expected]


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
