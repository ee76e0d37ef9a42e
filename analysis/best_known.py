"""What each of many messages can be done in: out of a compiled table, or solved one by one.

What a setting costs is measured against this. Every latency is the evaluator's on a schedule in
whole bytes; every bound is proven over all schedules that the limits and the cap on fragments
admit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import solvers
from domain.errors import StrategyDeclined
from domain.fragment_setting import FragmentSetting
from domain.model import CostModel
from domain.pipeline import Pipeline, Stage
from domain.plan_table import PlanTable
from domain.problem import (
    AggregateProblem,
    AnyProblem,
    FragmentLimits,
    MachineProblem,
    Problem,
    problem_of,
)
from domain.regret import BestKnown, Objective
from domain.solution import Notice, Solution, Status, Strategy
from domain.workload import Workload
from solvers.machine.counts import lower_bound_us

SOLVED_GAP = 1e-4  # what a solve aims at: a regret is read to a tenth of a per cent
MIN_SHARE_S = 0.01  # of the time, for each of the two solves of a message
_SAFETY = 1.0 - 1e-12  # more than rounding takes from a bound
GRACE_S = 5.0  # after the limit, for solves that end later than they were asked to,
FIRST_REPORT_S = 2.0  # what ends sooner is not worth a report on the way
_BETWEEN_REPORTS = 8.0  # times what the last one took
_SHARE_OF_GRACE = 0.2  # and no more than this of the limit
_MUCH = 0.01  # of the latency in the mean over a workload: left open by time, it is said


def each_known(
    model: CostModel,
    sizes: Sequence[int],
    *,
    table: PlanTable | None,
    limits: FragmentLimits,
    fragment_cap: int,
    time_limit_s: float,
    grace_s: float | None = None,
) -> Iterator[BestKnown]:
    """Yield the best known for each of these message sizes, in their order.

    `table` is used where it is of this model, these limits and this cap, and covers the sizes. Else
    each message is solved in this process, by `auto` and by `repeat`; what one leaves of its equal
    share of the time is there for the next, and a search that time ends leaves a wider bound, not
    a wrong one. What is not reached within `grace_s` of its end (GRACE_S by default, and a fifth of
    a shorter limit) is left between a simple schedule and a simple bound. Raises Infeasible where
    the limits admit no cut of a message.
    """
    if table is not None and _serves(
        table, sizes, model=model, limits=limits, fragment_cap=fragment_cap
    ):
        yield from (_looked_up(table, size) for size in sizes)
        return
    deadline_s = time.monotonic() + time_limit_s
    grace_s = grace_of(time_limit_s) if grace_s is None else grace_s
    for done, size in enumerate(sizes):
        problem = problem_of(model, size, limits, fragment_cap=fragment_cap)
        left_s = deadline_s - time.monotonic()
        if left_s > -grace_s or isinstance(problem, AggregateProblem):
            share_s = left_s / (2 * (len(sizes) - done))
            yield _solved(problem, max(share_s, MIN_SHARE_S))
        else:
            yield _bounded(problem)


def grace_of(time_limit_s: float) -> float:
    """Return for how many seconds after this limit messages are still solved."""
    return min(GRACE_S, _SHARE_OF_GRACE * time_limit_s)


def left_open(best: Sequence[BestKnown], workload: Workload, objective: Objective) -> int:
    """Return how many searches time ended; 0 where that leaves little open in the mean, or of the
    total time where that counts.
    """
    known = {one.message_bytes: one for one in best}
    found = [(size.share, known[size.message_bytes]) for size in workload.sizes if size.share > 0.0]
    open_us = [
        s * (one.latency_us - one.lower_bound_us) if one.is_partial else 0.0 for s, one in found
    ]
    if objective is Objective.TIME:
        left = _share_of(sum(open_us), sum(s * one.latency_us for s, one in found))
    else:
        left = sum(
            _share_of(us, one.latency_us) for us, (_, one) in zip(open_us, found, strict=True)
        )
    return sum(one.is_partial for one in best) if left >= _MUCH else 0


def _share_of(part_us: float, whole_us: float) -> float:
    return part_us / whole_us if whole_us > 0.0 else 0.0


def time_ended(partial: int, messages: int) -> Notice:
    """Return that time ended so many searches of all messages."""
    return Notice(
        "time_limit",
        f"time ended the search for {partial} of {messages} messages: regrets lie between their "
        "limits, and more time may advise other sizes",
    )


@dataclass(frozen=True, slots=True)
class SolvedPart:
    """The best known of some of an audit's messages, ascending, and how long they took."""

    best: tuple[BestKnown, ...]
    seconds: float

    @classmethod
    def of(cls, parts: Sequence[SolvedPart]) -> SolvedPart:
        """Put parts together."""
        best = _ascending([one for part in parts for one in part.best])
        return cls(best, sum(part.seconds for part in parts))


class SolvedMessages:
    """The best known for message after message, within one limit of time.

    `report` may be set: it is given what is known of all messages now and then, those that were not
    reached between simple limits, for a caller that has to stop. `progress` is called with messages
    solved and messages in all.
    """

    def __init__(
        self,
        model: CostModel,
        limits: FragmentLimits,
        fragment_cap: int,
        time_limit_s: float,
        *,
        table: PlanTable | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.best: tuple[BestKnown, ...] = ()
        self.report: Callable[[tuple[BestKnown, ...]], None] | None = None
        self._each = partial(
            each_known, model, limits=limits, fragment_cap=fragment_cap, table=table
        )
        self._serves = partial(_serves, model=model, limits=limits, fragment_cap=fragment_cap)
        self._model, self._table, self._progress = model, table, progress
        self._limit_s, self._started_s = time_limit_s, time.monotonic()
        self._next_s = self._started_s + FIRST_REPORT_S

    def add(self, sizes: set[int], *, share: float = 1.0) -> None:
        """Solve those that are not known yet, within what is left of this share of the time."""
        wanted = sorted(sizes.difference(one.message_bytes for one in self.best))
        left_s = share * self._limit_s - (time.monotonic() - self._started_s)
        limit_s, found = max(0.0, left_s), []
        grace_s = max(0.0, grace_of(self._limit_s) + min(0.0, left_s))
        before, total = len(self.best), len(self.best) + len(wanted)
        is_solved = self._table is None or not self._serves(self._table, wanted)
        for one in self._each(wanted, time_limit_s=limit_s, grace_s=grace_s):
            found.append(one)
            if self._progress is not None and is_solved:
                self._progress(before + len(found), total)
            if self.report is not None and time.monotonic() >= self._next_s:
                rest = self._each(wanted[len(found) :], time_limit_s=0.0, grace_s=0.0)
                self._report_by(self.report, (*self.best, *found, *rest))
        self.best = _ascending((*self.best, *found))

    def bounded_at(self, best: tuple[BestKnown, ...], sizes: set[int]) -> tuple[BestKnown, ...]:
        """Return these and, between simple limits, the messages of these sizes not among them."""
        more = sorted(sizes.difference(one.message_bytes for one in best))
        return _ascending((*best, *self._each(more, time_limit_s=0.0, grace_s=0.0)))

    def improve_by(self, *settings: FragmentSetting) -> None:
        """Count what settings do among the best known."""
        self.best = improved(self._model, self.best, *settings)

    def _report_by(
        self, report: Callable[[tuple[BestKnown, ...]], None], best: tuple[BestKnown, ...]
    ) -> None:
        """Report, and leave most of the time to the search until the next report."""
        begun_s = time.monotonic()
        report(_ascending(best))
        now_s = time.monotonic()
        self._next_s = now_s + max(FIRST_REPORT_S, _BETWEEN_REPORTS * (now_s - begun_s))


def improved(
    model: CostModel, best: tuple[BestKnown, ...], *settings: FragmentSetting
) -> tuple[BestKnown, ...]:
    """Return the best known, now that these settings' own cuts are known too."""
    for setting in settings:
        best = tuple(one.improved_best for one in solvers.regrets(model, setting, best))
    return best


def _ascending(best: Sequence[BestKnown]) -> tuple[BestKnown, ...]:
    return tuple(sorted(best, key=lambda one: one.message_bytes))


def _serves(
    table: PlanTable,
    sizes: Sequence[int],
    *,
    model: CostModel,
    limits: FragmentLimits,
    fragment_cap: int,
) -> bool:
    """Whether the table is of this very question, for all of these sizes."""
    is_same = table.limits == limits and table.fragment_cap == fragment_cap
    covers = all(table.min_message_bytes <= size <= table.max_message_bytes for size in sizes)
    is_of = isinstance(model, Pipeline) and table.pipeline == model.without_handoffs
    return is_same and covers and is_of


def _looked_up(table: PlanTable, message_bytes: int) -> BestKnown:
    """What a reader of the table computes, and what the table proves of it."""
    cut_us = table.pipeline.latency_us(table.cut_at(message_bytes))
    bound_us = cut_us / (1.0 + table.relative_gap_at(message_bytes))
    repeat = table.repeated_size_at(message_bytes) or None
    if repeat is None:
        return BestKnown(message_bytes, cut_us, bound_us, None, None)
    full, rest = divmod(message_bytes, repeat)
    repeat_us = table.pipeline.latency_us([repeat] * full + [rest] * (rest > 0))
    return BestKnown(message_bytes, min(cut_us, repeat_us), bound_us, repeat, repeat_us)


def _solved(problem: AnyProblem, time_limit_s: float) -> BestKnown:
    best = _solve(problem, Strategy.AUTO, time_limit_s)
    try:
        repeat = _solve(problem, Strategy.REPEAT, time_limit_s)
    except StrategyDeclined:
        is_partial = best.status is Status.TIME_LIMIT
        us = best.latency_us, best.lower_bound_us
        return BestKnown(problem.message_bytes, *us, None, None, is_partial)
    return BestKnown(
        message_bytes=problem.message_bytes,
        latency_us=min(best.latency_us, repeat.latency_us),
        lower_bound_us=max(best.lower_bound_us, repeat.lower_bound_us),
        repeat_bytes=repeat.schedule.fragment_bytes[0],
        repeat_us=repeat.latency_us,
        is_partial=Status.TIME_LIMIT in (best.status, repeat.status),
    )


def _bounded(problem: AnyProblem) -> BestKnown:
    """Between a schedule and a bound that take no search."""
    size = problem.message_bytes
    if problem.count_range().minimum == 1:
        simple_us = problem.model.latency_us([size])
    else:
        simple_us = _solve(problem, Strategy.FIXED, MIN_SHARE_S).latency_us
    if isinstance(problem, MachineProblem):
        bound_us = lower_bound_us(problem)
    else:
        assert isinstance(problem, Problem)  # aggregates are always solved
        bound_us = _simple_bound_us(problem)
    return BestKnown(size, simple_us, min(bound_us, simple_us), None, None, True)


def _simple_bound_us(problem: Problem) -> float:
    """Return a lower bound on every schedule, in a time that only the ranges count in.

    A stage handles all bytes, each for no less than at its best size; before it the first fragment
    and behind it the last one cross every other stage, each for no less than its least time. Both
    are least at an edge of a range, where t(x) and t(x) / x are monotone in between.
    """
    stages = problem.pipeline.stages
    edges = [_edges(stage, problem) for stage in stages]
    min_us = [min(map(stage.time_us, at)) for stage, at in zip(stages, edges, strict=True)]
    bytes_us = [
        problem.message_bytes * min(stage.time_us(x) / x for x in at)
        for stage, at in zip(stages, edges, strict=True)
    ]
    others_us = sum(min_us)
    alone_us = max(busy - alone for busy, alone in zip(bytes_us, min_us, strict=True))
    return (others_us + alone_us) * _SAFETY + problem.pipeline.delay_us


def _edges(stage: Stage, problem: Problem) -> list[int]:
    """The first and the last size of each range, as far as fragments may have them."""
    minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    ends = [part.up_to_bytes for part in stage.ranges if part.up_to_bytes is not None]
    inner = (size for end in ends for size in (end, end + 1) if minimum <= size <= maximum)
    return [minimum, *inner, maximum]


def _solve(problem: AnyProblem, strategy: Strategy, time_limit_s: float) -> Solution:
    return solvers.solve(problem, strategy, relative_gap=SOLVED_GAP, time_limit_s=time_limit_s)
