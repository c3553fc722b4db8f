"""What takes several requests: many ids, pages, a job that runs until it is done."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

from everhash.client import answers
from everhash.client.connections import Request
from everhash.client.faults import error_from
from everhash.client.service import Service, with_query
from everhash.collection.labels import LabelInfo
from everhash.index.entries import Entry, Page
from everhash.index.refresh import RefreshReport
from everhash.wire.ids import Id

PAUSES = (0.01, 1.0)
"""Seconds between two looks at a refresh, at first and at most."""


def told_of(service: Service, route: str, field: str, names: list[Id]) -> list[Any]:
    """Return what a service tells of ids, asked for as many at a time as it takes."""
    most = service.limits.page if route == "/get" else service.limits.rows
    found: list[Any] = []
    for start in range(0, len(names), most):
        part = names[start : start + most]
        answer = service.post(route, {"ids": part})
        with service.reading():
            found += answers.listed(answer[field], len(part))
    return found


def picture_of(service: Service, name: Id) -> bytes:
    """Return the thumbnail of an entry."""
    kind = "str" if isinstance(name, str) else "int"
    request = Request("GET", with_query("/thumbnail", {"id": name, "kind": kind}))
    with service.answering(request) as reply, service.reading():
        return answers.picture_of(reply.whole())


def page_of(
    service: Service, start: int, limit: int, stop: int | None, *, unlabelled: bool
) -> Page:
    """Return some entries, asked for as many at a time as the service tells."""
    until = {} if stop is None else {"stop": max(0, stop)}
    entries: list[Entry] = []
    place: int | None = start
    while place is not None and len(entries) < limit:
        most = min(limit - len(entries), service.limits.page)
        query = {"start": place, "limit": most, "codes": True, "unlabelled": unlabelled, **until}
        page = service.get("/entries", **query)
        with service.reading():
            told = answers.listed(page["entries"])
            entries += [answers.entry_of(one) for one in told]
            if page["next"] is not None and len(told) != most:
                raise ValueError("a page that is short, and no last one")
            place = answers.after(place + len(told), page["next"])
    return Page(entries, place)


def labels_of(service: Service, start: int, stop: int | None) -> list[LabelInfo]:
    """Return labels; no page brings one again, or more of them than there are."""
    infos: list[LabelInfo] = []
    seen: set[str] = set()
    while stop is None or start + len(infos) < stop:
        at = start + len(infos)
        most = service.limits.page if stop is None else min(service.limits.page, stop - at)
        page = service.get("/labels", start=at, limit=most)
        with service.reading():
            told, total = answers.listed(page["labels"]), answers.whole(page["total"])
            infos += [answers.label_info_of(one) for one in told]
            seen |= {json.dumps(one["label"]) for one in told}
            if not len(seen) == len(infos) <= max(0, total - start):
                raise ValueError("labels that have come before, or too many")
            if start + len(infos) >= total:
                break
            if not told:
                raise ValueError("fewer labels than there are")
    return infos


def job_steps(service: Service, job: str) -> Generator[float, None, RefreshReport]:
    """Yield the share of a refresh that is done now and then, until all of it is."""
    pause, longest = PAUSES
    while (told := service.get(f"/jobs/{job}")).get("state") == "running":
        with service.reading():
            share = answers.number(told["progress"], 1.0)
        yield share
        time.sleep(pause)
        pause = min(2 * pause, longest)
    if told.get("error") is not None:
        raise error_from(told, service.name)
    with service.reading():
        return answers.report_of(told["report"])
