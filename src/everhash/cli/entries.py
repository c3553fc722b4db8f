"""`everhash label` and `everhash remove`: entries that are there already."""

from __future__ import annotations

from typing import Annotated

import typer

from everhash.cli.arguments import File, meant_ids, meant_label, opened
from everhash.cli.formatting import counted, shown

Ids = Annotated[list[str], typer.Argument(help="Ids of entries.", show_default=False)]


def label(
    path: File,
    label: Annotated[str, typer.Argument(help="The label they get.", show_default=False)],
    ids: Ids,
) -> None:
    """Give entries a label instead of what they had.

    The label is a text, unless the collection knows it only as a number.
    An id is a text if the collection has that, else a number if it has that.
    Write -- before negative numbers.

    Example: everhash label shop.ever shoes sku-17 sku-99
    """
    with opened(path) as collection:
        wanted = list(dict.fromkeys(meant_ids(collection, ids)))
        collection.label(wanted, [meant_label(collection, label)] * len(wanted))
    typer.echo(f"{counted(len(wanted), 'entry', 'entries')} labelled {shown(label)}")


def remove(path: File, ids: Ids) -> None:
    """Forget entries. Their ids are never used again.

    An id is a text if the collection has that, else a number if it has that.
    Write -- before negative numbers.

    Example: everhash remove shop.ever sku-17 sku-99
    """
    with opened(path) as collection:
        removed = collection.remove(meant_ids(collection, ids))
    typer.echo(f"{counted(removed, 'entry', 'entries')} removed")
