"""What each of many messages can be done in: out of a compiled table, or solved one by one.

What a setting costs is measured against this. Every latency is the evaluator's on a schedule in
whole bytes; every bound is proven over all schedules that the limits and the cap on fragments
admit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import solvers
from domain.errors import Infeasible, StrategyDeclined
from domain.model import CostModel
from domain.plan_table import PlanTable
from domain.problem import AnyProblem, FragmentLimits, problem_of
from domain.regret import BestKnown
from domain.schedule import latency_us
from domain.solution import Solution, Strategy

SOLVED_GAP = 1e-4  # what a solve aims at: a regret is read to a tenth of a per cent
MIN_SHARE_S = 0.01  # of the time, for each of the two solves of a message
GRACE_S = 5.0  # after the limit, for solves that end later than they were asked to


def best_known(
    model: CostModel,
    sizes: Sequence[int],
    *,
    table: PlanTable | None,
    limits: FragmentLimits,
    fragment_cap: int,
    time_limit_s: float,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[BestKnown, ...]:
    """Return the best known for each of these message sizes, in their order.

    `table` is used where it is of this model, these limits and this cap, and covers the sizes. Else
    each message is solved in this process, by `auto` and by `repeat`; what one leaves of its equal
    share of the time is there for the next, and a search that time ends leaves a wider bound, not
    a wrong one: in the end that of one simple schedule. `progress` is called with messages done and
    messages in all. Raises Infeasible where the limits admit no cut of a message.
    """
    if table is not None and _serves(table, model, sizes, limits=limits, fragment_cap=fragment_cap):
        return tuple(_looked_up(table, size) for size in sizes)
    found, deadline_s = [], time.monotonic() + time_limit_s
    for done, size in enumerate(sizes):
        problem = problem_of(model, size, limits, fragment_cap=fragment_cap)
        left_s = deadline_s - time.monotonic()
        if left_s > -GRACE_S:
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


def _bounded(problem: AnyProblem) -> BestKnown:
    """Between a schedule and a bound that take no search."""
    try:
        simple = _solve(problem, Strategy.SINGLE, MIN_SHARE_S)
    except (Infeasible, StrategyDeclined):  # the limits admit no single fragment
        simple = _solve(problem, Strategy.FIXED, MIN_SHARE_S)
    bytes_, latency_us = problem.message_bytes, simple.latency_us
    return BestKnown(bytes_, latency_us, simple.lower_bound_us, None, None)


def _solve(problem: AnyProblem, strategy: Strategy, time_limit_s: float) -> Solution:
    return solvers.solve(problem, strategy, relative_gap=SOLVED_GAP, time_limit_s=time_limit_s)
