"""Thousands of requests made up from the OpenAPI document: no server error, and as it says.

Some keep to the document, some break it. What is answered has to be described there: status, type
of content, and form.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import everhash
from everhash.serve.app import make_app
from everhash.serve.keys import Keys, make_key

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what schemathesis imports is not ours to judge
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.python import asgi
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

pytestmark = pytest.mark.filterwarnings("ignore::Warning:schemathesis.*")
DIM = 4
EXAMPLES = {"/events": 2, "/snapshot": 2, "/refresh": 20, "/live": 10, "/ready": 10, "/limits": 10}
"""Requests of a route and kind; where nothing is read of a request, a few are enough."""
MANY = 70
LEAST = 2000
FEWER = 10
"""How many times fewer requests the quick tests make."""
CHECKS = [
    *(not_a_server_error, status_code_conformance),
    *(content_type_conformance, response_schema_conformance),
]


@dataclass
class Fuzzed:
    """A service's document, and a session that reaches it without a network."""

    document: dict[str, Any]
    session: Any


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Fuzzed]:
    secret, key = make_key("admin")
    with everhash.create(None, DIM, 8) as collection:
        rows = [[float(i == j) for j in range(DIM)] for i in range(DIM)]
        collection.ingest(rows, ["ant", "bee", 3, 2.5], ["a", "b", 7, 8])
        collection.add(rows)
        app: Any = make_app(collection, keys=Keys([key]))
        with asgi.get_client(app, max_stream_events=1) as session:
            session.headers["Authorization"] = f"Bearer {secret}"
            yield Fuzzed(document(app), session)
            asgi.shutdown_lifespans()


def wait_until_ready(session: Any) -> None:
    """Wait for a service that schemathesis may have started anew: it stops it after each test."""
    for _ in range(3000):
        if session.get("/ready").status_code == 200:
            return
    raise AssertionError("it is not ready")


def document(app: Any) -> dict[str, Any]:
    """Return the document; rows have the length this collection expects, so that many will do."""
    told: dict[str, Any] = app.app.openapi()
    for schema in told["components"]["schemas"].values():
        for part in find_rows(schema.get("properties", {}).get("rows", {})):
            part["items"] |= {"minItems": DIM, "maxItems": DIM}
            part["maxItems"] = 5
    return told


def find_rows(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a schema that say what rows are."""
    return [part for part in (schema, *schema.get("anyOf", ())) if "items" in part]


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_breaks_the_service_or_the_document(
    fuzzed: Fuzzed, mode: str, thorough: bool
) -> None:
    wait_until_ready(fuzzed.session)
    wanted, seen = schemathesis.GenerationMode(mode), Counter[int]()
    operations: Any = schemathesis.openapi.from_dict(fuzzed.document).get_all_operations()
    for found in operations:
        operation = found.ok()
        if wanted.is_positive or has_input(operation):
            most = EXAMPLES.get(operation.path, MANY) // (1 if thorough else FEWER)
            ask(fuzzed.session, operation, wanted, seen, max(1, most))
    assert not [status for status in seen if status >= 500]
    share = 1 if thorough else 2 * FEWER
    assert seen[200 if mode == "positive" else 422] > 200 / share
    assert seen.total() > LEAST / 2 / share


def ask(session: Any, operation: Any, mode: Any, seen: Counter[int], examples: int) -> None:
    """Make requests to a route, and hold the answers against the document."""

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(mode))
    def once(case: Any) -> None:
        response = case.call(base_url="http://localhost", session=session)
        seen[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    once()


def has_input(operation: Any) -> bool:
    """Whether there is anything to get wrong."""
    parts = (operation.body, operation.query, operation.path_parameters)
    return any(len(list(part)) for part in parts)


def test_the_collection_is_sound_after_all_that(fuzzed: Fuzzed) -> None:
    client = fuzzed.session
    wait_until_ready(client)
    stats = client.get("/stats").json()
    entries = client.get("/entries", params={"limit": 1}).json()
    assert stats["entries"] == entries["total"]
    rows = [[1.0] * DIM]
    answer = client.post("/search", json={"rows": rows, "k": 3})
    assert len(answer.json()["matches"]) == 1
