"""Counters and latencies of requests, for Prometheus.

Labels are route templates, never paths: what a client invents must not become a series. Counting
happens on the event loop's thread and takes no lock; what was counted is handed to the library's
registry, one for each application, when the text is asked for.
"""

from __future__ import annotations

import platform
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from app.execution.engine import Engine, Pool
from app.settings import KEPT_KINDS, VERSION
from domain.errors import InvalidInput, SluiceError
from models.records import JobEnd, Waiting
from solvers.kernels.native import asked, load_library

if TYPE_CHECKING:
    from app.jobs.runner import Runner
    from models.session import Store

__all__ = [
    "BUCKETS_S",
    "CONTENT_TYPE",
    "Gauges",
    "Metrics",
    "RunnerMetrics",
    "gauges_of",
    "gauges_of_runner",
    "runner_gauges",
]

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
JOB_BUCKETS_S = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_BATCH = 1000

Labels: TypeAlias = tuple[tuple[str, str], ...]
# name -> (help, current value, or values by their labels)
Gauges: TypeAlias = Mapping[str, tuple[str, "float | Mapping[Labels, float]"]]


@dataclass(slots=True)
class _Latency:
    """A histogram: how many ended within each bucket, and their total time."""

    bounds_s: tuple[float, ...] = BUCKETS_S
    counts: list[int] = field(default_factory=list)
    total_s: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds_s) + 1)

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds_s, seconds)] += 1
        self.total_s += seconds

    def buckets(self) -> list[tuple[str, int]]:
        """Return how many ended by each bound."""
        bounds = map(floatToGoString, (*self.bounds_s, float("inf")))
        return [*zip(bounds, accumulate(self.counts), strict=True)]


class Metrics(Collector):
    """What has been served so far by this application."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._latency: dict[str, _Latency] = {}
        self._answers: Counter[str] = Counter()
        self._waiting: dict[tuple[str, int], list[float]] = {}
        self._job_ends: Counter[tuple[str, str, str]] = Counter()
        self._job_runs: dict[str, _Latency] = {}

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

    def jobs_ended(self, ends: Iterable[JobEnd]) -> None:
        """Count jobs that have ended."""
        for end in ends:
            self._job_ends[end.kind, end.state.value, end.code] += 1
            if end.run_s is not None:
                runs = self._job_runs.setdefault(end.kind, _Latency(JOB_BUCKETS_S))
                runs.observe(max(0.0, end.run_s))

    def exposition(self, gauges: Gauges) -> str:
        """Return all of it as text; what ends in `_total` is a counter."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        registry.register(_CurrentValues(gauges))
        return generate_latest(registry).decode()

    def collect(self) -> Iterable[Metric]:
        """Yield the families of requests, latencies, answers and ends of jobs."""
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
            seconds.add_metric((route,), latency.buckets(), latency.total_s)
        answers = CounterMetricFamily(
            "sluice_answers", "Answers given, by where they came from.", labels=("origin",)
        )
        for origin, count in sorted(self._answers.items()):
            answers.add_metric((origin,), count)
        ends = CounterMetricFamily(
            "sluice_job_ends", "Jobs that ended here.", labels=("kind", "state", "code")
        )
        for end, count in sorted(self._job_ends.items()):
            ends.add_metric(end, count)
        runs = HistogramMetricFamily(
            "sluice_job_run_seconds", "From a job's last begin to its end.", labels=("kind",)
        )
        for job, run in sorted(self._job_runs.items()):
            runs.add_metric((job,), run.buckets(), run.total_s)
        return requests, seconds, answers, ends, runs


class RunnerMetrics(Collector):
    """What a process without HTTP tells: ends of jobs, which any thread may count, and gauges."""

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._metrics = Metrics()
        self._gauges = gauges
        self._lock = threading.Lock()

    def jobs_ended(self, ends: Iterable[JobEnd]) -> None:
        """Count jobs that have ended."""
        with self._lock:
            self._metrics.jobs_ended(ends)

    def collect(self) -> Iterable[Metric]:
        """Yield the families of ends of jobs, then the gauges."""
        gauges = self._gauges()
        with self._lock:
            counted = [one for one in self._metrics.collect() if one.name.startswith("sluice_job")]
        return *counted, *_CurrentValues(gauges).collect()

    @contextmanager
    def served(self, host: str, port: int) -> Iterator[int]:
        """Answer GET with the text until the block ends, at this port or with 0 at any free one,
        which is given. Raises InvalidInput where it cannot be had.
        """
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as refusal:
            raise InvalidInput(
                f"port {port} of {host} cannot be had for metrics ({refusal.strerror})",
                field="SLUICE_WORK_METRICS_PORT",
            ) from None
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _CurrentValues(Collector):
    """Current values."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """Yield a family for each."""
        for name, (help_text, value) in self._gauges.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            if not isinstance(value, Mapping):
                yield kind(name, help_text, value=value)
                continue
            labels = next(iter(value), ())
            family = kind(name, help_text, labels=[label for label, _ in labels])
            for named, one in value.items():
                family.add_metric([text for _, text in named], one)
            yield family


# --- what is now: jobs that wait, workers, connections, the build ---------------------------------


_WHY = ("crash", "idle", "time", "memory")  # as Capacity says it


def gauges_of(store: Store, engine: Engine, waiting: Sequence[Waiting]) -> Gauges:
    """Return the values of what waits, of workers, of the database and of the build."""
    return {
        "sluice_waiting_jobs": ("Durable jobs that wait.", sum(one.count for one in waiting)),
        "sluice_oldest_waiting_job_seconds": (
            "Since the oldest of a kind was accepted.",
            _ages_of(waiting),
        ),
        "sluice_ready_workers": ("Workers ready.", engine.capacity(Pool.SOLVE).ready),
        "sluice_worker_deaths_total": ("Worker processes that ended.", _deaths_of(engine)),
        "sluice_database_connections": ("Open connections.", _connections_of(store)),
        "sluice_build_info": ("What runs.", {_build_of(store): 1.0}),
    }


def runner_gauges(store: Store, engine: Engine, runner: Runner) -> Gauges:
    """Return the same of a process that runs jobs and has no HTTP, and what its runner does."""
    waiting: Sequence[Waiting] = ()
    with suppress(SluiceError), store.reading() as unit:
        waiting = unit.jobs.waiting_by_kind()
    return {**gauges_of(store, engine, waiting), **gauges_of_runner(runner)}


def gauges_of_runner(runner: Runner | None) -> Gauges:
    """Return what a runner does; zeros where there is none."""
    running, fenced = (runner.running, runner.fenced) if runner else (0, 0)
    collected: Mapping[str, int] = runner.collected if runner else {}
    return {
        "sluice_running_jobs": ("Jobs that run here.", running),
        "sluice_fenced_total": ("Writes of jobs that came too late.", fenced),
        "sluice_collected_total": (
            "Rows that this process deleted, as they are kept no longer.",
            {(("kind", kind),): float(collected.get(kind, 0)) for kind in KEPT_KINDS},
        ),
    }


def _ages_of(waiting: Iterable[Waiting]) -> Mapping[Labels, float]:
    now = datetime.now(UTC)
    return {(("kind", one.kind),): max(0.0, (now - one.since).total_seconds()) for one in waiting}


def _deaths_of(engine: Engine) -> Mapping[Labels, float]:
    found = {pool: engine.capacity(pool).deaths for pool in Pool}
    return {
        (("pool", pool.value), ("why", why)): float(deaths.get(why, 0))
        for pool, deaths in found.items()
        for why in _WHY
    }


def _connections_of(store: Store) -> Mapping[Labels, float]:
    return {
        (("pool", pool), ("state", state)): float(count)
        for pool, counts in store.connections.items()
        for state, count in zip(("used", "free"), counts, strict=True)
    }


def _build_of(store: Store) -> Labels:
    return (
        ("version", VERSION),
        ("python", platform.python_version()),
        ("kernels", "numpy" if load_library(asked()) is None else "native"),
        ("database", store.dialect),
    )
