"""What listeners hear, and what operators read."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from everhash.serve import events, limits
from everhash.serve.metrics import BUCKETS
from tests.unit.serve.serving import DIM, Served, error_of, filled, rows, serving, until

Event = tuple[str, Any]


class Ear:
    """A connection to /events."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def hear(self) -> Event:
        """Return the next event; the type of a comment is empty."""
        kind, data = "", None
        for line in self._lines:
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif not line:
                return kind, data
        raise EOFError

    def until(self, kind: str) -> Any:
        """Return what the next event of a type says."""
        while (event := self.hear())[0] != kind:
            pass
        return event[1]


@contextmanager
def listening(served: Served) -> Iterator[Ear]:
    with (
        httpx.Client(base_url=served.address, timeout=30) as client,
        client.stream("GET", "/events") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        yield Ear(answer.iter_lines())


def test_everything_that_happens_is_told(writing: Served) -> None:
    X, y = rows(30, seed=2)
    body = {"rows": X.tolist(), "labels": ["owl", *y[1:]]}
    with listening(writing) as ear:
        kind, stats = ear.hear()
        assert (kind, stats) == ("stats", writing.get("/stats").json())
        learned = stats["learned"]
        right = round(learned["scored_rows"] * learned["accuracy"])
        assert ear.hear() == ("accuracy", {"points": [[learned["scored_rows"], right]]})
        writing.post("/learn", body)
        learned = ear.until("learned")
        assert learned.pop("seconds") > 0
        assert learned == {"rows": 30, "new_labels": ["owl"]}
        writing.post("/forget", {"rows": X[:9].tolist(), "labels": body["labels"][:9]})
        assert ear.until("forgotten") == {"rows": 9}
        writing.post("/ingest", body)
        assert ear.until("learned")["new_labels"] == []
        assert ear.until("added") == {
            "ids": list(range(60, 80)),
            "count": 30,
            "learned": True,
        }
        writing.post("/add", {"rows": X[:1].tolist(), "ids": ["a"]})
        assert ear.until("added") == {"ids": ["a"], "count": 1, "learned": False}
        writing.post("/label", {"ids": ["a"], "labels": ["<script>"], "new": True})
        told = {"ids": ["a"], "count": 1, "new_labels": ["<script>"]}
        assert ear.until("labelled") == told
        writing.post("/unlabel", {"ids": ["a"]})
        assert ear.until("unlabelled") == {"ids": ["a"], "count": 1}
        writing.post("/update", {"ids": ["a"], "rows": X[1:2].tolist()})
        assert ear.until("updated") == {"ids": ["a"], "count": 1}
        writing.post("/upsert", {"ids": ["a"], "rows": X[:1].tolist(), "labels": ["yak"]})
        assert ear.until("learned")["new_labels"] == ["yak"]
        assert ear.until("added") == {"ids": ["a"], "count": 1, "learned": True}
        writing.post("/labels/rename", {"label": "yak", "to": "ox"})
        assert ear.until("renamed") == {"label": "yak", "to": "ox"}
        writing.post("/labels/merge", {"label": "ox", "into": "owl"})
        assert ear.until("merged") == {"label": "ox", "into": "owl", "entries": 1}
        writing.post("/labels/drop", {"label": "<script>"})
        assert ear.until("dropped") == {"label": "<script>", "entries": 0}
        writing.post("/remove", {"ids": ["a", 3]})
        assert ear.until("removed") == {"ids": ["a", 3], "count": 2}
        writing.post("/refresh")
        assert ear.until("refreshed")["entries"] == 20
        while ear.until("stats")["entries"] != 89:
            pass


def test_a_failed_write_is_not_told(writing: Served) -> None:
    with listening(writing) as ear:
        ear.until("accuracy")
        writing.post("/remove", {"ids": [777]})
        writing.post("/forget", {"rows": [[1.0] * DIM], "labels": ["ant"]})
        writing.post("/remove", {"ids": [7]})
        assert ear.hear() == ("removed", {"ids": [7], "count": 1})


def test_stats_are_told_at_most_four_times_a_second(writing: Served) -> None:
    with listening(writing) as ear:
        heard = [ear.hear()]
        began = time.monotonic()
        for number in range(20):
            writing.post("/add", {"rows": [[0.5] * DIM], "ids": [f"x{number}"]})
        while heard[-1][0] != "stats" or heard[-1][1]["entries"] != 80:
            heard.append(ear.hear())
        kinds = [kind for kind, _ in heard]
        assert kinds.count("added") == 20
        assert kinds.count("stats") <= 2 + 4 * (time.monotonic() - began)


def test_silence_is_broken_by_a_comment(monkeypatch: pytest.MonkeyPatch, writing: Served) -> None:
    monkeypatch.setattr(events, "PING", 0.05)
    with listening(writing) as ear:
        assert [ear.hear()[0], ear.hear()[0]] == ["stats", "accuracy"]
        assert ear.hear() == ("", None)


def test_listeners_are_limited_and_leave_room_when_they_go(
    monkeypatch: pytest.MonkeyPatch, writing: Served
) -> None:
    monkeypatch.setattr(limits, "LISTENERS", 2)
    with listening(writing) as first:
        first.hear()
        with listening(writing) as second:
            second.hear()
            refused = writing.get("/events")
            assert error_of(refused)["status"] == 503
            assert refused.headers["retry-after"] == "1"
        until(lambda: len(writing.service.events) == 1)
        with listening(writing) as third:
            third.hear()
            assert len(writing.service.events) == 2
    until(lambda: len(writing.service.events) == 0)


def test_a_listener_who_does_not_keep_up_is_dropped() -> None:
    heard = events.Events()
    slow = heard.join()
    for number in range(events.BACKLOG + 1):
        heard.publish(("removed", {"count": number}))
    assert len(heard) == 0
    assert slow.queue.get_nowait() is None


def test_listeners_are_let_go_when_the_service_stops() -> None:
    with filled() as collection:
        with serving(collection) as served:
            client = httpx.Client(base_url=served.address, timeout=30)
            stream = client.stream("GET", "/events")
            lines = stream.__enter__().iter_lines()
            assert Ear(lines).hear()[0] == "stats"
        with pytest.raises(EOFError):
            Ear(lines).until("nothing")
        stream.__exit__(None, None, None)
        client.close()


SAMPLE = re.compile(r'^(everhash_\w+)(?:\{((?:\w+="[^"\\\n]*",?)*)\})? ([0-9.e+-]+)$')


def test_metrics_are_what_prometheus_reads(writing: Served) -> None:
    writing.post("/search", {"rows": [[0.5] * DIM], "by": "meaning"})
    writing.post("/search", {"rows": [[0.5]]})
    writing.get("/nope/<script>")
    writing.http.request("PROPFIND", "/search")
    answer = writing.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    values, kinds = {}, {}
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            found = SAMPLE.match(line)
            assert found, line
            values[found[1], found[2]] = float(found[3])
    request = 'method="{1}",route="{0}",status="{2}"'
    counted = "everhash_requests_total"
    assert values[counted, request.format("/search", "POST", 200)] == 1
    assert values[counted, request.format("/search", "POST", 422)] == 1
    assert values[counted, request.format("other", "GET", 404)] == 1
    assert values[counted, request.format("/search", "other", 405)] == 1
    ends = [
        values["everhash_request_seconds_bucket", f'le="{float(b)}",route="/search"']
        for b in BUCKETS
    ]
    assert ends == sorted(ends)
    total = values["everhash_request_seconds_bucket", 'le="+Inf",route="/search"']
    assert total == values["everhash_request_seconds_count", 'route="/search"'] == 3
    for name, value in {"entries": 60, "labels": 3, "width": 16, "requests_running": 1}.items():
        assert values[f"everhash_{name}", None] == value
        assert kinds[f"everhash_{name}"] == "gauge"
    assert values["everhash_search_batched_total", None] == 1
    assert {"everhash_stale_bits", "everhash_bytes", "everhash_bits_rewritten_total"} <= set(kinds)


def test_bits_rewritten_are_counted(writing: Served) -> None:
    X, y = rows(300, seed=8)
    writing.post("/learn", {"rows": X.tolist(), "labels": y})
    flipped = writing.get("/stats").json()["last_refresh"]["bits_flipped"]
    assert flipped > 0
    counted = f"everhash_bits_rewritten_total {float(flipped)}\n"
    until(lambda: counted in writing.get("/metrics").text)
