"""What strategies give on messages: one cell a message and strategy, each within its time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import solvers
from domain.errors import Infeasible, LimitReached, StrategyDeclined, TimeLimitReached
from domain.problem import AnyProblem
from domain.solution import Solution, Status, Strategy

_MIN_SHARE_S = 0.01  # of the time, for a cell: enough for simple cuts
_EFFORT = (
    *(Strategy.SINGLE, Strategy.STATIC, Strategy.FIXED, Strategy.REPEAT),
    *(Strategy.RAMP, Strategy.RAMP_UP_DOWN, Strategy.HIERARCHICAL_RAMP, Strategy.HIERARCHICAL),
    *(Strategy.EAGER, Strategy.PULSES, Strategy.RAMP_REPEAT),
    *(Strategy.EXACT, Strategy.AUTO),
)
_GRACE_S, _SHARE_OF_GRACE = 0.5, 0.2  # after the limit, and of it: cells still have that share


@dataclass(frozen=True, slots=True)
class Cell:
    """One strategy on one message size: a solution, or why there is none.

    `is_late`: time ended before there was one.
    """

    message_bytes: int
    strategy: Strategy
    solution: Solution | None
    declined: str | None
    is_late: bool = False

    @property
    def min_us(self) -> float | None:
        """What the strategy takes at least, in µs: the latency, or the bound where time ended its
        search, because more of it may find less.
        """
        found = self.solution
        if found is None:
            return None
        return found.lower_bound_us if found.status is Status.TIME_LIMIT else found.latency_us


@dataclass(frozen=True, slots=True)
class Excess:
    """How much longer a cell takes than the best of its message, as shares; None without bound.

    The two differ where time ended the search of this cell or of another.
    """

    at_least: float
    at_most: float | None


def excesses(row: Sequence[Cell]) -> tuple[Excess | None, ...]:
    """Return the excess of each cell of one message size, None of those without a solution."""
    known = [
        None
        if one.solution is None or one.min_us is None
        else (one.solution.latency_us, one.min_us)
        for one in row
    ]
    return tuple(excess_of(known, place) for place in range(len(row)))


def excess_of(known: Sequence[tuple[float, float] | None], place: int) -> Excess | None:
    """Return the excess of one of these, each with its latency and what it takes at least, in µs;
    None has no cut.
    """
    found = known[place]
    if found is None:
        return None
    latency_us, min_us = found
    best_us = min(one[0] for one in known if one is not None)
    others = [one[1] for at, one in enumerate(known) if at != place and one is not None]
    others_us = min(others, default=latency_us)
    at_least = min_us / best_us - 1.0 if best_us > 0.0 else 0.0
    if latency_us <= others_us:
        return Excess(0.0, 0.0)
    at_most = latency_us / others_us - 1.0 if others_us > 0.0 else None
    return Excess(max(0.0, at_least), at_most)


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
) -> tuple[Cell, ...]:
    """Return the cell of every strategy on each problem, in this order; as `each_cell`."""
    found = dict(
        each_cell(
            problems,
            strategies,
            solve,
            relative_gap=relative_gap,
            time_limit_s=time_limit_s,
            static_bytes=static_bytes,
        )
    )
    return tuple(found[place] for place in range(len(found)))


def each_cell(
    problems: Sequence[AnyProblem],
    strategies: Sequence[Strategy],
    solve: Solve = solvers.solve,
    *,
    relative_gap: float,
    time_limit_s: float,
    static_bytes: int | None = None,
    grace_s: float | None = None,
) -> Iterator[tuple[int, Cell]]:
    """Yield the cell of every strategy on each problem, with its place in their order.

    Strategies that take little come first, so that time ends none of them. `time_limit_s` is for
    all cells: each has an equal share of what is left, so that what one does not need is there for
    the next; within `grace_s` after the limit (by default half a second, and a fifth of the limit
    at most) they have little each. `static_bytes` is the size that `static` repeats.
    """
    deadline_s = time.monotonic() + time_limit_s
    if grace_s is None:
        grace_s = min(_GRACE_S, _SHARE_OF_GRACE * time_limit_s)
    count = len(strategies)
    places = sorted(
        range(len(problems) * count), key=lambda at: _EFFORT.index(strategies[at % count])
    )
    for done, place in enumerate(places):
        left_s = deadline_s - time.monotonic()
        share_s = max(_MIN_SHARE_S, left_s / (len(places) - done)) if left_s > -grace_s else 0.0
        problem, strategy = problems[place // count], strategies[place % count]
        size = static_bytes if strategy is Strategy.STATIC else None
        yield place, _cell(problem, strategy, solve, relative_gap, share_s, size)


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
        return Cell(problem.message_bytes, strategy, None, late, is_late=True)
    try:
        found = solve(
            problem,
            strategy,
            relative_gap=relative_gap,
            time_limit_s=time_limit_s,
            static_bytes=static_bytes,
        )
    except (StrategyDeclined, Infeasible, LimitReached) as refusal:
        is_late = isinstance(refusal, TimeLimitReached)
        return Cell(problem.message_bytes, strategy, None, refusal.detail, is_late)
    return Cell(problem.message_bytes, strategy, found, None)
