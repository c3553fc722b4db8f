"""`everhash search`: print the best entries of each query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from everhash.cli.arguments import (
    AsJsonLines,
    Features,
    Target,
    file_argument,
    known_labels,
    open_collection,
)
from everhash.cli.completion import complete_label
from everhash.cli.formatting import payload_line, print_columns, print_json, printable
from everhash.cli.inputs import Format
from everhash.cli.queries import QUERIES, IdColumn, Limit, QuerySource, shown_name
from everhash.cli.terminal import waiting
from everhash.collection.api import CollectionApi
from everhash.collection.typed import typed_ids
from everhash.errors import OptionError
from everhash.matches import Matches
from everhash.wire.matches import missing_to_json, to_json
from everhash.wire.options import RECALL

Answers = list[dict[str, Any]]
Files = Annotated[Path | None, file_argument(QUERIES, metavar="QUERIES")]
Like = Annotated[
    list[str] | None,
    typer.Option(
        help="Search by the entry with this id instead of a file; may be repeated.", metavar="ID"
    ),
]
K = Annotated[int | None, typer.Option("-k", help="Entries a query. Default: 10.")]
R = Annotated[
    float | None,
    typer.Option("-r", help="All entries no farther than this, or with at least this score."),
]
By = Annotated[
    Literal["relevance", "meaning", "likeness", "asymmetric", "hamming"] | None,
    typer.Option(
        help="Rank by the probability of the query's label, judged by labels and neighbours or "
        "by labels alone, by cosine, or by distances of codes. Default: relevance; with -r "
        "hamming."
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="Only entries with this label; may be repeated.",
        metavar="LABEL",
        autocompletion=complete_label,
    ),
]
OnlyIds = Annotated[
    list[str] | None,
    typer.Option("--ids", help="Only the entry with this id; may be repeated.", metavar="ID"),
]
Unlabelled = Annotated[bool, typer.Option("--unlabelled", help="Only entries without a label.")]
Exact = Annotated[
    bool, typer.Option("--exact", help="Compare features instead of codes, where they are kept.")
]
Recall = Annotated[
    float | None,
    typer.Option(
        help="By relevance and likeness: the share of the nearest entries to find on average; "
        f"1 finds all. Default: {RECALL}.",
        metavar="SHARE",
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Explain for each entry why it was found.")
]


def search(
    target: Target,
    queries: Files = None,
    like: Like = None,
    k: K = None,
    r: R = None,
    by: By = None,
    features: Features = None,
    id_column: IdColumn = None,
    labels: Labels = None,
    ids: OnlyIds = None,
    unlabelled: Unlabelled = False,
    exact: Exact = False,
    recall: Recall = None,
    limit: Limit = None,
    form: Format = None,
    explain: Explain = False,
    as_json: AsJsonLines = False,
) -> None:
    """Find the best entries of each query, or with -r all that are near enough.

    A score is a probability by relevance and meaning, a cosine by likeness, and
    otherwise a distance. A label with a ~ is a guess: what an unlabelled entry is taken for.
    A label is a text, unless the collection knows it only as a number.

    Example: everhash search shop.ever query.npy -k 10 --labels shoes --labels boots
    """
    _check(queries, like, k, r, recall)
    with open_collection(target, readonly=True) as collection:
        options: dict[str, Any] = {
            "labels": known_labels(collection, labels) if labels else None,
            "ids": typed_ids(collection, ids) if ids else None,
            **{"unlabelled": unlabelled, "exact": exact, "explain": explain, "payloads": True},
            **({} if by is None else {"by": by}),
            **({"k": 10 if k is None else k} if r is None else {"r": r}),
            **({} if recall is None else {"recall": recall}),
        }
        if queries is None:
            found = _search_like(collection, like or [], options)
        else:
            source = QuerySource(queries, features, id_column, limit, form)
            source.check()
            found = _search_file(collection, source, options)
        for answers in found:
            _warn(answers)
            if as_json:
                for answer in answers:
                    print_json(answer)
            else:
                _print_table(answers, explain=explain)


def _check(
    queries: Path | None,
    like: list[str] | None,
    k: int | None,
    r: float | None,
    recall: float | None,
) -> None:
    if (queries is None) == (not like):
        raise OptionError(
            "expected a file of queries or --like ID",
            hint="one of them: everhash search shop.ever --like sku-17",
        )
    if k is not None and r is not None:
        raise OptionError(
            "expected -k or -r, got both", hint="-k wants so many entries, -r all that are near"
        )
    if like and r is not None:
        raise OptionError("-r needs a file of queries, not --like", hint="use -k with --like")
    if recall is not None and r is not None:
        raise OptionError(
            "expected -r or --recall, got both",
            hint="-r finds all that are near enough",
        )


def _search_like(
    collection: CollectionApi, like: list[str], options: dict[str, Any]
) -> Iterator[Answers]:
    """Yield what is found for entries, all at once."""
    ids = typed_ids(collection, like)
    with waiting():
        found = _answers(collection.search_like(ids, **options))
    yield [
        {"query": row, "query_id": name, **answer}
        for row, (name, answer) in enumerate(zip(ids, found, strict=True))
    ]


def _search_file(
    collection: CollectionApi, source: QuerySource, options: dict[str, Any]
) -> Iterator[Answers]:
    """Yield what is found for the queries of a file, batch by batch."""
    search = collection.search_radius if "r" in options else collection.search
    for batch in source.batches("searching", collection.stats()["dim"]):
        found = _answers(search(batch.X, **options))
        yield [{**name, **answer} for name, answer in zip(batch.names(), found, strict=True)]


def _answers(matches: Matches) -> Answers:
    """Return what was found for each query, and which shards did not answer."""
    return [answer | missing_to_json(matches.missing) for answer in to_json(matches)]


def _warn(answers: Answers) -> None:
    """Say that shards did not answer."""
    missing = sorted({shard for answer in answers for shard in answer.get("missing", ())})
    if missing:
        named = f"shard{'s' if missing[1:] else ''} {', '.join(map(str, missing))}"
        typer.echo(f"warning: {named} did not answer: this is a part of what there is", err=True)


def _print_table(answers: Answers, *, explain: bool) -> None:
    payloads = any(match["payload"] is not None for one in answers for match in one["found"])
    rows = [
        [
            shown_name(answer),
            str(rank),
            _score(match["score"], answer["by"]),
            "-" if match["likeness"] is None else f"{match['likeness']:.2f}",
            _label(match),
            printable(match["id"]),
            *((_explain(match["explanation"]),) if explain else ()),
            *((_payload(match["payload"]),) if payloads else ()),
        ]
        for answer in answers
        for rank, match in enumerate(answer["found"], start=1)
    ]
    if not rows:
        typer.echo("nothing was found")
        return
    shown = (("explanation", explain), ("payload", payloads))
    heading = ["query", "rank", "score", "likeness", "label", "id"]
    print_columns([*heading, *(name for name, on in shown if on)], rows, right=4)


def _score(score: float, by: str) -> str:
    """Return a probability or a cosine with two digits, a distance with what tells them apart."""
    return f"{score:.4g}" if by in ("asymmetric", "hamming") else f"{score:.2f}"


def _label(match: dict[str, Any]) -> str:
    """Return the label of an entry, or with a ~ the one it is taken for."""
    if match["label"] is not None:
        return printable(match["label"])
    return "" if match["guess"] is None else f"~{printable(match['guess'])}"


def _payload(payload: Any) -> str:
    return "" if payload is None else payload_line(payload)


def _explain(explanation: dict[str, Any]) -> str:
    compared = "own bits" if explanation["label"] is None else "codeword"
    where = "all cycles" if explanation["cycle"] < 0 else f"cycle {explanation['cycle']}"
    agree, differ = (explanation["bits"].count(sign) for sign in (1, -1))
    bits = f"{compared}, {where}: {agree} of {agree + differ} bits agree"
    return f"{printable(explanation['why'])}; {bits}"
