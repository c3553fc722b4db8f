"""`everhash advise`: which setting to take for data of a size, why, and what it costs."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from everhash.cli.formatting import size
from everhash.learn.advice import Advice
from everhash.learn.advice import advise as compute_advice

DEFAULTS = {
    "labels_per_cycle": "auto",
    "learner": "exact",
    "features": 1000,
    "keep_features": "all",
    "likeness": True,
}
"""What `everhash create` does unless told; the command that is advised leaves it out."""


def advise(
    labels: Annotated[int, typer.Option(help="How many labels you expect in the end.")],
    rows: Annotated[int | None, typer.Option(help="How many rows you expect in the end.")] = None,
    dim: Annotated[int | None, typer.Option(help="Features of a row.")] = None,
    bits: Annotated[int | None, typer.Option(help="Keep to these hash functions a cycle.")] = None,
    labels_per_cycle: Annotated[
        int | None, typer.Option(help="Keep to these labels a cycle.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Advise a setting for data of a size: the command to create it, why, and what it costs.

    Example: everhash advise --rows 1000000 --labels 1000 --dim 384
    """
    advice = compute_advice(
        labels, rows=rows, dim=dim, bits=bits, labels_per_cycle=labels_per_cycle
    )
    if as_json:
        typer.echo(json.dumps(advice.as_dict()))
        return
    typer.echo(command(advice))
    console = Console(highlight=False)
    console.print()
    for choice in advice.setting:
        console.print(f"[bold]{choice.option}[/] {choice.value}: {choice.why}", soft_wrap=True)
    console.print()
    for line in advice.consider:
        console.print(f"[bold]consider:[/] {line}", soft_wrap=True)
    for line in advice.warnings:
        console.print(f"[yellow]warning:[/] {line}", soft_wrap=True)
    console.print()
    console.print(_table(advice))


def command(advice: Advice) -> str:
    """Return the command that creates the advised collection."""
    given = {choice.option: choice.value for choice in advice.setting}
    dim = given.pop("dim", "DIM")
    said = [f"--{name.replace('_', '-')} {value}" for name, value in given.items()]
    changed = [
        text
        for text, (name, value) in zip(said, given.items(), strict=True)
        if DEFAULTS.get(name) != value
    ]
    return " ".join(["everhash create my.ever --dim", str(dim), *changed])


def _table(advice: Advice) -> Table:
    table = Table(title=f"{advice.labels} labels at {advice.bits} bits a cycle", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in (*_sizes(advice), *_codes(advice)):
        table.add_row(*row)
    return table


def _sizes(advice: Advice) -> list[tuple[str, str, str]]:
    """Return what depends on the features of a row, and on how many rows there are."""
    if advice.dim is None:
        return [("entry, learner, learning time", "?", "give --dim and --rows")]
    rows = [
        (
            "labelled entry on disk",
            f"{advice.labelled_disk_bytes:,} bytes",
            f"{advice.feature_bytes:,} of them features",
        ),
        ("  in memory", f"{advice.labelled_memory_bytes:,} bytes", "features stay on disk"),
        ("unlabelled entry on disk", f"{advice.unlabelled_disk_bytes:,} bytes", "the same"),
        ("  in memory", f"{advice.unlabelled_memory_bytes:,} bytes", ""),
    ]
    if advice.learner_bytes is not None:
        rows.append(("learner in memory", size(advice.learner_bytes), "all labels included"))
    if advice.rows is None or advice.disk_bytes is None or advice.memory_bytes is None:
        return rows
    seconds = advice.learning_seconds or 0.0
    return [
        *rows,
        ("all rows on disk", size(advice.disk_bytes), f"{advice.rows:,} labelled rows"),
        ("  in memory", size(advice.memory_bytes), "with the learner"),
        ("learning all rows", f"{seconds:,.0f} s", "one thread, solving included"),
    ]


def _codes(advice: Advice) -> list[tuple[str, str, str]]:
    """Return what codes alone cost, and how sound they are."""
    return [
        ("labels a cycle (rho)", f"{advice.labels_per_cycle}", "paper's advice: 4 ceil(log2 k)"),
        ("cycles", f"{advice.cycles}", ""),
        ("width", f"{advice.width} bits", "k for each cycle"),
        ("code, home cycle", f"{advice.entry_bytes} bytes", "an unlabelled entry's"),
        ("code, all cycles", f"{advice.full_entry_bytes} bytes", "as in the paper"),
        ("codewords", f"{advice.codeword_bytes:,} bytes", "all labels together"),
        ("mapping", f"{advice.functions_bytes_per_feature:,} bytes", "for each feature"),
        ("all bipartitions differ", f"{advice.unique_paper:.4f}", "paper's formula"),
        ("  counting complements", f"{advice.unique:.4f}", "and constant columns"),
        ("stale bits a learned row", f"{advice.stale_bits_home:.2f}", "an entry, home cycle"),
        ("  all cycles", f"{advice.stale_bits_full:.0f}", "an entry"),
    ]
