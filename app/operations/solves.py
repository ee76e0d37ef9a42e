"""Calls of the solver for optimisations and comparisons: their arguments and their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, TypedDict

import solvers
from analysis.comparison import Cell, cells, each_cell
from analysis.range_size import range_size
from analysis.sensitivities import sensitivities
from analysis.size_curve import SizeChoice, choose_size
from analysis.uncertainty import UncertaintyQuestion, assess_solution
from app.operations.operation import Report
from app.questions.compare import Comparison, Resolved
from domain.errors import Infeasible, MemoryLimitReached
from domain.problem import AnyProblem, problem_of
from domain.sensitivity import Sensitivities
from domain.solution import Notice, Solution, Status, Strategy
from domain.uncertain_answer import Uncertainty

if TYPE_CHECKING:
    from domain.errors import SluiceError
    from solvers.default_settings import BaselineSet


GRACE_S = 1.0  # the solver keeps its own time limit; this much later it is ended
QUICK_LIMIT_S = 0.04  # of a solve in the service's own process; 50 ms with all around it


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution and the time it took; at the end with other settings beside it, how it moves
    with the costs, what their errors leave of it where they are known, and the size to repeat.
    """

    solution: Solution
    solve_ms: float
    baselines: BaselineSet | None = None
    uncertainty: Uncertainty | None = None
    sensitivities: Sensitivities | None = None
    choice: SizeChoice | None = None


@dataclass(frozen=True, slots=True)
class Solve:
    """The arguments of `solvers.solve`, whose rules for them hold, and the costs' errors.

    `current_bytes` is the size that is repeated today, for the baselines; `misfit` the share of the
    latency by which transfers contradicted the model.
    """

    problem: AnyProblem
    strategy: Strategy
    relative_gap: float
    time_limit_s: float
    static_bytes: int | None = None
    uncertain: UncertaintyQuestion | None = None
    current_bytes: int | None = None
    misfit: float = 0.0

    def run(self, report: Report) -> Solved:
        """Solve. Raises what `solvers.solve` does."""
        started_s = time.perf_counter()

        def on_better(better: Solution) -> None:
            report.best(Solved(better, (time.perf_counter() - started_s) * 1e3))

        solution = self.solution(on_better)
        solve_ms = (time.perf_counter() - started_s) * 1e3
        return self.completed(Solved(solution, solve_ms))

    def run_quickly(self) -> Solved | None:
        """Return the result where it takes no longer than QUICK_LIMIT_S, else None."""
        started_s = time.perf_counter()
        solution = self.quick_solution()
        if solution is None:
            return None
        solve_ms = (time.perf_counter() - started_s) * 1e3
        return self.completed(Solved(solution, solve_ms))

    def completed(self, found: Solved) -> Solved:
        """Return the same with the default settings, its sensitivities, what errors leave, and the
        size to repeat.
        """
        uncertainty = None
        if self.uncertain is not None:
            uncertainty = assess_solution(self.uncertain, found.solution)
        baselines = solvers.baselines(self.problem, current_bytes=self.current_bytes)
        return Solved(
            found.solution,
            found.solve_ms,
            baselines,
            uncertainty,
            sensitivities(found.solution, self.strategy),
            self._choice(uncertainty),
        )

    def _choice(self, uncertainty: Uncertainty | None) -> SizeChoice | None:
        """The size to repeat, and where costs were measured the one size for many messages."""
        found = choose_size(
            self.problem, uncertainty, current_bytes=self.current_bytes, misfit=self.misfit
        )
        measured = self.uncertain.measured_bytes if self.uncertain else None
        if found is None or measured is None:
            return found
        return replace(found, over=range_size(self.problem, measured_bytes=measured))

    def quick_solution(self) -> Solution | None:
        """Return the solution where it takes no longer than QUICK_LIMIT_S, else None.

        How many counts could still win in whole bytes is known only on the way, so a small problem
        can turn out to be long. It is then solved anew elsewhere, and its answer does not depend
        on this.
        """
        found = self.solution(limit_s=QUICK_LIMIT_S)
        return None if found.cut_off and self.time_limit_s > QUICK_LIMIT_S else found

    def solution(
        self, on_better: Callable[[Solution], None] | None = None, *, limit_s: float = inf
    ) -> Solution:
        """Solve, in this time at most; `on_better` is given each better solution on the way."""
        return solvers.solve(
            self.problem,
            self.strategy,
            relative_gap=self.relative_gap,
            time_limit_s=min(self.time_limit_s, limit_s),
            static_bytes=self.static_bytes,
            on_incumbent=on_better,
        )


def cut_off(best: Solution, why: SluiceError) -> Solution:
    """Return the solution with the note that the search for a better one was ended, and why.

    What is proven to be the best stays so.
    """
    if best.status is Status.OPTIMAL:
        return best
    notice = Notice(why.code, f"{why.detail}; this is the best answer so far")
    return replace(best, status=Status.TIME_LIMIT, notices=(*best.notices, notice))


# --- the cells of a comparison --------------------------------------------------------------------


QUICK_CELLS = 20
_REPORT_S = 0.25  # between reports on the way: each holds all cells so far

Cells = tuple[Cell, ...]


class _How(TypedDict):
    relative_gap: float
    time_limit_s: float
    static_bytes: int | None


def warm_up() -> None:
    """Load what solving needs: this module and its own, and the solvers."""
    solvers.warm_up()


@dataclass(frozen=True, slots=True)
class CompareWork:
    """The cells of a comparison, by message size, then in the order of the strategies.

    Of the cells that it reports on the way, those to come have neither a solution nor a reason.
    """

    resolved: Resolved
    fragment_cap: int

    def problems(self) -> Iterator[AnyProblem]:
        """Yield the problem of each message size."""
        asked = self.resolved.comparison
        for size in asked.message_bytes:
            yield problem_of(
                self.resolved.model,
                size,
                asked.limits,
                fragment_cap=self.fragment_cap,
                allow_refragmentation=asked.allow_refragmentation,
            )

    def solves(self) -> Iterator[Solve]:
        """Yield the solve of each cell, with the time of the whole comparison."""
        asked = self.resolved.comparison
        for problem in self.problems():
            for strategy in asked.strategies:
                static_bytes = asked.static_bytes if strategy is Strategy.STATIC else None
                yield Solve(problem, strategy, asked.relative_gap, asked.time_limit_s, static_bytes)

    def run(self, report: Report) -> Cells:
        """Solve one cell after the other."""
        progress = _Progress(report, self.resolved.comparison)
        asked = [(one.problem, one.strategy) for one in self.solves()]
        known = {
            place: Cell(problem.message_bytes, strategy, None, None)
            for place, (problem, strategy) in enumerate(asked)
        }
        progress.report(tuple(known.values()))

        def solve(problem: AnyProblem, strategy: Strategy, **how: Any) -> Solution:
            def on_better(better: Solution) -> None:
                place = asked.index((problem, strategy))
                open_cell = _solved(problem, strategy, replace(better, cut_off=True))
                progress.report_sometimes(tuple({**known, place: open_cell}.values()))

            return _in_memory(Solve(problem=problem, strategy=strategy, **how), on_better)

        found = each_cell(tuple(self.problems()), self._strategies, solve, **self._how)
        for done, (place, cell) in enumerate(found, start=1):
            known[place] = cell
            progress.count(done, tuple(known.values()))
        return tuple(known.values())

    def run_quickly(self) -> Cells | None:
        """Return the cells where they are few and each is quick, else None."""
        asked = self.resolved.comparison
        if len(asked.message_bytes) * len(asked.strategies) > QUICK_CELLS:
            return None
        if not all(_is_quick(solve.problem, solve.strategy) for solve in self.solves()):
            return None
        try:
            return cells(tuple(self.problems()), self._strategies, _solve_quickly, **self._how)
        except _NotQuick:
            return None

    @property
    def _strategies(self) -> tuple[Strategy, ...]:
        return self.resolved.comparison.strategies

    @property
    def _how(self) -> _How:
        asked = self.resolved.comparison
        return {
            "relative_gap": asked.relative_gap,
            "time_limit_s": asked.time_limit_s,
            "static_bytes": asked.static_bytes,
        }


@dataclass(frozen=True, slots=True)
class CellWork:
    """One cell by itself."""

    solve: Solve

    def run(self, report: Report) -> Cell:
        """Solve, or say why that is declined."""
        solve = self.solve
        # A cell whose solve is ended from outside reports it, and costs no other.
        report.best(Cell(solve.problem.message_bytes, solve.strategy, None, "not solved"))
        found = cells(
            (solve.problem,),
            (solve.strategy,),
            lambda problem, strategy, **how: _in_memory(Solve(problem, strategy, **how)),
            relative_gap=solve.relative_gap,
            time_limit_s=solve.time_limit_s,
            static_bytes=solve.static_bytes,
        )
        return found[0]


class _NotQuick(Exception):
    """A cell that looked small takes long: the comparison has to be made elsewhere."""


def _solve_quickly(problem: AnyProblem, strategy: Strategy, **how: Any) -> Solution:
    solution = Solve(problem=problem, strategy=strategy, **how).quick_solution()
    if solution is None:
        raise _NotQuick
    return solution


def _is_quick(problem: AnyProblem, strategy: Strategy) -> bool:
    try:
        return solvers.is_quick(problem, strategy)
    except Infeasible:  # which the cell will say
        return True


def _in_memory(solve: Solve, on_better: Callable[[Solution], None] | None = None) -> Solution:
    """Solve. Raises MemoryLimitReached where a worker may not use as much as that takes."""
    try:
        return solve.solution(on_better)
    except MemoryError:
        pass  # said outside, where what the solve still holds has been given back
    raise MemoryLimitReached("the solve needed more memory than a worker may use")


def _solved(problem: AnyProblem, strategy: Strategy, solution: Solution) -> Cell:
    return Cell(problem.message_bytes, strategy, solution, None)


class _Progress:
    """What a comparison reports while it runs."""

    def __init__(self, report: Report, comparison: Comparison) -> None:
        self._report = report
        self._total = len(comparison.message_bytes) * len(comparison.strategies)
        self._next_s = 0.0

    def count(self, done: int, cells: Cells) -> None:
        self._report.steps(done, self._total)
        self.report_sometimes(cells)

    def report_sometimes(self, cells: Cells) -> None:
        """Report the cells so far, the rest without a solution, unless that was done just now."""
        if time.monotonic() >= self._next_s:
            self.report(cells)

    def report(self, cells: Cells) -> None:
        """Report the cells so far."""
        self._report.best(cells)
        self._next_s = time.monotonic() + _REPORT_S
