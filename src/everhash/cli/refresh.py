"""`everhash refresh`: bring unlabelled entries up to date with the newest mapping."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from everhash.cli.arguments import AsJson, Target, open_collection
from everhash.cli.formatting import counted, percent, print_json, short
from everhash.cli.terminal import Bar, waiting
from everhash.collection.api import CollectionApi
from everhash.index.refresh import RefreshReport, report_of


def refresh(
    target: Target,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what a refresh would do.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring unlabelled entries up to date with the newest mapping.

    Example: everhash refresh shop.ever --dry-run
    """
    with open_collection(target, readonly=dry_run) as collection:
        report = _dry_run(collection) if dry_run else _with_progress(collection)
        stats = collection.stats()
    if as_json:
        print_json({**asdict(report), "bits": stored_bits(report, stats)})
    else:
        typer.echo(summary(report, stats))


def _dry_run(collection: CollectionApi) -> RefreshReport:
    with waiting("comparing every entry without a label"):
        return collection.refresh(dry_run=True)


def _with_progress(collection: CollectionApi) -> RefreshReport:
    """Refresh with a progress bar."""
    total, done = collection.stats()["coded"], 0
    with Bar("refreshing", total) as bar:

        def show(fraction: float) -> None:
            nonlocal done
            now = round(fraction * total)
            bar.advance_by(now - done)
            done = now

        return report_of(collection.refresh_steps(), show)


def stored_bits(report: RefreshReport, stats: dict[str, Any]) -> int:
    """Return how many bits the refreshed entries store."""
    return report.entries * int(stats["bits"] if stats["coding"] == "home" else stats["width"])


def summary(report: RefreshReport, stats: dict[str, Any]) -> str:
    """Return one line on what a refresh did, or would do."""
    if report.entries == 0:
        if stats["unrefreshable"]:
            return (
                "nothing to refresh: the collection keeps no features (create --keep-features none)"
            )
        return "nothing to refresh: no entry is without a label"
    would, bits = "would rewrite" if report.dry_run else "rewrote", stored_bits(report, stats)
    moved = "would move" if report.dry_run else "moved"
    flipped = report.bits_flipped
    return (
        f"{would} {short(flipped)} of {short(bits)} bits ({percent(flipped, bits)}) "
        f"of {counted(report.entries, 'entry', 'entries')}: "
        f"{short(report.bits_recomputed)} computed again, "
        f"{short(report.bits_certified)} proved unchanged; "
        f"{counted(report.homes_moved, 'entry', 'entries')} {moved} to another home cycle"
    )
