"""Writing: one call of the collection a request, each one transaction, in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from everhash.collection.collection import Collection
from everhash.index.refresh import RefreshReport
from everhash.serve import limits, schemas, writing
from everhash.serve.bodies import Given, read_body
from everhash.serve.describing import PROBLEMS, body
from everhash.serve.fields import attached_of, ids_of, labels_of, rows_of, take
from everhash.serve.intake import BODY
from everhash.serve.service import Done, Service

Call = Callable[[Collection], Done]


class Write(NamedTuple):
    """A route that changes something."""

    path: str
    does: str
    model: type[BaseModel]
    answer: type[BaseModel]
    read: Callable[[Given], Call]
    """Makes the call of what the body holds."""


def _teach(how: Callable[..., Done], given: Given) -> Call:
    rows, labels = rows_of(given, limits.ROWS), labels_of(given)
    return partial(how, rows=rows, labels=labels)


def _enter(how: Callable[..., Done], given: Given) -> Call:
    rows, labels, ids = rows_of(given, limits.ROWS), labels_of(given), ids_of(given)
    return partial(how, rows=rows, labels=labels, ids=ids, attached=attached_of(given))


def _attach(given: Given) -> Call:
    return partial(writing.attach, ids=_ids(given), attached=attached_of(given))


def _label(given: Given) -> Call:
    take(given, "labels")
    return partial(writing.label, ids=_ids(given), labels=labels_of(given) or [])


def _remove(given: Given) -> Call:
    return partial(writing.remove, ids=_ids(given))


def _ids(given: Given) -> list[Any]:
    take(given, "ids")
    return ids_of(given) or []


WRITES = (
    Write(
        "/learn",
        "Move the mapping by rows and their labels; index nothing.",
        schemas.LearnRequest,
        schemas.Learned,
        partial(_teach, writing.learn),
    ),
    Write(
        "/forget",
        "Take back rows that were learned, given as they were; entries stay as they are.",
        schemas.ForgetRequest,
        schemas.Forgotten,
        partial(_teach, writing.forget),
    ),
    Write(
        "/add",
        "Add entries: labelled ones by codeword, others by their bits.",
        schemas.AddRequest,
        schemas.Added,
        partial(_enter, writing.add),
    ),
    Write(
        "/ingest",
        "Learn from rows and add them, in one transaction.",
        schemas.AddRequest,
        schemas.Added,
        partial(_enter, writing.ingest),
    ),
    Write(
        "/attach",
        "Give entries payloads and thumbnails.",
        schemas.AttachRequest,
        schemas.Attached,
        _attach,
    ),
    Write(
        "/label",
        "Give entries labels instead of what they had.",
        schemas.LabelRequest,
        schemas.Labelled,
        _label,
    ),
    Write(
        "/remove",
        "Forget entries. Their ids are never used again.",
        schemas.IdsRequest,
        schemas.Removed,
        _remove,
    ),
)


def add_write_routes(app: FastAPI, service: Service) -> None:
    """Add the routes that change the collection."""
    for write in WRITES:
        app.add_api_route(
            write.path,
            _endpoint(service, write),
            methods=["POST"],
            name=write.path[1:],
            description=write.does,
            responses={**PROBLEMS, 200: {"model": write.answer}},
            response_model=None,
            openapi_extra=body(write.model, rows="rows" in write.model.model_fields),
        )
    started: dict[int | str, dict[str, Any]] = {
        **PROBLEMS,
        200: {"model": RefreshReport, "description": "What a refresh would do."},
        202: {"model": schemas.JobStarted, "description": "It has begun; see /jobs."},
    }

    @app.post("/refresh", responses=started, response_model=None)
    async def refresh(dry_run: bool = False) -> Response:
        """Bring unlabelled entries up to date with the newest mapping."""
        if dry_run:
            return JSONResponse(asdict(await service.dry_run()))
        return JSONResponse({"job": service.refresh().number}, 202)


def _endpoint(service: Service, write: Write) -> Callable[[Request], Awaitable[Response]]:
    """Return the function that FastAPI calls for a route."""
    fields = frozenset(write.model.model_fields)

    async def endpoint(request: Request) -> Response:
        service.check_writable()
        content: bytes = request.scope[BODY]
        kind = request.headers.get("content-type", "")

        def decode() -> Call:
            return write.read(read_body(content, kind, fields, limits.ROWS))

        call = await service.decode(len(content), decode)
        return JSONResponse(await service.write(call))

    return endpoint
