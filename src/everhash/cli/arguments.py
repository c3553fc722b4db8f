"""Arguments that several commands have: the collection, and ids and labels typed as text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import everhash
from everhash.cli.formatting import printable
from everhash.cli.terminal import waiting
from everhash.collection.collection import Collection
from everhash.errors import UnknownNameError
from everhash.wire.ids import Id

INT64 = range(-(2**63), 2**63)


def file_argument(what: str) -> Any:
    """Return an argument for a file, which the command itself checks, not Typer."""
    return typer.Argument(help=what, show_default=False, readable=False)


File = Annotated[Path, file_argument("The collection's file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Features = Annotated[
    str | None,
    typer.Option(help="Column of vectors, or columns of numbers: 'f0,f1' or 'f*'."),
]


@contextmanager
def open_collection(
    path: Path, *, readonly: bool = False, durability: str = "commit"
) -> Iterator[Collection]:
    """Open a collection; the first time on a machine this compiles the kernels."""
    with waiting():
        collection = everhash.open(path, readonly=readonly, durability=durability)
    with collection:
        yield collection


def parse_ids(collection: Collection, texts: Iterable[str]) -> list[Id]:
    """Return ids typed as text: the text if the collection has that id, else the number."""
    return [_parse_id(collection, text) for text in texts]


def _parse_id(collection: Collection, text: str) -> Id:
    candidates: list[Id] = [text]
    if re.fullmatch(r"-?[0-9]{1,19}", text) and int(text) in INT64:
        candidates.append(int(text))
    used = [value for value in candidates if value in collection]
    return (used or candidates)[0]


def parse_label(collection: Collection, text: str) -> Hashable:
    """Return a label typed as text: the text, unless the collection knows it only as a number."""
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


def known_labels(collection: Collection, texts: Iterable[str]) -> list[Hashable]:
    """Return labels typed as text; raise if the collection has not seen one of them."""
    labels = [parse_label(collection, text) for text in texts]
    for label in collection.hasher.unknown(labels):
        raise UnknownNameError(
            f"label {printable(label)!r} has not been seen", hint="`everhash labels` lists them"
        )
    return labels
