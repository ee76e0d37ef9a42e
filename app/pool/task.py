"""What a worker is given: the question, and how long and how exactly to answer it."""

from __future__ import annotations

from dataclasses import dataclass

from domain.problem import AnyProblem
from domain.solution import Strategy


@dataclass(frozen=True, slots=True)
class SolveTask:
    """One solve: the arguments of `solvers.solve`, whose rules for them hold."""

    problem: AnyProblem
    strategy: Strategy
    relative_gap: float
    time_limit_s: float
    static_bytes: int | None = None
