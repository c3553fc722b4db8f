"""`everhash stats`: what a collection holds, and how it stands."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from everhash import peers
from everhash.cli.arguments import (
    AsJson,
    Target,
    is_cluster,
    is_url,
    open_cluster,
    open_collection,
)
from everhash.cli.formatting import counted, print_json, printable, short, size

KEPT = {
    "all": "kept: labels can be corrected",
    "unlabelled": "kept of unlabelled entries, to refresh them",
    "none": "not kept: no refresh",
}
WAL_RESET_BUG = "has the WAL-reset bug: let no other program write to the file"
LEARNERS = {"everhash": "exact", "everhash-sgd": "sgd"}
"""The learner of a method; those of other papers have none."""
Row = tuple[str, str, str]


def stats(target: Target, as_json: AsJson = False) -> None:
    """Show the contents and the size of a collection; works while another process writes.

    Example: everhash stats shop.ever --json
    """
    if is_cluster(target):
        found = _of_cluster(target)
    else:
        with open_collection(target, readonly=True) as collection:
            found = collection.stats()
    entries = found["entries"]
    found["bytes_per_entry"] = round(found["bytes"] / entries, 1) if entries else None
    if as_json:
        print_json(found)
        return
    name = target if is_url(target) else Path(target).name
    table = Table(title=Text(printable(name)), show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in (*_shards(found), *_contents(found), *_learning(found), *_state(found)):
        table.add_row(*row)
    Console().print(table)


def _of_cluster(storage: str) -> dict[str, Any]:
    """Return stats of the shards that answer, and how each copy stands."""
    from everhash.cluster.standing import copies_of

    with open_cluster(storage, partial=True) as collection:
        return {**collection.stats(), "copies": [asdict(copy) for copy in copies_of(collection)]}


def _shards(found: dict[str, Any]) -> list[Row]:
    """Return rows on the shards of a cluster; none for a file."""
    copies: dict[int, list[dict[str, Any]]] = {}
    for copy in found.get("copies", ()):
        copies.setdefault(copy["shard"], []).append(copy)
    if not copies:
        return []
    each = counted(len(copies[0]), "copy", "copies")
    moving = "entries move to new shards" if found["moving"] else "no entries move"
    return [
        ("shards", f"{len(copies):,}", f"{each} of each; {moving}"),
        *(_shard(shard, some) for shard, some in copies.items()),
    ]


def _shard(shard: int, copies: list[dict[str, Any]]) -> Row:
    """Return a row on a shard: its entries, and which copies are silent or behind."""
    known = [copy["entries"] for copy in copies if copy["entries"] is not None]
    notes = [
        f"copy {copy['copy']} does not answer"
        if copy["behind"] is None
        else f"copy {copy['copy']} is {counted(copy['behind'], 'write')} behind"
        for copy in copies
        if copy["behind"] != 0
    ]
    return f"  shard {shard}", f"{max(known):,}" if known else "?", "; ".join(notes)


def _contents(found: dict[str, Any]) -> list[Row]:
    rows = [
        ("entries", f"{found['entries']:,}", ""),
        ("  labelled", f"{found['labelled']:,}", _kept(found)),
        ("  unlabelled", f"{found['unlabelled']:,}", "by their own bits"),
    ]
    if found["unrefreshable"]:
        fixed = f"{found['unrefreshable']:,}"
        rows.append(("  unrefreshable", fixed, "no features: never refreshed"))
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


def _kept(found: dict[str, Any]) -> str:
    """Return how labelled entries are stored."""
    has_codewords = peers.describe(found["method"]).codewords
    return (
        "by codeword: never stale"
        if has_codewords
        else "by their own bits: the method has no codewords"
    )


def _learning(found: dict[str, Any]) -> list[Row]:
    """Return rows on the learner, and on its accuracy before it learned each row."""
    record, learner = found["learned"], LEARNERS.get(found["method"])
    if learner is None:
        return []
    if record is None:
        return [("learner", learner, "by gradient steps")]
    rows = [("learner", learner, f"{counted(record['rows'], 'row')} learned")]
    if record["accuracy"] is not None:
        scored = counted(record["scored_rows"], "row")
        right = f"{100 * record['accuracy']:.1f} %"
        rows.append(("  accuracy", right, f"on {scored}, before they were learned"))
    if record["accuracy_now"] is not None:
        now = f"{100 * record['accuracy_now']:.1f} %"
        rows.append(("  now", now, "on the latest of them, or on learned ones, each left out"))
    return rows


def _state(found: dict[str, Any]) -> list[Row]:
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
        ("SQLite", found["sqlite"], WAL_RESET_BUG if found["wal_reset_bug"] else ""),
    ]


def _version(version: int | None) -> str:
    return "none" if version is None else f"{version:,}"
