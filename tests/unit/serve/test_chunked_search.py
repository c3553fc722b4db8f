"""Large requests: searched in parts, which keep nobody waiting and change no answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from everhash import Collection
from everhash.serve import chunked_search
from tests.unit.serve.serving import ARROW, NPY, Served, filled, npy, rows, serving, until

QUERIES = rows(37, seed=4)[0]
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/search", {"k": 7}),
    ("/search", {"k": 7, "explain": True, "by": "hamming"}),
    ("/search", {"k": 7, "by": "likeness", "recall": 0.5}),
    ("/search", {"k": 3, "labels": ["ant"], "ids": list(range(0, 60, 3))}),
    ("/radius", {"r": 3}),
    ("/radius", {"r": 0, "explain": True}),
    ("/radius", {"r": -3, "by": "asymmetric"}),
]


@pytest.fixture
def collection() -> Iterator[Collection]:
    with filled() as made:
        yield made


@pytest.fixture
def served(collection: Collection) -> Iterator[Served]:
    with serving(collection) as service:
        yield service


@pytest.mark.parametrize(("route", "options"), ASKED)
@pytest.mark.parametrize("first", [1, 5, 36])
def test_parts_are_one_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch, route: str, options: dict[str, Any], first: int
) -> None:
    whole = served.post(route, {"rows": QUERIES.tolist(), **options})
    assert whole.status_code == 200
    served.service.chunked._sizes.clear()
    monkeypatch.setattr(chunked_search, "FIRST_CHUNK", first)
    monkeypatch.setattr(chunked_search, "MAX_GROWTH", 1)
    parts = served.post(route, {"rows": QUERIES.tolist(), **options})
    assert parts.content == whole.content
    assert len(parts.json()["matches"]) == 37


def test_parts_are_one_table(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> bytes:
        served.service.chunked._sizes.clear()
        answer = served.send("/search?k=9", npy(QUERIES), NPY, headers={"Accept": ARROW})
        assert answer.headers["content-type"] == ARROW
        return answer.content

    whole = ask()
    monkeypatch.setattr(chunked_search, "FIRST_CHUNK", 2)
    monkeypatch.setattr(chunked_search, "MAX_GROWTH", 1)
    assert ask() == whole


def test_entries_are_searched_by_in_parts_too(
    served: Served, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked_search, "FIRST_CHUNK", 3)
    told = served.post("/search", {"like": list(range(60)), "k": 4}).json()["matches"]
    expected = collection.search_like(range(60), 4)
    assert [[match["id"] for match in one["found"]] for one in told] == expected.ids.tolist()


class Slow:
    """A collection that takes its time for each search, and counts them."""

    def __init__(self, collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parts: list[int] = []
        self.pause = 0.01
        search = collection.search

        def slowly(asked: Any, *arguments: Any, **options: Any) -> Any:
            if len(asked) > 1 or options.keys() != {"recall"}:  # not that of a batch
                self.parts.append(len(asked))
                time.sleep(self.pause * len(asked))
            return search(asked, *arguments, **options)

        monkeypatch.setattr(collection, "search", slowly)


def test_others_have_their_turn_in_between(
    served: Served, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(collection, monkeypatch)
    large = np.repeat(QUERIES, 27, axis=0).tolist()  # ten seconds
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(served.post, "/search", {"rows": large})
        until(lambda: len(slow.parts) >= 4)
        for _ in range(5):
            assert served.post("/search", {"rows": [large[0]]}).status_code == 200
        assert not asking.done()
        parts, slow.pause = slow.parts.copy(), 0.0  # enough was seen
        assert len(asking.result(120).json()["matches"]) == 999
    assert parts[0] == chunked_search.FIRST_CHUNK
    assert max(parts[2:]) < 8, "a query takes 10 ms, so five of them are enough at a time"


def test_nobody_searches_for_a_client_that_has_left(
    served: Served, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(collection, monkeypatch)
    body = npy(np.repeat(QUERIES, 20, axis=0))
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        head = f"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: {NPY}\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: len(slow.parts) >= 1)
    seen = len(slow.parts)
    until(lambda: served.service.metrics.running == 0)
    assert len(slow.parts) <= seen + 50, "of more than a hundred"


def test_any_recall_is_one_of_few_kinds(served: Served) -> None:
    for recall in np.linspace(0.001, 1, 100).tolist():
        body = {"rows": QUERIES.tolist(), "by": "likeness", "recall": recall}
        assert served.post("/search", body).status_code == 200
    assert len(served.service.chunked._sizes) <= 8


def test_parts_become_as_large_as_they_may(served: Served) -> None:
    for _ in range(3):
        assert served.send("/search", npy(np.repeat(QUERIES, 27, axis=0)), NPY).status_code == 200
    assert max(served.service.chunked._sizes.values()) > 200
