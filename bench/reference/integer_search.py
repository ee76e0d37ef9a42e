"""The integer program by CP-SAT, count by count, and what it reports on the way.

Source    docs/theory.md sec. 13; theory sec. 1 (the recurrence as rows).
Notation  k fragments, n stages; u: (k,) sizes in units; tau: (k, n) exit times in steps;
          g, G: see scaled.py.
Cost      one integer program of k n rows for each count; exponential at worst, hence the limits.
Exact     each count is searched for cuts that beat the best one known by more than the tolerance;
          where there is none, that is the bound. Bounds so far are reported while it runs.
Traps     a size in several pieces is a sum of one variable for each (a "disaggregated" choice): its
          linear relaxation is the convex minorant, and no row needs a literal or a huge constant.
          One worker and fixed seeds: anything else makes a failure impossible to repeat. The time
          of one run has a long tail that hangs on the seed and on the search: hence attempts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil, isfinite

from ortools.sat.python import cp_model

from bench.reference.integer_scaled import Piece, ScaledProblem

_FIRST_S = 1.0


@dataclass(frozen=True, slots=True)
class CountToTry:
    """A number of fragments, and a cut into them (units) to begin from, where one is known."""

    count: int
    hint: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a count: no cut takes fewer than `bound_steps`; a cut found, in units.

    `is_final` says that nothing better than the best known is left in this count.
    """

    count: int
    bound_steps: int
    sizes: tuple[int, ...] | None = None
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    limit_s: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class _Built:
    model: cp_model.CpModel
    sizes: list[cp_model.LinearExpr]


def search(
    problem: ScaledProblem,
    counts: Sequence[CountToTry],
    *,
    known_steps: int,
    tolerance: float,
    until_s: float,
    report: Callable[[Report], None],
) -> bool:
    """Try the counts in turn, each for cuts better than all before, until this monotonic time.

    Whether every count came to its end.
    """
    is_complete = True
    for one in counts:
        target = known_steps - max(1, ceil(known_steps * tolerance / 2))
        if time.monotonic() >= until_s:
            return False
        last = _settled(problem, one, target, until_s, tolerance=tolerance, report=report)
        if last.sizes is not None:
            known_steps = min(known_steps, _steps(problem, last.sizes))
        report(last)
        is_complete = is_complete and last.is_final
    return is_complete


def _settled(
    problem: ScaledProblem,
    one: CountToTry,
    target: int,
    until_s: float,
    *,
    tolerance: float,
    report: Callable[[Report], None],
) -> Report:
    """One count by attempts that grow from a second on, until one comes to its end."""
    best = Report(one.count, 0)
    for attempt in count():
        slice_s = min(_FIRST_S * 2.0 ** (attempt // 2), until_s - time.monotonic())
        if slice_s <= 0.0:
            break
        last = _solve(problem, one, target, _Attempt(attempt, slice_s, tolerance), report=report)
        bound = max(best.bound_steps, last.bound_steps)
        sizes = best.sizes if last.sizes is None else last.sizes
        best = replace(last, bound_steps=bound, sizes=sizes)
        if best.is_final:
            break
        if best.sizes is not None:  # the next attempt looks for better ones only
            target = min(target, _steps(problem, best.sizes) - 1)
    return best


def _solve(
    problem: ScaledProblem,
    one: CountToTry,
    target: int,
    attempt: _Attempt,
    *,
    report: Callable[[Report], None],
) -> Report:
    built = _model(problem, one, target)
    if built is None:
        return Report(one.count, target + 1, is_final=True)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = attempt.number
    solver.parameters.linearization_level = 1
    solver.parameters.optimize_with_lb_tree_search = attempt.number % 2 == 1
    solver.parameters.max_time_in_seconds = attempt.limit_s
    solver.parameters.relative_gap_limit = attempt.tolerance / 4
    solver.best_bound_callback = lambda bound: report(Report(one.count, _whole(bound)))
    status = solver.solve(built.model, _Progress(one.count, built.sizes, report))
    if status == cp_model.INFEASIBLE:
        return Report(one.count, target + 1, is_final=True)
    bound = _whole(solver.best_objective_bound)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        sizes = tuple(int(solver.value(size)) for size in built.sizes)
        return Report(one.count, bound, sizes, is_final=status == cp_model.OPTIMAL)
    return Report(one.count, bound)


class _Progress(cp_model.CpSolverSolutionCallback):
    """Reports each better cut at once."""

    def __init__(
        self,
        count: int,
        sizes: list[cp_model.LinearExpr],
        report: Callable[[Report], None],
    ) -> None:
        super().__init__()
        self._count, self._sizes, self._report = count, sizes, report

    def on_solution_callback(self) -> None:
        """Called by the solver with each better cut."""
        found = tuple(int(self.value(size)) for size in self._sizes)
        self._report(Report(self._count, _whole(self.best_objective_bound), found))


def _model(problem: ScaledProblem, one: CountToTry, target: int) -> _Built | None:
    """min tau[k-1][n-1] <= target over all cuts into k; None where plainly no cut is that fast."""
    k = one.count
    if target < 0 or not all(problem.pieces_of(i, k) for i in range(k)):
        return None
    model = cp_model.CpModel()
    sizes: list[cp_model.LinearExpr] = []
    free: list[cp_model.LinearExpr] = []
    for i in range(k):
        hint = None if one.hint is None else one.hint[i]
        size, times = _fragment(model, problem.pieces_of(i, k), hint)
        sizes.append(size)
        free = _exits(model, free, times, target)
    model.add(cp_model.LinearExpr.sum(sizes) == problem.units)
    model.minimize(free[-1])
    return _Built(model, sizes)


def _exits(
    model: cp_model.CpModel,
    free: list[cp_model.LinearExpr],
    times: list[cp_model.LinearExpr],
    target: int,
) -> list[cp_model.LinearExpr]:
    """The next row of tau: after the fragment before in this stage, after the stage before."""
    row: list[cp_model.LinearExpr] = []
    for j, time_steps in enumerate(times):
        tau = model.new_int_var(0, target, "")
        if free:
            model.add(tau >= free[j] + time_steps)
        if row:
            model.add(tau >= row[-1] + time_steps)
        if not row and not free:
            model.add(tau >= time_steps)
        row.append(tau)
    return row


def _fragment(
    model: cp_model.CpModel, pieces: Sequence[Piece], hint: int | None
) -> tuple[cp_model.LinearExpr, list[cp_model.LinearExpr]]:
    """A fragment's size and its time in every stage, as linear expressions."""
    stages = range(len(pieces[0].lines))
    if len(pieces) == 1:
        size = model.new_int_var(pieces[0].minimum, pieces[0].maximum, "")
        if hint is not None:
            model.add_hint(size, hint)
        return size, [size * pieces[0].lines[j][1] + pieces[0].lines[j][0] for j in stages]
    used = [model.new_bool_var("") for _ in pieces]
    sizes = [model.new_int_var(0, piece.maximum, "") for piece in pieces]
    model.add_exactly_one(used)
    for piece, is_used, size in zip(pieces, used, sizes, strict=True):
        _bind(model, piece, is_used, size, hint)
    terms = [*used, *sizes]
    times = [
        _weighted(terms, [line[0] for line in lines] + [line[1] for line in lines])
        for lines in (tuple(piece.lines[j] for piece in pieces) for j in stages)
    ]
    return _weighted(sizes, [1] * len(sizes)), times


def _weighted(terms: Sequence[cp_model.IntVar], weights: Sequence[int]) -> cp_model.LinearExpr:
    expression: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(terms, weights)
    return expression


def _bind(
    model: cp_model.CpModel,
    piece: Piece,
    is_used: cp_model.IntVar,
    size: cp_model.IntVar,
    hint: int | None,
) -> None:
    """The size lies in the piece where that is used, and is 0 where it is not."""
    model.add(size >= is_used * piece.minimum)
    model.add(size <= is_used * piece.maximum)
    if hint is not None:
        is_inside = piece.minimum <= hint <= piece.maximum
        model.add_hint(is_used, is_inside)
        model.add_hint(size, hint if is_inside else 0)


def _steps(problem: ScaledProblem, sizes: tuple[int, ...]) -> int:
    """The recurrence on whole steps."""
    free = [0] * len(problem.inner[0].lines if problem.inner else problem.last[0].lines)
    for i, size in enumerate(sizes):
        ready = 0
        pieces = problem.pieces_of(i, len(sizes))
        lines = next(one.lines for one in pieces if one.minimum <= size <= one.maximum)
        for j, (g, G) in enumerate(lines):
            ready = free[j] = max(ready, free[j]) + g + G * size
    return free[-1]


def _whole(bound: float) -> int:
    """A bound on a whole number of steps; floats hold these exactly."""
    return max(0, ceil(bound)) if isfinite(bound) else 0
