"""`everhash search`: print the best entries of each query."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray
from rich.cells import cell_len

from everhash import kernels
from everhash.cli.arguments import (
    Features,
    File,
    file_argument,
    known_labels,
    open_collection,
    parse_ids,
)
from everhash.cli.formatting import payload_line, print_json, printable
from everhash.cli.terminal import waiting
from everhash.collection.collection import Collection
from everhash.errors import OptionError
from everhash.learn.options import whole_number
from everhash.matches import Explanation, Matches
from everhash.sources import read
from everhash.stream import as_rows
from everhash.wire.ids import Id

QUERIES_A_BATCH = 1000
QueryFile = Annotated[
    Path | None, file_argument("File of queries, in any format that ingest reads.")
]
Like = Annotated[
    list[str] | None,
    typer.Option(help="Search by this entry instead of a file; may be repeated."),
]
K = Annotated[int, typer.Option("-k", help="Entries a query.")]
By = Annotated[
    Literal["meaning", "likeness", "auto", "asymmetric", "hamming"],
    typer.Option(
        help="Rank by the probability of having the query's label, by cosine, by whichever fits "
        "the query, or by the distance of codes."
    ),
]
Unlabelled = Annotated[bool, typer.Option("--unlabelled", help="Only entries without a label.")]
Exact = Annotated[
    bool, typer.Option("--exact", help="Compare features instead of codes, where they are kept.")
]
Only = Annotated[
    list[str] | None, typer.Option(help="Only entries with this label; may be repeated.")
]
Limit = Annotated[int | None, typer.Option(help="Use only the first queries of the file.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Explain for each entry why it was found.")
]
AsJsonLines = Annotated[
    bool, typer.Option("--json", help="Print one JSON object a query, one a line.")
]


def search(
    path: File,
    queries: QueryFile = None,
    like: Like = None,
    k: K = 10,
    by: By = "meaning",
    features: Features = None,
    only: Only = None,
    unlabelled: Unlabelled = False,
    exact: Exact = False,
    limit: Limit = None,
    explain: Explain = False,
    as_json: AsJsonLines = False,
) -> None:
    """Find the best entries of each query.

    A score is a probability by meaning, a cosine by likeness, and otherwise a
    distance. A label with a ~ is a guess: what an unlabelled entry is taken for.
    A label is a text, unless the collection knows it only as a number.

    Example: everhash search shop.ever query.npy -k 10 --only shoes --only boots
    """
    if (queries is None) == (not like):
        raise OptionError(
            "expected a file of queries or --like ID", hint="one of them: search FILE --like sku-17"
        )
    if limit is not None:
        whole_number("--limit", limit, least=1)
    with open_collection(path, readonly=True) as collection:
        start = 0
        options: dict[str, Any] = {
            "labels": known_labels(collection, only) if only else None,
            **{"unlabelled": unlabelled, "exact": exact, "explain": explain, "payloads": True},
        }
        for batch in _batches(collection, queries, like, features, limit):
            with waiting():
                kernels.load_search()
                kernels.load_likeness()
            search = collection.search_like if isinstance(batch, list) else collection.search
            answers = describe(search(batch, k, by, **options), start)
            if as_json:
                for answer in answers:
                    print_json(answer)
            else:
                _print_table(answers, explain=explain, ways=by == "auto")
            start += len(batch)


def _batches(
    collection: Collection,
    queries: Path | None,
    like: list[str] | None,
    features: str | None,
    limit: int | None,
) -> Iterator[NDArray[np.float32] | list[Id]]:
    """Yield the queries: all ids of entries at once, or rows of the file in batches."""
    left = sys.maxsize if limit is None else limit
    if queries is None:
        yield parse_ids(collection, like or [])[:left]
        return
    for batch in read(queries, features=features, rows=QUERIES_A_BATCH):
        yield as_rows(batch.X[:left], collection.hasher.n_features_in_, "the collection")
        left -= len(batch.X)
        if left <= 0:
            return


def describe(matches: Matches, first: int = 0) -> list[dict[str, Any]]:
    """Return matches as plain values, one dictionary a query; queries are numbered from `first`."""
    return [
        {
            "query": first + row,
            "novelty": _number(matches.novelty[row]),
            "by": matches.by[row],
            "matches": _describe_row(matches, row),
        }
        for row in range(len(matches))
    ]


def _describe_row(matches: Matches, row: int) -> list[dict[str, Any]]:
    n = int(matches.counts[row])
    columns = {
        "id": matches.ids[row, :n].tolist(),
        "label": matches.labels[row, :n].tolist(),
        "guess": matches.guesses[row, :n].tolist(),
        "score": list(map(_number, matches.scores[row, :n])),
        "likeness": list(map(_number, matches.likeness[row, :n])),
    }
    found: list[dict[str, Any]] = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    for match, payload in zip(found, matches.payloads[row], strict=True):
        if payload is not None:
            match["payload"] = payload
    if matches.explanations:
        for match, explanation in zip(found, matches.explanations[row], strict=True):
            match["why"] = _why(explanation)
    return found


def _number(value: np.float32) -> float | None:
    """Return the shortest decimal that rounds to this float32; None if it is not finite."""
    return float(str(value)) if math.isfinite(value) else None


def _why(explanation: Explanation) -> dict[str, Any]:
    bits = explanation.bits
    return {
        "compared": "codeword" if explanation.label is not None else "own bits",
        "cycle": None if explanation.cycle < 0 else explanation.cycle,
        "agree": int((bits > 0).sum()),
        "differ": np.flatnonzero(bits < 0).tolist(),
    }


def _print_table(answers: list[dict[str, Any]], *, explain: bool, ways: bool) -> None:
    """Print matches in columns: much faster than a Rich table, and easy to cut and grep."""
    payloads = any("payload" in match for answer in answers for match in answer["matches"])
    rows = [
        [
            str(answer["query"]),
            str(rank),
            _score(match["score"], answer["by"]),
            "-" if match["likeness"] is None else f"{match['likeness']:.2f}",
            _label(match),
            printable(match["id"]),
            *((answer["by"],) if ways else ()),
            *((_explain(match["why"]),) if explain else ()),
            *((payload_line(match["payload"]) if "payload" in match else "",) if payloads else ()),
        ]
        for answer in answers
        for rank, match in enumerate(answer["matches"], start=1)
    ]
    shown = (("by", ways), ("why", explain), ("payload", payloads))
    heading = ["query", "rank", "score", "likeness", "label", "id"]
    heading += [name for name, on in shown if on]
    widths = [max(map(cell_len, column)) for column in zip(heading, *rows, strict=True)]
    typer.secho(_line(heading, widths), bold=True)
    for row in rows:
        typer.echo(_line(row, widths))


def _score(score: float, by: str) -> str:
    """Return a probability or a cosine with two digits, a distance with what tells them apart."""
    return f"{score:.4g}" if by in ("asymmetric", "hamming") else f"{score:.2f}"


def _label(match: dict[str, Any]) -> str:
    """Return the label of an entry, or with a ~ the one it is taken for."""
    if match["label"] is not None:
        return printable(match["label"])
    return "" if match["guess"] is None else f"~{printable(match['guess'])}"


def _line(cells: list[str], widths: list[int]) -> str:
    """Return cells as one line: the four numbers aligned right, texts left."""
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    pairs = enumerate(zip(gaps, cells, strict=True))
    return "  ".join(gap + cell if i < 4 else cell + gap for i, (gap, cell) in pairs).rstrip()


def _explain(why: dict[str, Any]) -> str:
    where = "all cycles" if why["cycle"] is None else f"cycle {why['cycle']}"
    bits = why["agree"] + len(why["differ"])
    return f"{why['compared']}, {where}: {why['agree']} of {bits} bits agree"
