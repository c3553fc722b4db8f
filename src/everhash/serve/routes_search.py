"""Searching: the route that has to be fast."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from fastapi import FastAPI, Request, Response
from numpy.typing import NDArray

from everhash import limits as library
from everhash.errors import InputError, OptionError
from everhash.serve import limits
from everhash.serve.access import header
from everhash.serve.answers import ARROW
from everhash.serve.bodies import JSON, Given, check_count, read_body
from everhash.serve.describing import BINARY, PROBLEMS, body, query
from everhash.serve.fields import (
    distance_of,
    flag_of,
    ids_of,
    k_of,
    label_of,
    rows_of,
    take,
)
from everhash.serve.finding import CELLS, Queries, Wanted, nearest, within
from everhash.serve.intake import BODY
from everhash.serve.schemas import RadiusRequest, SearchAnswer, SearchRequest
from everhash.serve.service import Service
from everhash.serve.shortcut import Answer
from everhash.stream import as_rows

SEARCH = frozenset(SearchRequest.model_fields)
RADIUS = frozenset(RadiusRequest.model_fields)
AS_JSON = JSON.encode()
FARTHEST = float(np.finfo(np.float32).max)
"""No distance is larger."""
DISTANCE = {"type": "string", "enum": ["asymmetric", "hamming"]}
WHOLE = {"type": "integer", "minimum": 1, "maximum": library.RESULTS}
ANSWERS: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    200: {"model": SearchAnswer, "description": "What was found.", "content": {ARROW: BINARY}},
}


def add_search_routes(app: FastAPI, service: Service) -> None:
    """Add /search and /radius."""
    options = [
        query("k", WHOLE, "Entries a query, where the body does not say."),
        query("distance", DISTANCE, "Which distance, where the body does not say."),
    ]
    described = body(SearchRequest, rows=True) | {"parameters": options}

    @app.post("/search", responses=ANSWERS, response_model=None, openapi_extra=described)
    async def find_nearest(request: Request) -> Response:
        """Find the nearest entries of each query, ties to the entry added first."""
        return _response(await search(service, request.scope, request.receive))

    options = [
        query("r", {"type": "number"}, "How far, where the body does not say."),
        query("distance", DISTANCE, "Which distance, where the body does not say."),
    ]
    described = body(RadiusRequest, rows=True) | {"parameters": options}

    @app.post("/radius", responses=ANSWERS, response_model=None, openapi_extra=described)
    async def find_within(request: Request) -> Response:
        """Find all entries no farther than r, nearest first."""
        return _response(await search_radius(service, request.scope, request.receive))


async def search(service: Service, scope: Any, receive: Any) -> Answer:
    """Answer /search; one row and nothing else asked for is searched with others of its kind."""
    arrow = _wants_arrow(scope)
    given = await _given(service, scope, SEARCH)
    told = given.fields
    k, distance = k_of(told.get("k", 10)), distance_of(told.get("distance", "asymmetric"))
    asked: Queries
    if told.get("ids") is not None:
        asked = _entries(given)
    else:
        asked = await _queries(service, scope, given)
        if len(asked) == 1 and not arrow and _is_plain(told):
            return await service.nearest(asked, k, distance), AS_JSON
    explain, labels, ids = _explain(given, arrow=arrow), _labels(given), ids_of(given, "within")
    call = partial(nearest, k=k, distance=distance, labels=labels, ids=ids, explain=explain)
    like = (k.bit_length(), len(ids or ()).bit_length(), isinstance(asked, list), distance, explain)
    wanted = Wanted(call, like, arrow, explain)
    return await service.finder.find(asked, wanted, receive), _kind(arrow=arrow)


async def search_radius(service: Service, scope: Any, receive: Any) -> Answer:
    """Answer /radius."""
    arrow = _wants_arrow(scope)
    given = await _given(service, scope, RADIUS)
    r, distance = _radius(take(given, "r")), distance_of(given.fields.get("distance", "hamming"))
    asked = await _queries(service, scope, given)
    explain = _explain(given, arrow=arrow)
    call = partial(within, r=r, distance=distance, explain=explain)
    most = max(1, CELLS // max(1, await service.read(len)))  # each may find all there are
    wanted = Wanted(call, ("radius", distance, explain), arrow, explain, most)
    return await service.finder.find(asked, wanted, receive), _kind(arrow=arrow)


def _kind(*, arrow: bool) -> bytes:
    return ARROW.encode() if arrow else AS_JSON


async def _given(service: Service, scope: Any, fields: frozenset[str]) -> Given:
    """Return the fields of the body, completed from the query string."""
    content: bytes = scope[BODY]
    kind = header(scope["headers"], b"content-type").decode("latin-1")
    read = partial(read_body, content, kind, fields, limits.QUERIES)
    given = await service.decode(len(content), read)
    if scope["query_string"]:
        for name, text in parse_qsl(scope["query_string"].decode("latin-1")):
            if name in ("k", "r", "distance") and name in fields:
                given.fields.setdefault(name, _option(name, text))
    return given


def _option(name: str, text: str) -> Any:
    """Return an option given as text."""
    if name == "distance":
        return text
    try:
        return int(text) if name == "k" else float(text)
    except ValueError:
        raise OptionError(f"{name} must be a number, got {text!r:.40}") from None


async def _queries(service: Service, scope: Any, given: Given) -> NDArray[np.float32]:
    """Return rows that can be searched for: no batch they join fails because of them."""
    service.collection  # noqa: B018 - nobody knows the dimension before it is open

    def check() -> NDArray[np.float32]:
        rows = rows_of(given, limits.QUERIES, "queries")
        return as_rows(rows, service.dim, service.owner)

    return await service.decode(len(scope[BODY]), check)


def _entries(given: Given) -> list[Any]:
    """Return the ids of entries to search by."""
    if given.fields.get("rows") is not None:
        raise InputError("rows and ids at once", hint="search by one of them")
    ids = ids_of(given) or []
    check_count(len(ids), limits.QUERIES, "queries")
    return ids


def _is_plain(told: dict[str, Any]) -> bool:
    """Whether a search can be made together with others."""
    filters = told.get("labels"), told.get("within")
    return filters == (None, None) and told.get("explain", False) is False


def _labels(given: Given) -> list[Any] | None:
    told = given.fields.get("labels")
    if told is None:
        return None
    if not isinstance(told, list):
        raise InputError("field 'labels': expected a list of labels", hint="or null for all")
    check_count(len(told), limits.ROWS, "labels")
    return [label_of(label) for label in told]


def _radius(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OptionError(f"r must be a number, got {value!r:.40}")
    return float(min(max(value, -FARTHEST), FARTHEST))


def _explain(given: Given, *, arrow: bool) -> bool:
    explain = flag_of(given, "explain")
    if explain and arrow:
        raise OptionError("a table has no explanations", hint="ask for application/json")
    return explain


def _wants_arrow(scope: Any) -> bool:
    return ARROW.encode() in header(scope["headers"], b"accept")


def _response(answer: Answer) -> Response:
    return Response(answer[0], media_type=answer[1].decode())
