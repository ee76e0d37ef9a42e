"""What each of many messages can be done in: out of a compiled table, or solved one by one.

What a setting costs is measured against this. Every latency is the evaluator's on a schedule in
whole bytes; every bound is proven over all schedules that the limits and the cap on fragments
admit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import solvers
from domain.errors import StrategyDeclined
from domain.model import CostModel
from domain.pipeline import Stage
from domain.plan_table import PlanTable
from domain.problem import AnyProblem, FragmentLimits, Problem, problem_of
from domain.regret import BestKnown
from domain.schedule import latency_us
from domain.solution import Solution, Strategy

SOLVED_GAP = 1e-4  # what a solve aims at: a regret is read to a tenth of a per cent
MIN_SHARE_S = 0.01  # of the time, for each of the two solves of a message
_SAFETY = 1.0 - 1e-12  # more than rounding takes from a bound
GRACE_S = 5.0  # after the limit, for solves that end later than they were asked to


def best_known(
    model: CostModel,
    sizes: Sequence[int],
    *,
    table: PlanTable | None,
    limits: FragmentLimits,
    fragment_cap: int,
    time_limit_s: float,
    grace_s: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[BestKnown, ...]:
    """Return the best known for each of these message sizes, in their order.

    `table` is used where it is of this model, these limits and this cap, and covers the sizes. Else
    each message is solved in this process, by `auto` and by `repeat`; what one leaves of its equal
    share of the time is there for the next, and a search that time ends leaves a wider bound, not
    a wrong one. What is not reached within `grace_s` (GRACE_S by default) of its end is left
    between a simple schedule and a simple bound. `progress` is called with messages done
    and messages in all. Raises Infeasible where the limits admit no cut of a message.
    """
    if table is not None and _serves(table, model, sizes, limits=limits, fragment_cap=fragment_cap):
        return tuple(_looked_up(table, size) for size in sizes)
    found, deadline_s = [], time.monotonic() + time_limit_s
    grace_s = GRACE_S if grace_s is None else grace_s
    for done, size in enumerate(sizes):
        problem = problem_of(model, size, limits, fragment_cap=fragment_cap)
        left_s = deadline_s - time.monotonic()
        if left_s > -grace_s or not isinstance(problem, Problem):
            share_s = left_s / (2 * (len(sizes) - done))
            found.append(_solved(problem, max(share_s, MIN_SHARE_S)))
        else:
            found.append(_bounded(problem))
        if progress is not None:
            progress(len(found), len(sizes))
    return tuple(found)


def _serves(
    table: PlanTable,
    model: CostModel,
    sizes: Sequence[int],
    *,
    limits: FragmentLimits,
    fragment_cap: int,
) -> bool:
    """Whether the table is of this very question, for all of these sizes."""
    is_same = table.limits == limits and table.fragment_cap == fragment_cap
    covers = all(table.min_message_bytes <= size <= table.max_message_bytes for size in sizes)
    return is_same and covers and table.pipeline == model


def _looked_up(table: PlanTable, message_bytes: int) -> BestKnown:
    """What a reader of the table computes, and what the table proves of it."""
    cut_us = latency_us(table.pipeline, table.cut_at(message_bytes))
    bound_us = cut_us / (1.0 + table.relative_gap_at(message_bytes))
    repeat = table.repeated_size_at(message_bytes) or None
    if repeat is None:
        return BestKnown(message_bytes, cut_us, bound_us, None, None)
    full, rest = divmod(message_bytes, repeat)
    repeat_us = latency_us(table.pipeline, [repeat] * full + [rest] * (rest > 0))
    return BestKnown(message_bytes, min(cut_us, repeat_us), bound_us, repeat, repeat_us)


def _solved(problem: AnyProblem, time_limit_s: float) -> BestKnown:
    best = _solve(problem, Strategy.AUTO, time_limit_s)
    try:
        repeat = _solve(problem, Strategy.REPEAT, time_limit_s)
    except StrategyDeclined:
        return BestKnown(problem.message_bytes, best.latency_us, best.lower_bound_us, None, None)
    return BestKnown(
        message_bytes=problem.message_bytes,
        latency_us=min(best.latency_us, repeat.latency_us),
        lower_bound_us=max(best.lower_bound_us, repeat.lower_bound_us),
        repeat_bytes=repeat.schedule.fragment_bytes[0],
        repeat_us=repeat.latency_us,
    )


def _bounded(problem: Problem) -> BestKnown:
    """Between a schedule and a bound that take no search."""
    size = problem.message_bytes
    if problem.count_range().minimum == 1:
        simple_us = latency_us(problem.pipeline, [size])
    else:
        simple_us = _solve(problem, Strategy.FIXED, MIN_SHARE_S).latency_us
    return BestKnown(size, simple_us, min(_simple_bound_us(problem), simple_us), None, None)


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
