"""The command line as a whole: help, docs, exit codes, warnings, pipes and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import everhash
from everhash import __version__, cli
from everhash.errors import (
    EXIT_CODES,
    CodebookWarning,
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
from everhash.store.store import Store
from tests.unit.cli.commands import COLUMNS, DIM, WIDE, Write, output, process, rows, stats

NAMES = [
    *("create", "ingest", "search", "label", "unlabel", "remove", "refresh", "stats", "verify"),
    *("predict", "get", "entries"),
    *("labels", "rename-label", "merge-labels", "drop-label", "upgrade"),
    *("snapshot", "restore", "export", "serve", "key", "advise", "methods", "demo"),
    *("bench list", "bench run", "bench report", "bench compare"),
    *("cluster create", "cluster ingest", "cluster search", "cluster serve", "cluster stats"),
    *("cluster rebalance", "cluster import", "cluster stop"),
]

FILES_ONLY = {"create", "verify", "upgrade", "restore", "serve", "export"}
WITHOUT_COLLECTION = {"key", "advise", "methods", "demo"} | {n for n in NAMES if " " in n}


def commands_of(group: Any, place: str = "") -> dict[str, Any]:
    """Return commands by name, those of groups among them."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        nested = hasattr(command, "commands")
        found |= commands_of(command, f"{name} ") if nested else {place + name: command}
    return found


COMMANDS = commands_of(get_command(cli.app))


def test_help_lists_every_command() -> None:
    printed = output("--help") + output("bench", "--help") + output("cluster", "--help")
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


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_explains_each_of_its_options(name: str) -> None:
    printed = " ".join(re.sub("[│─╭╮╰╯]", " ", output(*name.split(), "--help")).split())
    for parameter in COMMANDS[name].params:
        assert parameter.help, f"{name} {parameter.name} has no help"
        assert parameter.help in printed
        named = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]
        for name_shown in named:
            assert name_shown in printed


def test_version_is_the_packages() -> None:
    assert output("--version") == f"everhash {__version__}\n"


@pytest.mark.parametrize("name", ["", "bench", *COMMANDS])
def test_h_is_help_and_no_flag_shows_a_type(name: str) -> None:
    printed = output(*name.split(), "-h")
    assert printed == output(*name.split(), "--help")
    assert "<bool>" not in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_json_if_asked(name: str) -> None:
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert "--json" in options


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_a_file_or_an_address_or_refuses_addresses(name: str) -> None:
    first = next(iter(COMMANDS[name].params), None)
    if name in WITHOUT_COLLECTION:
        assert first is None or first.metavar not in ("FILE", "FILE|URL")
    else:
        assert first is not None
        assert first.metavar in (("FILE", "COPY") if name in FILES_ONLY else ("FILE|URL",))


def test_options_have_one_short_form_at_most_and_one_meaning_each() -> None:
    short: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            for option in parameter.opts:
                if re.fullmatch("-[a-z]", option):
                    short.setdefault(option, set()).add(parameter.name)
    assert {name: short[name] for name in ("-k", "-r")} == {"-k": {"k"}, "-r": {"r"}}
    assert all(len(meanings) == 1 for meanings in short.values())


def test_an_unknown_command_or_option_names_near_ones(failing: Any) -> None:
    assert "'search'" in failing("serch").err
    assert "--labels" in failing("search", "a.ever", "q.npy", "--lables", "x").err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["advise", "--labels", "0"], "labels must be a whole number of at least 1, got 0"),
        (["advise", "--labels", "5", "--bits", "0"], "bits must be"),
        (["advise", "--labels", "5", "--labels-per-cycle", "-3"], "labels_per_cycle must be"),
        (["advise", "--labels", "2000000"], "at most 1000000 labels"),
        (["advise", "--labels", "5", "--bits", "9999999999"], "at most 2000000"),
        (["demo", "--random-state", "-1"], "--random-state must be at least 0"),
        (["demo", "--picture", "no/such/folder/demo.png"], "no/such/folder/demo.png"),
        (["demo", "--picture", "."], "no picture can be written"),
        (["demo", "--picture", "demo.xyz"], "use one of .png, .pdf, .svg"),
        (["demo", "--file", __file__, "--random-state", "-1"], "--random-state must be at least 0"),
    ],
)
def test_a_wrong_value_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, refused: Any
) -> None:
    assert refused(2, *arguments, says=says, hint=False).out == ""


def test_options_that_make_no_sense_are_refused(
    shop: Path, write: Write, queries: Path, tmp_path: Path, refused: Any
) -> None:
    before = stats(shop)
    table = write(first=99)
    refused(2, "ingest", shop, table, *COLUMNS, "--batch-rows", 0, says="--batch-rows must be")
    refused(2, "ingest", shop, table, *COLUMNS, "--durability", "never", says="durability")
    refused(2, "search", shop, queries, "--limit", 0, says="--limit must be")
    refused(2, "search", shop, queries, "-k", 0, says="k must be")
    refused(2, "search", shop, queries, "-k", 1001, says="at most 1000")
    refused(
        2, "export", shop, tmp_path / "out.xls", says="use one of .parquet, .arrow, .jsonl, .csv"
    )
    assert stats(shop) == before


@pytest.mark.parametrize(
    "arguments",
    [
        *(["nope"], ["advise"], ["advise", "--labels", "many"], ["advise", "5"], ["demo", "extra"]),
        *(["create", "a.ever"], ["create", "a.ever", "--dim", "3", "--coding", "other"]),
        *(["ingest", "a.ever"], ["search", "a.ever", "q.npy", "--distance", "far"], ["label", "a"]),
    ],
)
def test_what_cannot_be_parsed_is_a_usage_error(arguments: list[str], failing: Any) -> None:
    code, printed, said = failing(*arguments)
    assert (code, printed) == (2, "")
    assert "Usage:" in said
    assert "Traceback" not in said


def test_a_real_process_fails_without_a_traceback() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "everhash", "advise", "--labels", "5", "--bits", "0"],
        env={**os.environ, **WIDE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "error: bits must be a whole number of at least 1, got 0\n"


def test_a_real_process_prints_json_and_nothing_else() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "everhash", "advise", "--labels", "397", "--json"],
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


def test_an_os_error_about_a_path_is_one_line(
    refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "a\nb.ever")

    monkeypatch.setattr(Store, "open", fail)
    refused(7, "verify", "shop.ever", says=r"a\nb.ever: Permission denied")


def test_a_warning_is_one_line(tmp_path: Path, write: Write, failing: Any) -> None:
    path = tmp_path / "narrow.ever"
    output("create", path, "--dim", DIM, "--bits", 1, "--labels-per-cycle", 50)
    warnings.simplefilter("always", CodebookWarning)  # pytest sets filters back after each test
    code, printed, said = failing("ingest", path, write(), *COLUMNS)
    assert code == 0
    assert re.fullmatch("warning: .+\n", said)
    assert "30 entries" in printed


def test_ctrl_c_in_any_command_is_one_line(
    monkeypatch: pytest.MonkeyPatch, failing: Any, shop: Path
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(everhash.Collection, "stats", interrupt)
    assert failing("stats", shop) == (130, "", "interrupted\n")


@pytest.mark.parametrize("module", ["typer", "everhash.cli.main", "numpy", "rich.console"])
def test_ctrl_c_while_packages_are_imported_is_one_line(module: str) -> None:
    code = f"""
import builtins, signal, sys
from everhash.cli import run
usual = builtins.__import__
def interrupted(name, *rest):
    if name == {module!r} and name not in sys.modules:
        builtins.__import__ = usual
        signal.raise_signal(signal.SIGINT)
    return usual(name, *rest)
builtins.__import__ = interrupted
run()
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, "methods"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_in_a_callback_whose_exceptions_python_drops_is_one_line() -> None:
    code = """
import os, signal, time, weakref
from everhash import cli
class Thing: pass
def looks(extra):
    thing = Thing()
    there = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing
    time.sleep(20)
cli.missing = looks
cli.run()
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, "methods"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")


def test_a_closed_pipe_is_quiet(shop: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "many.npy", rows(500)[0])  # more than a pipe holds
    with process("search", shop, tmp_path / "many.npy") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        said = running.stderr.read()
    assert said == ""
    assert running.returncode == 1


def test_a_pipe_closed_before_the_first_line_is_quiet(shop: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = subprocess.run(
        [sys.executable, "-m", "everhash", "stats", str(shop), "--json"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)
    assert (ran.returncode, ran.stderr) == (1, "")
