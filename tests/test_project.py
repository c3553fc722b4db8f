"""What the project promises as a whole: light to import, documented, and free of code in data."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import everhash
from everhash import errors

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def name_of(path: Path) -> str:
    """Return the path of a file in the repository."""
    return path.relative_to(ROOT).as_posix()


MAX_FILE_LINES, MAX_FUNCTION_LINES = 350, 60
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS_OF_ROOMS = {
    "cli": {"cli", "plot", "cluster"},
    "serve": {"serve"},
    "bench": {"bench"},
    "cluster": {"cluster"},
    "peers": {"deep"},
}
"""The extras a folder of `src/everhash` may import from; the rest has the base install only."""
DISTRIBUTIONS = {"sklearn": "scikit-learn", "faiss": "faiss-cpu"}
"""What to install for a module, where the name is not the module's own."""


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, everhash; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {
        "numba",
        "sklearn",
        "scipy",
        "matplotlib",
        "safetensors",
        "pyarrow",
        "torch",
    }
    assert not loaded & {"typer", "rich", "fastapi", "pydantic", "prometheus_client", "httpx"}


def test_import_takes_at_most_three_tenths_of_a_second() -> None:
    """Best of five, in fresh processes, of what the import itself takes."""
    code = "from time import perf_counter as t; s = t(); import everhash; print(t() - s)"
    seconds = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(seconds) <= 0.3


def test_every_public_name_is_there_and_documented() -> None:
    reference = (ROOT / "docs" / "reference.md").read_text()
    for name in everhash.__all__:
        value = getattr(everhash, name)
        if name != "__version__":
            assert value.__doc__, f"{name} has no docstring"
            assert f"`{name}" in reference, f"{name} is not in docs/reference.md"


def test_every_error_is_documented_and_has_an_exit_code() -> None:
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.EverhashError)
    ]
    assert len(classes) > 5
    for error in classes:
        assert error.__name__ in (errors.__doc__ or "")
        assert 1 <= errors.exit_code(error.__new__(error)) <= 10


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_source_runs_code_from_data_and_none_is_too_long(path: Path) -> None:
    text = path.read_text()
    banned = r"import pickle|pickle\.load|allow_pickle=True|(?<![\w.])(eval|exec)\("
    assert not re.search(banned, text)
    assert len(text.splitlines()) <= MAX_FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= MAX_FUNCTION_LINES, f"{node.name} has {lines} lines"


def distributions(requirements: list[str]) -> set[str]:
    """Return the names of requirements; of our own extras, what they require."""
    names = set()
    for requirement in requirements:
        if own := re.fullmatch(r"everhash\[(.*)\]", requirement):
            for extra in own[1].split(","):
                names |= distributions(PROJECT["optional-dependencies"][extra])
        else:
            names.add(re.split(r"[^\w.-]", requirement)[0].lower())
    return names


def imported(path: Path) -> Iterator[str]:
    """Yield the top-level modules a source imports, also inside functions and by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                yield from (alias.name.partition(".")[0] for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case ast.Call(func=ast.Name("import_module"), args=[ast.Constant(str(module)), *_]):
                yield module.partition(".")[0]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_import_is_of_a_declared_dependency(path: Path) -> None:
    """Of the base install, or of an extra that the file's folder may count on."""
    room = path.relative_to(ROOT / "src" / "everhash").parts[0]
    declared = distributions(PROJECT["dependencies"])
    for extra in EXTRAS_OF_ROOMS.get(room, ()):
        declared |= distributions(PROJECT["optional-dependencies"][extra])
    others = set(imported(path)) - sys.stdlib_module_names - {"everhash"}
    assert {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in others} <= declared


def test_all_extras_is_what_users_need_together() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(extras) == {"cli", "serve", "plot", "bench", "cluster", "deep", "all", "dev"}
    users = set().union(*(distributions(extras[name]) for name in extras if name != "dev"))
    assert distributions(extras["all"]) == users
