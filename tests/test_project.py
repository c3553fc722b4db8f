"""What the project promises as a whole: light to import, documented, and free of code in data."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import everhash
from everhash import errors
from tests.unit.serve.serving import serving

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, everhash; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {"numba", "sklearn", "scipy", "matplotlib", "safetensors"}
    assert not loaded & {"typer", "rich", "fastapi", "pyarrow"}


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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_source_runs_code_from_data_and_none_is_too_long(path: Path) -> None:
    text = path.read_text()
    banned = r"import pickle|pickle\.load|allow_pickle=True|(?<![\w.])(eval|exec)\("
    assert not re.search(banned, text)
    assert len(text.splitlines()) <= 400


def test_readme_and_docs_examples_run(tmp_path: Path) -> None:
    """Every Python block of README and docs, each page in a process of its own."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        if not blocks:
            continue
        run = subprocess.run(
            [sys.executable, "-c", "\n".join(blocks)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"{page.name}: {run.stderr}"


def test_the_session_in_the_readme_works_line_by_line(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    session = re.findall(
        r"^```sh\n(\. \.venv/bin/activate\n.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    assert len(session) == 1
    lines = session[0].replace(". .venv/bin/activate\n", "")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],  # noqa: S607
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "1,700 rows" in run.stdout
    from_python = re.findall(r"^```console\n(>>> .*?)^```", text, re.MULTILINE | re.DOTALL)[0]
    with everhash.open(tmp_path / "scans.ever") as scans, serving(scans) as served:
        here = from_python.replace("http://127.0.0.1:8765", served.address)
        assert here != from_python
        examples = doctest.DocTestParser().get_doctest(here, {}, "README", None, None)
        told: list[str] = []
        assert doctest.DocTestRunner().run(examples, out=told.append).failed == 0, told
