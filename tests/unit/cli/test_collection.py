"""The command line over a collection: what each command does, and how each refuses bad input."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from typer.main import get_command
from typer.testing import CliRunner

import everhash
from everhash import cli
from everhash.cli.formatting import shown
from everhash.errors import CodebookWarning

WIDE = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
DIM = 8
Write = Callable[..., Path]


def output(*arguments: object) -> str:
    """Run a command that succeeds and return what it prints."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env=WIDE)
    if result.exception is not None:
        raise result.exception
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def answers(*arguments: object) -> list[Any]:
    """Run a command that prints JSON, and nothing else; return its lines."""
    return [json.loads(line) for line in output(*arguments, "--json").splitlines()]


def stats(path: Path) -> dict[str, Any]:
    (found,) = answers("stats", path)
    return dict(found)


def rows(n: int, labels: int = 3, seed: int = 0) -> tuple[NDArray[np.float32], list[str]]:
    """Return rows around a few places, and the places' names."""
    rng = np.random.default_rng(seed)
    which = rng.integers(labels, size=n)
    places = np.random.default_rng(99).normal(size=(labels, DIM)) * 4
    X = (places[which] + rng.normal(size=(n, DIM))).astype(np.float32)
    return X, [f"label-{i}" for i in which]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes rows to a Parquet file."""

    def to_parquet(
        name: str = "rows.parquet",
        n: int = 30,
        *,
        first: int = 0,
        seed: int = 0,
        **columns: list[Any],
    ) -> Path:
        X, y = rows(n, seed=seed)
        ids = [f"sku-{i}" for i in range(first, first + n)]
        table = {"embedding": X.tolist(), "kind": y, "sku": ids, **columns}
        parquet.write_table(pa.table(table), tmp_path / name)
        return tmp_path / name

    return to_parquet


COLUMNS = ("--features", "embedding", "--label", "kind", "--id", "sku")


@pytest.fixture
def shop(tmp_path: Path, write: Write) -> Path:
    """Return a collection of 30 labelled and 10 unlabelled entries."""
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    output("ingest", path, write(), *COLUMNS)
    X, _ = rows(10, seed=1)
    np.savez(tmp_path / "more.npz", X=X, ids=np.arange(10))
    output("ingest", path, tmp_path / "more.npz", "--unlabelled")
    return path


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    np.save(tmp_path / "queries.npy", rows(4, seed=2)[0])
    return tmp_path / "queries.npy"


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that runs what must fail with a code, in one line with a hint."""

    def run(code: int, *arguments: object, says: str = "") -> str:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["everhash", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.run()
        printed = capsys.readouterr()
        assert caught.value.code == code, printed
        # a number that is out of range is its own hint
        hint = "" if re.search("must be|at most", printed.err) else r" \(.+\)"
        assert re.fullmatch(rf"error: .+{hint}\n", printed.err), printed.err
        assert says in printed.err
        return printed.out

    return run


def process(*arguments: object, **more: Any) -> subprocess.Popen[str]:
    """Start a command that listens to Ctrl-C, even where these tests run in the background."""

    def listen() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    return subprocess.Popen(
        [sys.executable, "-m", "everhash", *map(str, arguments)],
        env={**os.environ, **WIDE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listen,  # noqa: PLW1509 - no other thread is about to fork
        **more,
    )


# Each command does what it says


def test_create_makes_an_empty_collection_with_these_options(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    printed = output(
        *("create", path, "--dim", 5, "--bits", 16, "--labels-per-cycle", 3),
        *("--coding", "full", "--no-features", "--seed", 7, "--features", 20),
    )
    assert printed == f"created {path}: 5 features a row, 16 bits a code\n"
    with everhash.open(path) as collection:
        hasher, options = collection.hasher, collection.hasher.get_params()
        assert (hasher.n_features_in_, hasher.bits, options["labels_per_cycle"]) == (5, 16, 3)
        assert (options["random_state"], options["learner"], options["features"]) == (
            7,
            "exact",
            20,
        )
        collection.add(np.ones((2, 5)))
        found = collection.stats()
    assert (found["coding"], found["read_only"]) == ("full", 2)


def test_create_takes_either_learner_and_stats_name_it(tmp_path: Path, write: Write) -> None:
    for learner in ("exact", "sgd"):
        path = tmp_path / f"{learner}.ever"
        output("create", path, "--dim", DIM, "--learner", learner)
        assert re.search(rf"learner +│ +{learner} │", output("stats", path))
        assert "accuracy" not in output("stats", path)  # nothing was learned
        output("ingest", path, write(), *COLUMNS, "--rows", 7)
        with everhash.open(path, readonly=True) as collection:
            assert collection.hasher.get_params()["learner"] == learner
            record = collection.stats()["learned"]
        if learner == "sgd":
            assert record is None
            assert "accuracy" not in output("stats", path)
            continue
        right = f"{100 * record['accuracy']:.1f} %"
        scored = f"on {record['scored_rows']} rows, before they were learned"
        assert re.search(rf"  accuracy +│ +{right} │ {scored} ", output("stats", path))
        assert f"{record['rows']} rows learned" in output("stats", path)


def test_ingest_says_in_one_line_what_it_did(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    printed = output("ingest", path, write(), *COLUMNS, "--rows", 7)
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
        assert [match["id"] for match in answer["matches"]] == expected.ids[row].tolist()
        assert [match["label"] for match in answer["matches"]] == expected.labels[row].tolist()
        distances = [np.float32(match["distance"]) for match in answer["matches"]]
        assert distances == expected.distances[row].tolist()
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


def test_unlabelled_rows_are_welcome_once_asked_for(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    output("ingest", path, write(n=3, kind=["a", None, "b"]), *COLUMNS, "--unlabelled")
    found = stats(path)
    assert (found["labelled"], found["unlabelled"], found["labels"]) == (2, 1, 2)


def test_search_prints_one_line_a_match(shop: Path, queries: Path) -> None:
    heading, *lines = output("search", shop, queries, "-k", 3, "--explain").splitlines()
    assert heading.split() == ["query", "rank", "distance", "label", "id", "why"]
    found = answers("search", shop, queries, "-k", 3)
    expected = [
        [str(answer["query"]), str(rank), f"{match['distance']:.4g}", match["label"], match["id"]]
        for answer in found
        for rank, match in enumerate(answer["matches"], start=1)
    ]
    for line, (*numbers, label, name) in zip(lines, expected, strict=True):
        assert line.split()[:3] == numbers
        words = [label, str(name)] if label else [str(name)]
        assert line.split()[3 : 3 + len(words)] == words
        assert re.search(r"(codeword|own bits), cycle 0: \d+ of 32 bits agree$", line)


def test_search_takes_its_options(shop: Path, queries: Path) -> None:
    first, *more = answers("search", shop, queries, "--limit", 1, "--distance", "hamming", "-k", 4)
    assert more == []
    assert [match["distance"] % 1 for match in first["matches"]] == [0] * 4
    only = answers("search", shop, queries, "--only", "label-1", "--only", "label-2")
    assert {match["label"] for answer in only for match in answer["matches"]} <= {
        "label-1",
        "label-2",
    }
    for answer in answers("search", shop, queries, "--explain"):
        for match in answer["matches"]:
            why = match["why"]
            assert why["compared"] == ("codeword" if match["label"] else "own bits")
            assert why["agree"] + len(why["differ"]) == 32


def test_search_by_entries_is_that_of_the_library(
    shop: Path, queries: Path, refused: Callable[..., str]
) -> None:
    found = answers("search", shop, "--like", "sku-3", "--like", 7, "-k", 4)
    with everhash.open(shop, readonly=True) as library:
        expected = library.search_like(["sku-3", 7], 4)
    assert [[match["id"] for match in answer["matches"]] for answer in found] == (
        expected.ids.tolist()
    )
    assert output("search", shop, "--like", "sku-3", "--only", "label-1", "-k", 1).count("\n") == 2
    refused(2, "search", shop, says="a file of queries or --like")
    refused(2, "search", shop, queries, "--like", "sku-3", says="a file of queries or --like")
    refused(3, "search", shop, "--like", "sku-99", says="sku-99")


def test_search_of_nothing_finds_nothing(tmp_path: Path, queries: Path) -> None:
    path = tmp_path / "empty.ever"
    output("create", path, "--dim", DIM)
    found = answers("search", path, queries)
    assert [answer["matches"] for answer in found] == [[]] * 4
    assert found[0]["novelty"] is None
    output("search", path, queries)


def test_label_and_remove_change_entries(shop: Path) -> None:
    assert output("label", shop, "new", "sku-1", 3, 3) == "2 entries labelled new\n"
    assert output("remove", shop, "sku-2", 4) == "2 entries removed\n"
    with everhash.open(shop, readonly=True) as collection:
        assert [entry.labels for entry in collection.get(["sku-1", 3])] == [("new",), ("new",)]
        assert len(collection) == 38


def test_ids_and_labels_are_texts_before_they_are_numbers(tmp_path: Path, queries: Path) -> None:
    path = tmp_path / "mixed.ever"
    X, _ = rows(6)
    with everhash.create(path, dim=DIM) as collection:
        collection.ingest(X, [7, 8, "8", 7, 7, 2.5], ["1", 1, 2, "3", 3, -4])
    output("label", path, "7", "1", 2)
    output("remove", path, "3")
    output("label", path, "8", "--", "3", "-4")
    with everhash.open(path, readonly=True) as collection:
        labels = {entry.id: entry.labels for entry in collection.entries()}
    assert labels == {"1": (7,), 1: (8,), 2: (7,), 3: ("8",), -4: ("8",)}
    (found,) = answers("search", path, queries, "--limit", 1, "--only", "7")
    assert {match["id"] for match in found["matches"]} == {"1", 2}
    output("search", path, queries, "--only", "2.5")


def test_refresh_says_what_it_would_do_and_then_does_it(shop: Path, write: Write) -> None:
    output("ingest", shop, write("b.parquet", 50, first=100, seed=5), *COLUMNS)
    before = stats(shop)
    assert before["stale_bits"] > 0
    (would,) = answers("refresh", shop, "--dry-run")
    said = output("refresh", shop, "--dry-run")
    assert stats(shop) == before
    (did,) = answers("refresh", shop)
    assert would["bits"] == did["bits"] == 320
    assert would["dry_run"]
    assert not did["dry_run"]
    assert would["bits_flipped"] == did["bits_flipped"]
    percent = f"{100 * would['bits_flipped'] / 320:.1f} %"
    assert said.startswith(
        f"would rewrite {would['bits_flipped']} of 320 bits ({percent}) of 10 entries"
    )
    after = stats(shop)
    assert after["stale_bits"] == 0
    assert after["last_refresh"]["bits_flipped"] == did["bits_flipped"]
    assert output("refresh", shop).startswith("rewrote 0 of 320 bits (0.0 %)")


def test_refresh_says_why_there_is_nothing_to_do(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "bare.ever"
    output("create", path, "--dim", DIM, "--no-features")
    assert output("refresh", path) == "nothing to refresh: no entry is without a label\n"
    output("ingest", path, write(n=2, kind=[None, "a"]), *COLUMNS, "--unlabelled")
    assert "keeps no features" in output("refresh", path)


def test_stats_are_the_librarys_with_bytes_an_entry(shop: Path) -> None:
    found = stats(shop)
    with everhash.open(shop, readonly=True) as collection:
        expected = collection.stats()
    assert found == {**expected, "bytes_per_entry": round(expected["bytes"] / 40, 1)}
    printed = output("stats", shop)
    table = [
        [c.strip() for c in line.strip("│").split("│")]
        for line in printed.splitlines()
        if "│" in line
    ]
    values = {row[0]: row[1] for row in table}
    assert values["entries"] == "40"
    assert values["labelled"] == "30"
    assert values["unlabelled"] == "10"
    assert values["labels"] == "3"
    assert values["width"] == "32 bits"
    assert values["last refresh"] == "never"
    assert values["commits"] == "2"
    assert values["coding"] == "home"
    output("refresh", shop)
    assert re.search(
        r"last refresh +│ \d{4}-\d\d-\d\d \d\d:\d\d │ UTC; .* bits rewritten", output("stats", shop)
    )


def test_stats_of_an_empty_collection(tmp_path: Path) -> None:
    path = tmp_path / "a [red]name.ever"
    output("create", path, "--dim", DIM)
    assert stats(path)["bytes_per_entry"] is None
    assert "a [red]name.ever" in output("stats", path)


def test_verify_finds_a_sound_file_sound(shop: Path) -> None:
    assert re.fullmatch(r"ok: 40 entries in \d+ parts\n", output("verify", shop))
    (found,) = answers("verify", shop)
    assert found["ok"]
    assert found["problems"] == []
    assert found["entries"] == 40


def test_a_snapshot_is_the_collection_and_can_be_restored(
    shop: Path, tmp_path: Path, queries: Path
) -> None:
    copy, again = tmp_path / "copy.ever", tmp_path / "again.ever"
    expected = answers("search", shop, queries)
    assert output("snapshot", shop, copy).startswith(f"snapshot {copy}: 40 entries, ")
    output("remove", shop, "sku-1")
    assert output("restore", copy, again).startswith(f"restored {again}: 40 entries, ")
    assert answers("search", again, queries) == expected
    assert stats(shop)["entries"] == 39


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
    import csv

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


def test_reading_commands_work_while_another_process_writes(
    shop: Path, tmp_path: Path, queries: Path
) -> None:
    with everhash.open(shop):
        stats(shop)
        answers("search", shop, queries)
        answers("verify", shop)
        answers("refresh", shop, "--dry-run")
        output("snapshot", shop, tmp_path / "copy.ever")
        output("export", shop, tmp_path / "out.jsonl")


# Each command refuses what it cannot use, and then has changed nothing

READING = ("search", "stats", "verify", "snapshot", "export", "refresh --dry-run")
WRITING = ("ingest", "label", "remove", "refresh")


@pytest.fixture
def call(tmp_path: Path, write: Write, queries: Path) -> Callable[[str, Path], list[object]]:
    """Return a function that gives a command the other arguments it needs."""
    rest: dict[str, tuple[object, ...]] = {
        "search": (queries,),
        "snapshot": (tmp_path / "new.ever",),
        "export": (tmp_path / "new.jsonl",),
        "ingest": (write("call.parquet", first=500), *COLUMNS),
        "label": ("new", "sku-1"),
        "remove": ("sku-1",),
    }

    def arguments(command: str, path: Path) -> list[object]:
        name, *options = command.split()
        return [name, path, *rest.get(name, ()), *options]

    return arguments


@pytest.mark.parametrize("command", READING + WRITING)
def test_no_file_a_folder_and_a_foreign_file_are_refused(
    command: str, tmp_path: Path, call: Any, refused: Any
) -> None:
    refused(6, *call(command, tmp_path / "none.ever"), says="no collection at")
    refused(7, *call(command, tmp_path), says="is a folder")
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()
    text = tmp_path / "text.ever"
    text.write_text("no collection at all, but a text that is long enough" * 100)
    for path in (foreign, text):
        before = path.read_bytes()
        printed = refused(
            5, *call(command, path), says="" if command == "verify" else "is no everhash collection"
        )
        assert command != "verify" or "is no everhash collection" in printed
        assert path.read_bytes() == before
    assert not (tmp_path / "new.ever").exists()
    assert not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize("command", WRITING)
def test_a_collection_another_process_writes_is_refused(
    command: str, shop: Path, call: Any, refused: Any
) -> None:
    code = (
        "import everhash, sys; c = everhash.open(sys.argv[1]); print(len(c), flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(shop)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    with other:
        assert other.stdout.readline() == "40\n"
        refused(8, *call(command, shop), says=f"written by process {other.pid}")
        other.communicate("\n")
    output(*call(command, shop))


def test_a_damaged_file_is_refused_and_verify_names_the_damage(
    shop: Path, call: Any, refused: Any
) -> None:
    with sqlite3.connect(shop) as connection:
        connection.execute("UPDATE part SET data = zeroblob(length(data)) WHERE kind = 'codes'")
    connection.close()
    before = shop.read_bytes()
    printed = refused(5, "verify", shop, says="1 problem found (make it anew from a snapshot")
    assert printed.startswith(f"damaged: {shop}: codes 30 is damaged")
    (found,) = [json.loads(line) for line in refused(5, "verify", shop, "--json").splitlines()]
    assert not found["ok"]
    assert found["problems"] == [f"{shop}: codes 30 is damaged"]
    for command in ("stats", "search", *WRITING):
        refused(5, *call(command, shop), says="is damaged (restore it from a snapshot")
    assert shop.read_bytes() == before


def test_a_truncated_file_is_refused(shop: Path, refused: Any) -> None:
    shop.write_bytes(shop.read_bytes()[: shop.stat().st_size // 2])
    refused(5, "stats", shop)
    assert refused(5, "verify", shop)


def test_nothing_is_ever_overwritten(shop: Path, tmp_path: Path, refused: Any) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("precious")
    before = shop.read_bytes()
    refused(7, "create", shop, "--dim", 3, says="is there already")
    refused(7, "create", tmp_path, "--dim", 3, says="is there already")
    refused(7, "snapshot", shop, other, says="is there already")
    refused(7, "restore", shop, other, says="is there already")
    refused(7, "export", shop, other, says="is there already")
    assert other.read_text() == "precious"
    assert shop.read_bytes() == before


def test_a_folder_that_is_not_there_is_refused(shop: Path, tmp_path: Path, refused: Any) -> None:
    away = tmp_path / "no" / "such"
    refused(7, "create", away / "a.ever", "--dim", 3, says="cannot be written")
    refused(7, "snapshot", shop, away / "a.ever")
    refused(7, "restore", shop, away / "a.ever")
    refused(7, "export", shop, away / "a.csv", says="cannot be written")
    refused(7, "export", shop, away / "a.parquet", says="cannot be written")
    refused(7, "export", shop, away / "a.safetensors", says="cannot be written")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--dim", "0"], "--dim must be a whole number of at least 1, got 0"),
        (["--dim", "20000"], "--dim must be at most 16384"),
        (["--dim", "3", "--bits", "0"], "bits must be a whole number"),
        (["--dim", "3", "--labels-per-cycle", "0"], "labels_per_cycle must be"),
        (["--dim", "3", "--seed", "-1"], "--seed must be"),
        (["--dim", "3", "--features", "-1"], "features must be a whole number of at least 0"),
        (["--dim", "3", "--features", "5", "--learner", "sgd"], "of the exact learner, not of sgd"),
    ],
)
def test_create_refuses_what_no_collection_can_be(
    options: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["everhash", "create", str(tmp_path / "a.ever"), *options])
    with pytest.raises(SystemExit) as caught:
        cli.run()
    said = capsys.readouterr().err
    assert (caught.value.code, said.count("\n")) == (2, 1)
    assert said.startswith("error: ")
    assert says in said
    assert list(tmp_path.iterdir()) == []


def _ragged(n: int) -> list[list[float]]:
    return [[1.0] * DIM] * (n - 1) + [[1.0] * (DIM - 1)]


def _with_nan(n: int) -> list[list[float]]:
    return [[1.0] * DIM] * (n - 1) + [[float("nan")] * DIM]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"embedding": _ragged(30)}, "row 29: expected 8 features"),
        ({"embedding": _with_nan(30)}, "row 29 holds NaN, infinity"),
        (
            {"embedding": [[1.0] * (DIM + 1)] * 30},
            "X has 9 features, but the collection is expecting 8",
        ),
        ({"embedding": ["words"] * 30}, "expected numbers"),
        ({"kind": ["a"] * 29 + [None]}, "row 29 has no label (pass --unlabelled"),
        ({"kind": [1.0] * 29 + [float("nan")]}, "rows from 28 on: Input y contains NaN"),
        ({"sku": ["a", "b"] * 15}, "id 'a' stands twice"),
        ({"sku": [*map(str, range(29)), "sku-3"]}, "id 'sku-3' is taken"),
        ({"sku": [*map(str, range(29)), "long" * 17]}, "cannot be an id"),
        ({"sku": [*map(str, range(29)), ""]}, "cannot be an id"),
        ({"sku": [*map(str, range(29)), None]}, "got null"),
        ({"sku": [0.5] * 30}, "expected ids"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_one_bad_row_and_nothing_of_any_file_is_applied(
    columns: dict[str, list[Any]], says: str, shop: Path, write: Write, refused: Any
) -> None:
    before = stats(shop)
    good = write("good.parquet", first=1000)
    bad = write("bad.parquet", first=2000, **columns)
    refused(2, "ingest", shop, good, bad, *COLUMNS, "--rows", 4, says=says)
    assert stats(shop) == before


@pytest.mark.parametrize("option", ["--features", "--label", "--id"])
def test_a_column_that_is_not_there_is_refused(
    option: str, shop: Path, write: Write, refused: Any
) -> None:
    before = stats(shop)
    refused(
        2, "ingest", shop, write(first=99), *COLUMNS, option, "colour", says="no column 'colour'"
    )
    assert stats(shop) == before


def test_what_is_no_source_is_refused(shop: Path, tmp_path: Path, refused: Any) -> None:
    before = stats(shop)
    (tmp_path / "rows.txt").write_text("1 2 3")
    (tmp_path / "rows.parquet").write_text("no Parquet")
    refused(6, "ingest", shop, tmp_path / "none.npy", says="none.npy")
    refused(2, "ingest", shop, tmp_path)
    refused(2, "ingest", shop, tmp_path / "rows.txt")
    refused(2, "ingest", shop, tmp_path / "rows.parquet")
    refused(2, "search", shop, tmp_path / "rows.txt")
    refused(6, "search", shop, tmp_path / "none.npy")
    assert stats(shop) == before


def test_rows_without_any_labels_have_to_be_asked_for(
    shop: Path, queries: Path, refused: Any
) -> None:
    before = stats(shop)
    refused(2, "ingest", shop, queries, says="name their column with --label, or pass --unlabelled")
    assert stats(shop) == before
    output("ingest", shop, queries, "--unlabelled")
    assert stats(shop)["unlabelled"] == 14


def test_files_with_ids_and_files_without_do_not_go_together(
    shop: Path, tmp_path: Path, queries: Path, refused: Any
) -> None:
    before = stats(shop)
    np.savez(tmp_path / "ids.npz", X=rows(3)[0], ids=np.arange(20, 23))
    refused(
        2,
        "ingest",
        shop,
        queries,
        tmp_path / "ids.npz",
        "--unlabelled",
        says="has none (ingest them one",
    )
    assert stats(shop) == before


def test_options_that_make_no_sense_are_refused(
    shop: Path, write: Write, queries: Path, tmp_path: Path, refused: Any
) -> None:
    before = stats(shop)
    table = write(first=99)
    refused(2, "ingest", shop, table, "--label", "kind", "--resume", says="--resume needs --id")
    refused(2, "ingest", shop, table, *COLUMNS, "--rows", 0, says="--rows must be")
    refused(2, "ingest", shop, table, *COLUMNS, "--durability", "never", says="durability")
    refused(2, "search", shop, queries, "--limit", 0, says="--limit must be")
    refused(2, "search", shop, queries, "-k", 0, says="k must be")
    refused(2, "search", shop, queries, "-k", 1001, says="at most 1000")
    refused(2, "export", shop, tmp_path / "out.xls", says="use one of .parquet, .csv, .jsonl")
    assert stats(shop) == before


def test_queries_of_another_width_are_refused(shop: Path, tmp_path: Path, refused: Any) -> None:
    np.save(tmp_path / "wide.npy", np.ones((2, DIM + 1)))
    refused(2, "search", shop, tmp_path / "wide.npy", says="the collection is expecting 8")


def test_unknown_ids_and_labels_are_refused(shop: Path, queries: Path, refused: Any) -> None:
    before = stats(shop)
    refused(3, "label", shop, "new", "sku-1", "nobody", says="no entry has id 'nobody'")
    refused(3, "remove", shop, "sku-1", "77", says="no entry has id '77'")
    refused(
        3, "search", shop, queries, "--only", "label-9", says="label 'label-9' has not been seen"
    )
    refused(2, "remove", shop, "x" * 65, says="cannot be an id")
    output("remove", shop, "sku-5")
    refused(3, "remove", shop, "sku-5", says="no entry has id 'sku-5'")
    assert stats(shop)["entries"] == before["entries"] - 1


@pytest.mark.parametrize("command", READING)
def test_rights_to_a_file_are_for_the_command_to_look_at(
    command: str, shop: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typer would refuse it beforehand, in a box of several lines without a hint."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    output(*call(command, shop))


@pytest.mark.parametrize("command", WRITING)
def test_a_file_without_the_right_to_write_is_refused_in_one_line(
    command: str, shop: Path, call: Any, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    refused(7, *call(command, shop), says="cannot be written")


def test_an_os_error_about_a_path_is_one_line(
    refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "a\nb.ever")

    monkeypatch.setattr(everhash.collection.verification.Store, "open", fail)
    refused(7, "verify", "shop.ever", says=r"a\nb.ever: Permission denied")


def test_a_warning_is_one_line(
    tmp_path: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "narrow.ever"
    output("create", path, "--dim", DIM, "--bits", 1, "--labels-per-cycle", 50)
    monkeypatch.setattr(sys, "argv", ["everhash", "ingest", str(path), str(write()), *COLUMNS])
    warnings.simplefilter("always", CodebookWarning)  # pytest sets filters back after each test
    with pytest.raises(SystemExit) as caught:
        cli.run()
    printed = capsys.readouterr()
    assert caught.value.code == 0
    assert re.fullmatch("warning: .+\n", printed.err)
    assert "30 entries" in printed.out


# Interruptions

LONG = 1000
SLOW = ("--rows", 2)


def wait_for_entries(path: Path, n: int, running: subprocess.Popen[str]) -> None:
    """Wait until another process has committed n entries."""
    deadline = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < deadline:
        with everhash.open(path, readonly=True) as collection:
            if len(collection) >= n:
                return
        time.sleep(0.005)
    raise AssertionError(f"ended too soon: {running.communicate()}")


@pytest.fixture
def long(tmp_path: Path, write: Write) -> Path:
    """Return a file of many rows, some of them without a label."""
    _, y = rows(LONG, seed=6)
    kinds = [None if i % 3 == 0 else label for i, label in enumerate(y)]
    return write("long.parquet", LONG, seed=6, kind=kinds)


def test_sigkill_in_mid_ingest_and_resume_equal_one_run(
    tmp_path: Path, long: Path, queries: Path
) -> None:
    whole, killed = tmp_path / "whole.ever", tmp_path / "killed.ever"
    arguments = (long, *COLUMNS, "--unlabelled", *SLOW)
    for path in (whole, killed):
        output("create", path, "--dim", DIM)
    with process("ingest", killed, *arguments) as running:
        wait_for_entries(killed, 20, running)
        running.kill()
    assert running.returncode == -signal.SIGKILL
    safe = stats(killed)["entries"]
    assert 20 <= safe < LONG
    assert safe % 2 == 0
    assert f"{safe:,} there already: {LONG:,} entries" in output(
        "ingest", killed, *arguments, "--resume"
    )
    output("ingest", whole, *arguments)

    expected, found = stats(whole), stats(killed)
    for name in ("path", "bytes", "bytes_per_entry"):
        del expected[name], found[name]
    assert found == expected
    assert answers("search", killed, queries, "-k", 50) == answers(
        "search", whole, queries, "-k", 50
    )
    assert output("verify", killed).startswith(f"ok: {LONG:,} entries")
    assert output("ingest", killed, *arguments, "--resume").startswith("0 rows in ")
    assert stats(killed)["entries"] == LONG


@pytest.mark.parametrize("with_ids", [True, False])
def test_ctrl_c_says_what_is_safe_and_how_to_go_on(
    tmp_path: Path, long: Path, with_ids: bool
) -> None:
    path = tmp_path / "shop.ever"
    output("create", path, "--dim", DIM)
    arguments = (long, *(COLUMNS if with_ids else COLUMNS[:4]), "--unlabelled", *SLOW)
    with process("ingest", path, *arguments) as running:
        wait_for_entries(path, 20, running)
        running.send_signal(signal.SIGINT)
        printed, said = running.communicate()
    safe = stats(path)["entries"]
    assert running.returncode == 130
    assert printed == ""
    how = (
        "repeat the command with --resume"
        if with_ids
        else f"the rest starts at row {safe} of {long}"
    )
    assert said.startswith(f"interrupted: {safe:,} of {LONG:,} rows are safe in {path} ({how}")
    assert said.count("\n") == 1
    assert output("verify", path).startswith(f"ok: {safe:,} entries")


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


def test_ctrl_c_in_any_command_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shop: Path
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(everhash.Collection, "stats", interrupt)
    monkeypatch.setattr(sys, "argv", ["everhash", "stats", str(shop)])
    with pytest.raises(SystemExit) as caught:
        cli.run()
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_closed_pipe_is_quiet(shop: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    np.save(tmp_path / "many.npy", rows(3000)[0])
    with process("search", shop, tmp_path / "many.npy", *options) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        said = running.stderr.read()
    assert said == ""
    assert running.returncode == 1


def test_a_pipe_closed_before_the_first_line_is_quiet(shop: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = subprocess.run(
        [sys.executable, "-m", "everhash", "stats", str(shop), "--json"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)
    assert (ran.returncode, ran.stderr) == (1, "")


# What a terminal shows


def test_progress_goes_to_a_terminal_on_stderr_and_nowhere_else(
    tmp_path: Path, write: Write
) -> None:
    """Run `ingest` with a pseudo-terminal for stderr and a pipe for stdout."""
    path, table = tmp_path / "shop.ever", write()
    output("create", path, "--dim", DIM)
    ours, theirs = pty.openpty()
    ran = subprocess.Popen(
        [sys.executable, "-m", "everhash", "ingest", str(path), str(table), *COLUMNS],
        env={**os.environ, "COLUMNS": "200", "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass  # how Linux says that the other side is closed
    os.close(ours)
    printed, _ = ran.communicate()
    assert ran.returncode == 0
    assert printed.startswith("30 rows in ")
    assert printed.count("\n") == 1
    for word in ("checking", "ingesting", "30 of 30", "3 labels, 1 cycle, 32 bits wide"):
        assert word in seen.decode()


def test_hostile_names_cannot_move_the_cursor(shop: Path, queries: Path) -> None:
    label = "\x1b[2J[bold]\n"
    output("label", shop, label, *(f"sku-{i}" for i in range(30)), *range(10))
    printed = output("search", shop, queries, "-k", 3)
    assert "\x1b" not in printed
    assert shown(label) == r"\x1b[2J[bold]\n"
    assert shown(label) in printed


def test_completion_knows_commands_and_leaves_paths_to_the_shell(tmp_path: Path) -> None:
    names = {parameter.name for parameter in get_command(cli.app).params}
    assert {"install_completion", "show_completion"} <= names

    def complete(words: str) -> str:
        variables = {"_EVERHASH_COMPLETE": "complete_bash", "COMP_WORDS": words}
        ran = subprocess.run(
            [Path(sys.executable).with_name("everhash")],
            env={**os.environ, **variables, "COMP_CWORD": str(len(words.split()) - 1)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stderr == ""
        return ran.stdout

    assert complete("everhash sn").split() == ["snapshot"]
    assert complete("everhash create --cod").split() == ["--coding"]
