"""`everhash bench` as people type it: lists, runs on own files, goes on, says what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from everhash import cli
from everhash.bench import datasets, experiment
from everhash.bench.rows import read_rows
from everhash.errors import EverhashError, InputError, OptionError, UnknownNameError
from tests.conftest import Stream
from tests.unit.cli.commands import WIDE, output

FEW = ("--methods", "everhash,onehot,cosine", "--bits", "8,16", "--seeds", "1")


@pytest.fixture
def own(tmp_path: Path, digits: Stream) -> Path:
    """Three hundred digits in a file of somebody's own."""
    path = tmp_path / "items.npz"
    np.savez(path, v=digits.X[:300], kind=np.array([f"digit {y}" for y in digits.y[:300]]))
    return path


def ran(*arguments: object) -> tuple[str, str]:
    """Run a command that says how far it is; return what it prints, and what it says."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env=WIDE)
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


def test_list_names_every_experiment_and_data_set() -> None:
    printed = output("bench", "list")
    for name in (*experiment.names(), *datasets.names()):
        assert f"  {name} " in printed
    assert "60,000 rows x 512, 10 labels" in printed
    assert "Description" not in printed


def test_own_rows_are_run_reported_and_not_run_again(
    tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("bench", "run", "table1", "--data", own, "--features", "v", "--label", "kind", *FEW)
    printed, said = ran(*command)
    assert said.count(" s\n") == 4  # a line a run
    assert "| everhash |" in printed
    assert "By codeword" in printed
    rows = read_rows([Path("everhash-results/table1.jsonl")])
    assert len(rows) == 2 + 1 + 1  # no choice of bits: onehot, cosine
    assert {row["dataset"] for row in rows} == {rows[0]["dataset"]}
    assert rows[0]["dataset"].startswith("items-")
    printed_again, said = ran(*command)
    assert printed_again == printed
    assert said.count(" s\n") == 0
    assert read_rows([Path("everhash-results/table1.jsonl")]) == rows
    assert "table1.md" in output("bench", "report", "table1", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "README.md").is_file()


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (["nonsense"], UnknownNameError, "no experiment 'nonsense'"),
        (["table1", "--data", "nothing.csv"], UnknownNameError, "neither a data set nor a file"),
        (["table1", "--methods", "guess"], UnknownNameError, "no method 'guess'"),
        (["table1", "--bits", "8,x"], OptionError, "numbers separated by commas"),
        (["table1", "--data", "digits", "--label", "y"], OptionError, "a file of your own"),
    ],
)
def test_what_cannot_be_run_is_refused(
    arguments: list[str], kind: type[EverhashError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        output("bench", "run", *arguments)


def test_columns_of_own_files_must_be_named_and_there(own: Path, tmp_path: Path) -> None:
    rows = ("--rows", tmp_path / "rows.jsonl", *FEW)
    with pytest.raises(OptionError, match="which columns"):
        output("bench", "run", "table1", "--data", own, *rows)
    columns = ("--features", "w", "--label", "kind")
    with pytest.raises(InputError, match="4 of 4 runs failed"):
        output("bench", "run", "table1", "--data", own, *columns, *rows)
