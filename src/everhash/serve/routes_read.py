"""Reading: entries, labels, thumbnails, jobs, events, a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from everhash.collection.collection import Collection
from everhash.errors import IdError
from everhash.serve import limits
from everhash.serve.bodies import JSON, read_body
from everhash.serve.describing import PROBLEMS, body
from everhash.serve.errors import too_large
from everhash.serve.events import text_of
from everhash.serve.fields import ids_of, take
from everhash.serve.intake import BODY
from everhash.serve.reading import (
    Asked,
    picture_of,
    tell_entries,
    tell_has,
    tell_labels,
    tell_some,
)
from everhash.serve.schemas import Entries, EntriesPage, Has, IdsRequest, Job, LabelsPage
from everhash.serve.service import Service
from everhash.serve.snapshots import Snapshots
from everhash.wire.ids import ID_CHARACTERS, as_id

IDS = frozenset(IdsRequest.model_fields)
IDS_BYTES = 8 << 20
Start = Annotated[int, Query(ge=0, lt=2**63, description="Where the page starts.")]
Stop = Annotated[int | None, Query(ge=0, lt=2**63, description="Before which entry it ends.")]
Limit = Annotated[int, Query(ge=1, le=limits.PAGE, description="How long it is at most.")]
SQLITE = "application/vnd.sqlite3"
STREAM = "text/event-stream"
EVENT = {
    "type": "object",
    "properties": {
        "event": {
            "enum": [
                *("stats", "learned", "forgotten", "added"),
                *("labelled", "removed", "refreshed"),
            ],
            "type": "string",
        },
        "data": {"type": "string", "description": "A JSON object."},
    },
}


def _holding(media_type: str, text: str, schema: dict[str, Any] | None = None) -> dict[Any, Any]:
    """Return the description of an answer that is no JSON."""
    content = {media_type: {"schema": schema or {"type": "string", "format": "binary"}}}
    return {**PROBLEMS, 200: {"description": text, "content": content}}


def add_read_routes(app: FastAPI, service: Service) -> None:
    """Add the routes that change nothing."""
    snapshots = Snapshots(service)

    @app.get("/labels", responses={**PROBLEMS, 200: {"model": LabelsPage}}, response_model=None)
    async def labels(start: Start = 0, limit: Limit = limits.PAGE) -> Response:
        """List labels in order of arrival."""
        return await _told(service, partial(tell_labels, start=start, limit=limit))

    @app.get("/entries", responses={**PROBLEMS, 200: {"model": EntriesPage}}, response_model=None)
    async def entries(
        start: Start = 0,
        limit: Limit = 100,
        stop: Stop = None,
        unlabelled: bool = False,
        codes: bool = False,
    ) -> Response:
        """List entries in order of arrival."""
        asked = Asked(start, limit, stop, unlabelled=unlabelled, codes=codes)
        return await _told(service, partial(tell_entries, asked=asked))

    @app.post(
        "/get",
        responses={**PROBLEMS, 200: {"model": Entries}},
        response_model=None,
        openapi_extra=body(IdsRequest),
    )
    async def get(request: Request) -> Response:
        """Tell what is known of entries."""
        return await _told(
            service, partial(tell_some, ids=await _ids(service, request, limits.PAGE))
        )

    @app.post(
        "/has",
        responses={**PROBLEMS, 200: {"model": Has}},
        response_model=None,
        openapi_extra=body(IdsRequest),
    )
    async def has(request: Request) -> Response:
        """Tell of each id whether an entry has it, or had it before it was removed."""
        return await _told(
            service, partial(tell_has, ids=await _ids(service, request, limits.ROWS))
        )

    @app.get("/thumbnail", responses=_holding("image/*", "The picture."), response_model=None)
    async def thumbnail(
        request: Request,
        name: Annotated[str, Query(alias="id", max_length=ID_CHARACTERS)],
        kind: Literal["int", "str"] = "str",
    ) -> Response:
        """Show an entry's picture."""
        picture = await service.read(partial(picture_of, name=_id(name, kind)))
        tag = f'"{picture.tag}"'
        headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(picture.data, media_type=picture.media_type, headers=headers)

    @app.get("/jobs/{job}", responses={**PROBLEMS, 200: {"model": Job}}, response_model=None)
    async def jobs(job: str) -> Response:
        """Tell how far a refresh is."""
        return JSONResponse(service.jobs.find(job).as_json())

    @app.get(
        "/events",
        responses=_holding(STREAM, "Events without end.", EVENT),
        response_model=None,
    )
    async def events() -> Response:
        """Tell what happens, as it happens."""
        stats = await service.stats()
        listener = service.events.join()
        listener.tell(text_of(("stats", stats)))
        return StreamingResponse(service.events.stream(listener), media_type=STREAM)

    @app.get("/snapshot", responses=_holding(SQLITE, "The whole file."), response_model=None)
    async def snapshot() -> Response:
        """Send a compact copy of the collection as it is now."""
        size, pieces = await snapshots.take()
        headers = {
            "Content-Length": str(size),
            "Content-Disposition": 'attachment; filename="snapshot.ever"',
        }
        return StreamingResponse(pieces, media_type=SQLITE, headers=headers)


async def _told(service: Service, tell: Callable[[Collection], dict[str, Any]]) -> Response:
    """Answer with what a call tells, put into JSON by the thread that makes it."""

    def run(collection: Collection) -> bytes:
        return json.dumps(tell(collection), separators=(",", ":")).encode()

    return Response(await service.read(run), media_type=JSON)


async def _ids(service: Service, request: Request, most: int) -> list[Any]:
    """Return the ids that a request asks about."""
    content, kind = request.scope[BODY], request.headers.get("content-type", "")
    if len(content) > IDS_BYTES:  # JSON is read by whoever should answer others meanwhile
        raise too_large(f"a list of ids of more than {IDS_BYTES} bytes", "split the request")

    def decode() -> list[Any]:
        given = read_body(content, kind, IDS, most)
        take(given, "ids")
        return ids_of(given, most=most) or []

    return await service.decode(len(content), decode)


def _id(text: str, kind: str) -> int | str:
    """Return an id given as text."""
    if kind == "str":
        return as_id(text)
    try:
        return as_id(int(text))
    except ValueError as error:
        if isinstance(error, IdError):
            raise
        raise IdError(f"{text!r:.80} is no number", hint="kind=str for ids that are text") from None
