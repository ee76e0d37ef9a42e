"""What readers of the service wait for while others post files: crafted ones, and many traces."""

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

from bench.client import Connection, get, post
from bench.machine import CHECKOUT
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.timing import Timing

INTERVAL_S = 0.02  # between two of the requests that are measured
_START_S = 1.0  # of the process of those who post
_READS = {
    "/healthz": get("/healthz"),
    "/readyz": get("/readyz"),
    "GET /profiles": get("/profiles"),
    "lookup": get("/profiles/gms/schedule?bytes=65536"),
}
_TABLE = {"min_message_bytes": 1024, "max_message_bytes": 2**20}
_LOADS = {"crafted": 4, "trace": 60}


@dataclass
class _Seen:
    """What those who read have met, by address."""

    samples_ms: dict[str, list[float]] = field(
        default_factory=lambda: {read: [] for read in _READS}
    )
    failures: Counter[str] = field(default_factory=Counter)


def _run(effort: Effort) -> CaseResult:
    rounds, seconds = effort.pick((5, 10.0), quick=(1, 5.0))
    alone = _Seen()
    beside = {kind: _Seen() for kind in _LOADS}
    statuses = {kind: Counter[str]() for kind in _LOADS}
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}") as service,
    ):
        _store(service)
        _ask(service, _Seen(), _until(2.0))  # what is loaded once
        for _ in range(rounds):
            _ask(service, alone, _until(seconds))
            for kind in _LOADS:
                statuses[kind] += _beside(service, kind, seconds, beside[kind])
    rows, checks = [], []
    timings = {what: _timings(seen) for what, seen in (("alone", alone), *beside.items())}
    for what, found in timings.items():
        for read, timing in found.items():
            p50, p99, worst = (timing.quantile_ms(share) for share in (0.5, 0.99, 1.0))
            ratio = p99 / timings["alone"][read].quantile_ms(0.99)
            rows.append((f"{read}, {what}", ratio, p50, p99, worst))
    for kind in _LOADS:
        found = timings[kind]
        alone_p99 = {read: timing.quantile_ms(0.99) for read, timing in timings["alone"].items()}
        for read, limit in (("GET /profiles", 3), ("lookup", 2)):
            value = found[read].quantile_ms(0.99) / alone_p99[read]
            checks.append(Check(f"p99 of {read}, {kind}", value, limit, "of it alone"))
        worst = found["/healthz"].quantile_ms(1.0)
        checks += [
            Check(f"longest /healthz, {kind}", worst, 200, "ms"),
            Check(f"reads refused or failed, {kind}", beside[kind].failures.total(), 0, "reads"),
        ]
    table = Table(
        f"Reads in turn, {1 / INTERVAL_S:g} a second in all",
        ("read", "p99 / alone", "p50 ms", "p99 ms", "longest ms"),
        tuple(rows),
    )
    answered = Table(
        "What those who post were answered",
        ("files: status", "answers"),
        tuple(
            (f"{kind}: {status}", number)
            for kind, found in statuses.items()
            for status, number in sorted(found.items())
        ),
    )
    return CaseResult((table, answered), tuple(checks))


def _store(service: RunningService) -> None:
    """Store the table that lookups are answered from."""
    connection = Connection(service.port)
    status, body = connection.ask(post("/profiles/gms/tables", json.dumps(_TABLE).encode()))
    if status >= 300:
        raise RuntimeError(f"the bench's table was not stored: {status} {body!r}")
    connection.close()


def _until(seconds: float) -> Callable[[], bool]:
    end_s = time.monotonic() + seconds
    return lambda: time.monotonic() < end_s


def _beside(service: RunningService, kind: str, seconds: float, seen: _Seen) -> Counter[str]:
    """Ask while others post files of this kind; return what they were answered.

    They give way: elsewhere they would have processors of their own.
    """
    arguments = [str(service.port), kind, str(_LOADS[kind]), str(seconds)]
    with subprocess.Popen(
        ["nice", "-n", "15", sys.executable, "-m", "bench.uploads", *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    ) as clients:
        time.sleep(_START_S)
        _ask(service, seen, lambda: clients.poll() is None)
        return Counter(json.loads(clients.communicate()[0]))


def _ask(service: RunningService, seen: _Seen, goes_on: Callable[[], bool]) -> None:
    connection = Connection(service.port)
    while goes_on():
        for read, request in _READS.items():
            started_s = time.perf_counter()
            status, _ = connection.ask(request)
            elapsed_s = time.perf_counter() - started_s
            seen.samples_ms[read].append(elapsed_s * 1e3)
            seen.failures[read] += status != 200
            time.sleep(max(0.0, INTERVAL_S - elapsed_s))
    connection.close()


def _timings(seen: _Seen) -> dict[str, Timing]:
    return {read: Timing(tuple(samples)) for read, samples in seen.samples_ms.items()}


SPEC = BenchSpec(
    name="uploads",
    title="Reads beside those who post files",
    about=(
        "The service as `sluice serve` starts it. In a process of their own 4 clients post files "
        "whose lines a careless pattern takes minutes for, then 60 clients a trace of 15 KB. "
        "Alone and beside them take turns."
    ),
    run=_run,
    workloads={},
)
