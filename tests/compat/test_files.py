"""Collections written by earlier versions are read by this one."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Attachment
from everhash.errors import OptionError
from everhash.store.schema import VERSION
from everhash.wire.options import WAYS
from tests.compat.make import GIF, HERE, PROBES, seen

FILES = sorted(HERE.glob("*.ever"))


def test_there_are_files_of_every_version() -> None:
    assert {path.name.split("-")[0] for path in FILES} == {f"v{n + 1}" for n in range(VERSION)}


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a file."""
    copy: Path = tmp_path / request.param.name
    shutil.copy(request.param, copy)
    return copy


def expected(path: Path) -> dict[str, Any]:
    """What was seen of a file when it was written."""
    wanted: dict[str, Any] = json.loads((HERE / path.name).with_suffix(".json").read_text())
    wanted.setdefault("carried", [[None, None]] * len(wanted["entries"]))  # as in version 1
    return wanted


def assert_seen(path: Path, *names: str) -> None:
    """All that was seen of a file, or only what these names say, is still there."""
    wanted = expected(path)
    with everhash.open(path, readonly=True) as col:
        found = json.loads(json.dumps(seen(col)))
    for name in names or wanted:
        assert found[name] == wanted[name], name


def test_a_file_is_read_as_it_was_written(path: Path) -> None:
    before = path.read_bytes()
    assert everhash.verify(path).problems == ()
    assert_seen(path)
    assert path.read_bytes() == before, "a reader changes nothing"


@pytest.mark.parametrize("processor", ["Prescott", "Haswell", "SkylakeX"])
def test_a_sound_file_is_sound_on_another_processor(tmp_path: Path, processor: str) -> None:
    path = shutil.copy(HERE / "v4-all.ever", tmp_path / "moved.ever")
    code = "import sys, everhash; print(everhash.verify(sys.argv[1]).problems)"
    told = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "OPENBLAS_CORETYPE": processor},
        capture_output=True,
        check=True,
        text=True,
    )
    assert told.stdout.strip() == "()"


def test_every_way_of_searching_that_a_file_allows_finds_all_entries(path: Path) -> None:
    n = len(expected(path)["entries"])
    with everhash.open(path, readonly=True) as col:
        kept = col.stats()["likeness"] or col.stats()["keep_features"] == "all"
        for by in WAYS:
            if by == "likeness" and not kept:
                with pytest.raises(OptionError, match="no likeness"):
                    col.search(PROBES, n, by)
            else:
                assert col.search(PROBES, n, by).counts.tolist() == [n] * len(PROBES)


def test_upgrading_loses_nothing(path: Path) -> None:
    assert everhash.upgrade(path) == (int(path.name[1]), VERSION)
    assert version_of(path) == VERSION
    assert everhash.upgrade(path) == (VERSION, VERSION)
    assert_seen(path)
    assert everhash.verify(path).problems == ()


def test_the_first_write_upgrades_and_loses_nothing(path: Path) -> None:
    with everhash.open(path, auto_refresh=False) as col:
        assert version_of(path) == int(path.name[1])
        ids = col.ingest(np.ones((2, 6)), ["more", 3])
        assert version_of(path) == VERSION
        col.remove(ids)
    assert_seen(path, "entries", "carried", "options")
    assert everhash.verify(path).problems == ()


def test_an_older_file_can_do_what_a_new_one_can(path: Path) -> None:
    wanted = expected(path)
    with everhash.open(path) as col:
        ids = col.ingest(np.ones((2, 6)), ["more", 3])
        report = col.refresh()
        assert len(col) == len(wanted["entries"]) + 2
        assert (report.entries == 0) == (col.stats()["keep_features"] == "none")
        col.attach(["e1", ids[0]], payloads=["new", None], thumbnails=[None, GIF])
        col.label(["e8"], ["by hand"], teach=False)
        col.upsert(np.ones((1, 6)), ["e10"], ["by hand"], teach=False)
        col.rename_label("by hand", "by foot")
        assert set(col.search(PROBES, 2, labels=["by foot"]).ids[0].tolist()) == {"e8", "e10"}
        col.compact()
    with everhash.open(path) as col:
        carried = col.attachments(["e1", *ids])
        kept = Attachment("new", None)
        assert carried == [kept, Attachment(None, GIF), Attachment()]
        assert [entry.labels for entry in col.get(["e8", "e10"])] == [("by foot",)] * 2
    assert everhash.verify(path).problems == ()


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])
