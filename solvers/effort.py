"""Whether a solve is small enough to be tried in the caller's own process.

The rule counts work and never asks the clock, so that the same question always goes the same way.
It is about the usual case: how many counts could still win in whole bytes shows only on the way, so
who needs certainty also sets a time limit and looks at `Solution.cut_off`. `make bench` prints the
times of every strategy against k*n.
"""

from __future__ import annotations

from domain.problem import Problem
from domain.solution import Strategy
from solvers.fixed import best_count

QUICK_CELLS = 160  # k*n near the optimum, for every method that solves linear programs
QUICK_RANGED_CELLS = 10  # the same where stages have ranges, and schedules are improved on them
QUICK_COUNT_CELLS = 450_000  # n times the admitted counts: what a bound over all k passes through
QUICK_JUDGED_CELLS = 20_000  # k*n that the judge may have to evaluate for the usual settings
_SMALLEST_USUAL_BYTES = 4096


def is_quick(problem: Problem, strategy: Strategy) -> bool:
    """See the module. `strategy` matters only where refragmentation multiplies the work."""
    stages = len(problem.pipeline)
    counts = problem.count_range()
    refragments = problem.allow_refragmentation or strategy in (
        Strategy.HIERARCHICAL,
        Strategy.HIERARCHICAL_RAMP,
    )
    if refragments or (counts.greatest - counts.least) * stages > QUICK_COUNT_CELLS:
        return False
    usual_count = min(problem.message_bytes // _SMALLEST_USUAL_BYTES + 1, counts.greatest)
    if usual_count * stages > QUICK_JUDGED_CELLS:
        return False
    least, greatest = problem.least_fragment_bytes, problem.greatest_fragment_bytes
    ranged = any(stage.line_over(least, greatest) is None for stage in problem.pipeline.stages)
    return best_count(problem) * stages <= (QUICK_RANGED_CELLS if ranged else QUICK_CELLS)
