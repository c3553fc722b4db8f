"""Collections written by earlier versions are read by this one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import everhash
from everhash import Attachment
from everhash.store.schema import VERSION
from tests.compat.make import GIF, HERE, seen

FILES = sorted(HERE.glob("*.ever"))


def test_there_are_files_of_every_version() -> None:
    assert {path.name.split("-")[0] for path in FILES} == {f"v{n + 1}" for n in range(VERSION)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_read_as_it_was_written(tmp_path: Path, path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    wanted = json.loads(path.with_suffix(".json").read_text())
    assert everhash.verify(copy).problems == ()
    wanted.setdefault("carried", [[None, None]] * len(wanted["entries"]))  # as in version 1
    with everhash.open(copy, readonly=True) as col:
        assert json.loads(json.dumps(seen(col))) == wanted
    with everhash.open(copy) as col:
        ids = col.ingest(np.ones((2, 6)), ["more", 3])
        col.refresh()
        assert len(col) == len(wanted["entries"]) + 2
        assert version_of(copy) == int(path.name[1])
        col.attach(["e1", ids[0]], payloads=["new", None], thumbnails=[None, GIF])
    assert version_of(copy) == VERSION
    with everhash.open(copy) as col:
        carried = col.attachments(["e1", *ids])
        assert carried == [Attachment("new"), Attachment(None, GIF), Attachment()]
    assert everhash.verify(copy).problems == ()


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])
