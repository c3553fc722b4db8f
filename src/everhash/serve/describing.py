"""The OpenAPI document: what routes read by hand is described by hand."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

import everhash
from everhash.serve.access import ROLES
from everhash.serve.answers import ARROW
from everhash.serve.bodies import JSON, NPY
from everhash.serve.examples import EXAMPLES, PROBLEM, REPORT
from everhash.serve.schemas import REQUESTS, Problem

REFERENCE = "#/components/schemas/{model}"
SECRETS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
}
BINARY = {"schema": {"type": "string", "format": "binary"}}
ABOUT = {
    401: "No key, or an unknown one.",
    403: "A key for less, another Host, or a page of another site.",
    404: "No such entry, label, job or route.",
    405: "Another method is needed.",
    408: "The body took too long.",
    409: "Not as things stand: an id that is taken, a collection served for reading.",
    413: "More rows, queries or bytes than a request may have.",
    415: "A body of another kind.",
    422: "Something handed in cannot be used.",
    500: "An error of the service.",
    503: "Too much at once, starting, stopping, or out of time; Retry-After says when.",
    507: "The disk is full.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text} for status, text in ABOUT.items()
}
"""How any request may end."""


def body(model: type[BaseModel], *, rows: bool = False) -> dict[str, Any]:
    """Return the description of a body that has the fields of a model, or is an array or table."""
    kinds: dict[str, Any] = {JSON: {"schema": {"$ref": REFERENCE.format(model=model.__name__)}}}
    if rows:
        kinds |= {NPY: BINARY, ARROW: BINARY}
    return {"requestBody": {"required": True, "content": kinds}}


def query(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the description of a parameter in the query string."""
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": text}


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title="everhash",
            version=everhash.__version__,
            summary="A collection of entries, searched by codes that are learned online.",
            routes=app.routes,
        )
        schemas = document["components"]["schemas"]
        for model in REQUESTS:
            schema = model.model_json_schema(ref_template=REFERENCE)
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
        document["components"]["securitySchemes"] = SECRETS
        for path, operations in document["paths"].items():
            for operation in operations.values():
                _say_who(path, operation)
                _show_examples(path, operation)
        app.openapi_schema = document
    return app.openapi_schema


def _say_who(path: str, operation: dict[str, Any]) -> None:
    """Add what a key has to allow."""
    if ROLES[path] is not None:
        operation["security"] = [{"bearer": []}, {"key": []}]
        text = f"{operation.get('description', '')}\n\nNeeds a key that may {ROLES[path]}."
        operation["description"] = text.strip()


def _show_examples(path: str, operation: dict[str, Any]) -> None:
    """Add what may be sent, and what comes back."""
    example = EXAMPLES.get(path)
    if example is not None and example.request is not None:
        operation["requestBody"]["content"][JSON]["example"] = example.request
    for status, response in operation["responses"].items():
        form = response.get("content", {}).get(JSON)
        if form == {"schema": {}}:  # the framework's guess, where the answer is no JSON
            del response["content"][JSON]
        if form is None or "example" in form:
            continue
        if int(status) >= 400:
            form["example"] = PROBLEM
        elif example is not None:
            form["example"] = example.answer if int(status) == example.status else REPORT
