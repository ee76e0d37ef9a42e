"""The exact optimum in whole bytes, for small problems: how good the rounding is, with a proof.

Source    docs/theory.md sec. 13; the recurrence is theory sec. 1.
Notation  k fragments; V: least latency known; L(k): proven lower bound on every whole-byte cut into
          k fragments. Times here leave out the constant delay until the answer adds it.
Cost      one integer program for each count with L(k) < V; exponential at worst. What is larger
          than MAX_CELLS fragments times stages is refused.
Exact     `lower_bound_us` lies below what the evaluator says of every admitted cut; the status is
          `proven` only where the best cut found is within TOLERANCE of it.
Traps     in whole bytes the optimum is not even unimodal in k, so each count is excluded by a bound
          of its own. A failed check in CP-SAT aborts the process: this is for checking, not for
          service.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from bench.reference.integer_scaled import Scaling, scaled
from bench.reference.integer_search import CountToTry, Report, search
from domain.errors import InvalidInput, SolverFailed, StrategyDeclined
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import Strategy, relative_excess
from solvers.contract import Deadline, SolveOptions
from solvers.exact import strategy as exact
from solvers.exact.count_search import CountSearch
from solvers.heuristics.fixed import best_count
from solvers.rounding import round_cut
from solvers.strategies import solve_with

MAX_CELLS = 200  # fragments times stages, of any count that could win
TOLERANCE = 1e-9
_EVALUATOR = (
    1.0 - 1e-13
)  # the evaluator rounds at most some 4 * MAX_CELLS sums and products on a path


class IntegerStatus(StrEnum):
    """Whether the cut is proven to be the best to TOLERANCE, or a limit came first."""

    PROVEN = "proven"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class IntegerOptimum:
    """The best whole-byte cut found and a bound on all (µs, delay included)."""

    fragment_bytes: tuple[int, ...]
    latency_us: float
    lower_bound_us: float
    status: IntegerStatus

    @property
    def relative_gap(self) -> float:
        """(latency - bound) / bound."""
        return relative_excess(self.latency_us, self.lower_bound_us, self.lower_bound_us)


def integer_optimum(
    problem: Problem,
    *,
    time_limit_s: float,
    fragments: int | None = None,
) -> IntegerOptimum:
    """The best cut in whole bytes and alignment, over all counts or with this many `fragments`.

    At the time limit the answer is the best cut and bound known by then. Raises InvalidInput,
    Infeasible, and StrategyDeclined where a count that could win has more than MAX_CELLS cells or
    where stages may cut differently.
    """
    _check(problem, time_limit_s, fragments)
    deadline = Deadline.after(time_limit_s)
    known = _Known.of(problem, fragments, deadline)
    counts = known.prepared(deadline)
    if not counts or deadline.passed:
        return known.answer()
    scaling = Scaling.of(known.problem, known.best_us)
    known_steps = scaling.steps(known.best_us)
    search(
        scaled(known.problem, scaling, known_steps=known_steps),
        [CountToTry(k, known.hint(k, scaling)) for k in counts],
        known_steps=known_steps,
        tolerance=TOLERANCE,
        until_s=deadline.at_s,
        report=lambda report: known.take(scaling, report),
    )
    return known.answer()


def _check(problem: Problem, time_limit_s: float, fragments: int | None) -> None:
    if not 0.0 < time_limit_s <= 86_400.0:
        raise InvalidInput("expected 0 < time_limit_s <= 86400", field="time_limit_s")
    if problem.allow_refragmentation:
        raise StrategyDeclined(
            "the integer optimum is known for cuts that all stages share",
            field="allow_refragmentation",
        )
    counts = problem.count_range()
    if fragments is not None and not counts.minimum <= fragments <= counts.maximum:
        raise InvalidInput(
            f"expected {counts.minimum} <= fragments <= {counts.maximum}", field="fragments"
        )


@dataclass(slots=True)
class _Known:
    """The best cut and the bounds L(k) so far; `problem` without its delay, `delay_us`."""

    problem: Problem
    delay_us: float
    best: tuple[int, ...]
    best_us: float
    lower_us: dict[int, float]
    search: CountSearch
    rounded: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, fragments: int | None, deadline: Deadline) -> _Known:
        """What the production path finds: its whole-byte cut, and bounds in real sizes."""
        delay_us = problem.pipeline.delay_us
        plain = replace(problem, pipeline=replace(problem.pipeline, delay_us=0.0))
        search = exact.start(plain)
        search.run(near=best_count(plain), relative_gap=TOLERANCE, deadline=deadline)
        first = search.lines.k_min
        lower = {first + i: float(low) for i, low in enumerate(search.lower)}
        if fragments is None:
            options = SolveOptions(relative_gap=0.0, time_limit_s=max(1e-3, deadline.remaining_s))
            cut = solve_with(plain, Strategy.AUTO, options).schedule.fragment_bytes
        else:
            cut = _equal_cut(plain, fragments)
            lower = {fragments: lower[fragments]}
        return cls(plain, delay_us, cut, latency_us(plain.pipeline, cut), lower, search)

    def prepared(self, deadline: Deadline) -> list[int]:
        """The counts to try, the least bound first; each is solved in real sizes and rounded."""
        _refuse_large(self.problem, self._could_win())
        for k in self._could_win():
            if deadline.passed:
                break
            result = self.search.solved.get(k) or self.search.solve(k, deadline)
            self.lower_us[k] = max(self.lower_us[k], result.lower_us)
            cut = round_cut(self.problem, result.x)
            if cut is not None:
                self.rounded[k] = cut
                self.offer(cut)
        return self._could_win()

    def _could_win(self) -> list[int]:
        limit_us = self.best_us * (1.0 - TOLERANCE / 2)
        below = [k for k, low in self.lower_us.items() if low < limit_us]
        return sorted(below, key=lambda k: (self.lower_us[k], k))

    def hint(self, count: int, scaling: Scaling) -> tuple[int, ...] | None:
        """A cut into this many, in units, to begin from."""
        cut = self.rounded.get(count)
        return None if cut is None else scaling.units_of(cut)

    def offer(self, cut: tuple[int, ...]) -> None:
        """Keep this cut if it is the best. Raises SolverFailed where it breaks the limits."""
        if not self.problem.admits(cut):
            raise SolverFailed("the integer program returned a cut that breaks the limits")
        evaluated = latency_us(self.problem.pipeline, cut)
        if evaluated < self.best_us:
            self.best, self.best_us = cut, evaluated

    def take(self, scaling: Scaling, report: Report) -> None:
        """Keep what the program reported."""
        bound_us = scaling.us(report.bound_steps) * _EVALUATOR
        self.lower_us[report.count] = max(self.lower_us[report.count], bound_us)
        if report.sizes is not None:
            self.offer(scaling.bytes_of(report.sizes))

    def answer(self) -> IntegerOptimum:
        """With the delay. Raises SolverFailed where a bound lies above a real cut."""
        latency = self.best_us + self.delay_us
        bound = min(self.lower_us.values()) * _EVALUATOR + self.delay_us
        if bound > latency * (1.0 + TOLERANCE):
            raise SolverFailed("a lower bound lies above a real schedule")
        is_proven = latency <= bound * (1.0 + TOLERANCE)
        status = IntegerStatus.PROVEN if is_proven else IntegerStatus.LIMIT
        return IntegerOptimum(self.best, latency, min(bound, latency), status)


def _equal_cut(problem: Problem, fragments: int) -> tuple[int, ...]:
    """An admitted cut into this many, as equal as the limits allow."""
    cut = round_cut(problem, np.full(fragments, problem.message_bytes / fragments))
    if cut is None:
        raise SolverFailed("an admitted count has no cut")
    return cut


def _refuse_large(problem: Problem, counts: list[int]) -> None:
    stages = len(problem.pipeline)
    if max(counts, default=0) * stages > MAX_CELLS:
        raise StrategyDeclined(
            f"the integer optimum needs counts that could win times stages to be at most "
            f"{MAX_CELLS}, got {max(counts)} fragments and {stages} stages",
            field="message_bytes",
        )
