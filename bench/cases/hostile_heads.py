"""GET /healthz while 20 clients send heads without an end, and while nobody does."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.client import Connection, get
from bench.hostile import PAUSE_S
from bench.machine import CHECKOUT
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.timing import Timing

CLIENTS = 20
INTERVAL_S = 0.01  # between two of the requests that are measured
MIB = 2**20
_START_S = 2.0  # of the process of the clients


@dataclass
class _Seen:
    """What the client that behaves has met, and the service's memory at each request."""

    samples_ms: list[float] = field(default_factory=list)
    failures: int = 0
    peak_bytes: int = 0


def _run(effort: Effort) -> CaseResult:
    rounds, seconds = effort.pick((3, 8.0), quick=(1, 3.0))
    alone, attacked, outcomes = _Seen(), _Seen(), Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}") as service,
    ):
        _attacked(service, 1.0, _Seen())  # what is loaded once
        for _ in range(rounds):
            _ask(service, alone, _until(seconds))
            outcomes += _attacked(service, seconds, attacked)
    p95_alone, p95_attacked = (_timing(seen).quantile_ms(0.95) for seen in (alone, attacked))
    grown_mib = (attacked.peak_bytes - alone.peak_bytes) / MIB
    kept = sum(number for what, number in outcomes.items() if what.endswith("accepted"))
    table = Table(
        f"GET /healthz, {1 / INTERVAL_S:g} a second, {CLIENTS} hostile clients",
        ("clients", "p95 / alone", "p50 ms", "p95 ms", "p99 ms", "failures", "service MiB"),
        tuple(
            _row(what, seen, p95_alone)
            for what, seen in (("none", alone), (f"{CLIENTS} hostile", attacked))
        ),
    )
    what_became = Table(
        "What became of the hostile connections",
        ("what was sent: its end", "connections"),
        tuple(sorted(outcomes.items())),
    )
    checks = (
        Check("p95 of /healthz among hostile clients", p95_attacked / p95_alone, 3, "of it alone"),
        Check("memory that hostile clients take", grown_mib, 32, "MiB"),
        Check("hostile connections neither refused nor closed", kept, 0, "connections"),
        Check("refused requests of the others", attacked.failures, 0, "requests"),
    )
    return CaseResult((table, what_became), checks)


def _until(seconds: float) -> Callable[[], bool]:
    end_s = time.monotonic() + seconds
    return lambda: time.monotonic() < end_s


def _attacked(service: RunningService, seconds: float, seen: _Seen) -> Counter[str]:
    """What became of the connections of the hostile clients, while others ask."""
    arguments = [str(service.port), str(CLIENTS), str(seconds)]
    with subprocess.Popen(
        [sys.executable, "-m", "bench.hostile", *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    ) as clients:
        time.sleep(min(_START_S, seconds / 4))
        _ask(service, seen, lambda: clients.poll() is None)
        return Counter(json.loads(clients.communicate()[0]))


def _ask(service: RunningService, seen: _Seen, goes_on: Callable[[], bool]) -> None:
    connection, request = Connection(service.port), get("/healthz")
    while goes_on():
        started_s = time.perf_counter()
        status, _ = connection.ask(request)
        elapsed_s = time.perf_counter() - started_s
        seen.samples_ms.append(elapsed_s * 1e3)
        seen.failures += status != 200
        seen.peak_bytes = max(seen.peak_bytes, service.process.memory_info().rss)
        time.sleep(max(0.0, INTERVAL_S - elapsed_s))
    connection.close()


def _timing(seen: _Seen) -> Timing:
    return Timing(tuple(seen.samples_ms))


def _row(what: str, seen: _Seen, p95_alone: float) -> tuple[str | float | int, ...]:
    timing = _timing(seen)
    p50, p95, p99 = (timing.quantile_ms(share) for share in (0.5, 0.95, 0.99))
    return (what, p95 / p95_alone, p50, p95, p99, seen.failures, seen.peak_bytes / MIB)


SPEC = BenchSpec(
    name="hostile_heads",
    title="Heads without an end",
    about=(
        "The service as `sluice serve` starts it, and clients in a process of their own that send "
        "endless headers, paths, trailers and extensions of chunks, and each "
        f"connect again {PAUSE_S:g} s after they were refused. Alone and attacked take turns."
    ),
    run=_run,
    workloads={},
)
