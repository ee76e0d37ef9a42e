"""Whether a solve is small enough to be tried in the caller's own process.

The rule counts work and never asks the clock, so that the same question always goes the same way.
It is about the common case: how many counts could still win in whole bytes shows only on the way,
so who needs certainty also sets a time limit and looks at `Solution.cut_off`. `make bench` prints
the times of every strategy against k*n.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.problem import Problem
from domain.solution import Strategy
from solvers.heuristics.fixed import best_count
from solvers.kernels import active
from solvers.line_problem import LineProblem

QUICK_RANGED_CELLS = 10  # k*n near the optimum where schedules are improved on stages with ranges
QUICK_EVALUATED_CELLS = 20_000  # k*n that may have to be evaluated for the default settings
_FLAT_CELLS = 32_000  # k*k*n where all counts up to k may have to be rounded and compared
_SMALLEST_DEFAULT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Quick:
    """What is quick: k*n near the optimum, whatever else; k*n where few counts can win; and n
    times the admitted counts, which a bound over all k passes through."""

    cells: int
    cells_where_few_win: int
    count_cells: int


_NUMPY = _Quick(cells=100, cells_where_few_win=100, count_cells=450_000)
_NATIVE = _Quick(cells=160, cells_where_few_win=640, count_cells=2_000_000)


def is_quick(problem: Problem, strategy: Strategy) -> bool:
    """See the module. `strategy` matters only where refragmentation multiplies the work.

    In C more is quick than in NumPy.
    """
    stages, counts = len(problem.pipeline), problem.count_range()
    is_native = problem.pipeline.all_lines and active.NATIVE is not None
    quick = _NATIVE if is_native else _NUMPY
    refragments = problem.allow_refragmentation or strategy in (
        Strategy.HIERARCHICAL,
        Strategy.HIERARCHICAL_RAMP,
        Strategy.EAGER,
        Strategy.PULSES,
    )
    if refragments or (counts.maximum - counts.minimum) * stages > quick.count_cells:
        return False
    typical_count = min(problem.message_bytes // _SMALLEST_DEFAULT_BYTES + 1, counts.maximum)
    if typical_count * stages > QUICK_EVALUATED_CELLS:
        return False
    ranged = LineProblem.of(problem) is None
    best = best_count(problem)
    if best * stages <= (QUICK_RANGED_CELLS if ranged else quick.cells):
        return True
    within = not ranged and best * stages <= quick.cells_where_few_win
    return within and (_each_pays(problem, best) or best * best * stages <= _FLAT_CELLS)


def _each_pays(problem: Problem, count: int) -> bool:
    """Whether one fragment more costs the slowest stage what rounding to whole bytes may cost.

    If not, a long row of counts is as good as the best one.
    """
    size = problem.message_bytes / count
    lines = [stage.ranges[0] for stage in problem.pipeline.stages]
    times = [line.line.time_us(size) for line in lines]
    unit_us = problem.limits.alignment_bytes * sum(line.ns_per_byte for line in lines) / 1000.0
    return lines[times.index(max(times))].overhead_us >= unit_us
