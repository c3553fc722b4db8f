"""Counters and a latency histogram a route, as the text Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper ends, in seconds."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
GAUGES = {
    "entries": "Entries of the collection.",
    "labels": "Labels of the collection.",
    "width": "Hash functions of the mapping.",
    "stale_bits": "Stored bits whose function has changed since.",
    "bytes": "Length of the collection's file.",
}
"""What of `Service.stats` is shown."""
Line = tuple[str, float]


class Latencies:
    """How long the requests of one route took."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one request."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """What the service has done since it was started.

    The search thread counts its batches, everything else belongs to the event loop.
    """

    def __init__(self) -> None:
        self.requests = Counter[tuple[str, str, int]]()
        self.latencies: dict[str, Latencies] = {}
        self.running = 0
        self.batches = 0
        self.gathered = 0
        self.bits_rewritten = 0

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Take note of an answer."""
        self.requests[route, method, status] += 1
        latencies = self.latencies.get(route)
        if latencies is None:
            latencies = self.latencies[route] = Latencies()
        latencies.add(seconds)

    def text(self, stats: Mapping[str, Any], listeners: int) -> str:
        """Return everything, with what the collection says of itself."""
        parts = [
            _metric("requests_total", "counter", "Requests answered.", self._requests()),
            _metric("request_seconds", "histogram", "Time to an answer.", self._latencies()),
            _gauge("requests_running", "Requests being worked on.", self.running),
            _gauge("listeners", "Connections to /events.", listeners),
            _total("search_batches_total", "Batches of single queries searched.", self.batches),
            _total("search_gathered_total", "Single queries in them.", self.gathered),
            _total("bits_rewritten_total", "Bits changed by refreshes.", self.bits_rewritten),
            *(_gauge(name, text, stats[name]) for name, text in GAUGES.items() if name in stats),
        ]
        return "".join(parts)

    def _requests(self) -> Iterable[Line]:
        for (route, method, status), n in sorted(self.requests.items()):
            yield f'requests_total{{route="{route}",method="{method}",status="{status}"}}', n

    def _latencies(self) -> Iterable[Line]:
        for route, latencies in sorted(self.latencies.items()):
            below = 0
            for end, n in zip((*BUCKETS, "+Inf"), latencies.counts, strict=True):
                below += n
                yield f'request_seconds_bucket{{route="{route}",le="{end}"}}', below
            yield f'request_seconds_sum{{route="{route}"}}', latencies.seconds
            yield f'request_seconds_count{{route="{route}"}}', below


def _gauge(name: str, help_text: str, value: float) -> str:
    return _metric(name, "gauge", help_text, [(name, value)])


def _total(name: str, help_text: str, value: float) -> str:
    return _metric(name, "counter", help_text, [(name, value)])


def _metric(name: str, kind: str, help_text: str, lines: Iterable[Line]) -> str:
    head = f"# HELP everhash_{name} {help_text}\n# TYPE everhash_{name} {kind}\n"
    return head + "".join(f"everhash_{line} {value}\n" for line, value in lines)
