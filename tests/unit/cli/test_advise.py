"""`everhash advise`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import everhash
from everhash import advise
from tests.unit.cli.commands import cells, output

GIVEN: list[dict[str, Any]] = [
    {"labels": 397},
    {"labels": 100, "bits": 4, "labels_per_cycle": 2},
    {"labels": 1000, "rows": 1_000_000, "dim": 384},
    {"labels": 3, "rows": 5, "dim": 16_000, "labels_per_cycle": 50, "bits": 64},
]


def arguments(given: dict[str, Any]) -> list[str]:
    """Return options as the command line writes them."""
    return [
        text
        for name, value in given.items()
        for text in (f"--{name.replace('_', '-')}", str(value))
    ]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_advise_says_what_the_library_says(given: dict[str, Any]) -> None:
    advice = advise(**given)
    as_json = json.loads(output("advise", *arguments(given), "--json"))
    assert as_json == json.loads(json.dumps(advice.as_dict()))
    printed = output("advise", *arguments(given))
    for choice in advice.setting:
        assert f"{choice.option} {choice.value}: {choice.why}\n" in printed
    assert re.findall("consider: (.*)", printed) == list(advice.consider)
    assert re.findall("warning: (.*)", printed) == list(advice.warnings)
    table = {row[0]: row[1] for row in cells(printed)}
    assert table["width"] == f"{advice.width} bits"
    assert table["all bipartitions differ"] == f"{advice.unique_paper:.4f}"
    assert ("learning all rows" in table) == (advice.learning_seconds is not None)


@pytest.mark.parametrize("given", [each for each in GIVEN if "dim" in each], ids=str)
def test_the_first_line_is_a_command_that_works(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = output("advise", *arguments(given)).splitlines()[0]
    assert command.startswith("everhash create my.ever --dim ")
    output(*command.split()[1:])
    with everhash.open("my.ever") as collection:
        hasher = collection.hasher
        assert (hasher.n_features_in_, hasher.bits) == (given["dim"], advise(**given).bits)
