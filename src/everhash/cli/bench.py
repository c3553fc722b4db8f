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

from everhash.cli.arguments import AsJson, AsJsonLines
from everhash.cli.bench_report import RESULTS, report
from everhash.cli.compare import compare
from everhash.cli.completion import complete_dataset, complete_experiment, complete_methods
from everhash.cli.formatting import counted, print_json, printable
from everhash.errors import InputError, OptionError, UnknownNameError

if TYPE_CHECKING:
    from everhash.bench.experiment import Experiment
    from everhash.bench.rows import RowFile
    from everhash.bench.runner import Failure, Source
    from everhash.bench.task import Row, Task

bench = typer.Typer(
    name="bench",
    help="Run the experiments of the paper and our own, and report on them.",
    no_args_is_help=True,
)
bench.command("compare")(compare)
bench.command("report")(report)
Name = Annotated[
    str,
    typer.Argument(
        help="An experiment by name, or a .toml file of your own.",
        autocompletion=complete_experiment,
    ),
]


@bench.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the experiments and the data sets.

    Example: everhash bench list
    """
    from everhash.bench import datasets, experiment

    experiments = [experiment.load(name) for name in experiment.names()]
    sets = {name: datasets.describe(name) for name in datasets.names()}
    if as_json:
        runs = [{"name": e.name, "title": e.title, "runs": len(e.tasks())} for e in experiments]
        data = [
            {"name": name, "what": about.what, "rows": about.rows, "dim": about.dim}
            | {"labels": about.labels, "here": datasets.is_here(name)}
            for name, about in sets.items()
        ]
        print_json({"experiments": runs, "data": data})
        return
    typer.echo("experiments")
    for each in experiments:
        typer.echo(f"  {each.name:<12}{each.title} ({len(each.tasks()):,} runs)")
    typer.echo("\ndata sets")
    for name, about in sets.items():
        size = f"{about.rows:,} rows x {about.dim}, {about.labels} labels"
        here = "" if datasets.is_here(name) else " (not on this machine)"
        typer.echo(f"  {name:<16}{about.what}: {size}{here}")
    typer.echo("  or a file of your own: everhash bench run NAME --data FILE")


Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="Orderings of the stream. Default: as in the experiment."),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="all, online, batch, or names separated by commas.", autocompletion=complete_methods
    ),
]
CodeLengths = Annotated[str | None, typer.Option(help="Lengths of codes, separated by commas.")]
Data = Annotated[
    str | None,
    typer.Option(
        help="Run on this data set instead: a name, or a file of your own.",
        autocompletion=complete_dataset,
    ),
]
OwnFeatures = Annotated[
    str | None,
    typer.Option(help="Of your own file: its features. Default: found as by everhash ingest."),
]
OwnLabel = Annotated[
    str | None,
    typer.Option(help="Of your own file: its labels. Default: y, labels or label."),
]
Jobs = Annotated[int, typer.Option(min=1, max=256, help="Processes, one thread each.")]
ResultsPath = Annotated[
    Path | None,
    typer.Option(help="File for the results, one row a run. Default: everhash-results/NAME.jsonl."),
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
    results: ResultsPath = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run an experiment and print its tables. Runs that have rows already are skipped.

    Example: everhash bench run table1 --data digits --seeds 1
    """
    from everhash.bench import experiment
    from everhash.bench import report as pages
    from everhash.bench.rows import RowFile
    from everhash.cli.terminal import compile_kernels

    loaded = experiment.load(name)
    source = _source(data, features, label)
    plan = _narrowed(loaded, seeds, methods, bits, source.name if source else data)
    tasks = plan.tasks()
    experiment.check_options(tasks)
    file = RowFile(results or RESULTS / f"{loaded.name}.jsonl")
    _require_data(plan.name, [task for task in tasks if task not in file.done], source)
    if source is not None:
        _describe(source)
    compile_kernels()
    failures = _run(plan.name, tasks, file, jobs, source)
    planned = set(tasks)
    found = [row for row in file.rows if _task(row) in planned]
    for row in found if as_json else ():
        print_json(row)
    if not as_json:
        typer.echo(pages.text(plan, found))
    typer.echo(
        f"results: {printable(file.path)}; for pages with figures: "
        f"everhash bench report {printable(file.path)}",
        err=True,
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
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:8]
    return Source(f"{path.stem}-{digest}", path, features, label)


def _require_data(name: str, tasks: list[Task], source: Source | None) -> None:
    """Raise one error, before anything runs, if a data set of these tasks is missing."""
    from everhash.bench import datasets, images
    from everhash.bench.kinds import KINDS

    if any(KINDS[task.kind].needs_images for task in tasks):
        images.require()
    wanted = list(dict.fromkeys((task.dataset, KINDS[task.kind].needs_data) for task in tasks))
    named = [
        each
        for each, needed in wanted
        if (needed or each in datasets.names()) and (source is None or each != source.name)
    ]
    here = [each for each in named if datasets.is_here(each)]
    run = f"or run {name} without it: --data {' or --data '.join(here or ['digits'])}"
    datasets.require(named, run)


def _describe(source: Source) -> None:
    """Say what was read from the user's own file; raise if it cannot be used."""
    from everhash.bench.data_file import from_file

    data = from_file(source.path, source.features, source.label, source.name)
    labelled = int((data.y >= 0).sum())
    without = f", {len(data.y) - labelled:,} of them without a label" * (labelled < len(data.y))
    typer.echo(
        f"{printable(source.path)} is called {printable(source.name)}: {len(data.X):,} rows x "
        f"{data.X.shape[1]}{without}, {counted(len(data.classes or ()), 'label')}",
        err=True,
    )


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


def _run(
    name: str, tasks: list[Task], file: RowFile, jobs: int, source: Source | None
) -> list[Failure]:
    """Run the tasks that have no rows yet; say which is done, and by which protocol."""
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
            what = f"{name}: {_in_words(task)}"
            line = f"{what}: {result.why if isinstance(result, Failure) else _took(result)}"
            progress.update(bar, advance=1, description=escape(what))
            if failed or not sys.stderr.isatty():
                console.print(escape(line), highlight=False, soft_wrap=True)

        return run(tasks, file, jobs=jobs, source=source, report=report)


def _in_words(task: Task) -> str:
    """Return a task as people read it: data, method, bits, ordering and protocol."""
    from everhash.bench.kinds import KINDS, PROTOCOLS

    words = [task.dataset, task.variant, *([f"{task.bits} bits"] if task.bits else [])]
    words.append(f"ordering {task.seed + 1}")
    if KINDS[task.kind].needs_data:
        share = f", {task.share:.0%}" if task.share else ""
        words.append(f"protocol {task.protocol} ({PROTOCOLS[task.protocol]}{share})")
    return ", ".join(words)


def _took(row: Row) -> str:
    return f"{row['taken']:.1f} s"
