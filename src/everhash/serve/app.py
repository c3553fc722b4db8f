"""The application: the table's routes, each with its endpoint, behind one middleware."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from everhash.errors import EverhashError, OptionError, ServiceError
from everhash.serve.access import Access, no_route, wrong_method
from everhash.serve.access_log import log
from everhash.serve.bodies import explain as explain_problem
from everhash.serve.cors import check_origins
from everhash.serve.docs_page import docs_page
from everhash.serve.endpoints import Endpoint
from everhash.serve.error_middleware import ErrorMiddleware, log_failure
from everhash.serve.errors import RefusedError, place_in, response_to
from everhash.serve.keys import Keys
from everhash.serve.openapi import describe, describe_route
from everhash.serve.read_routes import listing_endpoints, read_endpoints, state_endpoints
from everhash.serve.search_routes import FAST, search_endpoints
from everhash.serve.served import Served
from everhash.serve.service import Service
from everhash.serve.write_routes import write_endpoints
from everhash.wire.media import JSON
from everhash.wire.routes import ROUTES

STATIC = Path(__file__).parent / "static"
FRESH = {"Cache-Control": "no-cache"}
"""Browsers ask again each time, and get a file only if it has changed."""


def make_app(
    collection: Served | Callable[[], Served],
    *,
    keys: Keys | None = None,
    readonly: bool = False,
    public: bool = False,
    cors: Iterable[str] = (),
    access_log: bool = False,
) -> ErrorMiddleware:
    """Return an ASGI application that serves a collection.

    Args:
        collection: stays the caller's to close; or a function that opens one, which is called when
            the application starts, off the event loop, and closed when it stops.
        keys: who may ask; None lets in whoever asks from this machine.
        readonly: refuse writes. A collection opened for reading is followed as others write to it.
        public: it will be reachable from other machines, which takes keys.
        cors: origins of other sites whose pages may ask, such as "https://shop.example"; "*" lets
            in every page that brings a key.
        access_log: write a line for each request to the logger "everhash.access".
    """
    if public and keys is None:
        raise OptionError(
            "a service that others can reach needs keys",
            hint="`everhash key` makes a file of them for {option keys}; or listen at 127.0.0.1",
        )
    access = Access(keys, check_origins(cors, has_keys=keys is not None))
    service = Service(collection, readonly=readonly)
    if access_log:
        log.setLevel(logging.INFO)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="everhash",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    _add_routes(app, service)
    _explain_errors(app, service)
    # around the framework instead of inside: a search then passes none of its layers
    return ErrorMiddleware(app, service, access, FAST, access_log=access_log)


def _add_routes(app: FastAPI, service: Service) -> None:
    """Add an endpoint for each row of the table; a row or an endpoint too many is a KeyError."""
    endpoints = {
        **search_endpoints(service),
        **state_endpoints(service),
        **listing_endpoints(service),
        **read_endpoints(service),
        **write_endpoints(service),
        **_page_endpoints(app),
    }
    for route in ROUTES:
        if route.path == "/static":
            app.mount("/static", _FreshFiles(directory=STATIC), name="static")
        elif route.answer is None and route.returns in (JSON, "text/html"):
            app.add_api_route(route.path, endpoints.pop(route.path), include_in_schema=False)
        else:
            described = describe_route(route)
            checked = [Depends(_check_query)]
            app.add_api_route(
                route.path, endpoints.pop(route.path), **described, dependencies=checked
            )
    if endpoints:
        raise LookupError(f"no row in the table of routes for {sorted(endpoints)}")


def _check_query(request: Request) -> None:
    """Refuse a name in the query string that a route which has some does not know."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if known and name not in known:
            raise OptionError(
                f"{name!r:.40} is unknown in the query string",
                hint=f"it may have {', '.join(known)}",
            )


def _page_endpoints(app: FastAPI) -> dict[str, Endpoint]:
    async def page() -> Response:
        return FileResponse(STATIC / "index.html", headers=FRESH)

    async def document() -> Response:
        return JSONResponse(describe(app))

    async def docs(request: Request) -> Response:
        return HTMLResponse(docs_page(describe(app), str(request.base_url).rstrip("/")))

    return {"/": page, "/openapi.json": document, "/docs": docs}


class _FreshFiles(StaticFiles):
    """Files that browsers ask for again, and get only if they have changed."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """Return a file."""
        response = super().file_response(*arguments, **options)
        response.headers.update(FRESH)
        return response


def _explain_errors(app: FastAPI, service: Service) -> None:
    """Answer in our own form whatever an endpoint or the framework raises."""

    async def explain(request: Request, raised: Exception) -> Response:
        error, place = _refusal(request, raised), place_in(request.scope)
        status, headers, content = response_to(error, service.path, place)
        log_failure(raised, status, request.scope)
        return Response(content, status, headers, media_type=JSON)

    kinds = (HTTPException, RequestValidationError, RefusedError, EverhashError, Exception)
    for kind in kinds:
        app.add_exception_handler(kind, explain)


def _refusal(request: Request, raised: Exception) -> Exception:
    if isinstance(raised, RequestValidationError):
        first: dict[str, Any] = raised.errors()[0]
        return explain_problem({**first, "loc": first["loc"][1:]})
    if not isinstance(raised, HTTPException):
        return raised
    status = raised.status_code
    if status == 404:
        return no_route(request.url.path)
    if status == 405:
        return wrong_method(request.method, request.url.path, raised.headers or {})
    return RefusedError(status, ServiceError(f"status {status}", hint="see the service's log"))
