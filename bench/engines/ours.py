"""Our default engine, with its certificate."""

from __future__ import annotations

from bench.engines.primal import Engine, EngineRun
from solvers.contract import Deadline
from solvers.exact_lp.ortools_backend import solve_count
from solvers.line_problem import LineProblem

_TIME_LIMIT_S = 120.0


def _solve(lines: LineProblem, k: int) -> EngineRun:
    result = solve_count(lines, k, Deadline.after(_TIME_LIMIT_S))
    gap = (result.upper_us - result.lower_us) / result.upper_us
    return EngineRun("certified", result.upper_us, gap)


OURS = Engine("sluice", _solve)
