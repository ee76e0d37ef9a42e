"""From a strategy's proposal to a Solution: evaluated, checked against the limits, and labelled.

Every number that a user sees passes through here: the latency is the evaluator's on the whole
bytes, the bound is proven, and the status says no more than the two of them show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from domain.errors import SolverFailed
from domain.problem import AnyProblem
from domain.schedule import Schedule
from domain.solution import Notice, Solution, Status, Strategy, relative_excess
from solvers.contract import Candidate

_BOUND_TOLERANCE = 1e-9  # how far a bound may exceed a latency before it is a defect, relative


def evaluated_us(problem: AnyProblem, candidate: Candidate) -> float:
    """Return the latency of a cut that all stages share, in µs. Raises SolverFailed."""
    check_limits(problem, (candidate.fragment_bytes,))
    return problem.model.latency_us(candidate.fragment_bytes)


def rank_of(latency_us: float, cut: Sequence[int]) -> tuple[float, int, int]:
    """Return the written rule for ties: least latency, then fewer fragments, then smaller first
    one. Latencies that differ by what rounding adds over many fragments alone are equal.
    """
    return (float(f"{latency_us:.11e}"), len(cut), cut[0])


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate of a strategy, what it takes, µs, and its rank by the written rule for ties."""

    strategy: Strategy
    candidate: Candidate
    latency_us: float
    rank: tuple[float, int, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", rank_of(self.latency_us, self.candidate.fragment_bytes))

    @property
    def fragments(self) -> int:
        """The number of fragments."""
        return len(self.candidate.fragment_bytes)


def check_limits(problem: AnyProblem, cuts: Iterable[tuple[int, ...]]) -> None:
    """Raise SolverFailed unless the limits admit each of these cuts."""
    if not all(problem.admits(cut) for cut in cuts):
        raise SolverFailed("a strategy returned a cut that breaks the limits")


def solution_of(
    problem: AnyProblem,
    strategy: Strategy,
    candidate: Candidate,
    *,
    bound_us: float,
    relative_gap: float,
    evaluated: float | None = None,
    unrounded_us: float | None = None,
    limited_by: str | None = None,
    notices: tuple[Notice, ...] = (),
) -> Solution:
    """Return the complete answer. Raises SolverFailed where a bound lies above a real schedule.

    `evaluated` is what `evaluated_us` gave for this candidate, where the caller has it already.
    """
    latency = evaluated_us(problem, candidate) if evaluated is None else evaluated
    unrounded_us = _behind(latency, unrounded_us)
    if bound_us > latency * (1.0 + _BOUND_TOLERANCE):
        raise SolverFailed("a lower bound lies above a real schedule")
    bound = min(bound_us, latency)
    return Solution(
        problem=problem,
        strategy=strategy,
        schedule=Schedule(candidate.fragment_bytes),
        latency_us=latency,
        lower_bound_us=bound,
        status=status_of(
            latency, unrounded_us, bound, relative_gap=relative_gap, cut_off=candidate.cut_off
        ),
        unrounded_latency_us=unrounded_us,
        limited_by=limited_by,
        levels=candidate.levels,
        latency_paper_us=candidate.latency_paper_us,
        notices=candidate.notices + notices,
        cut_off=candidate.cut_off,
        delivery=candidate.delivery,
    )


def _behind(latency_us: float, unrounded_us: float | None) -> float | None:
    """The real latency behind a whole-byte one: none where the real cut is the worse of the two."""
    if unrounded_us is None or unrounded_us > latency_us * (1.0 + _BOUND_TOLERANCE):
        return None
    return min(unrounded_us, latency_us)


def status_of(
    latency_us: float,
    unrounded_us: float | None,
    bound_us: float,
    *,
    relative_gap: float,
    cut_off: bool = False,
) -> Status:
    """Return the strongest true statement about these three numbers."""
    if relative_excess(latency_us, bound_us, bound_us) <= relative_gap:
        return Status.OPTIMAL
    if cut_off:  # also where only whole bytes are left: more time may find better ones
        return Status.TIME_LIMIT
    real = unrounded_us if unrounded_us is not None else float("inf")
    is_proven = relative_excess(real, bound_us, bound_us) <= relative_gap
    return Status.OPTIMAL_BEFORE_ROUNDING if is_proven else Status.PROVEN_GAP
