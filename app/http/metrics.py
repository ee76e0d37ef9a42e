"""Counters and latencies of requests, for Prometheus.

Labels are route templates, never paths: what a client invents must not become a series. Counting
happens on the event loop's thread and takes no lock; what was counted is handed to the library's
registry, one for each application, when the text is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

__all__ = ["BUCKETS_S", "CONTENT_TYPE", "Gauges", "Metrics"]

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BATCH = 1000
_BOUNDS = tuple(map(floatToGoString, (*BUCKETS_S, float("inf"))))

Gauges = Mapping[str, tuple[str, float]]  # name -> (help, current value)


@dataclass(slots=True)
class _Latency:
    """A histogram: how many requests ended within each bucket, and their total time."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.total_s += seconds


class Metrics(Collector):
    """What has been served so far by this application."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._latency: dict[str, _Latency] = {}
        self._answers: Counter[str] = Counter()
        self._waiting: dict[tuple[str, int], list[float]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one served request."""
        self._requests[method, route, status] += 1
        latency = self._latency.get(route)
        if latency is None:
            latency = self._latency[route] = _Latency()
        latency.observe(seconds)

    def lookup(self, kind: tuple[str, int], seconds: float) -> None:
        """Count one GET by its route and status; a thousand of them are sorted in together."""
        waiting = self._waiting.get(kind)
        if waiting is None:
            waiting = self._waiting[kind] = []
        waiting.append(seconds)
        if len(waiting) >= _BATCH:
            self._sort_in(kind, waiting)

    def _sort_in(self, kind: tuple[str, int], waiting: list[float]) -> None:
        route, status = kind
        self._requests["GET", route, status] += len(waiting)
        latency = self._latency.setdefault(route, _Latency())
        for seconds in waiting:
            latency.observe(seconds)
        waiting.clear()

    def answer(self, origin: str) -> None:
        """Count one answer by where it came from: stored, quick or engine."""
        self._answers[origin] += 1

    def exposition(self, gauges: Gauges) -> str:
        """Return all of it as text; what ends in `_total` is a counter."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        registry.register(_CurrentValues(gauges))
        return generate_latest(registry).decode()

    def collect(self) -> Iterable[Metric]:
        """Yield the families of requests, latencies and answers."""
        for kind, waiting in self._waiting.items():
            self._sort_in(kind, waiting)
        requests = CounterMetricFamily(
            "sluice_http_requests", "Requests served.", labels=("method", "route", "status")
        )
        for (method, route, status), count in sorted(self._requests.items()):
            requests.add_metric((method, route, str(status)), count)
        seconds = HistogramMetricFamily(
            "sluice_http_request_seconds", "Time to serve a request.", labels=("route",)
        )
        for route, latency in sorted(self._latency.items()):
            buckets = [*zip(_BOUNDS, accumulate(latency.counts), strict=True)]
            seconds.add_metric((route,), buckets, latency.total_s)
        answers = CounterMetricFamily(
            "sluice_answers", "Answers given, by where they came from.", labels=("origin",)
        )
        for origin, count in sorted(self._answers.items()):
            answers.add_metric((origin,), count)
        return requests, seconds, answers


class _CurrentValues(Collector):
    """Current values."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """Yield a family for each."""
        for name, (help_text, value) in self._gauges.items():
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(name, help_text, value=value)
