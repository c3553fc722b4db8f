"""The examples of the OpenAPI document are one session, and true."""

from __future__ import annotations

from typing import Any

import pytest

import everhash
from everhash.serve.app import make_app
from everhash.serve.endpoints import MODELS
from everhash.serve.error_examples import PROBLEMS
from everhash.serve.errors import MEANINGS
from everhash.serve.openapi import describe
from everhash.wire.examples import CAP, EXAMPLES
from everhash.wire.routes import ROUTES
from tests.unit.serve.serving import serving, until

VARYING = {"seconds", "bytes", "version", "at", "sqlite", "wal_reset_bug"}


def assert_like(got: Any, told: Any, name: str = "") -> None:
    """Hold an answer against an example; distances may differ by a rounding."""
    if isinstance(told, dict):
        assert list(got) == list(told), name
        for key in told:
            assert_like(got[key], told[key], key)
    elif isinstance(told, list):
        assert len(got) == len(told), name
        for one, other in zip(got, told, strict=True):
            assert_like(one, other, name)
    elif isinstance(told, float) and name not in VARYING:
        assert got == pytest.approx(told, abs=1e-3), name
    else:
        assert type(got) is type(told) or name in VARYING, name
        assert got == told or name in VARYING, name


def test_the_examples_are_a_session_that_works(tmp_path: Any) -> None:
    with everhash.create(tmp_path / "c.ever", 4, 8) as collection, serving(collection) as served:
        for route, example in EXAMPLES.items():
            path = route.replace("{job}", "1")
            if route == "/jobs/{job}":
                until(lambda path=path: served.get(path).json()["state"] != "running")
            reads = example.request is None and route != "/refresh"
            answer = served.get(path) if reads else served.post(path, example.request)
            assert answer.status_code == example.status, route
            assert_like(answer.json(), example.answer)
        assert served.post("/search", {"rows": [CAP[:3]]}).json() == PROBLEMS[422]
        assert served.get("/serach").json() == PROBLEMS[404]
        assert served.get("/search").json() == PROBLEMS[405]
        again = served.post("/add", {"rows": [CAP], "ids": ["sku-1"]})
        assert again.json() == PROBLEMS[409]


def test_every_status_has_an_example_of_its_own() -> None:
    assert list(PROBLEMS) == list(MEANINGS)
    assert all(problem["error"]["status"] == status for status, problem in PROBLEMS.items())
    responses = describe(make_app(everhash.create(None, 4, 8)).app)["paths"]["/search"]["post"]
    for status, problem in PROBLEMS.items():
        content = responses["responses"][str(status)]["content"]["application/json"]
        assert content["example"] == problem


def test_every_route_with_json_has_its_example_in_the_document() -> None:
    with everhash.create(None, 4, 8) as collection:
        document = describe(make_app(collection).app)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            asked = operation.get("requestBody", {}).get("content", {}).get("application/json")
            told = EXAMPLES[path].request if path in EXAMPLES else None
            assert (asked or {}).get("example") == told, path
            for status, response in operation["responses"].items():
                form = response.get("content", {}).get("application/json")
                if form is not None:
                    assert form.get("example"), (path, status)
        raw = {"/metrics": "text/plain", "/thumbnail": "image/*", "/events": "text/event-stream"}
        for operation in operations.values() if path in raw else ():
            assert set(operation["responses"]["200"]["content"]) == {raw[path]}


def test_every_example_is_that_of_a_route() -> None:
    assert set(EXAMPLES) == {route.path for route in ROUTES if route.example is not None}


def test_requests_fit_their_models() -> None:
    for path, example in EXAMPLES.items():
        if example.request is not None:
            MODELS[path].model_validate(example.request)
