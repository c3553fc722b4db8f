"""Arguments that several commands have: the collection, and ids and labels typed as text."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, overload

import typer
from rich.markup import escape

import everhash
from everhash.cli.completion import complete_label
from everhash.cli.formatting import printable
from everhash.cli.terminal import waiting
from everhash.collection.api import CollectionApi
from everhash.collection.collection import Collection
from everhash.collection.learning import unknown_label
from everhash.collection.typed import typed_label
from everhash.errors import OptionError, StoreError

if TYPE_CHECKING:
    from everhash.cluster import ClusterCollection

KEY = "EVERHASH_KEY"
"""Environment variable with the key for a service; an option could be read by other users."""
RAY = "EVERHASH_RAY"
"""Environment variable with the address of the Ray cluster."""
LOCAL = "local"
"""Stands for a Ray of the command's own, which ends with it."""
COPY_FIRST = "run it where the file is, or on a copy: everhash snapshot URL FILE"
NEW_FILE = "name a file; everhash serve serves it"
WITHOUT_SERVICE = {"create": NEW_FILE, "restore": NEW_FILE, "serve": "name the file to serve"}
"""What to do instead, for commands that a service cannot do; for all others `COPY_FIRST`."""


def is_url(target: str | Path) -> bool:
    """Whether a collection is named by the address of a service.

    >>> is_url("http://localhost:8765"), is_url("shop.ever")
    (True, False)
    """
    return re.match("https?:/", str(target), re.IGNORECASE) is not None  # a Path has one slash


def is_cluster(target: str | Path) -> bool:
    """Whether a collection is named by the storage folder of a cluster."""
    return not is_url(target) and Path(target, "lead.ever").is_file()


def check_cluster(storage: Path) -> None:
    """Refuse a folder that is not the storage of a cluster."""
    if not is_cluster(storage):
        raise StoreError(f"there is no cluster in {storage}", hint="{say create a cluster}")


def _refuse_others(context: typer.Context, path: Path) -> Path:
    """Refuse what is no file: the address of a service, or the storage of a cluster."""
    name = str(context.info_name)
    if path is not None and is_url(path):
        hint = WITHOUT_SERVICE.get(name, COPY_FIRST)
        raise OptionError(f"everhash {name} needs a file, not the address of a service", hint=hint)
    if path is not None and name != "serve" and is_cluster(path):
        hint = "run it on a copy: everhash snapshot STORAGE FILE"
        raise OptionError(f"everhash {name} needs a file, not the storage of a cluster", hint=hint)
    return path


def file_argument(what: str, *, metavar: str | None = None) -> Any:
    """Return an argument for a file, which the command itself checks, not Typer."""
    return typer.Argument(help=what, show_default=False, readable=False, metavar=metavar)


def local_argument(what: str, *, metavar: str = "FILE") -> Any:
    """Return an argument for a file, and refuse other collections."""
    return typer.Argument(
        help=what, show_default=False, readable=False, metavar=metavar, callback=_refuse_others
    )


File = Annotated[Path, local_argument("The collection's file.")]
Target = Annotated[
    str,
    typer.Argument(
        help=f"The collection: its file, the address of a service ({KEY} holds its key), or the "
        f"storage folder of a cluster ({RAY} holds the address of its Ray).",
        show_default=False,
        metavar="FILE|URL",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
AsJsonLines = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else: one object a line.")
]
Features = Annotated[
    str | None,
    typer.Option(
        help="Column of vectors, or columns of numbers: 'f0,f1' or 'f*'.", metavar="COLUMN"
    ),
]
Ids = Annotated[list[str], typer.Argument(help="Ids of entries.", show_default=False, metavar="ID")]
Label = Annotated[
    str,
    typer.Argument(
        help="A label of the collection.",
        show_default=False,
        metavar="LABEL",
        autocompletion=complete_label,
    ),
]


class Reaching(NamedTuple):
    """How a command reaches a cluster."""

    address: str
    partial: bool = False
    """Whether a search may be answered by some of the shards."""


_REACHING: ContextVar[Reaching | None] = ContextVar("reaching", default=None)
"""What options of the command say, if it has some for that."""


@contextmanager
def reaching(address: str, *, partial: bool = False) -> Iterator[None]:
    """Let clusters be opened in the block as options of a command say."""
    token = _REACHING.set(Reaching(address, partial))
    try:
        yield
    finally:
        _REACHING.reset(token)


@contextmanager
def connecting(address: str) -> Iterator[str | None]:
    """Yield an address as `everhash.cluster` takes it.

    What Ray's libraries write to stderr meanwhile is dropped: what matters of it is raised. What
    everhash warns of, such as a Ray that anybody may use, is printed afterwards.
    """
    kept, warned = os.dup(2), _Warned()
    log = logging.getLogger("everhash.cluster")
    log.addHandler(warned)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield None if address == LOCAL else address
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        log.removeHandler(warned)
        for message in warned.messages:
            typer.echo(f"warning: {printable(message)}", err=True)


class _Warned(logging.Handler):
    """Keeps warnings until they can be printed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def open_cluster(storage: str, **options: Any) -> ClusterCollection:
    """Open the cluster in a storage folder, as options of the command or the environment say."""
    from everhash import cluster

    how = _REACHING.get() or Reaching(os.environ.get(RAY) or "auto")
    with connecting(how.address) as address:
        return cluster.open(address, storage, **{"partial": how.partial, **options})


@overload
def open_collection(
    target: Path, *, readonly: bool = False, durability: str = "commit"
) -> AbstractContextManager[Collection]: ...


@overload
def open_collection(
    target: str, *, readonly: bool = False, durability: str = "commit"
) -> AbstractContextManager[CollectionApi]: ...


@contextmanager  # type: ignore[misc]
def open_collection(
    target: str | Path, *, readonly: bool = False, durability: str = "commit"
) -> Iterator[CollectionApi]:
    """Open a collection's file, or connect to a service or a cluster."""
    collection: CollectionApi
    if is_url(target):
        from everhash.client.remote import connect_from

        collection = connect_from("cli", str(target), os.environ.get(KEY) or None)
    elif isinstance(target, str) and is_cluster(target):
        collection = open_cluster(target, durability=durability)
    else:
        with waiting(f"opening {escape(printable(target))}"):
            file = everhash.open(target, readonly=readonly, durability=durability)
        with closing(file), file.held() if readonly else nullcontext():  # one state a command
            yield file
        return
    with closing(collection):
        yield collection


def labels_in(collection: CollectionApi) -> set[Hashable]:
    """Return the labels of a collection."""
    return {info.label for info in collection.labels()}


def known_labels(collection: CollectionApi, texts: Iterable[str]) -> list[Hashable]:
    """Return labels typed as text; raise if the collection has not seen one of them."""
    known = labels_in(collection)
    labels = [typed_label(text, known.__contains__) for text in texts]
    for label in labels:
        if label not in known:
            raise unknown_label(label, known, "everhash labels lists them")
    return labels
