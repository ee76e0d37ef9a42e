"""What a strategy is given and what it returns. Shared by every module of this package."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from contract.limits import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S
from domain.delivery import Delivery
from domain.errors import InvalidInput
from domain.problem import Problem
from domain.solution import Notice, Solution, Strategy


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """How to solve, as against what: none of this changes which schedules are admitted.

    `on_incumbent` is called with a complete, valid answer each time a better one is known, so that
    a caller that has to stop the solve keeps the best so far. Raises InvalidInput.
    """

    relative_gap: float = DEFAULT_RELATIVE_GAP
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    static_bytes: int | None = None
    on_incumbent: Callable[[Solution], None] | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.relative_gap <= 1.0:
            raise InvalidInput("expected 0 <= relative_gap <= 1", field="relative_gap")
        if not 0.0 < self.time_limit_s <= 86_400.0:
            raise InvalidInput("expected 0 < time_limit_s <= 86400", field="time_limit_s")
        if self.static_bytes is not None and self.static_bytes < 1:
            raise InvalidInput("expected static_bytes >= 1", field="static_bytes")


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in monotonic time after which a search returns what it has.

    `is_ended` may say that it has to earlier.
    """

    at_s: float
    is_ended: Callable[[], bool] | None = None

    @classmethod
    def after(cls, seconds: float, is_ended: Callable[[], bool] | None = None) -> Deadline:
        """Return the deadline this many seconds from now, or once it is ended."""
        return cls(time.monotonic() + seconds, is_ended)

    @property
    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return 0.0 if self.passed else max(0.0, self.at_s - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether time is up."""
        if time.monotonic() >= self.at_s:
            return True
        return self.is_ended is not None and self.is_ended()

    def share(self, part: float) -> Deadline:
        """Return the deadline after this part of the time that is left."""
        return Deadline(time.monotonic() + part * self.remaining_s, self.is_ended)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a strategy proposes: a whole-byte cut that the limits admit.

    `real_sizes` is the real-valued cut behind it (bytes), where there is one. `levels` is set by
    strategies that cut differently from stage to stage: the sizes that each stage sees.
    `cut_off` says that the deadline ended the strategy's own search. `delivery` has the rules of
    strategies that choose one for each stage.
    """

    fragment_bytes: tuple[int, ...]
    real_sizes: tuple[float, ...] | None = None
    levels: tuple[tuple[int, ...], ...] | None = None
    latency_paper_us: float | None = None
    notices: tuple[Notice, ...] = field(default=())
    cut_off: bool = False
    delivery: tuple[Delivery, ...] | None = None


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """A registered strategy: how to run it, and in words what it needs and when it is optimal.

    `run(problem, options, deadline)` returns a Candidate, or raises StrategyDeclined where the
    strategy cannot run on this problem and Infeasible where no cut satisfies the limits.
    """

    name: Strategy
    run: Callable[[Problem, SolveOptions, Deadline], Candidate]
    needs: str
    optimal_when: str
    refragments: bool = False
