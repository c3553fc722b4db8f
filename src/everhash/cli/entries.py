"""`everhash get | entries | remove`: entries by their ids, and in order of arrival."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from everhash.cli.arguments import (
    AsJson,
    AsJsonLines,
    Ids,
    Target,
    known_labels,
    open_collection,
)
from everhash.cli.completion import complete_label
from everhash.cli.formatting import counted, payload_line, print_columns, print_json, printable
from everhash.collection.api import CollectionApi
from everhash.collection.as_json import entry_to_json
from everhash.collection.typed import typed_ids
from everhash.index.entries import Entry
from everhash.learn.options import whole_number

A_PAGE = 500
"""Entries read at a time, with their attachments."""
WithCode = Annotated[
    bool, typer.Option("--code", help="Their bits too, of those that have bits of their own.")
]
Start = Annotated[int, typer.Option(help="Number of the first entry, in order of arrival.")]
Limit = Annotated[int, typer.Option(help="Entries at most.")]
WithText = Annotated[
    str | None,
    typer.Option(help="Only entries with this text in their id or payload.", metavar="TEXT"),
]
WithLabel = Annotated[
    str | None,
    typer.Option(
        help="Only entries with this label.", metavar="LABEL", autocompletion=complete_label
    ),
]
Unlabelled = Annotated[bool, typer.Option("--unlabelled", help="Only entries without a label.")]


def get(target: Target, ids: Ids, code: WithCode = False, as_json: AsJsonLines = False) -> None:
    """Show entries: their labels, or with a ~ the label they are taken for, and payloads.

    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash get shop.ever sku-17 sku-99 --json
    """
    with open_collection(target, readonly=True) as collection:
        found = collection.get(list(dict.fromkeys(typed_ids(collection, ids))))
        described = _described(collection, found, code=code)
    _print(described, code=code, as_json=as_json)


def entries(
    target: Target,
    start: Start = 0,
    limit: Limit = 100,
    text: WithText = None,
    label: WithLabel = None,
    unlabelled: Unlabelled = False,
    code: WithCode = False,
    as_json: AsJsonLines = False,
) -> None:
    """List entries in order of arrival; everhash export writes all of them to a file.

    A label with a ~ is a guess: what an unlabelled entry is taken for.

    Example: everhash entries shop.ever --label shoes --text winter --limit 20
    """
    whole_number("--start", start, least=0)
    whole_number("--limit", limit, least=1)
    with open_collection(target, readonly=True) as collection:
        only: dict[str, Any] = {"unlabelled": unlabelled}
        only |= {} if text is None else {"text": text}
        only |= {} if label is None else {"label": known_labels(collection, [label])[0]}
        described: list[dict[str, Any]] = []
        place: int | None = start
        while place is not None and len(described) < limit:
            page = collection.page(place, min(A_PAGE, limit - len(described)), **only)
            described += _described(collection, page.entries, code=code)
            place = page.next
    _print(described, code=code, as_json=as_json)
    if place is not None and not as_json:
        typer.echo(f"more follow: --start {place}")


def _described(
    collection: CollectionApi, found: list[Entry], *, code: bool
) -> list[dict[str, Any]]:
    attachments = collection.attachments([entry.id for entry in found])
    pairs = zip(found, attachments, strict=True)
    return [entry_to_json(entry, attachment, code=code) for entry, attachment in pairs]


def _print(described: list[dict[str, Any]], *, code: bool, as_json: bool) -> None:
    if as_json:
        for entry in described:
            print_json(entry)
        return
    if not described:
        typer.echo("no entries")
        return
    payloads = any(entry["payload"] is not None for entry in described)
    heading = ["id", "label", *(["code"] if code else []), *(["payload"] if payloads else [])]
    rows = [
        [
            printable(entry["id"]),
            _labels(entry),
            *([_bits(entry["code"])] if code else []),
            *([_payload(entry["payload"])] if payloads else []),
        ]
        for entry in described
    ]
    print_columns(heading, rows)


def _labels(entry: dict[str, Any]) -> str:
    if entry["guess"] is not None:
        return f"~{printable(entry['guess'])}"
    return ", ".join(map(printable, entry["labels"]))


def _bits(code: list[int] | None) -> str:
    return "" if code is None else "".join(map(str, code))


def _payload(payload: Any) -> str:
    return "" if payload is None else payload_line(payload)


def remove(target: Target, ids: Ids, as_json: AsJson = False) -> None:
    """Remove entries. Their ids are free again; what they have taught stays.

    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash remove shop.ever sku-17 sku-99
    """
    with open_collection(target) as collection:
        removed = collection.remove(typed_ids(collection, ids))
    if as_json:
        print_json({"removed": removed})
    else:
        typer.echo(f"{counted(removed, 'entry', 'entries')} removed")
