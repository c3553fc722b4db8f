"""Collections with attachments, and what is attached."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash import Collection
from tests.conftest import Stream

PNG, JPEG = b"\x89PNG\r\n\x1a\n" + bytes(40), b"\xff\xd8\xff\xe0" + bytes(40)


GIF, WEBP = b"GIF89a" + bytes(40), b"RIFF\x24\0\0\0WEBPVP8 " + bytes(20)


PICTURES = {"png": PNG, "jpeg": JPEG, "gif": GIF, "webp": WEBP}


PAYLOADS = [
    {"name": "é ✓", "n": [1, 2.5, None, True]},
    [],
    "",
    0,
    False,
    -1e-300,
    2**70,
    "\x00\x1f",
]


@pytest.fixture(params=["filed", "in memory"])
def col(request: pytest.FixtureRequest, tmp_path: Path, digits: Stream) -> Iterator[Collection]:
    """Three labelled digits a, b, c and three unlabelled d, e, f, without attachments."""
    path = tmp_path / "c.ever" if request.param == "filed" else None
    with everhash.create(path, dim=64, bits=8) as made:
        made.ingest(digits.X[:3], digits.y[:3], list("abc"))
        made.add(digits.X[3:6], list("def"))
        yield made


@pytest.fixture
def path(tmp_path: Path, digits: Stream) -> Path:
    """A file with entries 0 to 5: 0 has both, 1 a payload, 2 a thumbnail; 3 was removed."""
    path = tmp_path / "c.ever"
    with everhash.create(path, dim=64, bits=8) as made:
        made.add(
            digits.X[:6],
            payloads=[{"n": 0}, {"n": 1}, None, "gone", None, None],
            thumbnails=[PNG, None, GIF, JPEG, None, None],
        )
        made.remove([3])
    return path


def rows_in(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT number, data FROM attached").fetchall()
