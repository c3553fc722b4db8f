"""Reading: entries, labels, thumbnails, jobs, events, a snapshot, and the state of the service."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from numpy.typing import NDArray

from everhash.collection.attachments import image_type
from everhash.errors import EverhashError, UnknownNameError
from everhash.serve import entries, limits, metrics
from everhash.serve.chunked_search import FIRST_CHUNK
from everhash.serve.encoding import to_json
from everhash.serve.endpoints import Endpoint, parse
from everhash.serve.errors import place_in
from everhash.serve.events import encode
from everhash.serve.served import Served
from everhash.serve.service import Service
from everhash.serve.snapshots import Snapshots
from everhash.stream import as_rows
from everhash.wire.labels import label_to_json
from everhash.wire.media import EVENTS, JSON, SQLITE

Start = Annotated[int, Query(ge=0, lt=2**63, description="Where the page starts.")]
Stop = Annotated[int | None, Query(ge=0, lt=2**63, description="Before which entry it ends.")]
Limit = Annotated[int, Query(ge=1, le=limits.PAGE, description="How long it is at most.")]
WRITTEN = 2048
"""Characters of an id or a label in JSON, at most."""
ID = "Id of an entry: a text if the collection has it as text, else a number."
Text = Annotated[
    str | None,
    Query(
        description="Only entries whose id or payload has this text, in upper or lower case: a "
        "part of a text id, a whole number, or a part of any text in the payload; names of its "
        "fields do not count. A request looks at some of the entries only: go on at `next`."
    ),
]
Label = Annotated[
    str | None,
    Query(
        max_length=WRITTEN,
        description="Only entries with this label: a text, unless it is known only as a number.",
    ),
]
AsJson = Annotated[
    bool,
    Query(alias="json", description='`id` and `label` are JSON: 4 is a number, "4" is a text.'),
]


def listing_endpoints(service: Service) -> dict[str, Endpoint]:
    """Return the endpoints that are asked with a query string, by path."""

    async def list_labels(start: Start = 0, limit: Limit = limits.PAGE) -> Response:
        return await _json(service, partial(entries.labels_page, start=start, limit=limit))

    async def list_entries(
        start: Start = 0,
        limit: Limit = 100,
        stop: Stop = None,
        unlabelled: Annotated[bool, Query(description="Only entries without a label.")] = False,
        text: Text = None,
        label: Label = None,
        as_json: AsJson = False,
        codes: Annotated[bool, Query(description="The bits of entries that have some.")] = False,
    ) -> Response:
        page = entries.PageRequest(start, limit, stop, unlabelled, text, label, as_json, codes)
        return await _json(service, partial(entries.entries_page, page=page))

    async def thumbnail(
        request: Request,
        name: Annotated[str, Query(alias="id", max_length=WRITTEN, description=ID)],
        as_json: AsJson = False,
    ) -> Response:
        picture = await service.read(partial(_picture, name=name, as_json=as_json))
        tag = f'"{hashlib.sha256(picture).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        media = image_type(picture) or "application/octet-stream"
        return Response(picture, media_type=media, headers=headers)

    return {"/labels": list_labels, "/entries": list_entries, "/thumbnail": thumbnail}


def read_endpoints(service: Service) -> dict[str, Endpoint]:
    """Return the endpoints that are asked with a body, and jobs, by path."""

    async def get(request: Request) -> Response:
        ids = (await parse(service, request.scope)).ids
        return await _json(service, partial(entries.entries_of, ids=ids))

    async def has(request: Request) -> Response:
        ids = (await parse(service, request.scope)).ids
        return await _json(service, lambda collection: {"has": collection.has(ids).tolist()})

    async def predict(request: Request) -> Response:
        rows = as_rows((await parse(service, request.scope)).rows)
        parts = []
        for start in range(0, len(rows), FIRST_CHUNK):  # each row has a number for every label
            chunk = rows[start : start + FIRST_CHUNK]
            parts.append(await service.search(partial(_likeliest, rows=chunk)))
        labels = np.concatenate(parts)
        named = [label_to_json(label) for label in labels.tolist()]
        answer = {"labels": named, "dtype": str(labels.dtype)}
        return Response(to_json(answer), media_type=JSON)

    async def jobs(request: Request, job: str) -> Response:
        found = service.jobs.find(job)
        return JSONResponse(found.as_json(service.path, place_in(request.scope)))

    return {
        "/get": get,
        "/has": has,
        "/predict": predict,
        "/jobs/{job}": jobs,
    }


def state_endpoints(service: Service) -> dict[str, Endpoint]:
    """Return the endpoints about the service itself, by path."""
    snapshots = Snapshots(service)

    async def live() -> Response:
        return JSONResponse({"live": True})

    async def ready() -> Response:
        ready = service.ready and (service.path is None or service.path.exists())
        return JSONResponse({"ready": ready, "readonly": service.readonly}, 200 if ready else 503)

    async def limit_table() -> Response:
        return JSONResponse(limits.TABLE)

    async def stats() -> Response:
        return JSONResponse(await service.stats())

    async def metrics_text() -> Response:
        stats: dict[str, Any] = {}
        with suppress(EverhashError):  # of a file that is gone
            stats = await service.stats() if service.ready else {}
        text = service.metrics.text(stats, len(service.events))
        return Response(text, media_type=metrics.CONTENT_TYPE)

    async def events() -> Response:
        stats = await service.stats()
        listener = service.events.join()
        listener.put(encode(("stats", stats)))
        listener.put(encode(("accuracy", {"points": service.accuracy.points})))
        return StreamingResponse(service.events.stream(listener), media_type=EVENTS)

    async def snapshot() -> Response:
        size, pieces = await snapshots.take()
        headers = {
            "Content-Length": str(size),
            "Content-Disposition": 'attachment; filename="snapshot.ever"',
        }
        return StreamingResponse(pieces, media_type=SQLITE, headers=headers)

    return {
        "/live": live,
        "/ready": ready,
        "/limits": limit_table,
        "/stats": stats,
        "/metrics": metrics_text,
        "/events": events,
        "/snapshot": snapshot,
    }


async def _json(service: Service, read: Callable[[Served], dict[str, Any]]) -> Response:
    """Answer with what a call returns, encoded by the thread that makes it."""
    content = await service.read(lambda c: to_json(read(c)))
    return Response(service.answers.check(content), media_type=JSON)


def _likeliest(collection: Served, rows: NDArray[np.float32]) -> NDArray[Any]:
    return collection.predict(rows)


def _picture(collection: Served, name: str, *, as_json: bool) -> bytes:
    entry = entries.id_of(collection, name, as_json=as_json)
    data = collection.attachments([entry])[0].thumbnail
    if data is None:
        raise UnknownNameError(
            f"entry {entry!r} has no thumbnail", hint="POST /attach gives it one"
        )
    return data
