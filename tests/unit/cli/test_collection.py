"""`everhash create`, `stats`, `verify`, `snapshot` and `restore`."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash.store.schema import VERSION
from tests.unit.cli.commands import COLUMNS, DIM, Write, answers, cells, output, stats

COMPAT = Path(__file__).resolve().parents[2] / "compat"


def test_create_makes_an_empty_collection_with_these_options(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    printed = output(
        *("create", path, "--dim", 5, "--bits", 16, "--labels-per-cycle", 3),
        *("--coding", "full", "--keep-features", "none", "--random-state", 7, "--features", 20),
        "--no-likeness",
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
    assert (found["coding"], found["unrefreshable"]) == ("full", 2)
    assert (found["keep_features"], found["likeness"]) == ("none", False)


def test_create_takes_either_learner_and_stats_name_it(tmp_path: Path, write: Write) -> None:
    for learner in ("exact", "sgd"):
        path = tmp_path / f"{learner}.ever"
        output("create", path, "--dim", DIM, "--learner", learner)
        assert re.search(rf"learner +│ +{learner} │", output("stats", path))
        assert "accuracy" not in output("stats", path)  # nothing was learned
        output("ingest", path, write(), *COLUMNS, "--batch-rows", 7)
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
        now = f"{100 * record['accuracy_now']:.1f} %"
        assert re.search(rf"  now +│ +{now} │ on the latest of them, ", output("stats", path))
        assert f"{record['rows']} rows learned" in output("stats", path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--dim", "0"], "--dim must be a whole number of at least 1, got 0"),
        (["--dim", "20000"], "--dim must be at most 16384"),
        (["--dim", "3", "--bits", "0"], "--bits must be a whole number"),
        (["--dim", "3", "--labels-per-cycle", "0"], "--labels-per-cycle must be"),
        (["--dim", "3", "--random-state", "-1"], "--random-state must be"),
        (["--dim", "3", "--features", "-1"], "--features must be a whole number of at least 0"),
        (["--dim", "3", "--features", "5", "--learner", "sgd"], "of the exact learner, not of sgd"),
    ],
)
def test_create_refuses_what_no_collection_can_be(
    options: list[str], says: str, tmp_path: Path, refused: Any
) -> None:
    refused(2, "create", tmp_path / "a.ever", *options, says=says, hint=False)
    assert list(tmp_path.iterdir()) == []


def test_stats_are_the_librarys_with_bytes_an_entry(shop: Path) -> None:
    found = stats(shop)
    with everhash.open(shop, readonly=True) as collection:
        expected = collection.stats()
    assert found == {**expected, "bytes_per_entry": round(expected["bytes"] / 40, 1)}
    values = {row[0]: row[1] for row in cells(output("stats", shop))}
    assert (
        values
        | {
            **{
                "entries": "40",
                "labelled": "30",
                "unlabelled": "10",
                "labels": "3",
                "commits": "2",
            },
            **{"width": "32 bits", "coding": "home", "last refresh": "never"},
            **{"features": "all", "likeness": "on"},
        }
        == values
    )
    output("refresh", shop)
    assert re.search(
        r"last refresh +│ \d{4}-\d\d-\d\d \d\d:\d\d │ UTC; .* bits rewritten", output("stats", shop)
    )


def test_stats_of_an_empty_collection(tmp_path: Path) -> None:
    path = tmp_path / "a [red]name.ever"
    output("create", path, "--dim", DIM)
    assert stats(path)["bytes_per_entry"] is None
    assert "a [red]name.ever" in output("stats", path)


@pytest.mark.parametrize("name", ["v1-full", "v2-exact", "v2-home"])
def test_upgrade_brings_an_old_file_to_the_newest_version_and_changes_nothing_else(
    name: str, tmp_path: Path
) -> None:
    path = Path(shutil.copy(COMPAT / f"{name}.ever", tmp_path))
    before = stats(path)
    assert output("upgrade", path) == f"{path}: version {name[1]} -> {VERSION}\n"
    assert output("upgrade", path) == f"{path}: version {VERSION}, up to date\n"
    changing = {"commit", "bytes", "bytes_per_entry"}
    after = stats(path)
    assert after["commit"] == before["commit"] + 1
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }
    assert everhash.verify(path).problems == ()


def test_verify_finds_a_sound_file_sound(shop: Path) -> None:
    assert re.fullmatch(
        r"ok: 40 entries in \d+ parts, read by SQLite [\d.]+.*\n", output("verify", shop)
    )
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


def test_a_damaged_file_is_refused_and_verify_names_the_damage(
    shop: Path, call: Any, refused: Any
) -> None:
    with sqlite3.connect(shop) as connection:
        connection.execute("UPDATE part SET data = zeroblob(length(data)) WHERE kind = 'codes'")
    connection.close()
    before = shop.read_bytes()
    printed = refused(5, "verify", shop, says="1 problem found (restore it from a snapshot").out
    assert printed.startswith(f"damaged: {shop}: codes 30 is damaged")
    (found,) = [json.loads(line) for line in refused(5, "verify", shop, "--json").out.splitlines()]
    assert not found["ok"]
    assert found["problems"] == [f"{shop}: codes 30 is damaged"]
    for command in ("stats", "search", "ingest", "label", "remove", "refresh", "upgrade"):
        refused(5, *call(command, shop), says="is damaged (restore it from a snapshot")
    assert shop.read_bytes() == before


def test_a_truncated_file_is_refused(shop: Path, refused: Any) -> None:
    shop.write_bytes(shop.read_bytes()[: shop.stat().st_size // 2])
    refused(5, "stats", shop)
    assert refused(5, "verify", shop).out
