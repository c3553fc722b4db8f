"""Searching: the routes that have to be fast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from fastapi import Request
from fastapi.responses import Response
from numpy.typing import NDArray

from everhash.collection.search_calls import READING
from everhash.errors import InputError, OptionError
from everhash.matches import Matches
from everhash.serve import limits, schemas
from everhash.serve.chunked_search import (
    RADIUS_CELLS,
    Queries,
    SearchPlan,
    check_explained,
    check_payloads,
    chunk_of,
    effort_of,
)
from everhash.serve.endpoints import Endpoint, Reply, parse
from everhash.serve.served import Served
from everhash.serve.service import Service
from everhash.stream import as_rows
from everhash.wire.media import ARROW, JSON


async def search(service: Service, scope: Any, receive: Any) -> Reply:
    """Answer /search; one row without filters is searched together with others of its kind."""
    request: schemas.SearchRequest = await parse(service, scope)
    arrow = _wants_arrow(scope)
    queries: Queries
    like = request.like is not None
    if request.like is not None:
        if request.rows is not None:
            raise InputError("rows and like in one search", hint="search by one of them")
        queries = request.like
    else:
        queries = _rows(service, request.rows)
        if len(queries) == 1 and not arrow and _is_plain(request):
            return await service.nearest(queries, request.k, request.by, request.recall), JSON
    _check_explain(request, arrow=arrow)
    sizes = request.k.bit_length(), len(request.ids or ()).bit_length()
    find = partial(_nearest, request=request)
    reads_file = like or _reads_file(request)
    kind = (sizes, like, effort_of(request.recall), *_kind(request))
    most = chunk_of(request.k, payloads=request.payloads)
    plan = SearchPlan(find, kind, arrow, request.explain, reads_file, most)
    return await _reply(service, queries, plan, receive)


def _nearest(collection: Served, queries: Queries, *, request: schemas.SearchRequest) -> Matches:
    if request.explain:
        check_explained(len(queries) * min(request.k, len(collection)), collection)
    find: Callable[..., Matches]
    find = collection.search_like if isinstance(queries, list) else collection.search
    options = {"explain": request.explain, "payloads": request.payloads, **_filters(request)}
    return find(queries, request.k, request.by, recall=request.recall, **options)


async def search_radius(service: Service, scope: Any, receive: Any) -> Reply:
    """Answer /radius."""
    request: schemas.RadiusRequest = await parse(service, scope)
    arrow = _wants_arrow(scope)
    queries = _rows(service, request.rows)
    _check_explain(request, arrow=arrow)
    cells = limits.PAYLOADS if request.payloads else RADIUS_CELLS
    most = max(1, cells // max(1, await service.search(len)))  # each may find all there are
    find = partial(_within, request=request)
    kind, reads_file = ("radius", *_kind(request)), _reads_file(request)
    plan = SearchPlan(find, kind, arrow, request.explain, reads_file, most)
    return await _reply(service, queries, plan, receive)


async def _reply(service: Service, queries: Queries, plan: SearchPlan, receive: Any) -> Reply:
    """Search, and refuse to send the answer while too many others wait to be read."""
    content = await service.chunked.find(queries, plan, receive)
    return service.answers.check(content), ARROW if plan.arrow else JSON


def _within(collection: Served, queries: Queries, *, request: schemas.RadiusRequest) -> Matches:
    """Return all entries within a radius; more is said of them only if they are not too many."""
    search: Callable[..., Matches] = collection.search_radius
    find = partial(search, queries, request.r, request.by, **_filters(request))
    many = request.payloads and len(collection) > limits.PAYLOADS
    if request.explain or many:
        found = int(find().counts.sum())
        if request.explain:
            check_explained(found, collection)
        if request.payloads:
            check_payloads(found)
    return find(explain=request.explain, payloads=request.payloads)


FAST = {"/search": search, "/radius": search_radius}


def search_endpoints(service: Service) -> dict[str, Endpoint]:
    """Return the same as endpoints of the framework, for the OpenAPI document."""

    def endpoint(answer: Callable[..., Any]) -> Endpoint:
        async def call(request: Request) -> Response:
            content, kind = await answer(service, request.scope, request.receive)
            return Response(content, media_type=kind)

        return call

    return {path: endpoint(answer) for path, answer in FAST.items()}


def _rows(service: Service, rows: Any) -> NDArray[np.float32]:
    """Return rows that can be searched for: no batch they join fails because of them."""
    service.collection  # noqa: B018 - the dimension is not known before it is open
    if rows is None:
        raise InputError("field 'rows' is missing", hint="or search by entries with 'like'")
    return as_rows(rows, service.dim, "this index")


def _is_plain(request: schemas.SearchRequest) -> bool:
    """Whether a search can be made together with others: the features it reads are at hand."""
    filtered = request.labels is not None or request.ids is not None or request.unlabelled
    return not (filtered or request.explain or request.payloads or request.exact)


def _reads_file(request: schemas.FilteredRequest) -> bool:
    """Whether payloads or features are read, which may wait for a commit."""
    return request.payloads or request.exact or request.by in READING


def _filters(request: schemas.FilteredRequest) -> dict[str, Any]:
    return {
        "labels": request.labels,
        "ids": request.ids,
        "unlabelled": request.unlabelled,
        "exact": request.exact,
    }


def _kind(request: schemas.FilteredRequest) -> tuple[Any, ...]:
    """Return on what it depends how long a query takes."""
    return request.by, request.exact, request.explain, request.payloads


def _check_explain(request: Any, *, arrow: bool) -> None:
    if request.explain and arrow:
        raise OptionError("a table has no explanations", hint="ask for application/json")


def _wants_arrow(scope: Any) -> bool:
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return ARROW.encode() in accepted
