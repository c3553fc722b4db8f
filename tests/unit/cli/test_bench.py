"""`everhash bench` as people type it: lists, runs on own files, goes on, says what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from everhash import cli
from everhash.bench import datasets, experiment
from everhash.bench.rows import read_rows
from everhash.errors import (
    DataMissingError,
    EverhashError,
    InputError,
    OptionError,
    UnknownNameError,
    exit_code,
)
from tests.conftest import Stream
from tests.unit.cli.commands import WIDE, output

FEW = ("--methods", "everhash,onehot,cosine", "--bits", "8,16", "--seeds", "1")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, digits: Stream) -> Path:
    """Three hundred digits in a file of somebody's own."""
    path = tmp_path_factory.mktemp("own") / "items.npz"
    np.savez(path, v=digits.X[:300], kind=np.array([f"digit {y}" for y in digits.y[:300]]))
    return path


def ran(*arguments: object) -> tuple[str, str]:
    """Run a command that says how far it is; return what it prints, and what it says."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env=WIDE)
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


class Run(NamedTuple):
    """What a run printed and said, and where its rows are."""

    printed: str
    said: str
    results: Path


@pytest.fixture(scope="module")
def run_of_own(own: Path) -> Run:
    """Two methods on that file, run once: each run starts a process."""
    columns = ("--features", "v", "--label", "kind", "--results", own.with_name("table1.jsonl"))
    few = ("--methods", "paper,everhash", "--bits", "8", "--seeds", "1")
    printed, said = ran("bench", "run", "table1", "--data", own, *columns, *few)
    return Run(printed, said, own.with_name("table1.jsonl"))


def test_list_names_every_experiment_and_data_set() -> None:
    printed = output("bench", "list")
    for name in (*experiment.names(), *datasets.names()):
        assert f"  {name} " in printed
    assert "60,000 rows x 512, 10 labels" in printed
    assert "Description" not in printed
    listed = json.loads(output("bench", "list", "--json"))
    assert [each["name"] for each in listed["experiments"]] == list(experiment.names())
    assert [each["name"] for each in listed["data"]] == list(datasets.names())


@pytest.mark.slow
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
    assert [json.loads(line) for line in ran(*command, "--json")[0].splitlines()] == rows
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


@pytest.mark.slow
def test_columns_of_own_files_are_found_or_asked_for_before_anything_runs(
    own: Path, tmp_path: Path, digits: Stream
) -> None:
    results = tmp_path / "rows.jsonl"
    one = ("--methods", "cosine", "--bits", "8", "--seeds", "1", "--results", results)
    for columns in ((), ("--features", "w", "--label", "kind")):
        with pytest.raises(InputError, match=r"items\.npz") as caught:
            output("bench", "run", "table1", "--data", own, *columns, *one)
        assert "runs failed" not in str(caught.value)
    assert not results.exists()
    usual = tmp_path / "usual.npz"
    np.savez(usual, X=digits.X[:300], y=digits.y[:300])
    said = ran("bench", "run", "table1", "--data", usual, *one)[1]
    assert "usual.npz is called usual-" in said
    assert "300 rows x 64, 10 labels" in said
    assert len(read_rows([results])) == 1


def test_a_report_on_own_data_speaks_of_what_was_run(run_of_own: Run) -> None:
    printed, said, results = run_of_own
    called = read_rows([results])[0]["dataset"]
    assert printed.startswith(f"# table1: {called}\n")
    assert "CIFAR-10 images" not in printed
    assert "ten labels" not in printed
    assert "**Reduced:**" in printed
    assert "200 rows a label" not in printed
    assert "Batch methods" not in printed
    line = f"table1: {called}, paper, 8 bits, ordering 1, protocol strict (centre, and everything"
    assert line in said


@pytest.mark.slow
def test_the_experiment_in_the_docs_runs(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "bench.md"
    example = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "mine.toml").write_text(example)
    results = tmp_path / "mine.jsonl"
    few = ("--data", "digits", "--seeds", "1", "--bits", "8", "--results", results)
    printed = ran("bench", "run", tmp_path / "mine.toml", *few)[0]
    assert printed.startswith("# mine: digits\n")
    assert {row["method"] for row in read_rows([results])} == set(
        re.findall(r'"([\w-]+)"', "".join(re.findall("^methods.*", example, re.MULTILINE)))
    )
    assert {row["protocol"] for row in read_rows([results])} == {"strict", "unseen"}


def test_what_no_method_takes_is_refused_before_anything_runs(tmp_path: Path) -> None:
    experiments = {
        "options = [{pace = 1}]": (OptionError, "everhash has no option 'pace'"),
        'protocols = ["strict", "lax"]': (OptionError, "no protocol 'lax'"),
    }
    for line, (kind, said) in experiments.items():
        path = tmp_path / "mine.toml"
        path.write_text(f'[[runs]]\ndataset = "digits"\nmethods = ["everhash"]\n{line}\n')
        with pytest.raises(kind, match=said):
            output("bench", "run", path)


def test_a_missing_set_is_one_error_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "folders", lambda: [tmp_path])
    (tmp_path / datasets.FILES["cifar10-gist"][0]).touch()
    with pytest.raises(DataMissingError) as caught:
        output("bench", "run", "table1", "--results", tmp_path / "rows.jsonl")
    said = str(caught.value)
    assert "cifar10-cnn (cifar10_efflite2_pca512_u8.npz)" in said
    assert "cifar10-gist (" not in said
    assert "https://www.cs.toronto.edu/~kriz/cifar.html" in said
    assert "run table1 without it: --data cifar10-gist" in said
    assert exit_code(caught.value) == 6
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_page_that_is_there_is_replaced_only_if_told(run_of_own: Run, tmp_path: Path) -> None:
    results, out = run_of_own.results, tmp_path / "pages"
    output("bench", "report", results, "--out", out)
    page = out / "table1.md"
    written = page.read_text()
    page.write_text(written + "A remark.\n")
    with pytest.raises(InputError, match=r"table1.md is there already.*--overwrite"):
        output("bench", "report", results, "--out", out)
    assert page.read_text() == written + "A remark.\n"
    again = json.loads(output("bench", "report", results, "--out", out, "--overwrite", "--json"))
    assert (again["page"], again["rows"]) == (str(page), 2)
    assert page.read_text() == written
