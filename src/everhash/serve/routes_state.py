"""How the service stands: alive, ready, its limits, its metrics; and the page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles

from everhash.errors import EverhashError
from everhash.serve import limits, metrics
from everhash.serve.describing import PROBLEMS
from everhash.serve.schemas import Live, Ready, Stats
from everhash.serve.service import Service

STATIC = Path(__file__).parent / "static"
TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics."}
CLOSED = {"application/json": {"example": {"ready": False}}}
TABLE = {"content": {"application/json": {"example": limits.TABLE}}, "description": "Limits."}


def add_state_routes(app: FastAPI, service: Service) -> None:
    """Add the routes about the service itself."""

    @app.get("/live", responses={**PROBLEMS, 200: {"model": Live}}, response_model=None)
    async def live() -> Response:
        """Tell that the process answers."""
        return JSONResponse({"live": True})

    readiness: dict[int | str, Any] = {
        **PROBLEMS,
        200: {"model": Ready},
        503: {"model": Ready, "description": "Being opened or closed.", "content": CLOSED},
    }

    @app.get("/ready", responses=readiness, response_model=None)
    async def ready() -> Response:
        """Tell whether the collection is open."""
        ready = service.ready and (service.path is None or service.path.exists())
        return JSONResponse({"ready": ready}, 200 if ready else 503)

    @app.get("/limits", responses={**PROBLEMS, 200: TABLE}, response_model=None)
    async def limit_table() -> Response:
        """Tell how large requests may get."""
        return JSONResponse(limits.TABLE)

    @app.get("/metrics", responses={**PROBLEMS, 200: TEXT}, response_model=None)
    async def metric_text() -> Response:
        """Tell what has been done, for Prometheus."""
        stats: dict[str, Any] = {}
        with suppress(EverhashError):  # of a file that is gone
            stats = await service.stats() if service.ready else {}
        text = service.metrics.text(stats, len(service.events))
        return PlainTextResponse(text, media_type=metrics.CONTENT_TYPE)

    @app.get("/stats", responses={**PROBLEMS, 200: {"model": Stats}}, response_model=None)
    async def stats() -> Response:
        """Tell how the collection stands."""
        return JSONResponse(await service.stats())


def add_page(app: FastAPI) -> None:
    """Add the page and its files, where they are installed."""
    if not (STATIC / "index.html").is_file():
        return

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/static", Unstored(directory=STATIC), name="static")


class Unstored(StaticFiles):
    """Files that browsers ask for again, and get only if they have changed."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        """Return a file."""
        response = super().file_response(*arguments, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response
