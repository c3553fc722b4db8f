"""Errors on the command line speak of commands and options, not of Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from tests.unit.cli.commands import COLUMNS, DIM, Write, output

PYTHON = re.compile(
    r"\w\(|\b[a-z_]+=|\b(True|False|None)\b|\bself\b|\blabels_\b|_label\b|[a-z]_[a-z]"
)
"""Calls, keyword arguments, constants, and names with an underscore."""


@pytest.fixture
def bare(tmp_path: Path, write: Write) -> Path:
    """Return a collection that keeps neither features nor likeness codes."""
    path = tmp_path / "bare.ever"
    output("create", path, "--dim", DIM, "--no-likeness", "--keep-features", "none")
    output("ingest", path, write("bare.parquet"), *COLUMNS)
    return path


def test_what_a_collection_refuses_is_said_in_commands_and_options(
    shop: Path, bare: Path, tmp_path: Path, queries: Path, failing: Any
) -> None:
    wide, empty = tmp_path / "wide.npy", tmp_path / "empty.ever"
    np.save(wide, np.ones((2, DIM + 1)))
    output("create", empty, "--dim", DIM)
    for arguments in (
        ("get", shop, "nobody"),
        ("remove", shop, "nobody"),
        ("label", shop, "nothing", "sku-1"),
        ("label", bare, "label-1", "sku-1"),
        ("unlabel", bare, "sku-1"),
        ("unlabel", bare, "sku-1", "--no-teach"),
        ("drop-label", bare, "label-1"),
        ("rename-label", shop, "label-1", "label-2"),
        ("merge-labels", shop, "label-1", "label-1"),
        ("search", shop, wide),
        ("search", shop),
        ("search", bare, queries, "--by", "likeness"),
        ("search", bare, "--like", "sku-1", "--by", "hamming"),
        ("predict", empty, queries),
        ("create", shop, "--dim", 3),
        ("create", tmp_path / "new.ever", "--dim", 3, "--method", "itq"),
        ("create", tmp_path / "new.ever", "--dim", 3, "--method", "osh", "--classes", 3),
        ("create", tmp_path / "new.ever", "--dim", 3, "--features", 3, "--learner", "sgd"),
        ("stats", tmp_path / "none.ever"),
        ("stats", queries),
        ("snapshot", shop, shop),
        ("stats", "http://127.0.0.1:9"),
    ):
        ended = failing(*arguments)
        assert ended.code
        said = ended.err.replace(str(tmp_path), "")
        assert said.startswith("error: "), said
        assert not PYTHON.search(said), said


def test_a_locked_file_is_said_plainly(shop: Path, failing: Any) -> None:
    with everhash.open(shop):
        said = failing("remove", shop, "sku-1").err
    assert not PYTHON.search(said.replace(str(shop), "")), said
