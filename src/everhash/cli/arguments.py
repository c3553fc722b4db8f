"""What commands share: the collection they work on, and ids and labels given as text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import everhash
from everhash.cli.formatting import shown
from everhash.cli.terminal import waiting
from everhash.collection.collection import Collection
from everhash.errors import UnknownIdError, UnknownNameError
from everhash.wire.ids import Id

INT64 = range(-(2**63), 2**63)


def file_argument(what: str) -> Any:
    """Return an argument that names a file; that it cannot be read is for the command to say."""
    return typer.Argument(help=what, show_default=False, readable=False)


File = Annotated[Path, file_argument("The collection's file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Features = Annotated[
    str | None,
    typer.Option(help="Column of vectors, or columns of numbers: 'f0,f1' or 'f*'."),
]


@contextmanager
def opened(
    path: Path, *, readonly: bool = False, durability: str = "commit"
) -> Iterator[Collection]:
    """Open a collection; the first time on a machine that compiles kernels."""
    with waiting():
        collection = everhash.open(path, readonly=readonly, durability=durability)
    with collection:
        yield collection


def meant_ids(collection: Collection, given: Iterable[str]) -> list[Id]:
    """Return ids typed as text: the text if the collection has it, else the number it is."""
    return [_meant_id(collection, text) for text in given]


def _meant_id(collection: Collection, text: str) -> Id:
    candidates: list[Id] = [text]
    if re.fullmatch(r"-?[0-9]{1,19}", text) and int(text) in INT64:
        candidates.append(int(text))
    taken = [value for value in candidates if value in collection]
    if len(taken) > 1:  # one of the two may be an entry that was removed
        taken = [value for value in taken if _lives(collection, value)] or taken
    return (taken or candidates)[0]


def _lives(collection: Collection, value: Id) -> bool:
    try:
        return bool(collection.get([value]))
    except UnknownIdError:
        return False


def meant_label(collection: Collection, text: str) -> Hashable:
    """Return a label typed as text: the text, unless it is known only as a number."""
    unknown = collection.hasher.unknown
    if not unknown([text]):
        return text
    for number in (int, float):
        try:
            value: Hashable = number(text)
        except (ValueError, OverflowError):
            continue
        if not unknown([value]):
            return value
    return text


def known_labels(collection: Collection, given: Iterable[str]) -> list[Hashable]:
    """Return labels typed as text, all of which the collection knows."""
    labels = [meant_label(collection, text) for text in given]
    for label in collection.hasher.unknown(labels):
        raise UnknownNameError(
            f"label {shown(label)!r} has not been seen", hint="`everhash export` lists labels"
        )
    return labels
