"""Counters and latencies of requests, for Prometheus.

Labels are route templates, never paths: what a client invents must not become a series. Each
application has a registry of its own. Requests are counted by the thousand: the library's counters
take locks, and a lookup is too short for that.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.utils import floatToGoString

from app.execution.engine import Pool
from app.jobs.metrics import CurrentValues, Gauges, JobMetrics, labelled, registry_of
from app.telemetry import dropped_lines
from models.records import StoredBytes

if TYPE_CHECKING:
    from app.http.connections import Door

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4  # of the text
# What most clients ask: objectives are about these, and their series exist from the start.
OBJECTIVES = (
    ("GET", "/profiles/{name}/schedule"),
    ("GET", "/profiles/{name}/table"),
    ("POST", "/optimize"),
)
ORIGINS = ("stored", "quick", "engine")
# Codes of refusals that say something of the service, and not of the request.
REASONS = (
    "internal_error",
    "not_ready",
    "overloaded",
    "quota_exceeded",
    "rate_limited",
    "solver_failed",
    "store_unavailable",
)
QUEUES = ("read", "write", "ready", *(f"worker-{pool.value}" for pool in Pool))
LAG_EVERY_S, LAG_KEPT_S = 0.25, 60.0

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_PARTS = len(BUCKETS_S) + 1
_BATCH = 1000


class LoopLag:
    """How late the event loop has come to what was due, at most within the last minute.

    A cheap timer of its own asks; what runs for long on the loop makes it late. For its thread.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # (when, how late)
        self._next: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """The greatest delay that was seen within LAG_KEPT_S."""
        since_s = time.monotonic() - LAG_KEPT_S
        return max((late_s for when_s, late_s in self._seen if when_s >= since_s), default=0.0)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to ask."""
        due_s = loop.time() + LAG_EVERY_S

        def came() -> None:
            self.took(time.monotonic(), max(0.0, loop.time() - due_s))
            self.start(loop)

        self._next = loop.call_at(due_s, came)

    def stop(self) -> None:
        """Ask no more."""
        if self._next is not None:
            self._next.cancel()

    def took(self, now_s: float, late_s: float) -> None:
        """Take one delay."""
        while self._seen and self._seen[0][0] < now_s - LAG_KEPT_S:
            self._seen.popleft()
        self._seen.append((now_s, late_s))


class Metrics(JobMetrics):
    """What has been served so far by this application. For the event loop's thread.

    Series of `objectives` (methods and routes) are there from the start, too.
    """

    def __init__(
        self, objectives: Sequence[tuple[str, str]] = (), kinds: Sequence[str] = ()
    ) -> None:
        super().__init__(kinds)
        count = partial(Counter, registry=self._registry)
        self._requests = count(
            "sluice_http_requests", "Requests served.", ("method", "route", "status")
        )
        self._within = {route: [0] * _PARTS for _, route in objectives}  # requests by their time
        self._total_s = dict.fromkeys(self._within, 0.0)
        self._answers = count(
            "sluice_answers", "Answers given, by where they came from.", ("origin",)
        )
        said = "Refusals that say something of the service."
        refusals = count("sluice_refusals", said, ("reason",))
        self._refusals = {reason: refusals.labels(reason) for reason in REASONS}
        waits = Histogram(
            "sluice_queue_seconds",
            "Time that something waited in a queue.",
            ("queue",),
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self._waits = {queue: waits.labels(queue) for queue in QUEUES}
        self.lag = LoopLag()
        Gauge(
            "sluice_event_loop_lag_seconds",
            "How late the event loop was, at most in a minute.",
            registry=self._registry,
        ).set_function(lambda: self.lag.seconds)
        self._served: dict[tuple[str, str, int], list[float]] = {}
        for method, route in objectives:
            for status in (200, 429, 500, 503):
                self._requests.labels(method, route, status)
        for origin in ORIGINS if objectives else ():
            self._answers.labels(origin)

    def refused(self, code: str) -> None:
        """Count a refusal by its code, where that says something of the service."""
        if code in self._refusals:
            self._refusals[code].inc()

    def waited(self, queue: str, seconds: float) -> None:
        """Count for how long something has waited in one of QUEUES."""
        self._waits[queue].observe(max(0.0, seconds))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one served request; a thousand of a kind are sorted in together."""
        served = self._served.setdefault((method, route, status), [])
        served.append(seconds)
        if len(served) >= _BATCH:
            self._sort_in()

    def _sort_in(self) -> None:
        for (method, route, status), served in self._served.items():
            self._requests.labels(method, route, status).inc(len(served))
            within = self._within.setdefault(route, [0] * _PARTS)
            for seconds in served:
                within[bisect_left(BUCKETS_S, seconds)] += 1
            self._total_s[route] = self._total_s.get(route, 0.0) + sum(served)
            served.clear()

    def answer(self, origin: str) -> None:
        """Count one answer by where it came from: stored, quick or engine."""
        self._answers.labels(origin).inc()

    def exposition(self, gauges: Gauges) -> str:
        """Return all of it as text; what ends in `_total` is a counter."""
        return generate_latest(registry_of(self, CurrentValues(gauges))).decode()

    def collect(self) -> Iterable[Metric]:
        """Yield the families of requests, latencies, answers and ends of jobs."""
        self._sort_in()
        times = HistogramMetricFamily(
            "sluice_http_request_seconds", "Time to serve a request.", labels=("route",)
        )
        bounds = [*map(floatToGoString, (*BUCKETS_S, math.inf))]
        for route, within in self._within.items():
            buckets = [*zip(bounds, accumulate(within), strict=True)]
            times.add_metric((route,), buckets, self._total_s[route])
        return *super().collect(), times


# --- what is now: connections, readiness, bytes stored, the disk ----------------------------------


def gauges_of_connections(door: Door) -> Gauges:
    """Return what is counted of connections and of the log, before any request is known."""
    return {
        "sluice_open_connections": ("Open connections of clients.", door.open_connections),
        "sluice_connection_refusals_total": (
            "Connections that were refused, by what was too much.",
            labelled("reason", door.refused),
        ),
        "sluice_upgrade_requests_total": (
            "Requests that asked for another protocol, and were answered in this one.",
            door.upgrades,
        ),
        "sluice_malformed_requests_total": (
            "Requests that no parser could read.",
            door.refused["malformed"],
        ),
        "sluice_log_dropped_total": ("Lines that the log had no place for.", dropped_lines()),
    }


def gauges_of_service(
    ready: Mapping[str, bool], stored: StoredBytes, most_bytes: int | None, folder: Path | None
) -> Gauges:
    """Return what `/readyz` asks part by part, 1 or 0; how many bytes all owners store, and how
    near the fullest is to what he may; and the room beside a database that is a file.

    Of the bytes two values, and not one an owner: how many owners there are nothing limits.
    """
    gauges: dict[str, Any] = {
        "sluice_ready": ("Whether this part of the service is ready.", labelled("part", ready)),
        "sluice_stored_bytes": ("Bytes that all owners store.", stored.total),
        "sluice_fullest_owner_ratio": (
            "Bytes of the owner who stores the most, of those that he may store.",
            stored.most / most_bytes if most_bytes else 0.0,
        ),
    }
    with suppress(OSError):
        if folder is not None:
            room = shutil.disk_usage(folder)
            gauges |= {
                "sluice_database_disk_free_bytes": ("Room beside the database.", room.free),
                "sluice_database_disk_bytes": ("Size of the disk of the database.", room.total),
            }
    return gauges
