"""Gap and time of `auto` on stages with ranges: the example trace, and random pipelines."""

from __future__ import annotations

import numpy as np

import solvers
from bench.timing import Timing
from bench.workloads import MIB
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import Problem
from domain.solution import relative_excess

_TRACE_GAP, _TRACE_S = 1e-4, 1.0
_RANDOM_S = 2.0
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


def _row(problem: Problem, limit_s: float) -> tuple[float, float, int]:
    """Gap, seconds and count of fragments of one answer."""
    timing = Timing.start()
    solution = solvers.solve(problem, "auto", time_limit_s=limit_s)
    gap = relative_excess(solution.latency_us, solution.lower_bound_us, solution.lower_bound_us)
    return gap, timing.stop(), len(solution.schedule.fragment_bytes)
