"""A refresh lets searches and writes have their turn, and tells how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Semaphore
from typing import Any

import pytest

from everhash import Collection
from everhash.collection import writing
from everhash.index import refresh
from everhash.serve import service
from tests.unit.serve.serving import Served, filled, rows, serving, until
from tests.unit.serve.test_events import listening

STEPS = 4
"""Slices of five that twenty unlabelled entries are refreshed in."""


class Paced:
    """A service whose refreshes take a step when they are told to."""

    def __init__(self, served: Served) -> None:
        self.served, self.may = served, Semaphore(0)

    def begin(self) -> str:
        return str(self.served.post("/refresh").json()["job"])

    def job(self, number: str) -> dict[str, Any]:
        told: dict[str, Any] = self.served.get(f"/jobs/{number}").json()
        return told

    def step(self, number: str, share: float) -> None:
        """Let a refresh go one slice further."""
        self.may.release()
        until(lambda: self.job(number)["progress"] == share)

    def finish(self, number: str) -> dict[str, Any]:
        self.may.release(2 * STEPS)
        until(lambda: self.job(number)["state"] != "running")
        return self.job(number)


@pytest.fixture
def collection() -> Collection:
    made = filled(auto_refresh=False)
    X, y = rows(300, seed=8)
    made.learn(X, y)
    return made


@pytest.fixture
def paced(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paced]:
    monkeypatch.setattr(refresh, "SLICE", 5)
    with serving(collection) as served:
        pace, step = Paced(served), service._step

        def slowly(steps: Any) -> Any:
            assert pace.may.acquire(timeout=30)
            return step(steps)

        monkeypatch.setattr(service, "_step", slowly)
        yield pace
        pace.may.release(10 * STEPS)


def test_progress_is_told_slice_by_slice(paced: Paced) -> None:
    number = paced.begin()
    assert paced.job(number)["progress"] == 0
    for done in range(1, STEPS + 1):
        paced.step(number, done / STEPS)
        assert paced.job(number)["state"] == "running"
    job = paced.finish(number)
    assert (job["state"], job["progress"], job["report"]["entries"]) == ("done", 1, 20)


def test_searches_and_writes_go_on_meanwhile(paced: Paced, collection: Collection) -> None:
    number, served = paced.begin(), paced.served
    paced.step(number, 1 / STEPS)
    X, _ = rows(3, seed=5)
    before = served.post("/search", {"rows": X.tolist(), "k": 100}).json()
    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(served.post, "/add", {"rows": X.tolist(), "ids": [7001, 7002, 7003]})
        until(adding.running)
        time.sleep(0.2)  # it waits behind the next slice
        paced.may.release()
        assert adding.result(30).status_code == 200
    assert paced.job(number)["state"] == "running"
    after = served.post("/search", {"rows": X.tolist(), "k": 100}).json()
    assert len(after["matches"][0]["found"]) == len(before["matches"][0]["found"]) + 3
    job = paced.finish(number)
    assert job["report"]["entries"] == 23, "entries that came meanwhile are refreshed too"
    assert collection.stats()["stale_bits"] == 0


def test_a_refresh_asked_for_meanwhile_comes_after_it(paced: Paced, collection: Collection) -> None:
    first = paced.begin()
    paced.step(first, 1 / STEPS)
    second = paced.begin()
    assert second != first
    assert paced.begin() == second, "one that waits will do what a third could"
    assert paced.job(second)["progress"] == 0
    paced.finish(first)
    assert paced.finish(second)["state"] == "done"


def test_a_service_stops_in_the_middle_of_a_refresh(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "SLICE", 5)
    before = collection.stats()["stale_bits"]
    with serving(collection) as served:
        step, taken = service._step, count()
        monkeypatch.setattr(service, "_step", lambda s: step(s) if next(taken) < 2 else 0.5)
        job = served.post("/refresh").json()["job"]
        until(lambda: served.get(f"/jobs/{job}").json()["progress"] > 0)
    assert collection.stats()["stale_bits"] == before > 0
    assert collection.refresh().entries == 20


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A service of a collection that refreshes in the background, slice by slice."""
    monkeypatch.setattr(refresh, "SLICE", 5)
    monkeypatch.setattr(writing, "AT_ONCE", 0)
    with filled() as made, serving(made) as served:
        yield served


def publish(served: Served) -> None:
    """Have the mapping solved anew, which leaves entries stale."""
    X, y = rows(300, seed=8)
    assert served.post("/learn", {"rows": X.tolist(), "labels": y}).status_code == 200


def test_a_refresh_in_the_background_is_told_and_leaves_nothing_stale(behind: Served) -> None:
    with listening(behind) as ear:
        publish(behind)
        assert ear.until("refreshed")["entries"] == 20
        while ear.until("stats")["refreshing"]:
            pass
    assert behind.get("/stats").json()["stale_bits"] == 0


def test_a_refresh_asked_for_while_one_runs_in_the_background_is_done(behind: Served) -> None:
    for _ in range(3):
        publish(behind)
        numbers = [behind.post("/refresh").json()["job"] for _ in range(2)]
        assert behind.post("/refresh", params={"dry_run": True}).status_code == 200
        for number in numbers:
            until(lambda n=number: behind.get(f"/jobs/{n}").json()["state"] != "running")
            assert behind.get(f"/jobs/{number}").json()["state"] == "done"


def test_a_write_in_the_middle_of_a_refresh_that_needs_another_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refresh, "SLICE", 5)
    with filled() as made:
        steps = made.refresh_steps()
        next(steps)
        X, y = rows(300, seed=8)
        made.learn(X, y)
        for _ in steps:
            pass
        made.wait(30)
        assert made.stats()["stale_bits"] == 0


def test_labels_taken_away_in_the_middle_of_a_refresh_do_not_end_it(paced: Paced) -> None:
    number = paced.begin()
    paced.step(number, 1 / STEPS)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(paced.served.post, "/unlabel", {"ids": [0, 1], "teach": False})
        until(asked.running)
        time.sleep(0.2)  # it waits behind the next slice
        paced.may.release()
        assert asked.result(30).json() == {"unlabelled": 2}
    job = paced.finish(number)
    assert (job["state"], job["error"]) == ("done", None)
