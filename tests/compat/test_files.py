"""Collections written by earlier versions are read by this one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import everhash
from everhash.store.connection import VERSION
from tests.compat.make import HERE, seen

FILES = sorted(HERE.glob("*.ever"))


def test_there_are_files_of_every_version() -> None:
    assert {path.name.split("-")[0] for path in FILES} == {f"v{n + 1}" for n in range(VERSION)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_read_as_it_was_written(tmp_path: Path, path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    wanted = json.loads(path.with_suffix(".json").read_text())
    assert everhash.verify(copy).problems == ()
    with everhash.open(copy, readonly=True) as col:
        assert json.loads(json.dumps(seen(col))) == wanted
    with everhash.open(copy) as col:
        col.ingest(np.ones((2, 6)), ["more", 3])
        col.refresh()
        assert len(col) == len(wanted["entries"]) + 2
