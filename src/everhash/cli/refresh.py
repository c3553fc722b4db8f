"""`everhash refresh`: bring unlabelled entries up to date with the newest mapping."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from everhash.cli.arguments import AsJson, File, opened
from everhash.cli.formatting import counted, print_json, share, short
from everhash.cli.terminal import Bar, waiting
from everhash.collection.collection import Collection
from everhash.index.refresh import RefreshReport, report_of


def refresh(
    path: File,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what a refresh would do.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring unlabelled entries up to date with what was learned since.

    Example: everhash refresh shop.ever --dry-run
    """
    with opened(path, readonly=dry_run) as collection:
        report = _dry(collection) if dry_run else _followed(collection)
        stats = collection.stats()
    if as_json:
        print_json({**asdict(report), "bits": stored_bits(report, stats)})
    else:
        typer.echo(in_words(report, stats))


def _dry(collection: Collection) -> RefreshReport:
    with waiting("looking at every entry without a label"):
        return collection.refresh(dry_run=True)


def _followed(collection: Collection) -> RefreshReport:
    """Refresh, showing how far that is."""
    total, done = collection.stats()["coded"], 0
    with Bar("refreshing", total) as bar:

        def show(share: float) -> None:
            nonlocal done
            now = round(share * total)
            bar.move(now - done)
            done = now

        return report_of(collection.refresh_steps(), show)


def stored_bits(report: RefreshReport, stats: dict[str, Any]) -> int:
    """Return how many bits the entries that were looked at keep."""
    return report.entries * int(stats["bits"] if stats["coding"] == "home" else stats["width"])


def in_words(report: RefreshReport, stats: dict[str, Any]) -> str:
    """Return what a refresh did, or would do."""
    if report.entries == 0:
        if stats["read_only"]:
            return "nothing to refresh: the collection keeps no features (create --no-features)"
        return "nothing to refresh: no entry is without a label"
    would, bits = "would rewrite" if report.dry_run else "rewrote", stored_bits(report, stats)
    moved = "would move" if report.dry_run else "moved"
    flipped = report.bits_flipped
    return (
        f"{would} {short(flipped)} of {short(bits)} bits ({share(flipped, bits)}) "
        f"of {counted(report.entries, 'entry', 'entries')}: "
        f"{short(report.bits_recomputed)} computed again, "
        f"{short(report.bits_certified)} proved unchanged; "
        f"{counted(report.homes_moved, 'entry', 'entries')} {moved} to another home cycle"
    )
