"""Answers of shards joined to one: what one machine with all entries would have answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.cluster.questions import Found, PagePart
from everhash.collection.labels import LabelInfo
from everhash.index.entries import Page
from everhash.index.refresh import RefreshReport
from everhash.index.relevance import NEAR, Pairs, relevance
from everhash.matches import Matches

Counts = NDArray[np.int64]
DISTANCES = ("asymmetric", "hamming")
"""Ways of searching whose best score is the smallest."""
SUMMED = ("entries", "labelled", "unlabelled", "coded", "unrefreshable", "stale_bits", "bytes")
"""Counts of a shard that add up."""


def merge_found(found: list[Found], k: int | None, missing: list[int]) -> Matches:
    """Return the k best entries of all shards; all of them within a radius, if k is None."""
    first, arrivals = found[0].matches, _wide([part.arrivals for part in found])
    scores = _wide([part.matches.scores for part in found])
    likeness = _wide([part.matches.likeness for part in found])
    there = arrivals >= 0
    order = _order(scores, _wide([part.estimates for part in found]), arrivals, first.by)
    counts = there.sum(axis=1)
    if k is None:
        width = int(counts.max(initial=0))
    else:
        width = min(k, arrivals.shape[1])
        counts = np.minimum(counts, width)
    order = _shown(order[:, :width], scores, likeness, arrivals, first.by)

    def best(column: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(column, order, axis=1)

    def lists(of: Callable[[Matches], list[list[Any]]]) -> list[list[Any]]:
        parts = [of(part.matches) for part in found]
        if not any(parts):
            return []
        table = _wide(
            [_as_table(part, one.arrivals) for part, one in zip(parts, found, strict=True)]
        )
        rows = best(table)
        return [rows[i, :n].tolist() for i, n in enumerate(counts.tolist())]

    return Matches(
        ids=_ids(best(_wide([part.matches.ids.astype(object) for part in found]))),
        scores=best(scores),
        likeness=best(likeness),
        labels=best(_wide([part.matches.labels for part in found])),
        guesses=best(_wide([part.matches.guesses for part in found])),
        counts=counts,
        novelty=first.novelty,
        by=first.by,
        explanations=lists(lambda matches: matches.explanations),
        payloads=lists(lambda matches: matches.payloads),
        missing=missing,
    )


def _wide(tables: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(tables, axis=1)


def _as_table(rows: list[list[Any]], arrivals: Counts) -> NDArray[Any]:
    """Return one list a query as a table that is padded with None."""
    table = np.full(arrivals.shape, None, object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            table[i, j] = value
    return table


def _order(
    scores: NDArray[np.float32], likeness: NDArray[np.float32], arrivals: Counts, by: list[str]
) -> Counts:
    """Return each query's entries from the best on: ties by likeness, then by arrival."""
    rising = np.array([way in DISTANCES for way in by], np.bool_)[:, None]
    keys = np.where(rising, scores, -scores)
    alike = np.where(np.isnan(likeness) | rising, np.float32(0), -likeness)
    absent = arrivals < 0
    order: Counts = np.lexsort((arrivals, alike, keys, absent), axis=1)
    return order


def _shown(
    chosen: Counts,
    scores: NDArray[np.float32],
    likeness: NDArray[np.float32],
    arrivals: Counts,
    by: list[str],
) -> Counts:
    """Return those that estimates have chosen, in the order of their likeness."""

    def mine(column: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(column, chosen, axis=1)

    shown: Counts = np.take_along_axis(
        chosen, _order(mine(scores), mine(likeness), mine(arrivals), by), axis=1
    )
    return shown


def _ids(table: NDArray[Any]) -> NDArray[Any]:
    """Return ids as a search has them: numbers if all of them are, and none is missing."""
    if all(isinstance(value, int) for value in table.flat):
        return table.astype(np.int64)
    return table


def judged(found: list[Found], k: int | None, number: float) -> list[Found]:
    """Return what shards have found for a search by relevance, with its scores.

    Args:
        found: the pools of all shards, with scores by meaning.
        k: entries wanted; None for all of at least a relevance.
        number: k, or that relevance.
    """
    arrivals = _wide([part.arrivals for part in found])
    meaning = _wide([part.matches.scores for part in found])
    likeness = _wide([part.matches.likeness for part in found])
    if k is not None:
        estimates = _wide([part.estimates for part in found])
        best = max(k, NEAR)
        meant = np.lexsort((arrivals, -estimates, -meaning, arrivals < 0), axis=1)[:, :best]
        near = np.lexsort((arrivals, -likeness, arrivals < 0), axis=1)[:, :best]
        chosen = np.zeros(arrivals.shape, np.bool_)
        np.put_along_axis(chosen, np.concatenate([meant, near], axis=1), True, axis=1)
        arrivals = np.where(chosen, arrivals, -1)
    labels = _wide([part.matches.labels for part in found])
    guesses = _wide([part.matches.guesses for part in found])
    labelled: NDArray[np.bool_] = labels != np.array(None)
    own = _numbered(np.where(labelled, labels, guesses))
    rows = found[0].rows_a_label
    scores = relevance(Pairs(meaning, likeness, labelled, own, arrivals, rows))
    if k is None:
        arrivals = np.where(scores >= number, arrivals, -1)
    edges = np.cumsum([part.arrivals.shape[1] for part in found])[:-1]
    shares = np.split(scores, edges, axis=1), np.split(arrivals, edges, axis=1)
    return [_left(*each) for each in zip(found, *shares, strict=True)]


def _left(part: Found, scores: NDArray[np.float32], arrivals: Counts) -> Found:
    """Return what a shard has found with these scores; without what did not arrive."""
    there, matches = arrivals >= 0, part.matches
    likeness = np.where(there, matches.likeness, np.float32(np.nan))
    named: dict[str, Any] = {
        name: np.where(there, getattr(matches, name).astype(object), None)
        for name in ("ids", "labels", "guesses")
    }
    scores = np.where(there, scores, np.float32(np.nan))
    matches = replace(matches, scores=scores, likeness=likeness, **named)
    return part._replace(matches=matches, arrivals=arrivals, estimates=likeness)


def _numbered(names: NDArray[Any]) -> Counts:
    """Return a number for each name, the same for equal ones; -1 for None."""
    numbers: dict[Any, int] = {None: -1}
    flat = [numbers.setdefault(name, len(numbers)) for name in names.flat]
    return np.array(flat, np.int64).reshape(names.shape)


def merge_pages(parts: list[PagePart], limit: int, *, by_text: bool, arrived: int) -> Page:
    """Return the first entries of all shards, and where to go on.

    Where a text is looked for, what comes next is the entry after the last one, as nobody has
    looked further.
    """
    found = sorted(
        (
            (arrival, entry)
            for part in parts
            for arrival, entry in zip(part.arrivals, part.entries, strict=True)
        ),
        key=lambda pair: pair[0],
    )
    page, rest = found[:limit], found[limit:]
    entries = [entry for _, entry in page]
    if by_text:
        after = page[-1][0] + 1 if len(page) == limit else arrived
        return Page(entries, after if after < arrived else None)
    later = [part.next for part in parts if part.next is not None]
    later += [arrival for arrival, _ in rest[:1]]
    return Page(entries, min(later) if later else None)


def merge_labels(parts: list[list[LabelInfo]]) -> list[LabelInfo]:
    """Return labels with the entries of all shards."""
    return [
        replace(same[0], entries=sum(one.entries for one in same))
        for same in zip(*parts, strict=True)
    ]


def merge_reports(reports: list[RefreshReport]) -> RefreshReport:
    """Return what all shards have refreshed together; they do so at the same time."""
    first = reports[0]
    values = {
        name: sum(getattr(report, name) for report in reports)
        for name in vars(first)
        if name not in ("seconds", "dry_run")
    }
    return replace(first, **values, seconds=max(report.seconds for report in reports))


def merge_refreshed(parts: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return what stats tell of the last refresh: what all shards did by one write, added up.

    A shard that was added since knows of none.
    """
    found = [part for part in parts if part is not None]
    if not found:
        return None
    latest = max(part["write"] for part in found)
    found = [part for part in found if part["write"] == latest]
    fields = [{name: part[name] for name in part if name not in ("at", "write")} for part in found]
    ended = max(part["at"] for part in found)
    return {"at": ended, **asdict(merge_reports([RefreshReport(**each) for each in fields]))}


def merge_stats(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the stats of all shards as those of one collection."""
    stats = dict(parts[0])
    for name in SUMMED:
        stats[name] = sum(part[name] for part in parts)
    fullest = max(parts, key=lambda part: int(part["entries"]))
    some = stats["entries"] > 0
    for name in ("labels", "cycles", "width", "hasher_version"):
        stats[name] = fullest[name] if some else parts[0][name]
    versions = [part["mapping_version"] for part in parts if part["mapping_version"] is not None]
    stats["mapping_version"] = versions[0] if versions else None
    stats["last_refresh"] = merge_refreshed([part["last_refresh"] for part in parts])
    stats["wal_reset_bug"] = any(part["wal_reset_bug"] for part in parts)
    return stats
