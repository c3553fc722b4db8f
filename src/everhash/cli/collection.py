"""`everhash create | verify | upgrade | snapshot | restore`: a whole collection."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import everhash
from everhash import limits, peers
from everhash.cli.arguments import (
    AsJson,
    File,
    Target,
    file_argument,
    local_argument,
    open_collection,
)
from everhash.cli.completion import complete_online_method
from everhash.cli.formatting import counted, print_json, printable, size
from everhash.cli.terminal import waiting
from everhash.errors import CollectionFileError, OptionError
from everhash.learn.options import whole_number
from everhash.learn.stream_hasher import StreamHasher
from everhash.peers.registry import new_hasher, option_names

NewFile = Annotated[Path, local_argument("The new file.")]
Snapshot = Annotated[Path, file_argument("The snapshot's file.", metavar="COPY")]
Dim = Annotated[int, typer.Option(help="Features a row.", show_default=False)]
Bits = Annotated[int, typer.Option(help="Hash functions a cycle; bits of a code.")]
LabelsPerCycle = Annotated[
    int | None, typer.Option(help="Labels a cycle. Default: 4 ceil(log2 bits), at most the bits.")
]
Method = Annotated[
    str,
    typer.Option(
        help="The method that learns codes; see everhash methods for a list.",
        autocompletion=complete_online_method,
    ),
]
Learner = Annotated[
    Literal["exact", "sgd"] | None,
    typer.Option(help="How everhash learns: exactly, or by gradient steps. Default: exact."),
]
RandomFeatures = Annotated[
    int | None,
    typer.Option(help="Random features beside the rows' own; 0 is linear. Default: 1000."),
]
Classes = Annotated[
    int | None,
    typer.Option(help="The most labels, for methods that need it in advance: hcoh, hmoh."),
]
Coding = Annotated[
    Literal["home", "full"],
    typer.Option(help="Bits of an unlabelled entry: of its home cycle, or of all cycles."),
]
KeepFeatures = Annotated[
    Literal["all", "unlabelled", "none"],
    typer.Option(
        help="Whose features to keep, so that labels can be corrected and bits refreshed."
    ),
]
KeepLikeness = Annotated[
    bool,
    typer.Option("--likeness/--no-likeness", help="Keep likeness codes: a bit a feature, 8 bytes."),
]
RandomState = Annotated[int, typer.Option(help="Seed of all random numbers.")]


def create(
    path: NewFile,
    dim: Dim,
    bits: Bits = 32,
    labels_per_cycle: LabelsPerCycle = None,
    method: Method = "everhash",
    learner: Learner = None,
    features: RandomFeatures = None,
    classes: Classes = None,
    coding: Coding = "home",
    keep_features: KeepFeatures = "all",
    likeness: KeepLikeness = True,
    random_state: RandomState = 0,
    as_json: AsJson = False,
) -> None:
    """Create an empty collection in a new file.

    Example: everhash create shop.ever --dim 384 --bits 32
    """
    whole_number("--dim", dim, least=1, most=limits.DIMS)
    whole_number("--bits", bits, least=1)
    whole_number("--random-state", random_state, least=0)
    given = {
        **{"labels_per_cycle": labels_per_cycle, "classes": classes, "features": features},
        **{"learner": learner, "random_state": random_state},
    }
    options = {name: value for name, value in given.items() if value is not None}
    for name, least in (("labels_per_cycle", 1), ("classes", 1), ("features", 0)):
        if name in options:
            whole_number(f"--{name.replace('_', '-')}", options[name], least=least)
    hasher = _new_hasher(method, bits, options)
    kept: dict[str, Any] = {"keep_features": keep_features, "likeness": likeness}
    with everhash.create(path, dim=dim, hasher=hasher, coding=coding, **kept) as collection:
        made = collection.stats()
    if as_json:
        print_json(made)
        return
    what = "" if method == "everhash" else f" by {method}"
    width = f"{hasher.bits} bits a code" if "bits" in hasher.get_params() else "a class a code"
    typer.echo(f"created {printable(path)}: {counted(dim, 'feature')} a row, {width}{what}")


def _new_hasher(method: str, bits: int, options: dict[str, Any]) -> StreamHasher:
    """Return a hasher of a method that learns from a stream."""
    if not peers.describe(method).online:
        raise OptionError(
            f"{method} is a batch method: it learns from all rows at once",
            hint="everhash methods lists those that learn from a stream",
        )
    unknown = sorted(set(options) - set(option_names(method)))
    if unknown:
        option = unknown[0].replace("_", "-")
        hint = f"everhash methods {method} shows those it has"
        raise OptionError(f"{method} has no option --{option}", hint=hint)
    return new_hasher(method, bits, **options)


def verify(path: File, as_json: AsJson = False) -> None:
    """Check all of a file: its checksums, and the codes of its entries, by encoding them again.

    If something is damaged, names it and ends with exit code 5.

    Example: everhash verify shop.ever
    """
    with waiting("reading everything and encoding it again"):
        found = everhash.verify(path)
    if as_json:
        print_json({"ok": not found.problems, **asdict(found)})
    elif not found.problems:
        entries = counted(found.entries, "entry", "entries")
        bug = ", which has the WAL-reset bug" if found.wal_reset_bug else ""
        parts = counted(found.parts, "part")
        typer.echo(f"ok: {entries} in {parts}, read by SQLite {found.sqlite}{bug}")
    else:
        for problem in found.problems:
            typer.echo(f"damaged: {printable(problem)}")
    if found.problems:
        raise CollectionFileError(
            f"{path}: {counted(len(found.problems), 'problem')} found",
            hint="restore it from a snapshot: everhash restore COPY FILE",
        )


def upgrade(path: File, as_json: AsJson = False) -> None:
    """Bring a file to the newest version of the format; the first write would do it too.

    Earlier versions of everhash cannot read it afterwards: make a snapshot first if they have to.

    Example: everhash upgrade shop.ever
    """
    with waiting("reading the file"):
        before, now = everhash.upgrade(path)
    if as_json:
        print_json({"path": str(path), "before": before, "now": now})
        return
    done = f"version {before} -> {now}" if before < now else f"version {now}, up to date"
    typer.echo(f"{printable(path)}: {done}")


def snapshot(target: Target, copy: Snapshot, as_json: AsJson = False) -> None:
    """Copy a collection to a new file; works while another process writes.

    From a service this takes a key of an admin.

    Example: everhash snapshot shop.ever monday.ever
    """
    with open_collection(target, readonly=True) as collection, waiting("copying the collection"):
        collection.snapshot(copy)
    _tell_copy("snapshot", copy, as_json=as_json)


def restore(
    copy: Annotated[Path, local_argument("The snapshot's file.", metavar="COPY")],
    path: Annotated[Path, local_argument("The new collection's file.")],
    as_json: AsJson = False,
) -> None:
    """Check a snapshot, and make a collection from it.

    Example: everhash restore monday.ever shop.ever
    """
    with waiting("copying the snapshot"):
        everhash.restore(copy, path)
    _tell_copy("restored", path, as_json=as_json)


def _tell_copy(done: str, copy: Path, *, as_json: bool) -> None:
    """Print what a new file holds, read from the file itself."""
    with open_collection(copy, readonly=True) as collection:
        entries = len(collection)
    n = copy.stat().st_size
    if as_json:
        print_json({"path": str(copy), "entries": entries, "bytes": n})
    else:
        typer.echo(f"{done} {printable(copy)}: {counted(entries, 'entry', 'entries')}, {size(n)}")
