"""What strategies give on messages: one cell a message and strategy, each within its time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import solvers
from domain.errors import Infeasible, LimitReached, StrategyDeclined
from domain.problem import AnyProblem
from domain.solution import Solution, Strategy


@dataclass(frozen=True, slots=True)
class Cell:
    """One strategy on one message size: a solution, or why there is none."""

    message_bytes: int
    strategy: Strategy
    solution: Solution | None
    declined: str | None


class Solve(Protocol):
    """Solves one problem; `solvers.solve` is one."""

    def __call__(
        self,
        problem: AnyProblem,
        strategy: Strategy,
        *,
        relative_gap: float,
        time_limit_s: float,
        static_bytes: int | None,
    ) -> Solution: ...


def cells(
    problems: Sequence[AnyProblem],
    strategies: Sequence[Strategy],
    solve: Solve = solvers.solve,
    *,
    relative_gap: float,
    time_limit_s: float,
    static_bytes: int | None = None,
) -> Iterator[Cell]:
    """Yield the cell of every strategy on each problem, in this order.

    `time_limit_s` is for all of them: each has an equal share of what is left, so that what one
    does not need is there for the next. `static_bytes` is the size that `static` repeats.
    """
    deadline_s = time.monotonic() + time_limit_s
    left = len(problems) * len(strategies)
    for problem in problems:
        for strategy in strategies:
            share_s = (deadline_s - time.monotonic()) / left
            left -= 1
            size = static_bytes if strategy is Strategy.STATIC else None
            yield _cell(problem, strategy, solve, relative_gap, share_s, size)


def _cell(
    problem: AnyProblem,
    strategy: Strategy,
    solve: Solve,
    relative_gap: float,
    time_limit_s: float,
    static_bytes: int | None,
) -> Cell:
    if time_limit_s <= 0.0:
        late = "not tried: the comparison's time limit had passed"
        return Cell(problem.message_bytes, strategy, None, late)
    try:
        found = solve(
            problem,
            strategy,
            relative_gap=relative_gap,
            time_limit_s=time_limit_s,
            static_bytes=static_bytes,
        )
    except (StrategyDeclined, Infeasible, LimitReached) as refusal:
        return Cell(problem.message_bytes, strategy, None, refusal.detail)
    return Cell(problem.message_bytes, strategy, found, None)
