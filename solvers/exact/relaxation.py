"""The two relaxations that bound a problem, side by side: stages of lines, stages with ranges.

Source    docs/theory.md sec. 4, 5 and 7.
Notation  k fragments; T*(k): optimum of the relaxation in real sizes; p: a dual for k.
Cost      see dual.py and convex_dual.py.
Exact     each relaxation is solved by its own method; where every stage is one line, LineProblem is
          taken, and nothing differs from a problem without ranges.
Traps     T*(k) is convex in k for lines and for costs that rise with the size. It is not where a
          minorant falls: bounds of other counts are then computed one by one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact import convex_dual, dual
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.lp.convex import ConvexResult, solve_convex_count
from solvers.exact.lp.lines import CountResult
from solvers.exact.structured import AIM, solve_count
from solvers.line_problem import LineProblem

Relaxation: TypeAlias = LineProblem | ConvexProblem


def relaxation_of(problem: Problem) -> Relaxation:
    """Return lines where every stage is one over the admitted sizes, else the minorants."""
    return LineProblem.of(problem) or ConvexProblem.of(problem)


def vertices_of(relaxed: Relaxation) -> int:
    """Return how many sizes a bound prices for each fragment; at least the number of stages."""
    return max(relaxed.n, len(relaxed.at)) if isinstance(relaxed, ConvexProblem) else relaxed.n


def solve_relaxed(
    relaxed: Relaxation, k: int, deadline: Deadline, *, aim: float = AIM
) -> CountResult:
    """Return T*(k) between two proven bounds; `aim` is how close they shall be, where that can be
    had.
    """
    if isinstance(relaxed, ConvexProblem):
        return solve_convex_count(relaxed, k, deadline)
    return solve_count(relaxed, k, deadline, aim=aim)


def is_convex_in_count(relaxed: Relaxation) -> bool:
    """Return whether T*(k) is known to be convex in k."""
    return isinstance(relaxed, LineProblem) or relaxed.is_rising


def above_us(relaxed: Relaxation, result: CountResult) -> float:
    """Return the proven lower bound on T*(k+1) from the dual for k >= 2."""
    if isinstance(relaxed, LineProblem):
        return dual.bound_above(relaxed, result.p)
    if isinstance(result, ConvexResult):
        return convex_dual.bound_above(relaxed, result.p, result.steps)
    raise AssertionError("a convex problem has convex results")


def below_us(relaxed: Relaxation, result: CountResult) -> float:
    """Return the proven lower bound on T*(k-1) from the dual for k >= 3."""
    if isinstance(relaxed, LineProblem):
        return dual.bound_below(relaxed, result.p)
    if isinstance(result, ConvexResult):
        return convex_dual.bound_below(relaxed, result.p, result.steps)
    raise AssertionError("a convex problem has convex results")


def like_us(relaxed: Relaxation, result: CountResult, k: int) -> float:
    """Return the proven lower bound on T*(k) for any k, from a dual for another count, adapted
    to it.
    """
    if isinstance(relaxed, LineProblem):
        return dual.value_us(relaxed, convex_dual.resampled(result.p, k))
    return convex_dual.value_us(relaxed, convex_dual.resampled(result.p, k))


def true_like_us(relaxed: ConvexProblem, result: CountResult, k: int) -> float:
    """Return the proven lower bound on every cut into k fragments at the true costs, from any
    dual.
    """
    p = result.p if result.k == k else convex_dual.resampled(result.p, k)
    return convex_dual.true_value_us(relaxed, p)


def two_fragments_us(relaxed: Relaxation) -> float:
    """Return the latency of the best two fragments without limits on their sizes."""
    if isinstance(relaxed, ConvexProblem):
        return solve_convex_count(relaxed.without_limits(), 2, _shortly()).upper_us
    free = replace(relaxed, m=0.0, M=relaxed.B)
    return solve_count(free, 2, _shortly()).upper_us


def _shortly() -> Deadline:
    return Deadline.after(0.05)
