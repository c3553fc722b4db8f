"""Commands on a service's address: the same answers as on its file, or a plain refusal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash.cli.arguments import KEY
from everhash.serve.keys import add_key, make_key, read_keys
from tests.unit.cli.commands import COLUMNS, Write, answers, output
from tests.unit.serve.serving import serving

READING = {
    "labels": (),
    "get": ("sku-1", 3, "--code"),
    "entries": ("--start", 25, "--limit", 9, "--code"),
    "entries by label": ("--label", "label-1"),
    "entries by text": ("--text", "sku-2"),
    "entries unlabelled": ("--unlabelled",),
    "search": ("{queries}", "-k", 3, "--explain"),
    "search by likeness": ("{queries}", "--by", "likeness", "--exact"),
    "search by recall": ("{queries}", "--by", "likeness", "--recall", "0.9"),
    "search filtered": ("{queries}", "--labels", "label-1", "--ids", "sku-3", "--ids", 4),
    "search within": ("{queries}", "-r", 9, "--unlabelled"),
    "search like": ("--like", "sku-3", "--like", 3),
    "predict": ("{queries}",),
}
WRITING = {
    "label": ("label-1", 3, 4),
    "label new": ("new", "sku-1", "--new"),
    "unlabel": ("sku-2", 3),
    "rename-label": ("new", "newer"),
    "merge-labels": ("newer", "label-2"),
    "drop-label": ("label-0",),
    "remove": ("sku-5", 7),
}
FILES_ONLY = {"verify": (), "upgrade": (), "serve": (), "restore": ("new.ever",)}


@pytest.fixture
def address(shop: Path, tmp_path: Path) -> Iterator[str]:
    """Return the address of a service of a copy of the shop."""
    copy = shutil.copy(shop, tmp_path / "served.ever")
    with serving(partial(everhash.open, copy)) as served:
        yield served.address


def call(name: str, target: object, rest: tuple[object, ...], queries: Path) -> list[object]:
    others = [queries if argument == "{queries}" else argument for argument in rest]
    return [name.partition(" ")[0], target, *others]


def test_a_service_answers_as_its_file_does(shop: Path, address: str, queries: Path) -> None:
    for name, rest in READING.items():
        here, there = (call(name, target, rest, queries) for target in (shop, address))
        assert answers(*there) == answers(*here), name
        assert output(*there) == output(*here), name


@pytest.mark.slow
def test_a_service_is_changed_as_its_file_is(shop: Path, address: str, queries: Path) -> None:
    for name, rest in WRITING.items():
        here, there = (call(name, target, rest, queries) for target in (shop, address))
        assert answers(*there) == answers(*here), name
        assert answers("entries", address) == answers("entries", shop), name
    (here,), (there,) = (answers("refresh", target) for target in (shop, address))
    assert {**there, "seconds": 0} == {**here, "seconds": 0}
    assert output("refresh", address, "--dry-run") == output("refresh", shop, "--dry-run")


def test_rows_are_ingested_by_a_service_as_into_its_file(
    shop: Path, address: str, write: Write
) -> None:
    table = write("more.parquet", 50, first=100, text=[f"row {i}" for i in range(50)])
    options = (*COLUMNS, "--payload", "text", "--batch-rows", 20)
    said = [answers("ingest", target, table, *options) for target in (shop, address)]
    assert [one.pop("seconds") >= 0 for (one,) in said] == [True, True]
    assert said[0] == said[1]
    assert answers("entries", address) == answers("entries", shop)
    (again,) = answers("ingest", address, table, *options, "--resume")
    assert (again["rows"], again["skipped"]) == (0, 50)


def test_a_service_has_its_collection_already(
    address: str, write: Write, refused: Callable[..., Any]
) -> None:
    says = "a service has its collection already"
    refused(2, "ingest", address, write(first=100), *COLUMNS, "--create", says=says)
    wide = write("wide.parquet", 1, first=100, embedding=[[1.0] * 9])
    refused(2, "ingest", address, wide, *COLUMNS, says=f"but {address} has 8 a row")
    taken = write("taken.parquet", 1, first=3)
    refused(2, "ingest", address, taken, *COLUMNS, says="id 'sku-3' is taken")


def test_stats_of_a_service_are_its_collections(shop: Path, address: str) -> None:
    (here,), (there,) = (answers("stats", target) for target in (shop, address))
    own = {"path", "bytes", "bytes_per_entry"}
    assert {k: v for k, v in there.items() if k not in own} == {
        k: v for k, v in here.items() if k not in own
    }
    assert address in output("stats", address)


def test_a_snapshot_of_a_service_is_a_file(address: str, tmp_path: Path) -> None:
    (made,) = answers("snapshot", address, tmp_path / "copy.ever")
    assert (made["entries"], made["path"]) == (40, str(tmp_path / "copy.ever"))
    assert output("verify", tmp_path / "copy.ever").startswith("ok: 40 entries")


def test_the_same_is_refused_by_a_service(address: str, queries: Path, refused: Any) -> None:
    refused(3, "label", address, "lable-1", "sku-1", says="near: label-1; --new makes a new label")
    refused(3, "get", address, "nobody", says="no entry has id 'nobody'")
    refused(3, "search", address, queries, "--labels", "label-9", says="has not been seen")
    refused(2, "search", address, queries, "-k", 0, says="k must be")


@pytest.mark.parametrize("command", [*FILES_ONLY, "create"])
@pytest.mark.parametrize("url", ["http://localhost:8765", "HTTPS://example.org/shop"])
def test_what_a_service_cannot_do_is_refused_with_a_way_out(
    command: str, url: str, refused: Any
) -> None:
    rest = ("--dim", 3) if command == "create" else FILES_ONLY[command]
    says = f"everhash {command} needs a file, not the address of a service ("
    refused(2, command, url, *rest, says=says)


def test_the_key_is_read_from_the_environment(
    shop: Path, tmp_path: Path, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, made = make_key("read", None)
    add_key(tmp_path / "keys.toml", made)
    with serving(partial(everhash.open, shop), keys=read_keys(tmp_path / "keys.toml")) as served:
        monkeypatch.delenv(KEY, raising=False)
        refused(9, "stats", served.address, says="a key is needed")
        monkeypatch.setenv(KEY, secret)
        assert len(answers("entries", served.address)) == 40
        ended = refused(9, "remove", served.address, "sku-1")
        assert secret not in ended.err


def test_no_service_at_an_address_is_one_line(refused: Any) -> None:
    refused(9, "stats", "http://127.0.0.1:9", says="cannot be reached")
    refused(2, "stats", "http://user:secret@localhost", says="a URL with a user")
