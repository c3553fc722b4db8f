"""What a shell offers on Tab."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import everhash
from everhash import cli, peers
from everhash.bench import datasets, experiment


def complete(*words: object, incomplete: str = "") -> list[str]:
    """Return what the shell offers for the last word after these."""
    typed = " ".join(["everhash", *map(str, words), incomplete])
    variables = {"_EVERHASH_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    variables["COMP_CWORD"] = str(len(words) + 1)
    ran = CliRunner().invoke(cli.app, [], env=variables, prog_name="everhash")
    assert ran.stderr == ""
    return ran.stdout.split()


def test_commands_and_options_are_offered() -> None:
    assert complete(incomplete="sn") == ["snapshot"]
    assert complete("create", incomplete="--cod") == ["--coding"]
    assert complete("search", "shop.ever", "--by", incomplete="me") == ["meaning"]
    assert complete("create", incomplete="sh") == [], "paths are the shell's"


def test_methods_are_offered() -> None:
    assert complete("methods", incomplete="mi") == ["mihash"]
    online = {name for name in peers.names() if peers.describe(name).online}
    assert set(complete("create", "x.ever", "--method")) == online


def test_experiments_and_data_sets_are_offered() -> None:
    assert set(complete("bench", "run")) == set(experiment.names())
    assert complete("bench", "run", "table1", "--data", incomplete="dig") == ["digits"]
    assert set(datasets.names()) == set(complete("bench", "run", "table1", "--data"))
    assert complete("bench", "run", "table1", "--methods", incomplete="onl") == ["online"]
    several = complete("bench", "run", "table1", "--methods", incomplete="itq,mi")
    assert several == ["itq,mihash"]


@pytest.mark.parametrize("command", ["label", "rename-label", "drop-label"])
def test_labels_of_the_file_are_offered(command: str, shop: Path) -> None:
    assert set(complete(command, shop, incomplete="label-")) == {f"label-{i}" for i in range(3)}
    assert complete(command, shop, incomplete="other") == []


def test_labels_are_offered_to_options_and_second_arguments(shop: Path) -> None:
    assert complete("merge-labels", shop, "label-0", incomplete="label-1") == ["label-1"]
    assert complete("search", shop, "--labels", incomplete="label-2") == ["label-2"]
    assert complete("entries", shop, "--label", incomplete="label-2") == ["label-2"]


def test_labels_are_offered_while_another_process_writes(shop: Path) -> None:
    with everhash.open(shop):
        assert len(complete("label", shop)) == 3


def test_nothing_is_offered_where_labels_cannot_be_read(tmp_path: Path) -> None:
    text = tmp_path / "text.ever"
    text.write_text("no collection")
    for target in (text, tmp_path, tmp_path / "none.ever", "http://localhost:1", "http://x"):
        assert complete("label", target) == []
