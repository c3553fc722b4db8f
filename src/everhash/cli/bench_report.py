"""`everhash bench report`: tables and figures from rows of earlier runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everhash.cli.arguments import AsJsonLines
from everhash.cli.formatting import counted, print_json, printable
from everhash.errors import InputError, UnknownNameError
from everhash.extras import require

if TYPE_CHECKING:
    from everhash.bench.experiment import Experiment

RESULTS = Path("everhash-results")
"""Where runs write their rows, and reports their pages."""
PUBLISHED = Path("docs/results")
FOLDERS = (PUBLISHED, RESULTS)
"""Folders with files of rows; a row of the second replaces the same row of the first."""


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files of rows, or names of experiments. Default: all that have rows in "
            "everhash-results/ or docs/results/."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = RESULTS,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace pages and figures that are there.")
    ] = False,
    as_json: AsJsonLines = False,
) -> None:
    """Write tables and figures, one page an experiment, from rows of earlier runs.

    A page that is there already stays as it is, and the command ends with an error, unless
    --overwrite is given.

    Example: everhash bench report table1 --out pages
    """
    require("plot")

    from everhash.bench import report as pages
    from everhash.bench.rows import read_rows

    files = _row_files(names or _with_rows())
    for name in files:  # all of them before any is written
        pages.refuse_to_replace(out / f"{_reported(name).name}.md", overwrite=overwrite)
    for name, paths in files.items():
        rows = read_rows(paths)
        if not rows:
            raise InputError(f"{printable(paths[0])} has no rows yet")
        page, *figures = pages.write(_reported(name), rows, out, overwrite=overwrite)
        if as_json:
            print_json({"page": page, "rows": len(rows), "files": figures})
        else:
            files_of = f"{counted(len(rows), 'row')}, {counted(len(figures), 'file')}"
            typer.echo(f"{printable(page)} ({files_of})")
    index = pages.write_index(out)
    if not as_json:
        typer.echo(printable(index))


def _with_rows() -> list[str]:
    """Return the names of all experiments that have rows.

    Beside rows of experiments, docs/results/ has those of scripts that make their own pages.
    """
    from everhash.bench import experiment

    published, own = ({path.stem for path in folder.glob("*.jsonl")} for folder in FOLDERS)
    names = sorted(published & set(experiment.names()) | own)
    if not names:
        raise InputError(
            f"no rows in {' or '.join(map(str, FOLDERS))}",
            hint="'everhash bench run table1 --data digits --seeds 1' makes some",
        )
    return names


def _row_files(names: list[str]) -> dict[str, list[Path]]:
    """Return the files of each experiment; rows of a later file replace those of an earlier one."""
    files: dict[str, list[Path]] = {}
    for name in names:
        if name.endswith(".jsonl"):
            files.setdefault(Path(name).stem, []).append(Path(name))
            continue
        stem = Path(name).stem if name.endswith(".toml") else name
        found = [path for folder in FOLDERS if (path := folder / f"{stem}.jsonl").is_file()]
        if not found:
            raise UnknownNameError(
                f"no rows of {name!r} in {' or '.join(map(str, FOLDERS))}",
                hint=f"'everhash bench run {name}' makes them; or name a .jsonl file of rows",
            )
        files.setdefault(name, []).extend(found)
    return files


def _reported(name: str) -> Experiment:
    """Return an experiment by name; one that no longer exists has a name and no runs."""
    from everhash.bench import experiment

    if name.endswith(".toml") or name in experiment.names():
        return experiment.load(name)
    return experiment.Experiment(name, name, "", ())
