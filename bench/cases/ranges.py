"""Gap and time of `auto` on stages with ranges: the example trace, and random pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

import solvers
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.workloads import KIB, MIB, example_trace
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import Problem

_GAP = 1e-4
_TRACE_LIMIT_S, _RANDOM_LIMIT_S = 10.0, 2.0
_SEED = 20


def random_ranged_problem(rng: np.random.Generator) -> Problem:
    """Return 2 to 8 stages of 2 to 4 ranges that jump, fall or bend, and a message to 1 MiB."""
    size = int(np.exp(rng.uniform(np.log(256), np.log(MIB))))
    stages = tuple(_random_stage(rng, size) for _ in range(int(rng.integers(2, 9))))
    return Problem(Pipeline(stages), size)


def _random_stage(rng: np.random.Generator, size: int) -> Stage:
    ends = np.exp(rng.uniform(np.log(16), np.log(size), int(rng.integers(1, 4)))).astype(int)
    parts: list[FitRange] = []
    for end in [*sorted({int(end) for end in ends}), None]:
        slope, overhead = float(rng.exponential(10.0)), float(rng.exponential(10.0))
        before = parts[-1] if parts else None
        if before is not None and before.up_to_bytes is not None and rng.random() < 0.4:
            level = before.line.time_us(before.up_to_bytes)
            overhead = max(0.0, level - slope * before.up_to_bytes / 1000.0)
        parts.append(FitRange(overhead, slope, end))
    return Stage("s", tuple(parts))


def _solved(problem: Problem, limit_s: float) -> tuple[float, float, int]:
    """Gap, seconds and count of fragments of one answer."""
    started_s = time.perf_counter()
    solution = solvers.solve(problem, "auto", time_limit_s=limit_s)
    taken_s = time.perf_counter() - started_s
    return solution.relative_gap, taken_s, len(solution.schedule.fragment_bytes)


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    sizes = effort.pick((64, 256, 1024, 4096, 16384), quick=(64, 256))
    trace = [
        (size, *_solved(Problem(example_trace(), size * KIB), _TRACE_LIMIT_S)) for size in sizes
    ]
    number = effort.pick(200, quick=5)
    problems = [random_ranged_problem(np.random.default_rng([_SEED, i])) for i in range(number)]
    rows = np.array([_solved(problem, _RANDOM_LIMIT_S) for problem in problems])
    gaps, seconds = rows[:, 0], rows[:, 1]
    within = tuple(float((gaps <= gap).mean()) for gap in (_GAP, 1e-2))
    median, worst, slowest = (float(np.median(gaps)), float(gaps.max()), float(seconds.max()))
    columns = ("message, KiB", "gap", "s", "fragments")
    of_gaps = ("problems", "gap to 1e-4", "gap to 1e-2", "median gap", "worst gap", "slowest, s")
    return CaseResult(
        (
            Table("The example trace", columns, tuple(trace)),
            Table("Random pipelines", of_gaps, ((number, *within, median, worst, slowest),)),
        ),
        (
            Check("greatest gap on the example trace", max(row[1] for row in trace), _GAP, ""),
            Check("random problems with a gap to 1e-4", within[0], 0.9, "", "at least"),
            Check("random problems with a gap to 1e-2", within[1], 0.99, "", "at least"),
        ),
    )


def _workload() -> AbstractContextManager[Callable[[], object]]:
    solvers.warm_up()
    return nullcontext(partial(_solved, Problem(example_trace(), 4 * MIB), _RANDOM_LIMIT_S))


SPEC = BenchSpec(
    name="ranges",
    title="Stages with ranges",
    about=(
        "The gap that `auto` proves where stages have several fit ranges: on the example trace, "
        "and on random pipelines of 2 to 8 stages with 2 to 4 ranges that jump, fall or bend, "
        "within 2 s each."
    ),
    run=_run,
    workloads={"4 MiB": _workload},
)
