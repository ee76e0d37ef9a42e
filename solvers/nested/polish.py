"""Small moves of a nested cut while its true latency falls: what the lines of a ramp do not see.

Source    our own; the objective is theory sec. 5's true pipelined latency.
Notation  blocks (k,) of the slow stage, bytes; counts (k, n) pieces of each block at each stage.
Cost      at most POLISH_STEPS evaluated cuts.
Exact     no: a descent from the best cut known.
Traps     pieces of a part that is split again must stay multiples of each other, so only the counts
          of flat parts move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from domain.hierarchy import Grouping
from solvers.nested.search import NestedPlan, NestedSearch

POLISH_STEPS = 120
MAX_BLOCKS = 64  # more would spend the steps before each block has moved once
FIRST_SHARE = 32  # the first step is this part of the message
LAST_SHARE = 4096  # and the last one this: smaller ones change the latency by less than the model


def polish(search: NestedSearch) -> None:
    """Move bytes between neighbouring blocks, and pieces, by steps that halve; best cut first."""
    plan = search.plan
    if plan is None or len(plan.blocks) > MAX_BLOCKS:
        return
    unit = search.problem.limits.alignment_bytes
    min_step = max(unit, search.problem.message_bytes // LAST_SHARE)
    step = max(unit, search.problem.message_bytes // FIRST_SHARE // unit * unit)
    latency_us, left = search.latency_us, POLISH_STEPS
    while step >= min_step:
        moved = False
        for change in range(_changes(plan)):
            if left == 0 or search.ended:
                return
            found = _changed(plan, change, step)
            if found is None or not search.problem.admits(tuple(found.blocks.tolist())):
                continue
            left -= 1
            found_us = search.offer(found)
            if found_us < latency_us:
                plan, latency_us, moved = found, found_us, True
        if not moved:
            step = step // 2 // unit * unit


def _changes(plan: NestedPlan) -> int:
    k = len(plan.blocks)
    return 2 * (k - 1) + 2 * k * len(list(_flat_parts(plan.grouping)))


def _changed(plan: NestedPlan, change: int, step: int) -> NestedPlan | None:
    """Change number so-and-so of this plan: bytes to a neighbour, or one piece more or fewer."""
    k, (place, down) = len(plan.blocks), divmod(change, 2)
    sign = -1 if down else 1
    if place < k - 1:
        blocks = plan.blocks.copy()
        blocks[place] += sign * step
        blocks[place + 1] -= sign * step
        return replace(plan, blocks=blocks) if blocks.min() > 0 else None
    block, number = (place - (k - 1)) % k, (place - (k - 1)) // k
    part = list(_flat_parts(plan.grouping))[number]
    counts = np.broadcast_to(plan.counts, (k, plan.counts.shape[1])).copy()
    counts[block, part.first : part.last + 1] += sign
    return replace(plan, counts=counts) if counts.min() > 0 else None


def _flat_parts(grouping: Grouping) -> Iterator[Grouping]:
    """The flat compound stages right beside the slow stage; a single stage gains by no pieces."""
    for part in grouping.parts():
        if part.slow is None and len(part) > 1:
            yield part
