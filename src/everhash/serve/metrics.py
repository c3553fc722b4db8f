"""What the service has done since it was started, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Upper ends, in seconds."""
METHODS = {"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"}
"""Methods that are counted by name; a client can make up others without end."""
STATS = {
    "entries": "Entries of the collection.",
    "labels": "Labels of the collection.",
    "width": "Hash functions of the mapping.",
    "stale_bits": "Stored bits whose function has changed since.",
    "bytes": "Length of the collection's file.",
}
"""What of the collection's stats is shown."""
CONTENT_TYPE = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(Collector):
    """Counters of one service. Only the event loop touches them."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        names: Any = {"namespace": "everhash", "registry": registry}
        self._requests = Counter(
            "requests", "Requests answered.", ("route", "method", "status"), **names
        )
        self._seconds = Histogram(
            "request_seconds", "Time to an answer.", ("route",), buckets=BUCKETS, **names
        )
        self._running = Gauge("requests_running", "Requests being worked on.", **names)
        self._listeners = Gauge("listeners", "Connections to /events.", **names)
        self.batches = Counter("search_batches", "Batches of single queries searched.", **names)
        self.batched = Counter("search_batched", "Single queries in them.", **names)
        self.bits_rewritten = Counter("bits_rewritten", "Bits changed by refreshes.", **names)
        self._stats: Mapping[str, Any] = {}
        registry.register(self)
        self.running = 0
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def finish_running(self) -> None:
        """Count one running request less."""
        self.running -= 1

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer."""
        key = (route, method if method in METHODS else "other", status)
        children = self._children.get(key)
        if children is None:
            counter = self._requests.labels(route, key[1], str(status))
            children = self._children[key] = counter, self._seconds.labels(route)
        children[0].inc()
        children[1].observe(seconds)

    def text(self, stats: Mapping[str, Any], listeners: int) -> bytes:
        """Return everything as Prometheus reads it."""
        self._running.set(self.running)
        self._listeners.set(listeners)
        self._stats = stats
        return generate_latest(self._registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the collection's stats, while it is open; the registry calls this."""
        for name, text in STATS.items():
            if name in self._stats:
                yield GaugeMetricFamily(f"everhash_{name}", text, value=self._stats[name])
