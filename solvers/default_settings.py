"""What the default settings of libraries cost on a problem, to compare an answer with.

Source    theory sec. 2: one fragment; a constant size (4 KiB is GAM's); the best repeated size,
          which is what a library with one size setting can reach.
Cost      O(k n) each for the evaluator.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import Infeasible, StrategyDeclined
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import Strategy
from solvers.contract import Deadline, SolveOptions, StrategySpec
from solvers.heuristics import constant, fixed, repeat

STATIC_BYTES = (4096, 65536)
_DEADLINE_S = 60.0  # a guard; each baseline takes milliseconds


@dataclass(frozen=True, slots=True)
class Baseline:
    """One default setting; where the limits forbid its cut, `declined` says why."""

    strategy: Strategy
    static_bytes: int | None
    latency_us: float | None
    fragments: int | None
    declined: str | None = None


@dataclass(frozen=True, slots=True)
class BestRepeat:
    """The best single size for a library that repeats one: size, fragments, latency."""

    size_bytes: int
    fragments: int
    latency_us: float


@dataclass(frozen=True, slots=True)
class BaselineSet:
    """All baselines of a problem; `best_repeat` is None where no repeated size is admitted."""

    entries: tuple[Baseline, ...]
    best_repeat: BestRepeat | None


def baselines_of(problem: Problem) -> BaselineSet:
    """Evaluate every baseline with the evaluator. Raises Infeasible where nothing is admitted."""
    problem.count_range()
    entries = [
        _baseline(problem, constant.SINGLE, None),
        *(_baseline(problem, constant.STATIC, size) for size in STATIC_BYTES),
        _baseline(problem, fixed.SPEC, None),
    ]
    return BaselineSet(tuple(entries), _best_repeat(problem))


def _baseline(problem: Problem, spec: StrategySpec, static_bytes: int | None) -> Baseline:
    options = SolveOptions(static_bytes=static_bytes)
    try:
        cut = spec.run(problem, options, Deadline.after(_DEADLINE_S)).fragment_bytes
    except (StrategyDeclined, Infeasible) as refusal:
        return Baseline(spec.name, static_bytes, None, None, refusal.detail)
    return Baseline(spec.name, static_bytes, latency_us(problem.pipeline, cut), len(cut))


def _best_repeat(problem: Problem) -> BestRepeat | None:
    try:
        size, cut = repeat.best_repeat(problem)
    except (StrategyDeclined, Infeasible):
        return None
    return BestRepeat(size, len(cut), latency_us(problem.pipeline, cut))
