"""What a message takes by the setting in use, and by default settings, to compare an answer with.

Source    theory sec. 2: one fragment; a constant size; the best repeated size, which is what a
          library with one size setting can reach. The constant sizes are those of
          domain.default_sizes, each with its source.
Cost      O(k n) each for the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from domain.default_sizes import CURRENT, ONE_PIECE, default_sizes
from domain.errors import Infeasible, StrategyDeclined
from domain.problem import MessageProblem, Problem
from domain.solution import Strategy
from solvers.contract import Deadline, SolveOptions
from solvers.heuristics import constant, fixed, repeat
from solvers.kernels import evaluator_of

EQUAL_FRAGMENTS = "equal fragments"
_DEADLINE_S = 60.0  # a guard; each baseline takes milliseconds


@dataclass(frozen=True, slots=True)
class Baseline:
    """One setting by name; where the limits forbid its cut, `declined` says why.

    `static_bytes` is repeated, None for a number of equal fragments, one and more. Of a system's
    default `default_bytes` is the size before it was rounded up to the alignment, `parameter` what
    it is set by, and `source` where it is written. `measured_us` is what the message in one piece
    was measured to take, where it was and this sends it so: `latency_us` is no more than that.
    """

    strategy: Strategy
    static_bytes: int | None
    latency_us: float | None
    fragments: int | None
    declined: str | None = None
    name: str | None = None
    default_bytes: int | None = None
    parameter: str | None = None
    source: str | None = None
    measured_us: float | None = None


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

    def measured(self, whole_us: float | None) -> BaselineSet:
        """Return the same where the message in one piece was measured to take that, if it was."""
        if whole_us is None:
            return self
        best = self.best_repeat
        if best is not None and best.fragments == 1:
            best = replace(best, latency_us=min(best.latency_us, whole_us))
        entries = (
            one
            if one.latency_us is None or one.fragments != 1
            else replace(one, latency_us=min(one.latency_us, whole_us), measured_us=whole_us)
            for one in self.entries
        )
        return BaselineSet(tuple(entries), best)


PriceSetting = Callable[[Strategy, int | None], Baseline]


def baselines_of(problem: Problem, current_bytes: int | None = None) -> BaselineSet:
    """Evaluate every baseline with the evaluator. `current_bytes` is the size that is repeated
    today. Raises Infeasible where nothing is admitted.
    """
    problem.count_range()
    entries = priced_settings(
        problem, current_bytes, lambda strategy, size: _baseline(problem, strategy, size)
    )
    return BaselineSet(tuple(entries), _best_repeat(problem))


def priced_settings(
    problem: MessageProblem, current_bytes: int | None, price: PriceSetting
) -> Iterator[Baseline]:
    """Yield the setting in use, one piece, the defaults that fit and equal fragments, priced.

    A setting in use that sends the message whole stands for one piece too.
    """
    is_whole = current_bytes is not None and current_bytes >= problem.message_bytes
    if current_bytes is not None and not is_whole:
        yield replace(price(Strategy.STATIC, current_bytes), name=CURRENT)
    whole = price(Strategy.SINGLE, None)
    yield replace(whole, name=CURRENT if is_whole else ONE_PIECE)
    for one in default_sizes(problem, current_bytes=current_bytes):
        priced = price(Strategy.STATIC, one.fragment_bytes)
        if priced.declined is None:
            yield replace(
                priced,
                name=one.name,
                default_bytes=one.default_bytes,
                parameter=one.parameter,
                source=one.source,
            )
    yield replace(price(Strategy.FIXED, None), name=EQUAL_FRAGMENTS)


_SPECS = {spec.name: spec for spec in (constant.SINGLE, constant.STATIC, fixed.SPEC)}


def _baseline(problem: Problem, strategy: Strategy, static_bytes: int | None) -> Baseline:
    options = SolveOptions(static_bytes=static_bytes)
    try:
        candidate = _SPECS[strategy].run(problem, options, Deadline.after(_DEADLINE_S))
    except (StrategyDeclined, Infeasible) as refusal:
        return Baseline(strategy, static_bytes, None, None, refusal.detail)
    cut = candidate.fragment_bytes
    return Baseline(strategy, static_bytes, _latency_us(problem, cut), len(cut))


def _best_repeat(problem: Problem) -> BestRepeat | None:
    try:
        size, cut = repeat.best_repeat(problem)
    except (StrategyDeclined, Infeasible):
        return None
    return BestRepeat(size, len(cut), _latency_us(problem, cut))


def _latency_us(problem: Problem, cut: Sequence[int]) -> float:
    return problem.pipeline.derived(evaluator_of)(cut)
