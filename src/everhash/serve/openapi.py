"""The OpenAPI document: the framework's, completed from the table of routes."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

import everhash
from everhash.index.refresh import RefreshReport
from everhash.serve import answer_schemas, limits
from everhash.serve.endpoints import MODELS
from everhash.serve.error_examples import PROBLEMS
from everhash.serve.errors import MEANINGS
from everhash.serve.events import TYPES
from everhash.wire.examples import REPORT
from everhash.wire.media import EVENTS, JSON
from everhash.wire.routes import Route

REFERENCE = "#/components/schemas/{model}"
SECRETS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
}
BINARY: dict[str, Any] = {"type": "string", "format": "binary"}
EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"enum": list(TYPES), "type": "string"},
        "data": {"type": "string", "description": "A JSON object."},
    },
}


def describe_route(route: Route) -> dict[str, Any]:
    """Return what the framework is told of a route, beside its function."""
    summary = route.summary
    if route.role is not None:
        summary = f"{summary}\n\nNeeds a key that may {route.role}."
    return {
        "methods": [route.method],
        "name": route.path[1:],
        "description": summary,
        "responses": _responses(route),
        "response_model": None,
        "openapi_extra": _extra(route),
    }


def _responses(route: Route) -> dict[int | str, dict[str, Any]]:
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "model": answer_schemas.Problem,
            "description": text,
            "content": {JSON: {"example": PROBLEMS[status]}},
        }
        for status, text in MEANINGS.items()
    }
    if route.returns != JSON:
        schema = EVENT if route.returns == EVENTS else BINARY
        content = {route.returns: {"schema": schema}}
        return {**responses, 200: {"description": route.summary, "content": content}}
    example = limits.TABLE if route.example is None else route.example.answer
    status = 200 if route.example is None else route.example.status
    responses[status] = {
        "model": getattr(answer_schemas, str(route.answer)),
        "description": route.summary,
        "content": {JSON: {"example": example}},
    }
    if route.path == "/refresh":
        report = {"model": RefreshReport, "description": "What a refresh would do."}
        responses[200] = {**report, "content": {JSON: {"example": REPORT}}}
    if route.path == "/ready":
        closed = {"model": answer_schemas.Ready, "description": "Being opened or closed."}
        responses[503] = {
            **closed,
            "content": {JSON: {"example": {"ready": False, "readonly": False}}},
        }
    return responses


def _extra(route: Route) -> dict[str, Any]:
    """Return the body and the keys of a route, which its function does not show."""
    extra: dict[str, Any] = {}
    if route.role is not None:
        extra["security"] = [{"bearer": []}, {"key": []}]
    if route.request is not None:
        reference = {"$ref": REFERENCE.format(model=route.request)}
        content: dict[str, Any] = {kind: {"schema": BINARY} for kind in route.takes}
        content[JSON] = {"schema": reference}
        if route.example is not None:
            content[JSON]["example"] = route.example.request
        extra["requestBody"] = {"required": True, "content": content}
    return extra


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title="everhash",
            version=everhash.__version__,
            summary="A collection of entries, searched by codes that are learned online.",
            routes=app.routes,
        )
        wanted = sorted({(model, "validation") for model in MODELS.values()}, key=str)
        _, requests = models_json_schema(wanted, ref_template=REFERENCE)  # type: ignore[arg-type]
        for path in document["paths"].values():
            for operation in path.values():
                _drop_guess(operation)
        components = document["components"]
        components["schemas"].update(requests["$defs"])
        components["securitySchemes"] = SECRETS
        app.openapi_schema = document
    return app.openapi_schema


def _drop_guess(operation: dict[str, Any]) -> None:
    """Remove the framework's guess that an answer of another type may be JSON, too."""
    for response in operation["responses"].values():
        if response.get("content", {}).get(JSON) == {"schema": {}}:
            del response["content"][JSON]
