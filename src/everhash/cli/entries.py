"""`everhash label` and `everhash remove`: change or remove entries."""

from __future__ import annotations

from typing import Annotated

import typer

from everhash.cli.arguments import File, open_collection, parse_ids, parse_label
from everhash.cli.formatting import counted, printable

Ids = Annotated[list[str], typer.Argument(help="Ids of entries.", show_default=False)]


def label(
    path: File,
    label: Annotated[str, typer.Argument(help="The new label.", show_default=False)],
    ids: Ids,
) -> None:
    """Replace the labels of entries by a new one.

    The label is a text, unless the collection knows it only as a number.
    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash label shop.ever shoes sku-17 sku-99
    """
    with open_collection(path) as collection:
        labelled = list(dict.fromkeys(parse_ids(collection, ids)))
        collection.label(labelled, [parse_label(collection, label)] * len(labelled))
    typer.echo(f"{counted(len(labelled), 'entry', 'entries')} labelled {printable(label)}")


def remove(path: File, ids: Ids) -> None:
    """Remove entries. Their ids are never used again.

    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash remove shop.ever sku-17 sku-99
    """
    with open_collection(path) as collection:
        removed = collection.remove(parse_ids(collection, ids))
    typer.echo(f"{counted(removed, 'entry', 'entries')} removed")
