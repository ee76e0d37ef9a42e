"""POST /optimize on the real service: questions never asked before, and the same ones again."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from bench.client import Load, get, post, send_all
from bench.inline import application
from bench.questions import pipeline_question
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Cell, Effort, Table
from bench.timing import Timing
from bench.workloads import KIB, MIB, myrinet

CONCURRENCY = (1, 8)


@dataclass(frozen=True, slots=True)
class _Measured:
    """One load, and the processor time that the service spent on a request, in ms."""

    load: Load
    service_cpu_ms: float


def _run(effort: Effort) -> CaseResult:
    rounds = [_round(effort) for _ in range(effort.pick(3, quick=1))]
    rows = []
    for concurrency in CONCURRENCY:
        ceiling = _rate([found["GET /healthz", concurrency] for found in rounds])
        for what in (key for key, clients in rounds[0] if clients == concurrency):
            measured = [found[what, concurrency] for found in rounds]
            rows.append(_row(what, concurrency, measured, ceiling))
    table = Table(
        f"POST /optimize on Table 1, {effort.pick(1000, quick=100)} message sizes",
        (
            "request, connections",
            "rate / healthz",
            "per second",
            "min-max per second",
            "p50 ms",
            "p99 ms",
            "service CPU ms",
            "client CPU share",
            "failures",
        ),
        tuple(rows),
        is_detail=True,
    )
    return CaseResult((table,), notes=_NOTES)


_NOTES = (
    "New: no question was asked before. Stored: the same questions again. Around 4 KiB: 1 to 16 "
    "KiB. Wide: the rest from 64 bytes to 1 MiB, spread evenly on a logarithmic scale; the larger "
    "ones are solved in child processes.",
    "Client and service share the machine's cores. `service CPU` is processor time a request, of "
    "the service and its workers, and does not depend on who else uses the machine; the client's "
    "share is its processor time over the wall time.",
)


def _round(effort: Effort) -> dict[tuple[str, int], _Measured]:
    """All loads once, on a service and a database of their own."""
    number = effort.pick(1000, quick=100)
    found: dict[tuple[str, int], _Measured] = {}
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}") as service,
    ):
        health = [get("/healthz")] * number
        send_all(service.port, health, concurrency=max(CONCURRENCY))  # warm-up
        for concurrency in CONCURRENCY:
            found["GET /healthz", concurrency] = _measure(service, health, concurrency)
        for name, sizes in _message_sizes(number):
            for position, concurrency in enumerate(CONCURRENCY):
                asked = _questions(sizes[position :: len(CONCURRENCY)])
                for label in (f"new, {name}", f"stored, {name}"):
                    found[label, concurrency] = _measure(service, asked, concurrency)
    return found


def _message_sizes(number: int) -> Iterator[tuple[str, list[int]]]:
    """Different sizes, shuffled: `number` for each concurrency, no size in two loads."""
    total = number * len(CONCURRENCY)
    rng = np.random.default_rng(1)
    near = rng.permutation(np.arange(KIB, 16 * KIB))[:total]
    yield "around 4 KiB", near.tolist()
    wide = np.unique(np.geomspace(64, MIB, 3 * total).astype(np.int64))
    wide = wide[(wide < KIB) | (wide >= 16 * KIB)]
    yield "wide", rng.permutation(wide)[:total].tolist()


def _questions(sizes: Sequence[int]) -> list[bytes]:
    return [post("/optimize", _body(size)) for size in sizes]


def _body(message_bytes: int) -> bytes:
    return pipeline_question(myrinet(), message_bytes)


def _measure(service: RunningService, requests: Sequence[bytes], concurrency: int) -> _Measured:
    before_s = service.cpu_s()
    load = send_all(service.port, requests, concurrency=concurrency)
    spent_s = service.cpu_s() - before_s
    return _Measured(load, spent_s / len(requests) * 1e3)


def _rate(measured: list[_Measured]) -> float:
    return statistics.median(one.load.per_second for one in measured)


def _row(
    what: str, concurrency: int, measured: list[_Measured], ceiling: float
) -> tuple[Cell, ...]:
    rates = [one.load.per_second for one in measured]
    timing = Timing(tuple(ms for one in measured for ms in one.load.timing.samples_ms))
    return (
        f"{what}, {concurrency}",
        _rate(measured) / ceiling,
        _rate(measured),
        f"{min(rates):.0f}-{max(rates):.0f}",
        timing.quantile_ms(0.5),
        timing.quantile_ms(0.99),
        statistics.median(one.service_cpu_ms for one in measured),
        statistics.median(one.load.client_cpu_s / one.load.wall_s for one in measured),
        sum(one.load.failures for one in measured),
    )


@contextmanager
def _asking(sizes: Iterator[int]) -> Iterator[Callable[[], object]]:
    with application() as ask:

        def work() -> None:
            status, answer = ask("POST", "/optimize", _body(next(sizes)))
            if status != 200:
                raise RuntimeError(answer.decode())

        yield work


def _same_size() -> Iterator[int]:
    while True:
        yield 4 * KIB


SPEC = BenchSpec(
    name="http",
    title="Requests per second",
    about=(
        "The service as `sluice serve` starts it, on a new SQLite file, asked over kept-alive "
        "connections by a client that only reads lengths. GET /healthz is the ceiling: the same "
        "client and the same server without any work."
    ),
    run=_run,
    workloads={
        "new": lambda: _asking(count(2 * KIB)),
        "stored": lambda: _asking(_same_size()),
        "new 64 KiB": lambda: _asking(count(64 * KIB)),
    },
)
