"""Writing: one call of the collection a request, each one transaction, in order."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import asdict
from time import perf_counter
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from everhash.collection.as_json import label_report_to_json
from everhash.errors import InputError, LimitError
from everhash.serve import limits, schemas
from everhash.serve.endpoints import Endpoint, parse
from everhash.serve.entries import count_labels
from everhash.serve.events import FIRST_IDS, FIRST_LABELS, Event
from everhash.serve.served import Served
from everhash.serve.service import Service, WriteResult
from everhash.stream import Labels, as_labels
from everhash.wire.labels import label_to_json


def learn(collection: Served, request: schemas.LearnRequest) -> WriteResult:
    """Move the mapping; index nothing."""
    y, new = _checked_labels(collection, request.labels, len(request.rows))
    began = perf_counter()
    collection.learn(request.rows, y)
    event = _learned(len(request.rows), new, perf_counter() - began)
    answer = {"learned": len(request.rows), "labels": count_labels(collection)}
    return WriteResult(answer, [event])


def forget(collection: Served, request: schemas.LearnRequest) -> WriteResult:
    """Take back rows that were learned."""
    collection.forget(request.rows, request.labels)
    n = len(request.rows)
    return WriteResult({"forgotten": n}, [("forgotten", {"rows": n})])


def add(collection: Served, request: schemas.AddRequest) -> WriteResult:
    """Add entries."""
    y, _ = _checked_labels(collection, request.labels, len(request.rows))
    ids = collection.add(request.rows, request.ids, y, **_attached(request))
    return WriteResult({"ids": ids}, [_added(ids, learned=False)])


def ingest(collection: Served, request: schemas.AddRequest) -> WriteResult:
    """Learn from rows and add them."""
    y, new = _checked_labels(collection, request.labels, len(request.rows))
    began = perf_counter()
    ids = collection.ingest(request.rows, y, request.ids, **_attached(request))
    learned = _learned(len(request.rows), new, perf_counter() - began)
    return WriteResult({"ids": ids}, [learned, _added(ids, learned=True)])


def upsert(collection: Served, request: schemas.UpsertRequest) -> WriteResult:
    """Add entries, in place of those that have the same ids."""
    y, new = _checked_labels(collection, request.labels, len(request.rows))
    if request.ids is None:
        raise InputError("field 'ids' is missing", hint="/ingest makes ids")
    began, attached = perf_counter(), _attached(request)
    ids = collection.upsert(request.rows, request.ids, y, **attached, teach=request.teach)
    learned = [_learned(len(request.rows), new, perf_counter() - began)] if request.teach else []
    return WriteResult({"ids": ids}, [*learned, _added(ids, learned=request.teach)])


def update(collection: Served, request: schemas.UpdateRequest) -> WriteResult:
    """Give entries other features."""
    collection.update(request.ids, request.rows, teach=request.teach)
    return WriteResult({"updated": len(request.ids)}, [_changed("updated", request.ids)])


def attach(collection: Served, request: schemas.AttachRequest) -> WriteResult:
    """Give entries payloads and thumbnails."""
    collection.attach(request.ids, **_attached(request))
    return WriteResult({"attached": len(request.ids)}, [])


def label(collection: Served, request: schemas.LabelRequest) -> WriteResult:
    """Give entries labels instead of what they had."""
    y, new = _checked_labels(collection, request.labels, len(request.ids))
    options: dict[str, Any] = {
        "teach": request.teach,
        "expect": request.expect,
        "new": request.new,
    }
    report = collection.label(request.ids, y, **options)
    kind, data = _changed("labelled", request.ids)
    event = kind, {**data, "new_labels": _first_labels(new)}
    return WriteResult(label_report_to_json(report), [event])


def unlabel(collection: Served, request: schemas.UnlabelRequest) -> WriteResult:
    """Take the labels of entries away."""
    n = collection.unlabel(request.ids, teach=request.teach, expect=request.expect)
    return WriteResult({"unlabelled": n}, [_changed("unlabelled", request.ids)])


def rename(collection: Served, request: schemas.RenameRequest) -> WriteResult:
    """Give a label another name."""
    collection.rename_label(request.label, request.to)
    label, to = label_to_json(request.label), label_to_json(request.to)
    return WriteResult({"label": to}, [("renamed", {"label": label, "to": to})])


def merge(collection: Served, request: schemas.MergeRequest) -> WriteResult:
    """Make two labels one."""
    n = collection.merge_labels(request.label, request.into)
    names = {"label": label_to_json(request.label), "into": label_to_json(request.into)}
    return WriteResult({"entries": n}, [("merged", {**names, "entries": n})])


def drop(collection: Served, request: schemas.DropRequest) -> WriteResult:
    """Forget a label."""
    n = collection.drop_label(request.label, unused=request.unused)
    event = "dropped", {"label": label_to_json(request.label), "entries": n}
    return WriteResult({"entries": n}, [event])


def remove(collection: Served, request: schemas.IdsRequest) -> WriteResult:
    """Remove entries."""
    removed = collection.remove(request.ids)
    return WriteResult({"removed": removed}, [_changed("removed", request.ids)])


WRITES: dict[str, Callable[[Served, Any], WriteResult]] = {
    "/learn": learn,
    "/forget": forget,
    "/add": add,
    "/ingest": ingest,
    "/upsert": upsert,
    "/update": update,
    "/attach": attach,
    "/label": label,
    "/unlabel": unlabel,
    "/labels/rename": rename,
    "/labels/merge": merge,
    "/labels/drop": drop,
    "/remove": remove,
}


def write_endpoints(service: Service) -> dict[str, Endpoint]:
    """Return the endpoints that change the collection, by path."""

    async def refresh(dry_run: bool = False) -> Response:
        if dry_run:
            return JSONResponse(asdict(await service.dry_run()))
        return JSONResponse({"job": service.refresh().number}, 202)

    writes = {path: _endpoint(service, write) for path, write in WRITES.items()}
    return {**writes, "/refresh": refresh}


def _endpoint(service: Service, write: Callable[[Served, Any], WriteResult]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        service.check_writable()
        parsed = await parse(service, request.scope)
        return JSONResponse(await service.write(lambda collection: write(collection, parsed)))

    return endpoint


def _attached(request: schemas.AddRequest | schemas.AttachRequest) -> dict[str, Any]:
    """Return payloads and thumbnails; the collection leaves alone what is None."""
    return {"payloads": request.payloads, "thumbnails": request.thumbnails}


def _checked_labels(
    collection: Served, labels: list[Any] | None, n: int
) -> tuple[Labels, list[Hashable]]:
    """Return labels, and those never seen before, if there are not too many of them."""
    hasher, y = collection.hasher, as_labels(labels, n)
    new = hasher.unknown(y.values)
    if len(new) > limits.NEW_LABELS:
        raise LimitError(
            f"{len(new)} labels never seen before, at most {limits.NEW_LABELS} a request",
            hint="are these labels, or ids?",
        )
    if new and len(hasher.words_) + len(new) > limits.LABELS:
        raise LimitError(
            f"{len(hasher.words_)} labels and {len(new)} more, at most {limits.LABELS} are served",
            hint="the library takes more",
        )
    return y, new


def _learned(rows: int, new: list[Hashable], seconds: float) -> Event:
    data = {"rows": rows, "new_labels": _first_labels(new), "seconds": round(seconds, 6)}
    return "learned", data


def _first_labels(new: list[Hashable]) -> list[Any]:
    return [label_to_json(label) for label in new[:FIRST_LABELS]]


def _added(ids: list[Any], *, learned: bool) -> Event:
    """Return the event of new entries; it says whether an event has told of their rows before."""
    kind, data = _changed("added", ids)
    return kind, {**data, "learned": learned}


def _changed(kind: str, ids: list[Any]) -> Event:
    return kind, {"ids": ids[:FIRST_IDS], "count": len(ids)}
