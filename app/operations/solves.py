"""One call of the solver: its arguments, and what comes of it. Optimisations and comparisons are
made of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import solvers
from app.operations.operation import Report
from domain.problem import AnyProblem
from domain.solution import Notice, Solution, Status, Strategy

if TYPE_CHECKING:
    from domain.errors import SluiceError
    from solvers.usual_settings import BaselineSet

GRACE_S = 1.0  # the solver keeps its own time limit; this much later it is ended
QUICK_LIMIT_S = 0.04  # of a solve in the service's own process; 50 ms with all around it


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution and the time it took; at the end with the usual settings beside it."""

    solution: Solution
    solve_ms: float
    baselines: BaselineSet | None = None


@dataclass(frozen=True, slots=True)
class Solve:
    """The arguments of `solvers.solve`, whose rules for them hold."""

    problem: AnyProblem
    strategy: Strategy
    relative_gap: float
    time_limit_s: float
    static_bytes: int | None = None

    def run(self, report: Report) -> Solved:
        """Solve. Raises what `solvers.solve` does."""
        started_s = time.perf_counter()

        def tell(better: Solution) -> None:
            report.best(Solved(better, (time.perf_counter() - started_s) * 1e3))

        solution = self.solution(tell)
        solve_ms = (time.perf_counter() - started_s) * 1e3
        return Solved(solution, solve_ms, solvers.baselines(self.problem))

    def run_quickly(self) -> Solved | None:
        """The result where it takes no longer than QUICK_LIMIT_S, else None."""
        started_s = time.perf_counter()
        solution = self.quick_solution()
        if solution is None:
            return None
        solve_ms = (time.perf_counter() - started_s) * 1e3
        return Solved(solution, solve_ms, solvers.baselines(self.problem))

    def quick_solution(self) -> Solution | None:
        """The solution where it takes no longer than QUICK_LIMIT_S, else None.

        How many counts could still win in whole bytes is known only on the way, so a small problem
        can turn out to be long. It is then solved anew elsewhere, and its answer does not depend
        on this.
        """
        limit_s = min(self.time_limit_s, QUICK_LIMIT_S)
        found = replace(self, time_limit_s=limit_s).solution()
        return None if found.cut_off and self.time_limit_s > limit_s else found

    def solution(self, tell: Callable[[Solution], None] | None = None) -> Solution:
        """Solve; `tell` is given each better solution on the way."""
        return solvers.solve(
            self.problem,
            self.strategy,
            relative_gap=self.relative_gap,
            time_limit_s=self.time_limit_s,
            static_bytes=self.static_bytes,
            on_incumbent=tell,
        )


def cut_off(best: Solution, why: SluiceError) -> Solution:
    """Return a solution that says that the search for a better one was ended, and why.

    What is proven to be the best stays so.
    """
    if best.status is Status.OPTIMAL:
        return best
    notice = Notice(why.code, f"{why.detail}; this is the best answer so far")
    return replace(best, status=Status.TIME_LIMIT, notices=(*best.notices, notice))
