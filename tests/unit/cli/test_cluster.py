"""`everhash cluster` on a Ray of one node: every command, as text and as JSON, and its errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import everhash
from everhash import cli
from everhash.cluster import ClusterCollection
from everhash.matches import Matches
from tests.cluster.on_ray import need_ray
from tests.ray_head import ray_head
from tests.unit.cli.commands import (
    COLUMNS,
    DIM,
    WIDE,
    Ended,
    answers,
    cells,
    output,
    rows,
    write_table,
)


@pytest.fixture(scope="module")
def ray_env() -> Iterator[dict[str, str]]:
    with ray_head() as environment:
        yield environment


@pytest.fixture(scope="module")
def shop(ray_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the storage of a cluster of 60 entries, on two shards with one copy each."""
    folder = tmp_path_factory.mktemp("cluster")
    output("cluster", "create", folder / "shop", "--dim", DIM, "--shards", 2)
    for part in range(2):
        write_table(folder / f"part-{part}.parquet", first=30 * part, seed=part)
    ingested(folder / "shop", folder, *COLUMNS)
    return folder / "shop"


def ingested(*arguments: object) -> str:
    """Ingest, with all columns named so that nothing is said of them; return the summary."""
    return output("cluster", "ingest", *arguments)


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    np.save(tmp_path / "queries.npy", rows(3, seed=2)[0])
    return tmp_path / "queries.npy"


def test_a_cluster_is_created(ray_env: dict[str, str], tmp_path: Path) -> None:
    storage = tmp_path / "new"
    options = ("--dim", 4, "--bits", 8, "--shards", 1, "--replicas", 2, "--labels-per-cycle", 3)
    (made,) = answers("cluster", "create", storage, *options)
    assert (made["dim"], made["bits"], made["shards"], made["replicas"]) == (4, 8, 1, 2)
    stopped = output("cluster", "stop", storage)
    assert stopped == f"stopped {storage}: 3 processes ended\n"
    assert (storage / "lead.ever").exists()


def test_files_of_a_folder_are_ingested_as_one_file_is(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.ever"
    output("ingest", path, shop.parent, "--create", *COLUMNS)
    with everhash.open(path) as one:
        expected = sorted(entry.id for entry in one.entries())
    found = answers("entries", shop, "--limit", 100)
    assert sorted(entry["id"] for entry in found) == expected
    (again,) = answers("cluster", "ingest", shop, shop.parent, *COLUMNS, "--resume")
    assert (again["rows"], again["skipped"], again["entries"]) == (0, 60, 60)


def test_search_is_that_of_a_collection(shop: Path, queries: Path) -> None:
    printed = output("cluster", "search", shop, queries, "-k", 2)
    assert printed.split()[:6] == ["query", "rank", "score", "likeness", "label", "id"]
    assert printed == output("search", shop, queries, "-k", 2)
    found = answers("cluster", "search", shop, "--like", "sku-3", "-k", 1)
    assert found[0]["found"][0]["id"] == "sku-3"
    assert "missing" not in found[0]


def test_stats_show_each_shard(shop: Path) -> None:
    table = {row[0]: row[1:] for row in cells(output("cluster", "stats", shop))}
    assert table["shards"] == ["2", "1 copy of each; no entries move"]
    assert int(table["shard 0"][0]) + int(table["shard 1"][0]) == int(table["entries"][0]) == 60
    (found,) = answers("cluster", "stats", shop)
    assert [(one["shard"], one["copy"], one["behind"]) for one in found["copies"]] == [
        (0, 0, 0),
        (1, 0, 0),
    ]


@pytest.mark.slow
def test_a_cluster_grows_and_starts_again_after_a_stop(shop: Path, queries: Path) -> None:
    before = answers("cluster", "search", shop, queries)
    moved = output("cluster", "rebalance", shop, "--shards", 3)
    assert re.fullmatch(r"[\d]+ entries moved: 60 entries on 3 shards\n", moved)
    assert answers("cluster", "rebalance", shop) == [{"moved": 0, "shards": 3, "entries": 60}]
    assert answers("cluster", "stop", shop) == [{"path": str(shop), "ended": 4}]
    assert answers("cluster", "search", shop, queries) == before


def test_other_commands_take_a_cluster_too(shop: Path) -> None:
    assert output("label", shop, "label-1", "sku-1") == "1 entry labelled label-1\n"
    (entry,) = answers("get", shop, "sku-1")
    assert entry["labels"] == ["label-1"]


def test_what_cannot_be_is_refused_in_one_line(
    shop: Path, tmp_path: Path, refused: Callable[..., Ended]
) -> None:
    refused(7, "cluster", "search", tmp_path, "--like", 1, says="there is no cluster in")
    refused(7, "cluster", "create", shop, "--dim", 3)
    refused(2, "cluster", "create", tmp_path / "a", "--dim", 3, "--shards", 0)
    refused(2, "cluster", "rebalance", shop, "--shards", 1, says="shards are only added")
    refused(2, "export", shop, tmp_path / "a.csv", says="not the storage of a cluster")
    refused(2, "cluster", "ingest", shop, shop.parent, *COLUMNS, says="--resume")
    wide = tmp_path / "wide"
    wide.mkdir()
    for part in range(2):
        write_table(wide / f"{part}.parquet", embedding=[[1.0, 2.0]] * 30, first=100 + 30 * part)
    refused(2, "cluster", "ingest", shop, wide, *COLUMNS, says="taken as features")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(6, "cluster", "ingest", shop, empty, says="no file matches")


def in_process_of_its_own(environment: dict[str, str], *arguments: object) -> Ended:
    """Run a command in another process, which connects to Ray by itself."""
    ended = subprocess.run(
        [sys.executable, "-m", "everhash", *map(str, arguments)],
        env={**os.environ, **WIDE, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def test_nothing_of_ray_is_printed(shop: Path, ray_env: dict[str, str]) -> None:
    code, out, err = in_process_of_its_own(ray_env, "cluster", "stats", shop, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["entries"] == 60


def test_no_ray_at_an_address_is_one_line(shop: Path, ray_env: dict[str, str]) -> None:
    away = {**ray_env, "EVERHASH_RAY": "127.0.0.1:9"}
    code, out, err = in_process_of_its_own(away, "cluster", "stats", shop)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: no Ray cluster at '127.0.0.1:9': .* \(start one .*\)\n", err)


@pytest.mark.slow
def test_a_file_becomes_a_cluster_and_a_cluster_a_file(
    shop: Path, tmp_path: Path, queries: Path
) -> None:
    copy, storage = tmp_path / "copy.ever", tmp_path / "again"
    assert output("snapshot", shop, copy).startswith(f"snapshot {copy}: 60 entries")
    (made,) = answers("cluster", "import", storage, copy, "--shards", 1)
    assert (made["entries"], made["shards"], made["replicas"]) == (60, 1, 1)
    expected = answers("search", copy, queries)
    assert answers("cluster", "search", storage, queries) == expected
    output("cluster", "stop", storage)


def test_a_search_without_a_shard_warns(
    shop: Path, queries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ClusterCollection.search

    def without_one(*arguments: Any, **options: Any) -> Matches:
        return replace(whole(*arguments, **options), missing=[1])

    monkeypatch.setattr(ClusterCollection, "search", without_one)
    asked = ["cluster", "search", str(shop), str(queries), "--partial", "--json"]
    told = CliRunner().invoke(cli.app, asked, env=WIDE)
    assert told.stderr == "warning: shard 1 did not answer: this is a part of what there is\n"
    assert [json.loads(line)["missing"] for line in told.stdout.splitlines()] == [[1]] * 3


@pytest.mark.slow
def test_ray_for_one_command_only(tmp_path: Path) -> None:
    need_ray()
    there: dict[str, Any] = {"EVERHASH_RAY": "local"}
    storage = tmp_path / "own"
    made = in_process_of_its_own(there, "cluster", "create", storage, "--dim", 3, "--shards", 1)
    assert (made.code, made.err) == (0, "")
    assert made.out.startswith(f"created {storage}: 3 features a row, 32 bits a code; 1 shard")
    code, out, err = in_process_of_its_own(there, "cluster", "stats", storage, "--json")
    assert (code, json.loads(out)["dim"], err) == (0, 3, "")
