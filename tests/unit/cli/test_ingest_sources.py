"""`everhash ingest`: where rows come from, which columns are taken, and a new collection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import everhash
from everhash import cli
from tests.unit.cli.commands import COLUMNS, DIM, WIDE, Ended, Write, answers, output, rows, stats


def ran(*arguments: object, given: bytes | None = None) -> Ended:
    """Run a command, perhaps with something on standard input."""
    result = CliRunner().invoke(
        cli.app, [str(argument) for argument in arguments], env=WIDE, input=given
    )
    return Ended(result.exception or result.exit_code, result.stdout, result.stderr)


def lines(n: int) -> bytes:
    X, y = rows(n)
    rows_ = [
        {"id": f"sku-{i}", "features": x, "label": label, "payload": {"n": i}}
        for i, (x, label) in enumerate(zip(X.tolist(), y, strict=True))
    ]
    return "".join(f"{json.dumps(row)}\n" for row in rows_).encode()


def test_a_new_file_is_created_with_the_width_of_the_rows(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "new.ever"
    output("ingest", path, write(n=5), *COLUMNS, "--create", "--bits", 16)
    output("ingest", path, write(n=5, first=5), *COLUMNS, "--create")
    found = stats(path)
    assert (found["entries"], found["dim"], found["bits"]) == (10, DIM, 16)


def test_a_bad_row_leaves_no_new_file(tmp_path: Path, write: Write, refused: Any) -> None:
    path = tmp_path / "new.ever"
    table = write(n=3, kind=["a", "", "b"])
    refused(2, "ingest", path, table, *COLUMNS, "--create", says="row 1: an empty text cannot be")
    refused(6, "ingest", path, table, *COLUMNS, says="--create makes one for these rows")
    assert not path.exists()
    (tmp_path / "none.jsonl").write_text("")
    refused(2, "ingest", path, tmp_path / "none.jsonl", "--create", says="there are no rows")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--bits", 8), "--bits is for a new collection"),
        (("--create", "--bits", 8), "--bits is for a new collection"),
        (("--format", "csv"), "--format is for standard input"),
        (("--resume",), "--resume needs ids"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: tuple[object, ...], says: str, shop: Path, write: Write, refused: Any
) -> None:
    refused(2, "ingest", shop, write(first=99), *COLUMNS[:4], *options, says=says)


def test_standard_input_is_json_lines_or_what_it_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    first = ran("ingest", path, "-", "--create", given=lines(5))
    assert first.code == 0
    assert first.err == (
        "taken: stdin: features from features; label from label; id from id; payload from payload\n"
    )
    X, y = rows(3, seed=4)
    text = "label," + ",".join(f"f{i}" for i in range(DIM)) + "\n"
    text += "".join(f"{label},{','.join(map(str, x))}\n" for x, label in zip(X, y, strict=True))
    assert ran("ingest", path, "-", "--format", "csv", given=text.encode()).code == 0
    assert stats(path)["entries"] == 8
    with everhash.open(path, readonly=True) as collection:
        assert collection.attachments("sku-3")[0].payload == {"n": 3}


def test_faults_of_standard_input_are_named(shop: Path) -> None:
    ended = ran("ingest", shop, "-", given=b'{"features": [1]}\n{')
    assert "stdin: line 2: expected JSON" in str(ended.code)
    ended = ran("search", shop, "-", given=b'{"features": [1, 2]}\n')
    assert "stdin: 2 numbers a row taken as features, from features" in str(ended.code)
    ended = ran("ingest", shop, "-", "-", given=b"")
    assert "- is named twice" in str(ended.code)


def test_a_search_takes_queries_from_standard_input(shop: Path, queries: Path) -> None:
    text = "".join(f"{json.dumps({'features': row})}\n" for row in np.load(queries).tolist())
    piped = ran("search", shop, "-", "--json", given=text.encode())
    assert piped.code == 0
    found = [json.loads(line) for line in piped.out.splitlines()]
    assert found == answers("search", shop, queries)


def test_a_pattern_names_files_in_order(tmp_path: Path, write: Write, refused: Any) -> None:
    (tmp_path / "data").mkdir()
    for i in (2, 0, 1):
        write(f"data/{i}.parquet", 5, first=5 * i)
    path = tmp_path / "shop.ever"
    ended = ran("ingest", path, tmp_path / "data" / "*.parquet", *COLUMNS[2:], "--create")
    assert ended.err == (
        f"taken: {tmp_path}/data/0.parquet and 2 more: "
        "features from embedding; label from kind; id from sku\n"
    )
    with everhash.open(path, readonly=True) as collection:
        assert [entry.id for entry in collection.entries()] == [f"sku-{i}" for i in range(15)]
    refused(6, "ingest", path, tmp_path / "data" / "*.csv", says="no file matches")
    (folder,) = answers("ingest", path, tmp_path / "data", *COLUMNS, "--resume")
    assert folder["skipped"] == 15  # a folder stands for its Parquet files
    (tmp_path / "empty").mkdir()
    refused(6, "ingest", path, tmp_path / "empty", says="no file matches")


def test_json_has_the_counts(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "shop.ever"
    (said,) = answers("ingest", path, write(), *COLUMNS, "--create")
    assert said.pop("seconds") >= 0
    assert said == {
        **{"rows": 30, "unlabelled": 0, "skipped": 0, "entries": 30, "labels": 3},
        **{"cycles": 1, "width": 32, "stale_bits": 0},
    }
    (said,) = answers("ingest", path, write(n=40), *COLUMNS, "--resume")
    assert (said["rows"], said["skipped"], said["entries"]) == (10, 30, 40)


def test_the_wrong_width_names_the_columns_that_were_taken(
    shop: Path, tmp_path: Path, failing: Any
) -> None:
    (tmp_path / "a.csv").write_text("price,size,label\n1,2,a\n3,4,b\n")
    ended = failing("ingest", shop, tmp_path / "a.csv")
    assert ended.err.splitlines()[-1] == (
        f"error: {tmp_path}/a.csv: 2 columns taken as features (price, size), but {shop} has 8 a "
        "row (name others with --features, or embed the data as before)"
    )


def test_a_column_with_a_known_name_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("f0,f1,label,id\n1,2,a,7\n3,4,b,9\n")
    path = tmp_path / "a.ever"
    options = ("--create", "--label", "", "--id", "", "--features", "f*")
    output("ingest", path, tmp_path / "a.csv", *options)
    found = stats(path)
    assert (found["unlabelled"], found["dim"]) == (2, 2)
    with everhash.open(path, readonly=True) as collection:
        assert [entry.id for entry in collection.entries()] == [0, 1]


def test_a_column_of_numbers_beside_numbered_features_ruins_no_collection(
    tmp_path: Path, refused: Any
) -> None:
    """A priority of thousands once became a feature: everything was alike, and the exit code 0."""
    X, y = rows(60)
    names = [f"e{i}" for i in range(X.shape[1])]
    table = [",".join(["kind", "priority", *names])]
    table += [
        ",".join([str(label), str(1000 * i), *map(str, x)])
        for i, (x, label) in enumerate(zip(X.tolist(), y, strict=True))
    ]
    path, source = tmp_path / "new.ever", tmp_path / "rows.csv"
    source.write_text("\n".join(table) + "\n")
    ingest = ("ingest", path, source, "--create", "--label", "kind")
    said = refused(2, *ingest, says="look like the features, but other numbers stand beside")
    assert "--features" in str(said)
    assert "--payload" in str(said)
    assert not path.exists()
    ended = ran(*ingest, "--payload", "priority")
    assert "features from e0, e1" in ended.err
    found = stats(path)
    assert (found["entries"], found["dim"]) == (60, X.shape[1])
