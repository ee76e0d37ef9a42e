"""`auto` on the papers' pipelines and the example trace, in the solver and through the service."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import orjson

import solvers
from bench.client import post, send_all
from bench.published import example, papers
from bench.service import serving
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import Timed, interleaved
from bench.workloads import KIB, MIB, myrinet
from domain.pipeline import Pipeline
from domain.problem import Problem
from domain.solution import Solution

SMALL_TARGET_MS = 1.0
LARGE_TARGET_MS = 10.0
HTTP_TARGET_MS = 5.0
_MOST_BYTES = 64 * KIB


def _questions(effort: Effort) -> Iterator[tuple[str, Pipeline, int]]:
    sizes = (4 * KIB, 8 * KIB, 64 * KIB, MIB)
    for (name, pipeline), size in product(papers().items(), sizes):
        yield name, pipeline, size
    for size in effort.pick((4 * KIB, 64 * KIB, MIB), quick=(4 * KIB,)):
        yield "example trace", example(), size


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    rows, checks = [], []
    for name, pipeline, size in _questions(effort):
        timed = _timed(Problem(pipeline, size), effort)
        rows.append(_row(name, size, timed))
        target = {4 * KIB: SMALL_TARGET_MS, MIB: LARGE_TARGET_MS}.get(size)
        if name == "myrinet-gam" and target is not None:
            what = f"auto in the solver, Table 1, {size // KIB} KiB, median"
            checks.append(Check(what, timed.timing.median_ms, target, "ms"))
    http, check = _through_the_service(effort)
    columns = ("pipeline, KiB", "median ms", "p90 ms", "fragments", "status", "relative gap")
    return CaseResult((Table("`auto` in the solver", columns, tuple(rows)), http), (*checks, check))


def _timed(problem: Problem, effort: Effort) -> Timed[Solution]:
    once = interleaved({"auto": partial(solvers.solve, problem)}, rounds=1)["auto"]
    rounds = max(3, min(effort.pick(200, quick=20), int(2_000 / once.timing.median_ms)))
    return interleaved({"auto": partial(solvers.solve, problem)}, rounds=rounds)["auto"]


def _row(name: str, size: int, timed: Timed[Solution]) -> tuple[Cell, ...]:
    solution = timed.result
    return (
        f"{name}, {size // KIB}",
        timed.timing.median_ms,
        timed.timing.quantile_ms(0.9),
        len(solution.schedule.fragment_bytes),
        solution.status.value,
        solution.relative_gap,
    )


def _through_the_service(effort: Effort) -> tuple[Table, Check]:
    """`POST /optimize`, one client, message sizes that were not asked before."""
    number = effort.pick(1_000, quick=100)
    sizes = np.random.default_rng(4).permutation(np.arange(1, _MOST_BYTES + 1))[: 2 * number]
    requests = [post("/optimize", _body(int(size))) for size in sizes]
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}") as service,
    ):
        send_all(service.port, requests[:number], concurrency=1)  # warm-up, other sizes
        load = send_all(service.port, requests[number:], concurrency=1)
    timing = load.timing
    row: tuple[Cell, ...] = (
        f"{number} sizes up to 64 KiB",
        timing.median_ms,
        timing.quantile_ms(0.9),
        timing.quantile_ms(0.99),
        load.per_second,
        load.failures,
    )
    columns = ("what", "p50 ms", "p90 ms", "p99 ms", "requests/s", "failures")
    what = "POST /optimize, one client, sizes up to 64 KiB, none stored, p50"
    return (
        Table("`POST /optimize`, Table 1, nothing stored", columns, (row,)),
        Check(what, timing.median_ms, HTTP_TARGET_MS, "ms"),
    )


def _body(message_bytes: int) -> bytes:
    stages = [
        {
            "name": stage.name,
            "overhead_us": stage.ranges[0].overhead_us,
            "ns_per_byte": stage.ranges[0].ns_per_byte,
        }
        for stage in myrinet().stages
    ]
    return orjson.dumps({"message_bytes": message_bytes, "pipeline": {"stages": stages}})


def _workload(size: int) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(solvers.solve, Problem(myrinet(), size)))


SPEC = BenchSpec(
    name="messages",
    title="From the question to the answer",
    about=(
        "`auto` after warm-up, proof over every number of fragments and the whole-byte schedule "
        "included, in one process; and the same question over HTTP, the answer stored, with one "
        "client that waits for each answer."
    ),
    run=_run,
    workloads={"4 KiB": partial(_workload, 4 * KIB), "1 MiB": partial(_workload, MIB)},
)
