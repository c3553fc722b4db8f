"""`everhash search`: print the nearest entries of each query."""

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
Distance = Annotated[
    Literal["asymmetric", "hamming"],
    typer.Option(help="Compare by the query's margins, or by the bits that differ."),
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
    distance: Distance = "asymmetric",
    features: Features = None,
    only: Only = None,
    limit: Limit = None,
    explain: Explain = False,
    as_json: AsJsonLines = False,
) -> None:
    """Find the nearest entries of each query.

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
        labels, start = known_labels(collection, only) if only else None, 0
        for batch in _batches(collection, queries, like, features, limit):
            with waiting():
                kernels.load_search()
            search = collection.search_like if isinstance(batch, list) else collection.search
            matches = search(batch, k, distance, labels=labels, explain=explain, payloads=True)
            _print(describe(matches, start), explain, as_json)
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


def _print(answers: list[dict[str, Any]], explain: bool, as_json: bool) -> None:
    if not as_json:
        _print_table(answers, explain=explain)
        return
    for answer in answers:
        print_json(answer)


def describe(matches: Matches, first: int = 0) -> list[dict[str, Any]]:
    """Return matches as plain values, one dictionary a query; queries are numbered from `first`."""
    return [
        {
            "query": first + row,
            "novelty": _number(matches.novelty[row]),
            "matches": _describe_row(matches, row),
        }
        for row in range(len(matches))
    ]


def _describe_row(matches: Matches, row: int) -> list[dict[str, Any]]:
    n = int(matches.counts[row])
    ids, labels = (column[row, :n].tolist() for column in (matches.ids, matches.labels))
    distances = map(_number, matches.distances[row, :n])
    found: list[dict[str, Any]] = [
        {"id": id_, "label": label, "distance": distance}
        for id_, label, distance in zip(ids, labels, distances, strict=True)
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


def _print_table(answers: list[dict[str, Any]], *, explain: bool) -> None:
    """Print matches in columns: much faster than a Rich table, and easy to cut and grep."""
    payloads = any("payload" in match for answer in answers for match in answer["matches"])
    rows = [
        [
            str(answer["query"]),
            str(rank),
            f"{match['distance']:.4g}",
            "" if match["label"] is None else printable(match["label"]),
            printable(match["id"]),
            *((_explain(match["why"]),) if explain else ()),
            *((payload_line(match["payload"]) if "payload" in match else "",) if payloads else ()),
        ]
        for answer in answers
        for rank, match in enumerate(answer["matches"], start=1)
    ]
    optional = [name for name, on in (("why", explain), ("payload", payloads)) if on]
    heading = ["query", "rank", "distance", "label", "id", *optional]
    widths = [max(map(cell_len, column)) for column in zip(heading, *rows, strict=True)]
    typer.secho(_line(heading, widths), bold=True)
    for row in rows:
        typer.echo(_line(row, widths))


def _line(cells: list[str], widths: list[int]) -> str:
    """Return cells as one line: the three numbers aligned right, texts left."""
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    pairs = enumerate(zip(gaps, cells, strict=True))
    return "  ".join(gap + cell if i < 3 else cell + gap for i, (gap, cell) in pairs).rstrip()


def _explain(why: dict[str, Any]) -> str:
    where = "all cycles" if why["cycle"] is None else f"cycle {why['cycle']}"
    bits = why["agree"] + len(why["differ"])
    return f"{why['compared']}, {where}: {why['agree']} of {bits} bits agree"
