"""From the first byte to the last: opening, failing, stopping."""

from __future__ import annotations

import gc
import json
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import everhash
from everhash.collection.collection import Collection
from everhash.errors import CollectionFileError
from everhash.serve.server import STOP_SECONDS
from tests.unit.serve.serving import DIM, error_of, filled, serving, until
from tests.unit.serve.test_bounds import head

ROWS = [[0.5] * DIM]


def test_it_answers_before_the_collection_is_open() -> None:
    let_go = threading.Event()

    def open_slowly() -> Collection:
        assert let_go.wait(300)
        return filled()

    with serving(open_slowly, wait=False) as served:
        assert served.get("/live").json() == {"live": True}
        early = served.get("/ready")
        assert (early.status_code, early.json()) == (503, {"ready": False, "readonly": False})
        for answer in (served.get("/stats"), served.post("/search", {"rows": ROWS})):
            assert error_of(answer)["status"] == 503
            assert answer.headers["retry-after"] == "1"
        assert served.get("/snapshot").status_code == 503
        assert served.post("/refresh").status_code == 503
        assert "everhash_entries " not in served.get("/metrics").text
        let_go.set()
        until(lambda: served.get("/ready").status_code == 200)
        assert served.post("/search", {"rows": ROWS}).status_code == 200


def test_a_collection_that_cannot_be_opened_ends_the_server(tmp_path: Path) -> None:
    path = tmp_path / "no.ever"
    path.write_bytes(b"not a collection" * 1000)
    with serving(lambda: everhash.open(path), wait=False) as served:
        until(lambda: served.service.failure is not None)
        assert isinstance(served.service.failure, CollectionFileError)
        until(lambda: not served.server.servers[0].is_serving())


def test_what_it_opened_is_closed_and_what_it_was_given_is_not(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    with filled(path) as collection, serving(collection) as served:
        served.post("/add", {"rows": ROWS})
    with filled() as collection:
        with serving(collection):
            pass
        assert len(collection) == 60
    with serving(lambda: everhash.open(path)) as served:
        served.post("/add", {"rows": ROWS})
    with everhash.open(path) as collection:  # nobody else writes to it any more
        assert len(collection) == 62
    assert not list(tmp_path.glob("*-wal"))


def test_a_request_under_way_is_finished_before_it_stops() -> None:
    begun, let_go, answers = threading.Event(), threading.Event(), list[int]()

    class Slow:
        """Learns when it is let go."""

        def __call__(self) -> Collection:
            collection = filled()
            learn = collection.learn

            def wait(*arguments: object) -> None:
                begun.set()
                assert let_go.wait(300)
                learn(*arguments)  # type: ignore[arg-type]

            collection.learn = wait  # type: ignore[method-assign,assignment]
            return collection

    with serving(Slow()) as served:

        def ask() -> None:
            answers.append(served.post("/learn", {"rows": ROWS, "labels": ["x"]}).status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        assert begun.wait(300)
        served.server.should_exit = True
        until(lambda: not served.service.ready)
        let_go.set()
        asking.join()
    assert answers == [200]


def test_it_stops_in_time_whatever_clients_do(tmp_path: Path) -> None:
    path = tmp_path / "shop.ever"
    filled(path).close()
    body = json.dumps({"like": [0] * 1000, "k": 60}).encode()
    unread = head("/search", len(body)) + body
    with serving(lambda: everhash.open(path)) as served, ExitStack() as stack:
        served.server.config.timeout_graceful_shutdown = 1  # of a minute that it would have
        for sent in (3 * unread, unread[:-1], b"GET /live", b""):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", served.port))
            connection.sendall(sent)
        until(lambda: "everhash_requests_total{" in served.get("/metrics").text)
        began = time.monotonic()
        served.server.should_exit = True
        until(lambda: served.service._collection is None)
        assert time.monotonic() - began < STOP_SECONDS / 2
    gc.collect()  # a connection that was not closed would say so
    with everhash.open(path) as collection:  # it was closed
        assert len(collection) == 60
    assert not list(tmp_path.glob("*-wal"))
