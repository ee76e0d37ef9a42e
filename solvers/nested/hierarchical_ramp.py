"""Algorithms C and C': blocks that ramp up to the slow stage, or up and down around it.

Source    Wang98 sec. 4.3 and 5.5 (algorithms C, C'); theory sec. 5; the second line is our own.
Notation  c(x): compound time of a block by the convention; o(x): how long its busiest internal
          stage is occupied by the block; t: times, µs; x: block sizes, bytes.
Cost      that of `hierarchical`, whose groupings it takes, then FIT_ROUNDS regressions of
          FIT_SAMPLES sizes and at most RAMPS evaluated cuts for each grouping and line, then
          POLISH_STEPS evaluated cuts near the best one, and a descent over each stage's own cut.
Exact     no. The compound stages are taken as lines for the ramp, and cut into equal pieces inside;
          the descent then moves any end of any stage.
Traps     by the convention a compound stage takes c(x) a block; in truth the next block follows
          after o(x). Ramps are made with a line through each, and the true latency decides.

Equal blocks are a ramp too: the answer is never above that of `hierarchical`, and a notice says
where no ramp was better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.hierarchy import Grouping
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Line
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.nested.compound import occupied_us, plan_pieces
from solvers.nested.compound_ramp import (
    FIRST_FIT_SHARE,
    FIT_SAMPLES,
    CompoundLines,
    best_ramps,
    fitted_line,
)
from solvers.nested.hierarchical import improve_equal
from solvers.nested.polish import polish
from solvers.nested.refragment import refragmented
from solvers.nested.search import NestedPlan, NestedSearch, check_stages, room_for

Floats = NDArray[np.float64]
Cost = Callable[[Problem, Grouping, Floats], Floats]

FIT_ROUNDS = 12  # regressions at most until the range of sizes stands
RAMPS = 6  # ramps evaluated for each grouping and line
_GROUPINGS = 3  # groupings tried
_STANDS = 1e-6  # change of the range of sizes, relative to the message, at which it stands
_NO_GAIN = Notice(
    "no_ramp", "no ramp of blocks is faster here than the equal cuts of hierarchical or fixed"
)


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Run C or C'. Raises StrategyDeclined for a single stage and for stages with ranges."""
    check_stages(problem, Strategy.HIERARCHICAL_RAMP)
    _check_lines(problem)
    search = NestedSearch(problem, options, deadline)
    proposals = improve_equal(search)
    equal_us = search.latency_us
    found = [proposal.grouping for proposal in proposals]
    if search.plan is not None:
        found.insert(0, search.plan.grouping)
    for grouping in list(dict.fromkeys(found))[:_GROUPINGS]:
        for cost in (_convention_us, _occupied_us):
            _offer_ramps(search, grouping, cost)
    polish(search)
    ramped = search.candidate(() if search.latency_us < equal_us else (_NO_GAIN,))
    better = refragmented(problem, ramped.levels or (), deadline)
    if better is None:
        return ramped
    return replace(
        ramped,
        fragment_bytes=min(better, key=len),
        levels=better,
        latency_paper_us=nested_latency_us(problem.pipeline, NestedSchedule(better)),
        notices=(),
        cut_off=deadline.passed,
    )


def _check_lines(problem: Problem) -> None:
    minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    for stage in problem.pipeline.stages:
        if stage.line_over(minimum, maximum) is None:
            raise StrategyDeclined(
                f"{Strategy.HIERARCHICAL_RAMP} needs stages of one line each over the admitted "
                f"fragment sizes, because it takes compound stages as lines; {stage.name!r} has "
                "several ranges there",
                field="strategy",
            )


def _offer_ramps(search: NestedSearch, grouping: Grouping, cost: Cost) -> None:
    """Regress, ramp, and again over the sizes in use until they stand; then evaluate the ramps."""
    problem, size = search.problem, float(search.problem.message_bytes)
    counts = problem.count_range()
    low, high = size / FIRST_FIT_SHARE, size
    ramps: list[tuple[float, Floats]] = []
    for _ in range(FIT_ROUNDS):
        if search.ended:
            return
        lines = _lines_over(problem, grouping, np.linspace(low, high, FIT_SAMPLES), cost)
        ramps = best_ramps(lines, size, min_blocks=counts.minimum, max_blocks=counts.maximum)
        if not ramps:
            return
        sizes, before = ramps[0][1], (low, high)
        low, high = float(sizes.min()), float(sizes.max())
        if low == high or abs(low - before[0]) + abs(high - before[1]) <= _STANDS * size:
            break
    for _, sizes in ramps[:RAMPS]:
        if search.ended:
            return
        _offer(search, grouping, sizes)


def _offer(search: NestedSearch, grouping: Grouping, sizes: Floats) -> None:
    blocks = search.blocks(sizes)
    if blocks is None:
        return
    problem, x = search.problem, blocks.astype(float)
    counts = np.ones((len(blocks), len(problem.pipeline)), dtype=np.int64)
    for part in grouping.parts():
        planned = plan_pieces(problem.pipeline, part, x, room_for(problem, x))
        counts[:, part.first : part.last + 1] = planned.counts
    search.offer(NestedPlan(grouping, blocks, counts))


def _lines_over(problem: Problem, grouping: Grouping, x: Floats, cost: Cost) -> CompoundLines:
    before, behind = (
        fitted_line(x, cost(problem, part, x)) if part is not None else None
        for part in (grouping.before, grouping.behind)
    )
    slow = problem.pipeline.stages[grouping.slow or 0]
    line = slow.line_over(problem.smallest_fragment_bytes, problem.largest_fragment_bytes)
    return CompoundLines(before, line or Line(0.0, 0.0), behind)


def _convention_us(problem: Problem, part: Grouping, x: Floats) -> Floats:
    return plan_pieces(problem.pipeline, part, x, room_for(problem, x)).time_us


def _occupied_us(problem: Problem, part: Grouping, x: Floats) -> Floats:
    planned = plan_pieces(problem.pipeline, part, x, room_for(problem, x))
    return occupied_us(problem.pipeline, part, x, planned.counts)


SPEC = StrategySpec(
    name=Strategy.HIERARCHICAL_RAMP,
    run=run,
    needs="at least two stages, each of one line over the admitted fragment sizes",
    optimal_when="never proven of the model: equal pieces inside a block; its gap is stated",
    refragments=True,
)
