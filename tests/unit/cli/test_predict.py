"""`everhash predict`: the labels that the library predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import everhash
from tests.unit.cli.commands import DIM, Write, answers, output


def test_predict_names_the_label_of_each_row(shop: Path, queries: Path) -> None:
    with everhash.open(shop, readonly=True) as library:
        expected = library.predict(np.load(queries)).tolist()
    named = [{"query": row, "label": label} for row, label in enumerate(expected)]
    assert answers("predict", shop, queries) == named
    assert answers("predict", shop, queries, "--limit", 2) == named[:2]
    heading, *lines = output("predict", shop, queries).splitlines()
    assert heading.split() == ["query", "label"]
    assert [line.split() for line in lines] == [[str(n), label] for n, label in enumerate(expected)]


def test_predict_shows_the_ids_of_rows(shop: Path, write: Write) -> None:
    table = write("new.parquet", 5, 100)
    options = ("--features", "embedding", "--id", "sku")
    answered = answers("predict", shop, table, *options)
    assert [(one["query"], one["query_id"]) for one in answered] == [
        (row, f"sku-{100 + row}") for row in range(5)
    ]
    lines = output("predict", shop, table, *options).splitlines()
    assert [line.split() for line in lines[1:]] == [
        [one["query_id"], one["label"]] for one in answered
    ]


def test_predict_refuses_what_it_cannot_name(
    shop: Path, queries: Path, tmp_path: Path, refused: Any
) -> None:
    empty, other = tmp_path / "empty.ever", tmp_path / "other.ever"
    output("create", empty, "--dim", DIM)
    refused(2, "predict", empty, queries, says="no label was learned yet")
    output("create", other, "--dim", DIM, "--method", "mihash")
    refused(2, "predict", other, queries, says="mihash cannot name labels")
    refused(2, "predict", shop, queries, "--limit", 0, says="--limit must be")
