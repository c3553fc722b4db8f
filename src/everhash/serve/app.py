"""The application: a collection's routes behind everything that guards them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from everhash.collection.collection import Collection
from everhash.errors import InputError, OptionError, ServiceError
from everhash.serve.access import ROLES, Access, no_route
from everhash.serve.describing import describe
from everhash.serve.errors import JSON, RefusedError, answer_to
from everhash.serve.gate import Gate
from everhash.serve.intake import Intake
from everhash.serve.keys import Keys
from everhash.serve.outside import Outside
from everhash.serve.routes_read import add_read_routes
from everhash.serve.routes_search import add_search_routes, search
from everhash.serve.routes_state import add_page, add_state_routes
from everhash.serve.routes_write import add_write_routes
from everhash.serve.service import Service
from everhash.serve.shortcut import Shortcut


def make_app(
    collection: Collection | Callable[[], Collection],
    *,
    keys: Keys | None = None,
    readonly: bool = False,
    public: bool = False,
) -> FastAPI:
    """Return an ASGI application that serves a collection.

    Args:
        collection: stays the caller's to close; or a function that opens one, which is called when
            the application starts, off the event loop, and closed when it stops.
        keys: who may ask; None lets everybody in who asks from this machine.
        readonly: refuse writes. A collection opened for reading is followed as others write to it.
        public: it will be reachable from other machines, which takes keys.
    """
    if public and keys is None:
        raise OptionError(
            "a service that others can reach needs keys",
            hint="`everhash key admin --keys FILE`, then --keys FILE; or bind 127.0.0.1",
        )
    service = Service(collection, readonly=readonly)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="everhash", docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan
    )
    app.state.service = service
    for add in (add_search_routes, add_state_routes, add_read_routes, add_write_routes):
        add(app, service)
    add_page(app)
    _check_roles(app.routes)
    app.add_exception_handler(HTTPException, _explained)
    app.add_exception_handler(RequestValidationError, _explained)
    # the last one stands outermost
    app.add_middleware(Shortcut, path="/search", answer=partial(search, service))
    app.add_middleware(Gate, metrics=service.metrics)
    app.add_middleware(Intake)
    app.add_middleware(Access, keys=keys)
    app.add_middleware(Outside, service=service)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def _check_roles(routes: list[BaseRoute]) -> None:
    """Refuse a route of which nobody has said who may ask for it."""
    for route in routes:
        if getattr(route, "path", None) not in ROLES:
            raise LookupError(f"{route} has no role in everhash.serve.access")


async def _explained(request: Request, raised: Exception) -> Response:
    """Answer in our own shape what the framework refuses."""
    status, headers, content = answer_to(_refusal(request, raised))
    return Response(content, status, headers, media_type=JSON.decode())


def _refusal(request: Request, raised: Exception) -> RefusedError:
    if isinstance(raised, RequestValidationError):
        first: dict[str, Any] = raised.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return RefusedError(422, InputError(f"{where}: {first['msg']}", hint="see /openapi.json"))
    path = f"{request.url.path!r:.80}"
    if isinstance(raised, HTTPException) and raised.status_code == 404:
        return no_route(request.url.path)
    if isinstance(raised, HTTPException) and raised.status_code == 405:
        allowed = dict(raised.headers or {})
        hint = f"allowed: {allowed.get('Allow', 'another one')}"
        error = InputError(f"{request.method:.20} is not a method of {path}", hint=hint)
        return RefusedError(405, error, allowed)
    status = raised.status_code if isinstance(raised, HTTPException) else 500
    return RefusedError(status, ServiceError(f"status {status}", hint="see the service's log"))
