"""`everhash labels | rename-label | merge-labels | drop-label`: the labels of a collection."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from everhash.cli.arguments import AsJson, File, known_labels, open_collection, parse_label
from everhash.cli.formatting import counted, print_json, printable
from everhash.collection.labels import LabelInfo

Label = Annotated[str, typer.Argument(help="A label of the collection.", show_default=False)]


def labels(path: File, as_json: AsJson = False) -> None:
    """List labels in order of arrival, with their entries and how well they were learned.

    Example: everhash labels shop.ever --json
    """
    with open_collection(path, readonly=True) as collection:
        found = collection.labels()
    if as_json:
        print_json([_described(info) for info in found])
        return
    table = Table(title=counted(len(found), "label"))
    table.add_column("label")
    for heading in ("entries", "rows learned", "accuracy"):
        table.add_column(heading, justify="right")
    for info in found:
        lessons = "" if info.lessons is None else f"{info.lessons:,}"
        right = "" if info.accuracy is None else f"{100 * info.accuracy:.1f} %"
        table.add_row(Text(printable(info.label)), f"{info.entries:,}", lessons, right)
    Console().print(table)


def _described(info: LabelInfo) -> dict[str, object]:
    return {
        "label": info.label,
        "entries": info.entries,
        "lessons": info.lessons,
        "accuracy": info.accuracy,
    }


def rename_label(
    path: File,
    label: Label,
    to: Annotated[
        str, typer.Argument(help="Its new name, which no label has.", show_default=False)
    ],
) -> None:
    """Give a label another name.

    Labels are texts, unless the collection knows them only as numbers.

    Example: everhash rename-label shop.ever shoos shoes
    """
    with open_collection(path) as collection:
        (known,) = known_labels(collection, [label])
        collection.rename_label(known, parse_label(collection, to))
    typer.echo(f"label {printable(label)} is {printable(to)} now")


def merge_labels(
    path: File,
    label: Label,
    into: Annotated[str, typer.Argument(help="The label that stays.", show_default=False)],
) -> None:
    """Make two labels one, as if all rows of the first had come with the second.

    Example: everhash merge-labels shop.ever boot boots
    """
    with open_collection(path) as collection:
        changed = collection.merge_labels(*known_labels(collection, [label, into]))
    entries = counted(changed, "entry", "entries")
    typer.echo(f"{entries} labelled {printable(into)} instead of {printable(label)}")


def drop_label(path: File, label: Label) -> None:
    """Forget a label: entries lose it, and no row is taken for it.

    Example: everhash drop-label shop.ever test
    """
    with open_collection(path) as collection:
        changed = collection.drop_label(*known_labels(collection, [label]))
    typer.echo(f"label {printable(label)} dropped: {counted(changed, 'entry', 'entries')} had it")
