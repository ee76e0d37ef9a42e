"""The best cut of items for two stages of one line each, all items ready at once.

Source    docs/theory.md, "Items", an overhead in front.
Notation  m items; k of at most K fragments; g: the stages' overheads.
Cost      O(m K); K is what a known latency leaves room for.
Exact     the optimum over every admitted cut below the known latency.
Traps     a front stage of ready times alone has no overhead: that is `one_wire`, in O(m).
"""

from __future__ import annotations

from math import ceil

from domain.items import ItemCut, ItemProblem
from solvers.items.arrays import arrays_of, item_kernels

MAX_CELLS = 2**25  # of four bytes; about a third of a second


def is_two_stage(problem: ItemProblem) -> bool:
    """Return whether there are two stages of one line each, no ready times, and no windows."""
    is_ready = not any(problem.sequence.ready_us or ())
    return (
        len(problem.pipeline) == 2
        and problem.pipeline.all_lines
        and is_ready
        and not problem.windows
    )


def two_stage_cut(problem: ItemProblem, known_us: float) -> ItemCut | None:
    """Return the best admitted cut, where none below `known_us` (µs, without the delay) has more
    fragments than the table; None where it is too large. Raises Infeasible.
    """
    arrays = arrays_of(problem)
    overhead_us, most = float(arrays.overhead_us.max()), arrays.max_fragments
    if overhead_us > 0.0:
        most = min(most, ceil(known_us / overhead_us) + 1)
    if arrays.items * most > MAX_CELLS:
        return None
    return item_kernels().two_stages(arrays, most) or None
