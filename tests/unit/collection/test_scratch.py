"""Rows in a file without a name: what they become where the file cannot grow."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from everhash.collection.scratch import ROOM, Scratch

WIDTH = 1024
MANY = ROOM // (2 * WIDTH)


def test_rows_move_to_memory_where_the_file_cannot_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.arange(3 * MANY * WIDTH, dtype=np.uint16).reshape(-1, WIDTH)
    scratch = Scratch(WIDTH, tmp_path)
    scratch.append(rows[:MANY])

    def refuse(file: int, size: int) -> None:
        raise OSError(27, "File too large")

    monkeypatch.setattr(os, "truncate", refuse)
    assert scratch.append(rows[MANY:]) == MANY
    assert (scratch.rows == rows).all()
