"""How tests run commands, and the rows they give to them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from typer.testing import CliRunner

import everhash
from everhash import Attachment, cli

WIDE = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
DIM = 8
COLUMNS = ("--features", "embedding", "--label", "kind", "--id", "sku")
PNG, GIF = b"\x89PNG\r\n\x1a\n" + bytes(40), b"GIF89a" + bytes(9)
Write = Callable[..., Path]


class Ended(NamedTuple):
    """How a process ended, and what it has printed."""

    code: Any
    out: str
    err: str


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


def attached(path: Path) -> dict[Any, Attachment]:
    """Return the attachments of all entries, by id."""
    with everhash.open(path, readonly=True) as collection:
        ids = [entry.id for entry in collection.entries()]
        return dict(zip(ids, collection.attachments(ids), strict=True))


def cells(printed: str) -> list[list[str]]:
    """Return the cells of the body of a printed table."""
    lines = [line for line in printed.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def rows(n: int, labels: int = 3, seed: int = 0) -> tuple[NDArray[np.float32], list[str]]:
    """Return rows around a few places, and the places' names."""
    rng = np.random.default_rng(seed)
    which = rng.integers(labels, size=n)
    places = np.random.default_rng(99).normal(size=(labels, DIM)) * 4
    X = (places[which] + rng.normal(size=(n, DIM))).astype(np.float32)
    return X, [f"label-{i}" for i in which]


def write_table(path: Path, n: int = 30, first: int = 0, seed: int = 0, **columns: Any) -> Path:
    """Write rows with ids from `first` on, and other columns, to a Parquet file."""
    X, y = rows(n, seed=seed)
    ids = [f"sku-{i}" for i in range(first, first + n)]
    table = {"embedding": X.tolist(), "kind": y, "sku": ids, **columns}
    parquet.write_table(pa.table(table), path)
    return path


def process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "everhash", *map(str, arguments)],
        env={**os.environ, **WIDE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def on_terminal(*arguments: object) -> tuple[str, str]:
    """Run a command with a file for stdout and a terminal for stderr; return what each got."""
    ours, theirs = pty.openpty()
    out = tempfile.TemporaryFile("w+")  # noqa: SIM115 - a pipe would be full before it is read
    running = subprocess.Popen(
        [sys.executable, "-m", "everhash", *map(str, arguments)],
        env={**os.environ, "COLUMNS": "200", "TERM": "xterm"},
        stdout=out,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass  # how Linux says that the other side is closed
    os.close(ours)
    assert running.wait(60) == 0, seen
    with out:
        out.seek(0)
        return out.read(), seen.decode()


def wait_for_entries(path: Path, n: int, running: subprocess.Popen[str]) -> None:
    """Wait until another process has committed n entries."""
    deadline = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < deadline:
        with everhash.open(path, readonly=True) as collection:
            if len(collection) >= n:
                return
        time.sleep(0.005)
    raise AssertionError(f"ended too soon: {running.communicate()}")
