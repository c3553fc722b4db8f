"""`everhash label | unlabel | remove`: change or remove entries."""

from __future__ import annotations

from typing import Annotated

import typer

from everhash.cli.arguments import File, open_collection, parse_ids, parse_label
from everhash.cli.formatting import counted, printable

Ids = Annotated[list[str], typer.Argument(help="Ids of entries.", show_default=False)]
NoTeach = Annotated[
    bool, typer.Option("--no-teach", help="Change the entries only; what was learned stays.")
]


def label(
    path: File,
    label: Annotated[str, typer.Argument(help="The new label.", show_default=False)],
    ids: Ids,
    no_teach: NoTeach = False,
) -> None:
    """Replace the labels of entries by a new one, and learn from it.

    What an entry has taught with its old label is forgotten.
    The label is a text, unless the collection knows it only as a number.
    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash label shop.ever shoes sku-17 sku-99
    """
    with open_collection(path) as collection:
        found = list(dict.fromkeys(parse_ids(collection, ids)))
        given = [parse_label(collection, label)] * len(found)
        report = collection.label(found, given, teach=not no_teach)
    typer.echo(f"{counted(report.labelled, 'entry', 'entries')} labelled {printable(label)}")
    for new in report.new:
        typer.echo(printable(new))


def unlabel(path: File, ids: Ids, no_teach: NoTeach = False) -> None:
    """Take the labels of entries away, and forget what they have taught.

    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash unlabel shop.ever sku-17 sku-99
    """
    with open_collection(path) as collection:
        found = list(dict.fromkeys(parse_ids(collection, ids)))
        changed = collection.unlabel(found, teach=not no_teach)
    typer.echo(f"{counted(changed, 'entry', 'entries')} unlabelled")


def remove(path: File, ids: Ids) -> None:
    """Remove entries. Their ids are free again; what they have taught stays.

    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash remove shop.ever sku-17 sku-99
    """
    with open_collection(path) as collection:
        removed = collection.remove(parse_ids(collection, ids))
    typer.echo(f"{counted(removed, 'entry', 'entries')} removed")
