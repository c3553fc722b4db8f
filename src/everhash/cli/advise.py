"""`everhash advise`: the costs of a choice of bits and labels a cycle."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from everhash.learn.advice import Advice
from everhash.learn.advice import advise as compute_advice


def advise(
    labels: Annotated[int, typer.Argument(help="How many labels you expect in the end.")],
    bits: Annotated[int, typer.Option("--bits", "-k", help="Hash functions a cycle.")] = 32,
    labels_per_cycle: Annotated[
        int | None,
        typer.Option("--labels-per-cycle", "-r", help="Default: 4 ceil(log2 k), at most k."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compute width, storage, refresh cost and the chance that two hash functions are equal.

    Example: everhash advise 397 --bits 32
    """
    advice = compute_advice(labels, bits, labels_per_cycle)
    if as_json:
        typer.echo(json.dumps(advice.as_dict()))
        return
    console = Console()
    console.print(_table(advice))
    for warning in advice.warnings:
        console.print(f"[yellow]warning:[/] {warning}")


def _table(advice: Advice) -> Table:
    table = Table(title=f"{advice.labels} labels at {advice.bits} bits a cycle", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    rows = (
        ("labels a cycle (rho)", f"{advice.labels_per_cycle}", "paper's advice: 4 ceil(log2 k)"),
        ("cycles", f"{advice.cycles}", ""),
        ("width", f"{advice.width} bits", "k for each cycle"),
        ("labelled entry", "0 bytes", "it is its label's codeword"),
        ("unlabelled entry, home cycle", f"{advice.entry_bytes} bytes", "beside id and features"),
        ("unlabelled entry, all cycles", f"{advice.full_entry_bytes} bytes", "as in the paper"),
        ("codewords", f"{advice.codeword_bytes:,} bytes", "all labels together"),
        ("mapping", f"{advice.functions_bytes_per_feature:,} bytes", "for each feature"),
        ("all bipartitions differ", f"{advice.unique_paper:.4f}", "paper's formula"),
        ("  counting complements", f"{advice.unique:.4f}", "and constant columns"),
        ("stale bits a learned row", f"{advice.stale_bits_home:.2f}", "an entry, home cycle"),
        ("", f"{advice.stale_bits_full:.0f}", "an entry, all cycles"),
    )
    for row in rows:
        table.add_row(*row)
    return table
