"""A small collection, files to ingest, queries, and commands that must fail."""

from __future__ import annotations

import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everhash import cli
from tests.unit.cli.commands import COLUMNS, DIM, Ended, Write, output, rows, write_table


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes rows to a Parquet file; see `write_table`."""

    def to_parquet(name: str = "rows.parquet", *arguments: int, **columns: Any) -> Path:
        return write_table(tmp_path / name, *arguments, **columns)

    return to_parquet


@pytest.fixture(scope="session")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    path = folder / "shop.ever"
    output("create", path, "--dim", DIM)
    output("ingest", path, write_table(folder / "rows.parquet"), *COLUMNS)
    np.savez(folder / "more.npz", X=rows(10, seed=1)[0], ids=np.arange(10))
    named = ("--features", "X", "--id", "ids")
    output("ingest", path, folder / "more.npz", *named, "--label", "")
    return path


@pytest.fixture
def shop(tmp_path: Path, _filled: Path) -> Path:
    """Return a collection of 30 labelled and 10 unlabelled entries."""
    return Path(shutil.copy(_filled, tmp_path))


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    np.save(tmp_path / "queries.npy", rows(4, seed=2)[0])
    return tmp_path / "queries.npy"


@pytest.fixture
def failing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Return a function that runs what ends the process."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["everhash", *map(str, arguments)])
        usual = signal.getsignal(signal.SIGINT)
        with pytest.raises(SystemExit) as caught:
            cli.run()
        signal.signal(signal.SIGINT, usual)  # at its end the command no longer listens to it
        return Ended(caught.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def refused(failing: Callable[..., Ended]) -> Callable[..., Ended]:
    """Return a function that runs what must fail with a code, in one line with a hint."""

    def run(code: int, *arguments: object, says: str = "", hint: bool = True) -> Ended:
        ended = failing(*arguments)
        err = ended.err
        assert ended.code == code, err
        # a number that is out of range is its own hint
        ending = r" \(.+\)" if hint and not re.search("must be|at most", err) else ""
        assert re.fullmatch(rf"error: .+{ending}\n", err), err
        assert says in err
        return ended

    return run


@pytest.fixture
def call(tmp_path: Path, write: Write, queries: Path) -> Callable[[str, Path], list[object]]:
    """Return a function that gives a command the other arguments it needs."""
    rest: dict[str, tuple[object, ...]] = {
        "search": (queries,),
        "predict": (queries,),
        "get": ("sku-1", 3),
        "snapshot": (tmp_path / "new.ever",),
        "export": (tmp_path / "new.jsonl",),
        "ingest": (write("call.parquet", first=500), *COLUMNS),
        "label": ("label-1", "sku-1"),
        "unlabel": ("sku-1",),
        "rename-label": ("label-1", "new"),
        "merge-labels": ("label-1", "label-2"),
        "drop-label": ("label-1",),
        "remove": ("sku-1",),
    }

    def arguments(command: str, path: Path) -> list[object]:
        name, *options = command.split()
        return [name, path, *rest.get(name, ()), *options]

    return arguments
