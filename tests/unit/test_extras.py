"""Optional packages that are not installed: one line that says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from everhash.errors import OptionError
from everhash.extras import EXTRAS, missing, require
from tests.cluster.on_ray import need_ray
from tests.unit.peers.deep.pictures import need_torch

HIDE = "import sys; sys.modules |= dict.fromkeys(sys.argv.pop(1).split(',')); "
"""Code that makes packages look as if they were not installed."""


def run_without(packages: str, *arguments: object) -> tuple[int, str, str]:
    """Run a command without some packages; return its exit code, stdout and stderr."""
    code = f"{HIDE} from everhash.cli import run; run()"
    ran = subprocess.run(
        [sys.executable, "-c", code, packages, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    ("packages", "arguments", "says"),
    [
        ("typer", ["--version"], "the command line needs: pip install 'everhash[cli]'"),
        ("rich", ["--version"], "the command line needs: pip install 'everhash[cli]'"),
        ("fastapi", ["serve", "a.ever"], "the service needs: pip install 'everhash[serve]'"),
        ("uvicorn", ["demo", "--serve"], "the service needs: pip install 'everhash[serve]'"),
        (
            "ray",
            ["cluster", "create", "a", "--dim", "3"],
            "a cluster needs: pip install 'everhash[cluster]'",
        ),
        ("matplotlib", ["bench", "report"], "a picture needs: pip install 'everhash[plot]'"),
    ],
)
def test_a_command_without_its_packages_says_what_to_install(
    packages: str, arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_without(packages, *arguments) == (2, "", f"error: {says}\n")
    assert list(tmp_path.iterdir()) == []


def test_commands_load_no_packages_of_other_extras() -> None:
    code = "import sys, everhash.cli.main; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {"matplotlib", "fastapi", "uvicorn", "starlette", "pydantic", "sklearn"}


def test_other_commands_work_without_the_packages_of_plot_and_serve(tmp_path: Path) -> None:
    packages = ",".join(package for extra in ("plot", "serve") for package in EXTRAS[extra][1])
    path = tmp_path / "a.ever"
    code, printed, said = run_without(packages, "create", path, "--dim", 3)
    assert (code, said) == (0, "")
    assert printed.startswith(f"created {path}")


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"bench"}))
def test_an_extra_is_missing_if_one_of_its_packages_is(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if extra == "cluster":
        need_ray()
    if extra == "deep":
        need_torch()
    assert missing(extra) is None
    require(extra)
    for package in EXTRAS[extra][1]:
        with monkeypatch.context() as hidden:
            hidden.setitem(sys.modules, package, None)
            with pytest.raises(OptionError, match=rf"pip install 'everhash\[{extra}\]'"):
                require(extra)
