"""The best real sizes for a machine over every number of fragments, with their proof."""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import StrategyDeclined
from domain.problem import MachineProblem
from solvers.contract import Candidate, Deadline, SolveOptions


@dataclass(frozen=True, slots=True)
class Exact:
    """The best whole-byte cut found, the bound over every cut, and the real optimum, both in µs.

    `unrounded_us` is None where no real cut was found.
    """

    candidate: Candidate
    bound_us: float
    unrounded_us: float | None


def exact_cut(
    problem: MachineProblem, start: Candidate, options: SolveOptions, deadline: Deadline
) -> Exact:
    """Return the optimum. Raises StrategyDeclined."""
    raise StrategyDeclined("the linear program needs stages of one line each", field="strategy")
