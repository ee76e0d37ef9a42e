"""Counters and latencies of requests, in the text format that Prometheus reads.

Labels are route templates, never paths: what a client invents must not become a series. All
counting happens on the event loop's thread, so there is no lock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TOGETHER = 1000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class _Latency:
    """A histogram: how many requests ended within each bucket, and their total time."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.total_s += seconds


class Metrics:
    """What has been served so far by this process."""

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

    def look_up(self, kind: tuple[str, int], seconds: float) -> None:
        """Count one GET by its route and status; a thousand of them are sorted in together."""
        waiting = self._waiting.get(kind)
        if waiting is None:
            waiting = self._waiting[kind] = []
        waiting.append(seconds)
        if len(waiting) >= _TOGETHER:
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

    def exposition(self, gauges: dict[str, tuple[str, float]]) -> str:
        """All of it as text; `gauges` are name -> (help, value) of the moment."""
        for kind, waiting in self._waiting.items():
            self._sort_in(kind, waiting)
        lines = [*self._request_lines(), *self._latency_lines(), *self._answer_lines()]
        for name, (help_text, value) in gauges.items():
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"

    def _request_lines(self) -> list[str]:
        name = "sluice_http_requests_total"
        return [
            f"# HELP {name} Requests served.",
            f"# TYPE {name} counter",
            *(
                f'{name}{{method="{method}",route="{route}",status="{status}"}} {count}'
                for (method, route, status), count in sorted(self._requests.items())
            ),
        ]

    def _latency_lines(self) -> list[str]:
        name = "sluice_http_request_seconds"
        lines = [f"# HELP {name} Time to serve a request.", f"# TYPE {name} histogram"]
        for route, latency in sorted(self._latency.items()):
            running = 0
            for bound, count in zip((*BUCKETS_S, "+Inf"), latency.counts, strict=True):
                running += count
                lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {running}')
            lines.append(f'{name}_sum{{route="{route}"}} {latency.total_s:.6f}')
            lines.append(f'{name}_count{{route="{route}"}} {running}')
        return lines

    def _answer_lines(self) -> list[str]:
        name = "sluice_answers_total"
        return [
            f"# HELP {name} Answers given, by where they came from.",
            f"# TYPE {name} counter",
            *(f'{name}{{origin="{origin}"}} {n}' for origin, n in sorted(self._answers.items())),
        ]
