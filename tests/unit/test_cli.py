"""The command line: what it promises in --help, what it prints, and how it fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from everhash import __version__, advise, cli
from everhash.errors import (
    EXIT_CODES,
    EverhashError,
    ModelFileError,
    NotFittedError,
    OptionError,
    exit_code,
)

WIDE = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
COMMANDS: dict[str, Any] = getattr(get_command(cli.app), "commands", {})


def output(*arguments: str) -> str:
    """Run a command that succeeds and return what it prints."""
    result = CliRunner().invoke(cli.app, list(arguments), env=WIDE)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    """Run the entry point on arguments it refuses; return the exit code and what stderr says."""
    monkeypatch.setattr(sys, "argv", ["everhash", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.run()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert isinstance(caught.value.code, int)
    return caught.value.code, printed.err


def cells(printed: str) -> list[list[str]]:
    """Return the cells of the body of a printed table."""
    lines = [line for line in printed.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_help_lists_every_command() -> None:
    printed = output("--help")
    assert set(COMMANDS) >= {"demo", "advise"}
    for name, command in COMMANDS.items():
        assert name in printed
        assert command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_explains_each_of_its_options(name: str) -> None:
    printed = " ".join(output(name, "--help").split())
    for parameter in COMMANDS[name].params:
        assert parameter.help, f"{name} {parameter.name} has no help"
        assert parameter.help in printed
        for option in parameter.opts:
            assert option in printed


def test_version_is_the_packages() -> None:
    assert output("--version") == f"everhash {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "labels", "bits", "rho"),
    [
        (["397"], 397, 32, None),
        (["397", "--bits", "32"], 397, 32, None),
        (["100", "-k", "4", "-r", "2"], 100, 4, 2),
        (["3", "--labels-per-cycle", "50", "--bits", "64"], 3, 64, 50),
    ],
)
def test_advise_says_what_the_library_says(
    arguments: list[str], labels: int, bits: int, rho: int | None
) -> None:
    advice = advise(labels, bits, rho)
    as_json = json.loads(output("advise", *arguments, "--json"))
    assert as_json == {**advice.as_dict(), "warnings": list(advice.warnings)}

    printed = output("advise", *arguments)
    assert f"{labels} labels at {bits} bits a cycle" in printed
    table = {row[0]: row[1] for row in cells(printed)}
    assert table == {
        "labels a cycle (rho)": f"{advice.labels_per_cycle}",
        "cycles": f"{advice.cycles}",
        "width": f"{advice.width} bits",
        "labelled entry": "0 bytes",
        "unlabelled entry, home cycle": f"{advice.entry_bytes} bytes",
        "unlabelled entry, all cycles": f"{advice.full_entry_bytes} bytes",
        "codewords": f"{advice.codeword_bytes:,} bytes",
        "mapping": f"{advice.functions_bytes_per_feature:,} bytes",
        "all bipartitions differ": f"{advice.unique_paper:.4f}",
        "counting complements": f"{advice.unique:.4f}",
        "stale bits a learned row": f"{advice.stale_bits_home:.2f}",
        "": f"{advice.stale_bits_full:.0f}",
    }
    assert re.findall("warning: (.*)", printed) == list(advice.warnings)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["advise", "0"], "labels must be a whole number of at least 1, got 0"),
        (["advise", "5", "--bits", "0"], "bits must be"),
        (["advise", "5", "-r", "-3"], "labels_per_cycle must be"),
        (["advise", "2000000"], "at most 1000000 labels"),
        (["advise", "5", "--bits", "9999999999"], "at most 2000000"),
        (["demo", "--seed", "-1"], "--seed must be at least 0"),
        (["demo", "--picture", "no/such/folder/demo.png"], "no/such/folder/demo.png"),
        (["demo", "--picture", "."], "no picture can be written"),
        (["demo", "--picture", "demo.xyz"], "use one of .png, .pdf, .svg"),
    ],
)
def test_a_wrong_value_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    code, said = failure(monkeypatch, capsys, *arguments)
    assert code == 2
    assert said.startswith("error: ")
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["nope"], ["advise"], ["advise", "many"], ["advise", "5", "--nope"], ["demo", "extra"]],
)
def test_what_cannot_be_parsed_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    code, said = failure(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "Usage:" in said
    assert "Traceback" not in said


def test_a_real_process_fails_without_a_traceback() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "everhash", "advise", "5", "--bits", "0"],
        env={**os.environ, **WIDE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "error: bits must be a whole number of at least 1, got 0\n"


def test_a_real_process_prints_json_and_nothing_else() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "everhash", "advise", "397", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout)["width"] == 640
    assert ran.stderr == ""


def test_every_error_has_an_exit_code_of_its_own_family() -> None:
    assert exit_code(OptionError("x")) == 2
    assert exit_code(NotFittedError()) == EXIT_CODES[NotFittedError]
    assert exit_code(ModelFileError("x")) == EXIT_CODES[ModelFileError]
    assert exit_code(EverhashError("x")) == 1
    assert len(set(EXIT_CODES.values()) | {0, 1}) == len(EXIT_CODES) + 2


def test_demo_learns_the_digits_and_draws_them(tmp_path: Path) -> None:
    picture = tmp_path / "a [bold] name that is long enough to be wrapped by a narrow terminal.png"
    printed = output("demo", "--picture", str(picture))

    drawn = picture.read_bytes()
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
    assert drawn.endswith(b"IEND\xaeB`\x82")
    assert len(drawn) > 10_000
    assert printed.endswith(f"picture: {picture}\n")

    checkpoints = cells(printed)
    assert [row[1] for row in checkpoints] == [str(labels) for labels in range(1, 11)]
    rows, _, cycles, width, by_codeword, by_mapping, changed, rate = checkpoints[-1]
    assert (rows, cycles, width) == ("1500", "2", "64")
    assert float(by_codeword) > 0.8
    assert float(by_mapping) > 0.5
    assert re.fullmatch(r"\d+ of 64", changed)
    assert re.fullmatch(r"[\d,]+", rate)
