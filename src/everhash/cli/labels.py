"""`everhash labels | label | unlabel | rename-label | merge-labels | drop-label`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from everhash.cli.arguments import (
    AsJson,
    Ids,
    Label,
    Target,
    known_labels,
    labels_in,
    open_collection,
)
from everhash.cli.completion import complete_label
from everhash.cli.formatting import counted, print_json, printable
from everhash.collection.as_json import label_info_to_json, label_report_to_json
from everhash.collection.typed import typed_ids, typed_label
from everhash.wire.labels import label_to_json

NewName = Annotated[
    str,
    typer.Argument(help="Its new name, which no label has.", show_default=False, metavar="NAME"),
]
Into = Annotated[
    str,
    typer.Argument(
        help="The label that stays.",
        show_default=False,
        metavar="INTO",
        autocompletion=complete_label,
    ),
]
NoTeach = Annotated[
    bool, typer.Option("--no-teach", help="Change the entries only; what was learned stays.")
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        help="Change nothing unless the entries have this label, and no other; '' for no label. "
        "Given again, they have to have all of them.",
        metavar="LABEL",
        autocompletion=complete_label,
    ),
]
Unused = Annotated[
    bool, typer.Option("--unused", help="Refuse if an entry has it, or a row that was learned.")
]
New = Annotated[bool, typer.Option("--new", help="Make a label that the collection has not seen.")]


def labels(target: Target, as_json: AsJson = False) -> None:
    """List labels in order of arrival, with their entries and how well they were learned.

    Example: everhash labels shop.ever --json
    """
    with open_collection(target, readonly=True) as collection:
        found = collection.labels()
    if as_json:
        print_json({"total": len(found), "labels": [label_info_to_json(info) for info in found]})
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


def label(
    target: Target,
    label: Label,
    ids: Ids,
    new: New = False,
    expect: Expect = None,
    no_teach: NoTeach = False,
    as_json: AsJson = False,
) -> None:
    """Give entries a label instead of what they had, and learn from it.

    What an entry has taught with its old label is forgotten.
    A label that the collection has not seen is refused, unless --new is given.
    The label is a text, unless the collection knows it only as a number.
    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash label shop.ever shoes sku-17 sku-99
    """
    with open_collection(target) as collection:
        known = labels_in(collection)
        given = typed_label(label, known.__contains__)
        found = list(dict.fromkeys(typed_ids(collection, ids)))
        options: dict[str, Any] = {"expect": _expected(expect, known), "new": new}
        report = collection.label(found, [given] * len(found), teach=not no_teach, **options)
    if as_json:
        print_json(label_report_to_json(report))
        return
    typer.echo(f"{counted(report.labelled, 'entry', 'entries')} labelled {printable(label)}")
    for one in report.new:
        typer.echo(printable(one))


def _expected(texts: list[str] | None, known: set[Hashable]) -> set[Hashable] | None:
    """Return the labels that entries are expected to have; None if that was not said."""
    if not texts:
        return None
    return {typed_label(text, known.__contains__) for text in texts if text}


def unlabel(
    target: Target,
    ids: Ids,
    expect: Expect = None,
    no_teach: NoTeach = False,
    as_json: AsJson = False,
) -> None:
    """Take the labels of entries away, and forget what they have taught.

    An id is a text if the collection has it as text, otherwise a number.
    Write -- before negative numbers.

    Example: everhash unlabel shop.ever sku-17 sku-99
    """
    with open_collection(target) as collection:
        found = list(dict.fromkeys(typed_ids(collection, ids)))
        known = labels_in(collection) if expect else set()
        expected = _expected(expect, known)
        changed = collection.unlabel(found, teach=not no_teach, expect=expected)
    if as_json:
        print_json({"unlabelled": changed})
    else:
        typer.echo(f"{counted(changed, 'entry', 'entries')} unlabelled")


def rename_label(target: Target, label: Label, to: NewName, as_json: AsJson = False) -> None:
    """Give a label another name.

    Labels are texts, unless the collection knows them only as numbers.

    Example: everhash rename-label shop.ever shoos shoes
    """
    with open_collection(target) as collection:
        (known,) = known_labels(collection, [label])
        name = typed_label(to, labels_in(collection).__contains__)
        collection.rename_label(known, name)
    if as_json:
        print_json({"label": label_to_json(name)})
    else:
        typer.echo(f"label {printable(label)} is {printable(to)} now")


def merge_labels(target: Target, label: Label, into: Into, as_json: AsJson = False) -> None:
    """Make two labels one, as if all rows of the first had come with the second.

    Example: everhash merge-labels shop.ever boot boots
    """
    with open_collection(target) as collection:
        changed = collection.merge_labels(*known_labels(collection, [label, into]))
    if as_json:
        print_json({"entries": changed})
        return
    entries = counted(changed, "entry", "entries")
    typer.echo(f"{entries} labelled {printable(into)} instead of {printable(label)}")


def drop_label(
    target: Target, label: Label, unused: Unused = False, as_json: AsJson = False
) -> None:
    """Forget a label: entries lose it, and no row is taken for it.

    Example: everhash drop-label shop.ever test
    """
    with open_collection(target) as collection:
        (known,) = known_labels(collection, [label])
        changed = collection.drop_label(known, unused=unused)
    if as_json:
        print_json({"entries": changed})
        return
    typer.echo(f"label {printable(label)} dropped: {counted(changed, 'entry', 'entries')} had it")
