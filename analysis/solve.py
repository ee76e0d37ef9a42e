"""One message solved, with what is said beside its solution: other settings, and errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import solvers
from analysis.range_size import range_size
from analysis.sensitivities import sensitivities
from analysis.size_curve import SizeChoice, choose_size
from analysis.uncertainty import UncertaintyQuestion, assess_solution
from domain.in_flight import InFlight
from domain.problem import AnyProblem, MachineProblem
from domain.sensitivity import Sensitivities
from domain.solution import Solution, Strategy
from domain.uncertain_answer import Uncertainty

if TYPE_CHECKING:
    from solvers.default_settings import BaselineSet


QUICK_LIMIT_S = 0.04  # of a solve in the service's own process; 50 ms with all around it


@dataclass(frozen=True, slots=True)
class SolveQuestion:
    """The arguments of `solvers.solve`, whose rules for them hold."""

    problem: AnyProblem
    strategy: Strategy
    relative_gap: float
    time_limit_s: float
    static_bytes: int | None = None

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


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution and the time it took; at the end with other settings beside it, how it moves
    with the costs, what their errors leave of it where they are known, the size to repeat, and what
    a machine has in flight.
    """

    solution: Solution
    solve_ms: float
    baselines: BaselineSet | None = None
    uncertainty: Uncertainty | None = None
    sensitivities: Sensitivities | None = None
    choice: SizeChoice | None = None
    in_flight: InFlight | None = None


@dataclass(frozen=True, slots=True)
class MessageQuestion(SolveQuestion):
    """The arguments of `solvers.solve`, and the costs' errors.

    `current_bytes` is the size that is repeated today, for the baselines; `misfit` the share of the
    latency by which transfers contradicted the model.
    """

    uncertain: UncertaintyQuestion | None = None
    current_bytes: int | None = None
    misfit: float = 0.0

    def solved_quickly(self) -> Solved | None:
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
            sensitivities(
                found.solution,
                self.strategy,
                repeated_bytes=best.size_bytes if (best := baselines.best_repeat) else None,
            ),
            self._choice(uncertainty),
            _in_flight(found.solution, baselines),
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


def _in_flight(solution: Solution, baselines: BaselineSet) -> InFlight | None:
    """What a machine has in flight; None of plain stages, for which nothing is imported."""
    if not isinstance(solution.problem, MachineProblem):
        return None
    from analysis.in_flight import in_flight

    best = baselines.best_repeat
    return in_flight(solution, solution.problem, best.size_bytes if best else None)


def solve(question: MessageQuestion, best: Callable[[Solved], None]) -> Solved:
    """Solve; `best` is given each better solution on the way. Raises what `solvers.solve` does."""
    started_s = time.perf_counter()

    def on_better(better: Solution) -> None:
        best(Solved(better, (time.perf_counter() - started_s) * 1e3))

    solution = question.solution(on_better)
    solve_ms = (time.perf_counter() - started_s) * 1e3
    return question.completed(Solved(solution, solve_ms))
