"""The command line: what it promises in --help, what it prints, and how it fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import everhash
from everhash import __version__, advise, cli
from everhash.errors import (
    EXIT_CODES,
    CollectionFileError,
    EverhashError,
    LockedError,
    ModelFileError,
    NotFittedError,
    OptionError,
    ReadOnlyError,
    StoreError,
    exit_code,
)

WIDE = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
NAMES = [
    *("create", "ingest", "search", "label", "remove", "refresh", "stats", "verify"),
    *("snapshot", "restore", "export", "serve", "key", "advise", "methods", "demo"),
    *("bench list", "bench run", "bench report", "bench compare"),
]


def commands_of(group: Any, place: str = "") -> dict[str, Any]:
    """Return commands by name, those of groups among them."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        nested = hasattr(command, "commands")
        found |= commands_of(command, f"{name} ") if nested else {place + name: command}
    return found


COMMANDS = commands_of(get_command(cli.app))


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
    printed = output("--help") + output("bench", "--help")
    assert sorted(COMMANDS) == sorted(NAMES)
    for name, command in COMMANDS.items():
        assert name.split()[-1] in printed
        assert command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_an_example_that_parses(name: str) -> None:
    found = re.search(rf"Example: everhash {name}\b(.*)", COMMANDS[name].help)
    assert found, f"{name} has no example"
    context = COMMANDS[name].make_context(name, found[1].split())
    assert context.params or not COMMANDS[name].params


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_exit_code_is_in_the_reference(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference.md").read_text()
    section = page.partition("## Command line")[2].partition("\n## ")[0]
    assert f"`everhash {name}" in section
    for parameter in COMMANDS[name].params:
        written = [option for option in parameter.opts if option.startswith("-")]
        assert not written or any(option in section for option in written), parameter.name
    for code in (0, 1, *EXIT_CODES.values(), 130):
        assert f"| {code} |" in section


def test_completion_can_be_installed() -> None:
    printed = output("--help")
    assert "--install-completion" in printed
    assert "--show-completion" in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_explains_each_of_its_options(name: str) -> None:
    printed = " ".join(output(*name.split(), "--help").split())
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
        (["demo", "--file", __file__, "--seed", "-1"], "--seed must be at least 0"),
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
    [
        *(["nope"], ["advise"], ["advise", "many"], ["advise", "5", "--nope"], ["demo", "extra"]),
        *(["create", "a.ever"], ["create", "a.ever", "--dim", "3", "--coding", "other"]),
        *(["ingest", "a.ever"], ["search", "a.ever", "q.npy", "--distance", "far"], ["label", "a"]),
    ],
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
    assert exit_code(ModelFileError("x")) == exit_code(CollectionFileError("x")) == 5
    assert exit_code(LockedError("x")) == 8
    assert exit_code(ReadOnlyError("x")) == exit_code(StoreError("x")) == 7
    assert exit_code(EverhashError("x")) == 1
    assert not set(EXIT_CODES.values()) & {0, 1, 130}
    # damaged files share theirs, and so do wrong input and a wrong kind of method
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES) - 2


@pytest.fixture
def demo(tmp_path: Path) -> Callable[[], str]:
    """Return a function that runs the demo in a folder of its own."""
    picture = tmp_path / "a [bold] name that is long enough to be wrapped by a narrow terminal.png"
    options = ("--picture", str(picture), "--file", str(tmp_path / "demo.ever"))
    return lambda: output("demo", *options)


def test_demo_learns_the_digits_and_draws_them(tmp_path: Path, demo: Callable[[], str]) -> None:
    printed = demo()
    (picture,) = tmp_path.glob("*.png")

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


def test_demo_leaves_a_collection_that_answers(tmp_path: Path, demo: Callable[[], str]) -> None:
    printed = demo()
    assert re.search(
        r"refresh: rewrote [\d,]+ of [\d,]+ bits \(\d+\.\d %\) of \d+ entries", printed
    )
    searched = printed.partition("nearest entries")[2]
    found = re.findall(r"^ +(\d) +((?:\(?\d\)? *){5}) +((?:-?\d+\.\d+ *){5})$", searched, re.M)
    assert [query for query, _, _ in found] == ["0", "2", "4", "6", "8"]
    for _, _, distances in found:
        far = [float(distance) for distance in distances.split()]
        assert far == sorted(far)

    with everhash.open(tmp_path / "demo.ever", readonly=True) as collection:
        stats = collection.stats()
    assert (stats["entries"], stats["labels"], stats["stale_bits"]) == (1500, 10, 0)
    assert stats["unlabelled"] > 300
    assert everhash.verify(tmp_path / "demo.ever").problems == ()


def test_demo_replaces_its_own_file_and_no_other(
    tmp_path: Path,
    demo: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def without_rates(printed: str) -> list[list[str]]:
        return [row[:-1] for row in cells(printed)]

    assert without_rates(demo()) == without_rates(demo())
    text, shop, locked = (tmp_path / name for name in ("notes.txt", "shop.ever", "demo.ever"))
    text.write_text("precious" * 1000)
    everhash.create(shop, dim=64, bits=16).close()
    with everhash.open(locked):
        for file, code, says in (
            (text, 5, "is no everhash collection (it is left as it is; choose another --file)"),
            (shop, 2, "is a collection, but not of an earlier demo (choose another --file)"),
            (tmp_path, 7, "is a folder"),
            (locked, 8, "is being written"),
        ):
            refused, said = failure(monkeypatch, capsys, "demo", "--file", str(file))
            assert (refused, said.count("\n")) == (code, 1)
            assert says in said
    assert text.read_text() == "precious" * 1000
    assert shop.exists()
    assert locked.exists()
