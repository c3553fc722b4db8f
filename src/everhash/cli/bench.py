"""`everhash bench`: run experiments, report on their rows, compare two runs."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from everhash.cli.compare import compare
from everhash.cli.formatting import counted, printable
from everhash.errors import InputError, OptionError, UnknownNameError
from everhash.extras import require

if TYPE_CHECKING:
    from everhash.bench.experiment import Experiment
    from everhash.bench.rows import RowFile
    from everhash.bench.runner import Failure, Source
    from everhash.bench.task import Row, Task

RESULTS = Path("everhash-results")
bench = typer.Typer(
    name="bench",
    help="Run the experiments of the paper and our own, and report on them.",
    no_args_is_help=True,
)
bench.command("compare")(compare)
Name = Annotated[str, typer.Argument(help="An experiment by name, or a .toml file of your own.")]


@bench.command("list")
def list_() -> None:
    """List the experiments and the data sets.

    Example: everhash bench list
    """
    from everhash.bench import datasets, experiment

    typer.echo("experiments")
    for name in experiment.names():
        loaded = experiment.load(name)
        typer.echo(f"  {name:<12}{loaded.title} ({len(loaded.tasks()):,} runs)")
    typer.echo("\ndata sets")
    for name in datasets.names():
        about = datasets.describe(name)
        size = f"{about.rows:,} rows x {about.dim}, {about.labels} labels"
        typer.echo(f"  {name:<16}{about.what}: {size}")
    typer.echo("  or any file of your own: run NAME --data FILE --features COL --label COL")


Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="Orderings of the stream. Default: as in the experiment."),
]
Methods = Annotated[
    str | None, typer.Option(help="all, online, batch, or names separated by commas.")
]
CodeLengths = Annotated[str | None, typer.Option(help="Lengths of codes, separated by commas.")]
Data = Annotated[
    str | None,
    typer.Option(help="Run on this data set instead: a name, or a file of your own."),
]
OwnFeatures = Annotated[
    str | None, typer.Option(help="Of your own file: its column or columns of features.")
]
OwnLabel = Annotated[str | None, typer.Option(help="Of your own file: its column of labels.")]
Jobs = Annotated[int, typer.Option(min=1, max=256, help="Processes, one thread each.")]
RowsPath = Annotated[
    Path | None, typer.Option(help="File for the rows. Default: everhash-results/NAME.jsonl.")
]


@bench.command()
def run(
    name: Name,
    seeds: Seeds = None,
    methods: Methods = None,
    bits: CodeLengths = None,
    data: Data = None,
    features: OwnFeatures = None,
    label: OwnLabel = None,
    jobs: Jobs = 1,
    rows: RowsPath = None,
) -> None:
    """Run an experiment and print its tables. Runs that have rows already are skipped.

    Example: everhash bench run table1 --data digits --seeds 1
    """
    from everhash.bench import experiment, report
    from everhash.bench.rows import RowFile
    from everhash.cli.terminal import compile_kernels

    loaded = experiment.load(name)
    source = _source(data, features, label)
    plan = _narrowed(loaded, seeds, methods, bits, source.name if source else data)
    tasks = plan.tasks()
    file = RowFile(rows or RESULTS / f"{loaded.name}.jsonl")
    compile_kernels()
    failures = _run(tasks, file, jobs, source)
    planned = set(tasks)
    found = [row for row in file.rows if _task(row) in planned]
    typer.echo(report.text(plan, found))
    typer.echo(
        f"rows: {printable(file.path)} (everhash bench report {printable(file.path)})", err=True
    )
    if failures:
        raise InputError(
            f"{len(failures)} of {len(tasks)} runs failed, the first with {failures[0].why}",
            hint="the others have their rows; repeat the command to try the failed ones again",
        )


def _task(row: Row) -> Task:
    from everhash.bench.task import Task

    return Task.of(row)


def _source(data: str | None, features: str | None, label: str | None) -> Source | None:
    """Return the user's own file, named by a hash of its content so that rows never mix."""
    from everhash.bench import datasets
    from everhash.bench.runner import Source

    if data is None or data in datasets.names():
        if features or label:
            raise OptionError("--features and --label are for a file of your own in --data")
        return None
    path = Path(data)
    if not path.is_file():
        raise UnknownNameError(
            f"{printable(data)} is neither a data set nor a file",
            hint=f"there are {', '.join(datasets.names())}",
        )
    if not (features and label):
        raise OptionError(f"which columns of {data}?", hint="pass --features and --label")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:8]
    return Source(f"{path.stem}-{digest}", path, features, label)


def _narrowed(
    loaded: Experiment,
    seeds: int | None,
    methods: str | None,
    bits: str | None,
    data: str | None,
) -> Experiment:
    """Return an experiment with the options of the command line in place of its own."""
    changes: dict[str, Any] = {}
    if seeds is not None:
        changes |= {"seeds": seeds, "batch_seeds": seeds}
    if methods is not None:
        changes["methods"] = methods
    if bits is not None:
        if not all(part.strip().isdigit() for part in bits.split(",")):
            raise OptionError(f"--bits must be numbers separated by commas, got {bits!r}")
        changes["bits"] = tuple(int(part) for part in bits.split(","))
    if data is not None:
        changes["dataset"] = data
    return replace(loaded, runs=tuple(replace(runs, **changes) for runs in loaded.runs))


def _run(tasks: list[Task], file: RowFile, jobs: int, source: Source | None) -> list[Failure]:
    """Run the tasks that have no rows yet, with a progress bar."""
    from everhash.bench.runner import Failure, run

    done = sum(task in file.done for task in tasks)
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not sys.stderr.isatty(),
    ) as progress:
        bar = progress.add_task("running", total=len(tasks), completed=done)

        def report(result: Row | Failure) -> None:
            failed = isinstance(result, Failure)
            task = result.task if isinstance(result, Failure) else _task(result)
            what = f"{task.dataset} {task.variant} {task.bits or '-'} bits, seed {task.seed}"
            line = f"{what}: {result.why if isinstance(result, Failure) else _took(result)}"
            progress.update(bar, advance=1, description=escape(what))
            if failed or not sys.stderr.isatty():
                console.print(escape(line), highlight=False, soft_wrap=True)

        return run(tasks, file, jobs=jobs, source=source, report=report)


def _took(row: Row) -> str:
    return f"{row['taken']:.1f} s"


PUBLISHED = Path("docs/results")
FOLDERS = (PUBLISHED, RESULTS)
"""Folders with files of rows; a row of the second replaces the same row of the first."""


@bench.command("report")
def report_(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files of rows, or names of experiments. Default: all that have rows in "
            "everhash-results/ or docs/results/."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = PUBLISHED,
) -> None:
    """Write tables and figures, one page an experiment, from rows of earlier runs.

    Example: everhash bench report table1 --out docs/results
    """
    require("plot")

    from everhash.bench import report
    from everhash.bench.rows import read_rows

    for name, paths in _row_files(names or _with_rows()).items():
        rows = read_rows(paths)
        if not rows:
            raise InputError(f"{printable(paths[0])} has no rows yet")
        page, *figures = report.write(_reported(name), rows, out)
        typer.echo(
            f"{printable(page)} ({counted(len(rows), 'row')}, {counted(len(figures), 'file')})"
        )
    typer.echo(printable(report.write_index(out)))


def _with_rows() -> list[str]:
    """Return the names of all experiments that have rows."""
    names = sorted({path.stem for folder in FOLDERS for path in folder.glob("*.jsonl")})
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
