"""`everhash create | stats | verify | upgrade | snapshot | restore`: a whole collection."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import everhash
from everhash import limits, peers
from everhash.cli.arguments import AsJson, File, file_argument, open_collection
from everhash.cli.formatting import counted, print_json, printable, short, size
from everhash.cli.terminal import waiting
from everhash.errors import CollectionFileError
from everhash.learn.options import whole_number

Copy = Annotated[Path, file_argument("The snapshot's file.")]
NewFile = Annotated[Path, file_argument("The new file.")]
Dim = Annotated[int, typer.Option(help="Features a row.", show_default=False)]
Bits = Annotated[int, typer.Option(help="Hash functions a cycle; bits of a code.")]
LabelsPerCycle = Annotated[
    int | None, typer.Option(help="Labels a cycle. Default: 4 ceil(log2 k), at most k.")
]
Method = Annotated[
    str, typer.Option(help="The method that learns codes; see everhash methods for a list.")
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
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.")]


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
    seed: Seed = 0,
) -> None:
    """Create an empty collection in a new file.

    Example: everhash create shop.ever --dim 384 --bits 32
    """
    whole_number("--dim", dim, least=1, most=limits.DIMS)
    whole_number("--seed", seed, least=0)
    given = {
        **{"labels_per_cycle": labels_per_cycle, "classes": classes, "random_state": seed},
        **{"learner": learner, "features": features},
    }
    options = {name: value for name, value in given.items() if value is not None}
    hasher = peers.get(method, bits, **options)
    kept: dict[str, Any] = {"keep_features": keep_features, "likeness": likeness}
    everhash.create(path, dim=dim, hasher=hasher, coding=coding, **kept).close()
    what = "" if method == "everhash" else f" by {method}"
    width = f"{hasher.bits} bits a code" if "bits" in hasher.get_params() else "a class a code"
    typer.echo(f"created {printable(path)}: {counted(dim, 'feature')} a row, {width}{what}")


def stats(path: File, as_json: AsJson = False) -> None:
    """Show the contents and the size of a collection; works while another process writes.

    Example: everhash stats shop.ever --json
    """
    with open_collection(path, readonly=True) as collection:
        found = collection.stats()
        learner = collection.hasher.get_params().get("learner")
    entries = found["entries"]
    found["bytes_per_entry"] = round(found["bytes"] / entries, 1) if entries else None
    if as_json:
        print_json(found)
        return
    table = Table(title=Text(printable(path.name)), show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in (*_contents(found), *_learning(found, learner), *_state(found)):
        table.add_row(*row)
    Console().print(table)


KEPT = {
    "all": "kept: labels can be corrected",
    "unlabelled": "kept of unlabelled entries, to refresh them",
    "none": "not kept: no refresh",
}


def _contents(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = [
        ("entries", f"{found['entries']:,}", ""),
        ("  labelled", f"{found['labelled']:,}", _kept(found)),
        ("  unlabelled", f"{found['unlabelled']:,}", "by their own bits"),
    ]
    if found["read_only"]:
        rows.append(("  read-only", f"{found['read_only']:,}", "no features: never refreshed"))
    each = found["bytes_per_entry"]
    return [
        *rows,
        ("method", found["method"], peers.describe(found["method"]).title),
        ("labels", f"{found['labels']:,}", ""),
        ("cycles", f"{found['cycles']:,}", f"{found['bits']} hash functions each"),
        ("width", f"{found['width']:,} bits", f"from {counted(found['dim'], 'feature')} a row"),
        ("coding", found["coding"], "home cycle's bits" if found["coding"] == "home" else "all"),
        ("features", found["keep_features"], KEPT[found["keep_features"]]),
        ("likeness", "on" if found["likeness"] else "off", "codes that tell entries apart"),
        ("on disk", size(found["bytes"]), "" if each is None else f"{each:,} bytes an entry"),
    ]


def _learning(found: dict[str, Any], learner: str | None) -> list[tuple[str, str, str]]:
    """Return rows on the learner, and on its accuracy before it learned each row."""
    record = found["learned"]
    if learner is None:  # a method of another paper
        return []
    if record is None:
        return [("learner", learner, "by gradient steps")]
    rows = [("learner", learner, f"{counted(record['rows'], 'row')} learned")]
    if record["accuracy"] is not None:
        scored = counted(record["scored_rows"], "row")
        right = f"{100 * record['accuracy']:.1f} %"
        rows.append(("  accuracy", right, f"on {scored}, before they were learned"))
    return rows


def _kept(found: dict[str, Any]) -> str:
    """Return how labelled entries are stored."""
    has_codewords = peers.describe(found["method"]).codewords
    return (
        "by codeword: never stale"
        if has_codewords
        else "by their own bits: the method has no codewords"
    )


def _state(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    last = found["last_refresh"]
    when = "never" if last is None else str(last["at"])[:16].replace("T", " ")
    flipped = "" if last is None else f"UTC; {short(last['bits_flipped'])} bits rewritten"
    version, newest = found["mapping_version"], found["hasher_version"]
    under_way = "; a refresh is under way" if found["refreshing"] else ""
    most = f"the most that a refresh rewrites{under_way}"
    return [
        ("stale bits", f"{found['stale_bits']:,}", most),
        ("last refresh", when, flipped),
        ("mapping version", _version(version), "of entries kept by their bits"),
        ("  newest", _version(newest), "of queries and codewords"),
        ("commits", f"{found['commit']:,}", ""),
    ]


def _version(version: int | None) -> str:
    return "none" if version is None else f"{version:,}"


def verify(path: File, as_json: AsJson = False) -> None:
    """Check all of a file: its checksums, and the codes of its entries, by encoding them again.

    If something is damaged, names it and ends with exit code 5.

    Example: everhash verify shop.ever
    """
    with waiting():
        found = everhash.verify(path)
    if as_json:
        print_json({"ok": not found.problems, **asdict(found)})
    elif not found.problems:
        entries = counted(found.entries, "entry", "entries")
        typer.echo(f"ok: {entries} in {counted(found.parts, 'part')}")
    else:
        for problem in found.problems:
            typer.echo(f"damaged: {printable(problem)}")
    if found.problems:
        raise CollectionFileError(
            f"{path}: {counted(len(found.problems), 'problem')} found",
            hint="restore it from a snapshot: everhash restore COPY PATH",
        )


def upgrade(path: File) -> None:
    """Bring a file to the newest version of the format; the first write would do it too.

    Earlier versions of everhash cannot read it afterwards: make a snapshot first if they have to.

    Example: everhash upgrade shop.ever
    """
    with waiting():
        before, now = everhash.upgrade(path)
    done = f"version {before} -> {now}" if before < now else f"version {now}, up to date"
    typer.echo(f"{printable(path)}: {done}")


def snapshot(path: File, copy: Copy) -> None:
    """Copy a collection to a new file; works while another process writes.

    Example: everhash snapshot shop.ever monday.ever
    """
    with open_collection(path, readonly=True) as collection:
        collection.snapshot(copy)
        entries = counted(len(collection), "entry", "entries")
    typer.echo(f"snapshot {printable(copy)}: {entries}, {size(copy.stat().st_size)}")


def restore(
    copy: Copy,
    path: Annotated[Path, file_argument("The new collection's file.")],
) -> None:
    """Check a snapshot, and make a collection from it.

    Example: everhash restore monday.ever shop.ever
    """
    with waiting():
        everhash.restore(copy, path)
    with open_collection(path, readonly=True) as collection:
        entries = counted(len(collection), "entry", "entries")
    typer.echo(f"restored {printable(path)}: {entries}, {size(path.stat().st_size)}")
