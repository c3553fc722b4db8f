"""`everhash ingest`: it does what the library does, in batches that are safe one by one."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import everhash
from everhash import Attachment, cli, limits
from tests.children import ignoring_interrupts
from tests.unit.cli.commands import (
    COLUMNS,
    DIM,
    GIF,
    PNG,
    WIDE,
    Write,
    answers,
    attached,
    output,
    process,
    rows,
    stats,
    wait_for_entries,
)


def test_ingest_says_in_one_line_what_it_did(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    printed = output("ingest", path, write(), *COLUMNS, "--batch-rows", 7)
    assert re.fullmatch(
        r"30 rows in [\d.]+ s \([\d,]+ rows/s\): "
        r"30 entries, 3 labels, 1 cycle, 32 bits wide, 0 stale bits\n",
        printed,
    )
    assert stats(path)["commit"] == 5  # one for each batch


def test_ingest_is_what_the_library_does(tmp_path: Path, write: Write, queries: Path) -> None:
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    output("ingest", path, write(), *COLUMNS)
    X, y = rows(30)
    with everhash.create(None, dim=DIM) as library:
        library.ingest(X, y, [f"sku-{i}" for i in range(30)])
        expected = library.search(np.load(queries), 5)
    found = answers("search", path, queries, "-k", 5)
    assert [answer["query"] for answer in found] == [0, 1, 2, 3]
    for row, answer in enumerate(found):
        assert [match["id"] for match in answer["found"]] == expected.ids[row].tolist()
        assert [match["label"] for match in answer["found"]] == expected.labels[row].tolist()
        scores = [np.float32(match["score"]) for match in answer["found"]]
        assert scores == expected.scores[row].tolist()
        assert np.float32(answer["novelty"]) == expected.novelty[row]


def test_ingest_takes_several_files_of_several_kinds(tmp_path: Path, write: Write) -> None:
    path, table = tmp_path / "shop.ever", write(n=5)
    output("create", path, "--dim", DIM)
    X, y = rows(4, seed=3)
    features = ",".join(f"f{i}" for i in range(DIM))
    lines = [
        ",".join(map(str, row)) + f",{label},csv-{i}"
        for i, (row, label) in enumerate(zip(X, y, strict=True))
    ]
    (tmp_path / "rows.csv").write_text("\n".join([f"{features},kind,sku", *lines]) + "\n")
    output("ingest", path, table, *COLUMNS)
    output(
        "ingest", path, tmp_path / "rows.csv", "--features", "f*", "--label", "kind", "--id", "sku"
    )
    output("ingest", path, table, write("b.parquet", 5, first=50), *COLUMNS, "--resume")
    assert stats(path)["entries"] == 14


def test_ingest_without_learning_leaves_the_mapping_alone(shop: Path, write: Write) -> None:
    before = stats(shop)
    output("ingest", shop, write("b.parquet", 5, first=100), *COLUMNS, "--no-learn")
    after = stats(shop)
    assert after["entries"] == before["entries"] + 5
    assert after["hasher_version"] == before["hasher_version"]


@pytest.mark.parametrize("durability", ["commit", "interval:50ms", "none"])
def test_ingest_takes_every_durability(tmp_path: Path, write: Write, durability: str) -> None:
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    output("ingest", path, write(), *COLUMNS, "--durability", durability)
    assert stats(path)["entries"] == 30


def test_rows_whose_label_is_missing_are_added_and_counted(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    said = output("ingest", path, write(n=3, kind=["a", None, "b"]), *COLUMNS)
    assert said.startswith("3 rows, 1 without a label, in ")
    found = stats(path)
    assert (found["labelled"], found["unlabelled"], found["labels"]) == (2, 1, 2)


@pytest.mark.parametrize("options", [(), ("--no-learn",)])
def test_payloads_and_thumbnails_of_columns_are_attached(
    shop: Path, write: Write, options: tuple[str, ...]
) -> None:
    longest = "é" * ((limits.PAYLOAD - 2) // 2)
    columns = {"text": ["a", None, longest], "price": [1.5, 2, None], "pic": [PNG, GIF, None]}
    named = ("--payload", "text", "--payload", "text", "--thumbnail", "pic")
    output("ingest", shop, write("a.parquet", 3, 100, **columns), *COLUMNS, *named, *options)
    several = ("--payload", "price", "--payload", "kind")
    output("ingest", shop, write("b.parquet", 1, 200, price=[0.1]), *COLUMNS, *several, *options)
    found = attached(shop)
    assert [found[f"sku-{i}"] for i in (100, 101, 102, 200, 1)] == [
        Attachment("a", PNG),
        Attachment(None, GIF),
        Attachment(longest),
        Attachment({"price": 0.1, "kind": rows(1)[1][0]}),
        Attachment(),
    ]


def test_resume_keeps_rows_and_their_attachments_together(tmp_path: Path, write: Write) -> None:
    n, path = 23, tmp_path / "a.ever"
    texts, thumbnails = [f"row {i}" for i in range(n)], [GIF + bytes([i]) for i in range(n)]
    every = write("all.parquet", n, text=texts, pic=thumbnails)
    some = [i for i in range(n) if i % 3]
    parquet.write_table(parquet.read_table(every).take(some), tmp_path / "some.parquet")
    options = (*COLUMNS, "--payload", "text", "--thumbnail", "pic", "--batch-rows", 5)
    output("create", path, "--dim", DIM)
    output("ingest", path, tmp_path / "some.parquet", *options)
    printed = output("ingest", path, every, *options, "--resume")
    assert f"{len(some)} there already: {n} entries" in printed
    pairs = zip(texts, thumbnails, strict=True)
    assert attached(path) == {f"sku-{i}": Attachment(*pair) for i, pair in enumerate(pairs)}


def test_the_example_in_the_docs_makes_entries_that_show_their_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "page.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    for command in re.findall(r"^everhash ((?:create|ingest) footwear.*)$", page, re.MULTILINE):
        ran = CliRunner().invoke(cli.app, command.split(), env=WIDE)
        assert ran.exit_code == 0, ran.output
    assert "everhash serve footwear.ever" in page
    texts = [each.payload["text"] for each in attached(tmp_path / "footwear.ever").values()]
    assert texts == ["winter boots", "boots for hiking", "red running shoes", "white summer shoes"]


LONG = 600
"""Rows of a file that takes long: two a commit, some without a label or a payload."""


@pytest.mark.slow
def test_sigkill_in_mid_ingest_and_resume_equal_one_run(
    tmp_path: Path, write: Write, queries: Path
) -> None:
    kinds = [None if i % 3 == 0 else label for i, label in enumerate(rows(LONG, seed=6)[1])]
    texts = [None if i % 4 == 0 else f"row {i}" for i in range(LONG)]
    long = write("long.parquet", LONG, seed=6, kind=kinds, text=texts)
    arguments = (long, *COLUMNS, "--payload", "text", "--batch-rows", 2)
    whole, killed = tmp_path / "whole.ever", tmp_path / "killed.ever"
    for path in (whole, killed):
        output("create", path, "--dim", DIM)
        stats(path)  # loads what `wait_for_entries` needs, so that it is quick
    with process("ingest", killed, *arguments) as running:
        wait_for_entries(killed, 20, running)
        running.kill()
    assert running.returncode == -signal.SIGKILL
    safe = stats(killed)["entries"]
    assert 20 <= safe < LONG
    assert safe % 2 == 0
    assert [each.payload for each in attached(killed).values()] == texts[:safe]
    quickly = (*arguments, "--durability", "none")
    resumed = output("ingest", killed, *quickly, "--resume")
    assert f"{safe:,} there already: {LONG:,} entries" in resumed
    output("ingest", whole, *quickly)

    expected, found = stats(whole), stats(killed)
    for name in ("path", "bytes", "bytes_per_entry"):
        del expected[name], found[name]
    for each in (expected, found):
        del each["last_refresh"]["at"], each["last_refresh"]["seconds"]
    assert found == expected
    assert [each.payload for each in attached(killed).values()] == texts
    assert answers("search", killed, queries, "-k", 50) == answers(
        "search", whole, queries, "-k", 50
    )
    assert output("verify", killed).startswith(f"ok: {LONG:,} entries")
    assert output("ingest", killed, *quickly, "--resume").startswith("0 rows in ")
    assert stats(killed)["entries"] == LONG


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return a function after which Ctrl-C is pressed so often while the third batch is applied."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    real, batches = everhash.Collection.ingest, count(1)

    def press(times: int) -> None:
        def ingest(*arguments: Any, **options: Any) -> Any:
            if next(batches) == 3:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)
            return real(*arguments, **options)

        monkeypatch.setattr(everhash.Collection, "ingest", ingest)

    yield press
    signal.signal(signal.SIGINT, usual)


@pytest.mark.parametrize(
    ("columns", "times", "safe", "how"),
    [
        (COLUMNS, 1, 6, "repeat the command with --resume for the rest"),
        (COLUMNS[:4], 1, 6, "the rest starts at row 6 of {file}; with --id it could be resumed"),
        (COLUMNS, 2, 4, "repeat the command with --resume for the rest"),
    ],
    ids=["once", "once, without ids", "twice"],
)
def test_ctrl_c_ends_after_the_batch_and_says_what_is_safe(
    columns: tuple[str, ...],
    times: int,
    safe: int,
    how: str,
    tmp_path: Path,
    write: Write,
    ctrl_c: Callable[[int], None],
) -> None:
    path, file = tmp_path / "shop.ever", write()
    output("create", path, "--dim", DIM)
    ctrl_c(times)
    result = CliRunner().invoke(
        cli.app, ["ingest", str(path), str(file), *columns, "--batch-rows", "2"], env=WIDE
    )
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == (
        f"interrupted: {safe} of 30 rows are safe in {path} ({how.format(file=file)})\n"
    )
    assert output("verify", path).startswith(f"ok: {safe} entries")


@pytest.mark.slow
def test_in_the_background_of_a_script_it_ignores_ctrl_c_and_sigterm_ends_it(
    tmp_path: Path, write: Write
) -> None:
    path = tmp_path / "shop.ever"
    arguments = ("ingest", path, write(n=LONG), *COLUMNS)
    output("create", path, "--dim", DIM)
    stats(path)  # loads what `wait_for_entries` needs, so that it is quick
    command = ignoring_interrupts("-m", "everhash", *arguments, "--batch-rows", 2)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        wait_for_entries(path, 2, running)
        running.send_signal(signal.SIGINT)
        wait_for_entries(path, stats(path)["entries"] + 10, running)
        running.terminate()
        assert running.communicate()[1] == ""
    assert running.returncode == -signal.SIGTERM
    safe = stats(path)["entries"]
    assert 12 <= safe < LONG
    assert output("verify", path).startswith(f"ok: {safe} entries")
    resumed = output(*arguments, "--resume")
    assert f"{safe} there already: {LONG} entries" in resumed


def test_ctrl_c_while_checking_applies_nothing(
    shop: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    table, before = write(first=99), stats(shop)
    monkeypatch.setattr("everhash.sources.read", interrupt)
    result = CliRunner().invoke(cli.app, ["ingest", str(shop), str(table), *COLUMNS])
    assert result.exit_code == 130
    assert result.stderr == "interrupted: nothing was applied (repeat the command)\n"
    assert stats(shop) == before
