"""`everhash search`: the nearest entries of queries from a file."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, islice
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
    meant_ids,
    opened,
)
from everhash.cli.formatting import print_json, shown, told
from everhash.cli.terminal import waiting
from everhash.collection.collection import Collection
from everhash.errors import OptionError
from everhash.learn.options import whole_number
from everhash.matches import Explanation, Matches
from everhash.sources import read
from everhash.stream import as_rows
from everhash.wire.ids import Id

BATCH = 1000
"""Queries answered at a time."""
TOGETHER = 1000
"""Entries whose payloads are read at a time."""


def search(
    path: File,
    queries: Annotated[
        Path | None, file_argument("File of queries, of any kind ingest reads.")
    ] = None,
    like: Annotated[
        list[str] | None,
        typer.Option(help="Search by this entry instead of a file; may be repeated."),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Entries a query.")] = 10,
    distance: Annotated[
        Literal["asymmetric", "hamming"],
        typer.Option(help="Count the query's margins, or the bits that differ."),
    ] = "asymmetric",
    features: Features = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only entries with this label; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the file's first queries.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say for each entry why it was found.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a query, one a line.")
    ] = False,
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
    with opened(path, readonly=True) as collection:
        labels, start = known_labels(collection, only) if only else None, 0
        for asked in _asked(collection, queries, like, features, limit):
            with waiting():
                kernels.load_search()
            search = collection.search_like if isinstance(asked, list) else collection.search
            matches = search(asked, k, distance, labels=labels, explain=explain)
            _print(describe(matches, _payloads(collection, matches), start), explain, as_json)
            start += len(asked)


def _asked(
    collection: Collection,
    queries: Path | None,
    like: list[str] | None,
    features: str | None,
    limit: int | None,
) -> Iterator[NDArray[np.float32] | list[Id]]:
    """Go through what is asked: ids of entries, or rows of a file."""
    left = sys.maxsize if limit is None else limit
    if queries is None:
        yield meant_ids(collection, like or [])[:left]
        return
    for batch in read(queries, features=features, rows=BATCH):
        yield as_rows(batch.X[:left], collection.hasher.n_features_in_, "the collection")
        left -= len(batch.X)
        if left <= 0:
            return


def _print(found: list[dict[str, Any]], explain: bool, as_json: bool) -> None:
    if not as_json:
        _print_table(found, explain=explain)
        return
    for answer in found:
        print_json(answer)


def _payloads(collection: Collection, matches: Matches) -> dict[Id, Any]:
    """Return the payloads of those entries that carry one."""
    found = (ids[:n] for ids, n in zip(matches.ids.tolist(), matches.counts.tolist(), strict=True))
    names = iter(dict.fromkeys(chain.from_iterable(found)))
    payloads: dict[Id, Any] = {}
    while some := list(islice(names, TOGETHER)):
        carried = zip(some, collection.attachments(some), strict=True)
        payloads |= {name: each.payload for name, each in carried if each.payload is not None}
    return payloads


def describe(matches: Matches, payloads: Mapping[Id, Any], first: int = 0) -> list[dict[str, Any]]:
    """Return matches as plain values, one dictionary a query; `first` is the first's number."""
    answers = []
    for row in range(len(matches)):
        n = int(matches.counts[row])
        found = [
            {"id": name, "label": label, "distance": _number(distance)}
            for name, label, distance in zip(
                matches.ids[row, :n].tolist(),
                matches.labels[row, :n].tolist(),
                matches.distances[row, :n],
                strict=True,
            )
        ]
        for match in found:
            if match["id"] in payloads:
                match["payload"] = payloads[match["id"]]
        if matches.explanations:
            for match, why in zip(found, matches.explanations[row], strict=True):
                match["why"] = _why(why)
        novelty = _number(matches.novelty[row])
        answers.append({"query": first + row, "novelty": novelty, "matches": found})
    return answers


def _number(value: np.float32) -> float | None:
    """Return the shortest decimal that means this float32; None where it is no number."""
    return float(str(value)) if math.isfinite(value) else None


def _why(explanation: Explanation) -> dict[str, Any]:
    bits = explanation.bits
    return {
        "compared": "codeword" if explanation.label is not None else "own bits",
        "cycle": None if explanation.cycle < 0 else explanation.cycle,
        "agree": int((bits > 0).sum()),
        "differ": np.flatnonzero(bits < 0).tolist(),
    }


def _print_table(found: list[dict[str, Any]], *, explain: bool) -> None:
    """Print matches in columns; far quicker than a Rich table, and easy to cut and grep."""
    carry = any("payload" in match for answer in found for match in answer["matches"])
    rows = [
        [
            str(answer["query"]),
            str(rank),
            f"{match['distance']:.4g}",
            "" if match["label"] is None else shown(match["label"]),
            shown(match["id"]),
            *((_in_words(match["why"]),) if explain else ()),
            *((told(match["payload"]) if "payload" in match else "",) if carry else ()),
        ]
        for answer in found
        for rank, match in enumerate(answer["matches"], start=1)
    ]
    more = [name for name, there in (("why", explain), ("payload", carry)) if there]
    heading = ["query", "rank", "distance", "label", "id", *more]
    widths = [max(map(cell_len, column)) for column in zip(heading, *rows, strict=True)]
    typer.secho(_line(heading, widths), bold=True)
    for row in rows:
        typer.echo(_line(row, widths))


def _line(cells: list[str], widths: list[int]) -> str:
    """Put cells side by side: numbers to the right, texts to the left."""
    gaps = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    pairs = enumerate(zip(gaps, cells, strict=True))
    return "  ".join(gap + cell if i < 3 else cell + gap for i, (gap, cell) in pairs).rstrip()


def _in_words(why: dict[str, Any]) -> str:
    where = "all cycles" if why["cycle"] is None else f"cycle {why['cycle']}"
    bits = why["agree"] + len(why["differ"])
    return f"{why['compared']}, {where}: {why['agree']} of {bits} bits agree"
