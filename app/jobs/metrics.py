"""How jobs end, and what a process that runs them or answers clients has now, for Prometheus.

A process without HTTP tells it at a port of its own; a service beside what it counts of requests.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.execution.engine import Engine, Pool
from app.operations.tasks import JOB_KINDS
from app.settings import KEPT_KINDS, VERSION
from domain.errors import InvalidInput, SluiceError
from models.records import JobEnd, Waiting
from solvers.kernels.native import asked, load_library

if TYPE_CHECKING:
    from app.jobs.runner import Runner
    from models.session import Store

disable_created_metrics()  # type: ignore[no-untyped-call]  # series of when others began

_ENDS = ("done", "failed", "cancelled")
JOB_BUCKETS_S = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

Labels: TypeAlias = tuple[tuple[str, str], ...]
# name -> (help, current value, or values by their labels)
Gauges: TypeAlias = Mapping[str, tuple[str, "float | Mapping[Labels, float]"]]


class JobMetrics(Collector):
    """How jobs ended; any thread may count it.

    Series of these `kinds` are there from the start: a rate sees no first event of a series that
    begins with it.
    """

    def __init__(self, kinds: Iterable[str] = ()) -> None:
        self._registry = registry = CollectorRegistry(auto_describe=False)
        labels = "kind", "state", "code"
        self._job_ends = Counter(
            "sluice_job_ends", "Jobs that ended here.", labels, registry=registry
        )
        self._job_runs = Histogram(
            "sluice_job_run_seconds",
            "From a job's last begin to its end.",
            ("kind",),
            buckets=JOB_BUCKETS_S,
            registry=registry,
        )
        for kind in kinds:
            self._job_runs.labels(kind)
            for state in _ENDS:
                self._job_ends.labels(kind, state, "")

    def jobs_ended(self, ends: Iterable[JobEnd]) -> None:
        """Count jobs that have ended."""
        for end in ends:
            self._job_ends.labels(end.kind, end.state.value, end.code).inc()
            if end.run_s is not None:
                self._job_runs.labels(end.kind).observe(max(0.0, end.run_s))

    def collect(self) -> Iterable[Metric]:
        """Yield the families of all that was counted."""
        return self._registry.collect()


def registry_of(*collectors: Collector) -> CollectorRegistry:
    """Return a registry of these, and of what the library knows of this process."""
    registry = CollectorRegistry(auto_describe=False)
    for collector in (*collectors, ProcessCollector(registry=None)):
        registry.register(collector)
    return registry


class RunnerMetrics(JobMetrics):
    """What a process without HTTP tells: ends of jobs, and gauges."""

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        super().__init__(JOB_KINDS)
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """Yield the families of ends of jobs, then the gauges."""
        return *super().collect(), *CurrentValues(self._gauges()).collect()

    @contextmanager
    def served(self, host: str, port: int) -> Iterator[int]:
        """Answer GET with the text until the block ends, at this port or with 0 at any free one,
        which is given. Raises InvalidInput where it cannot be had.
        """
        try:
            server, thread = start_http_server(port, host, registry_of(self))
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


class CurrentValues(Collector):
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


# --- what is now: jobs that wait, workers, the database, the build --------------------------------


def labelled(names: str, values: Mapping[Any, float]) -> Mapping[Labels, float]:
    """Return values by their labels, of these names; their keys are one text or a tuple of it."""
    found: dict[Labels, float] = {}
    for key, value in sorted(values.items()):
        texts = key if isinstance(key, tuple) else (key,)
        found[tuple(zip(names.split(), map(str, texts), strict=True))] = float(value)
    return found


_WHY = ("crash", "idle", "time", "memory")  # as Capacity says it


def gauges_of(store: Store, engine: Engine, waiting: Sequence[Waiting]) -> Gauges:
    """Return the values of what waits, of workers, of the database and of the build."""
    return {
        "sluice_waiting_jobs": ("Durable jobs that wait.", sum(row.count for row in waiting)),
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
            labelled("kind", {kind: collected.get(kind, 0) for kind in KEPT_KINDS}),
        ),
    }


def _ages_of(waiting: Iterable[Waiting]) -> Mapping[Labels, float]:
    now = datetime.now(UTC)
    ages = {job.kind: max(0.0, (now - job.since).total_seconds()) for job in waiting}
    return labelled("kind", dict.fromkeys(JOB_KINDS, 0.0) | ages)


def _deaths_of(engine: Engine) -> Mapping[Labels, float]:
    found = {pool: engine.capacity(pool).deaths for pool in Pool}
    return labelled(
        "pool why", {(pool, why): found[pool].get(why, 0) for pool in Pool for why in _WHY}
    )


def _connections_of(store: Store) -> Mapping[Labels, float]:
    counted = {
        (pool, state): count
        for pool, counts in store.connections.items()
        for state, count in zip(("used", "free"), counts, strict=True)
    }
    return labelled("pool state", counted)


def _build_of(store: Store) -> Labels:
    return (
        ("version", VERSION),
        ("python", platform.python_version()),
        ("kernels", "numpy" if load_library(asked()) is None else "native"),
        ("database", store.dialect),
    )
