"""Pages of other sites: only those of origins that were allowed, as browsers ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from everhash.errors import OptionError
from everhash.serve.app import make_app
from everhash.serve.keys import Keys, make_key
from tests.unit.serve.serving import DIM, Served, error_of, filled, serving

SHOP = "https://shop.example"
SECRET, KEY = make_key("read")
SEARCH = {"rows": [[0.5] * DIM]}


@pytest.fixture(scope="module", params=["local", "keys"])
def allowing(request: pytest.FixtureRequest) -> Iterator[tuple[Served, dict[str, str]]]:
    """A service that allows pages of one site, without and with keys; what has to be sent."""
    guarded = request.param == "keys"
    options: dict[str, Any] = {"keys": Keys([KEY])} if guarded else {}
    sent = {"Authorization": f"Bearer {SECRET}"} if guarded else {}
    with filled() as collection, serving(collection, cors=[SHOP], **options) as served:
        yield served, sent


def preflight(served: Served, origin: str, path: str = "/search", **more: str) -> Any:
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST", **more}
    return served.http.options(path, headers=headers)


def test_a_browser_is_told_that_an_allowed_page_may_ask(
    allowing: tuple[Served, dict[str, str]],
) -> None:
    served, _ = allowing
    wanted = "authorization, content-type, everhash-place, x-api-key"
    answer = preflight(served, SHOP, **{"Access-Control-Request-Headers": wanted})
    assert answer.status_code == 200  # without a key: browsers send none here
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://shop.example", f"{SHOP}:8443", "null"]
)
def test_a_browser_is_told_that_other_pages_may_not(
    allowing: tuple[Served, dict[str, str]], origin: str
) -> None:
    served, sent = allowing
    assert "access-control-allow-origin" not in preflight(served, origin).headers
    refused = served.post("/search", SEARCH, headers={"Origin": origin, **sent})
    assert error_of(refused)["status"] == 403
    assert "access-control-allow-origin" not in refused.headers


def test_an_allowed_page_gets_answers_and_errors(allowing: tuple[Served, dict[str, str]]) -> None:
    served, sent = allowing
    headers = {"Origin": SHOP, "Sec-Fetch-Site": "cross-site", **sent}
    for answer in (
        served.post("/search", SEARCH, headers=headers),
        served.post("/search", {"rows": [[1.0]]}, headers=headers),
        served.get("/stats", headers=headers),
        served.get("/nope", headers=headers),
        served.get("/live", headers=headers),
    ):
        assert answer.headers["access-control-allow-origin"] == SHOP
        assert "origin" in answer.headers["vary"].lower()
    assert served.post("/search", SEARCH, headers=headers).status_code == 200
    assert (
        served.post("/search", SEARCH, headers={"Origin": served.address, **sent}).status_code
        == 200
    )


def test_an_allowed_page_needs_a_key_where_others_do() -> None:
    with filled() as collection, serving(collection, cors=["*"], keys=Keys([KEY])) as served:
        headers = {"Origin": "https://any.example"}
        refused = served.get("/stats", headers=headers)
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "*"
        allowed = served.get("/stats", headers={**headers, "X-Api-Key": SECRET})
        assert allowed.status_code == 200
        assert preflight(served, "https://any.example").status_code == 200


def test_preflights_are_counted(allowing: tuple[Served, dict[str, str]]) -> None:
    served, sent = allowing
    preflight(served, SHOP, "/stats")
    told = served.get("/metrics", headers=sent).text
    assert 'everhash_requests_total{method="OPTIONS",route="/stats",status="200"}' in told


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            "https://shop.example/",
            "shop.example",
            "https://shop.example/page",
            "ftp://shop.example",
        ),
        *("https://*.example", "null", "https://user@shop.example", "https://", ""),
    ],
)
def test_what_is_no_origin_is_refused(wrong: str) -> None:
    with filled() as collection, pytest.raises(OptionError, match="is no origin"):
        make_app(collection, cors=[wrong])


def test_every_page_needs_keys_and_one_text_is_no_list() -> None:
    with filled() as collection:
        with pytest.raises(OptionError, match="every page"):
            make_app(collection, cors=["*"])
        with pytest.raises(OptionError, match="list of origins"):
            make_app(collection, cors=SHOP)
