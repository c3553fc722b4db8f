"""What takes several requests: many ids, pages, a job that runs until it is done."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from typing import Any

from everhash.client import answers
from everhash.client.remote_errors import error_from
from everhash.client.session import ApiCall, Session
from everhash.collection.labels import LabelInfo
from everhash.index.entries import Entry, Page
from everhash.index.refresh import RefreshReport
from everhash.wire.ids import Id
from everhash.wire.values import read_count, read_list, read_number

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 1.0
"""Seconds between two looks at a refresh."""


def read_all(session: Session, path: str, field: str, ids: list[Id]) -> list[Any]:
    """Return what a route says of ids, asked for as many at a time as it takes."""
    most = session.limits.page if path == "/get" else session.limits.rows
    found: list[Any] = []
    for start in range(0, len(ids), most):
        part = ids[start : start + most]
        answer = session.call(path, {"ids": part})
        with session.reading():
            found += read_list(answer[field], len(part))
    return found


def picture_of(session: Session, name: Id) -> bytes:
    """Return the thumbnail of an entry."""
    query = {"id": json.dumps(name), "json": True}
    call = ApiCall("/thumbnail", accept="image/*", query=query)
    with session.open(call) as response, session.reading():
        return answers.picture_of(session.read(response))


def page_of(session: Session, start: int, limit: int, wanted: Mapping[str, Any]) -> Page:
    """Return entries, asked for as many at a time as the service sends."""
    entries: list[Entry] = []
    place: int | None = start
    while place is not None and len(entries) < limit:
        found, place = part_of(session, place, limit - len(entries), wanted)
        entries += found
    return Page(entries, place)


def part_of(session: Session, start: int, limit: int, wanted: Mapping[str, Any]) -> Page:
    """Return the entries that one request brings, and where to go on."""
    most = min(limit, session.limits.page)
    page = session.call("/entries", start=start, limit=most, codes=True, **wanted)
    with session.reading():
        said = read_list(page["entries"])
        entries = [answers.entry_of(one) for one in said]
        if len(said) > most or (
            page["next"] is not None and len(said) < most and "text" not in wanted
        ):
            raise ValueError("a page that is too long, or short and not the last")
        return Page(entries, answers.next_page(start + max(1, len(said)), page["next"]))


def labels_of(session: Session, start: int, stop: int | None) -> list[LabelInfo]:
    """Return labels; no page brings one again, or more of them than there are."""
    infos: list[LabelInfo] = []
    seen: set[str] = set()
    while stop is None or start + len(infos) < stop:
        at = start + len(infos)
        most = session.limits.page if stop is None else min(session.limits.page, stop - at)
        page = session.call("/labels", start=at, limit=most)
        with session.reading():
            said, total = read_list(page["labels"]), read_count(page["total"])
            infos += [answers.label_info_of(one) for one in said]
            seen |= {json.dumps(one["label"]) for one in said}
            if not len(seen) == len(infos) <= max(0, total - start):
                raise ValueError("labels that have come before, or too many")
            if start + len(infos) >= total:
                break
            if not said:
                raise ValueError("fewer labels than there are")
    return infos


def job_steps(session: Session, job: str) -> Generator[float, None, RefreshReport]:
    """Yield the share of a refresh that is done, until all of it is; return its report."""
    pause = FIRST_PAUSE
    while (said := session.call(f"/jobs/{job}")).get("state") == "running":
        with session.reading():
            share = read_number(said["progress"], 1.0)
        yield share
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    if said.get("error") is not None:
        raise error_from(said, session.name)
    with session.reading():
        return answers.report_of(said["report"])
