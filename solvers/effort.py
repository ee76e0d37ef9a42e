"""Whether a solve is certain to end within 50 ms, so that it may run outside the pool.

The rule counts work and never asks the clock, so that the same question always goes the same way.
Its thresholds are a fifth of what was measured to take 50 ms on a slow core: `make bench` prints
the times of every strategy against k*n beside them.
"""

from __future__ import annotations

from domain.problem import Problem
from domain.solution import Strategy
from solvers.fixed import best_count

QUICK_CELLS = 160  # k*n near the optimum, for every method that solves linear programs
QUICK_JUDGED_CELLS = 20_000  # k*n that the judge may have to evaluate for the baselines
QUICK_COUNTS = 50_000  # admitted numbers of fragments that a bound over all k passes through
_SMALLEST_BASELINE_BYTES = 4096


def is_quick(problem: Problem, strategy: Strategy) -> bool:
    """See the module. `strategy` matters only where refragmentation multiplies the work."""
    stages = len(problem.pipeline)
    counts = problem.count_range()
    refragments = problem.allow_refragmentation or strategy in (
        Strategy.HIERARCHICAL,
        Strategy.HIERARCHICAL_RAMP,
    )
    if refragments or counts.greatest - counts.least > QUICK_COUNTS:
        return False
    static_count = min(problem.message_bytes // _SMALLEST_BASELINE_BYTES + 1, counts.greatest)
    if static_count * stages > QUICK_JUDGED_CELLS:
        return False
    return best_count(problem) * stages <= QUICK_CELLS
