"""The best cut of items for one stage behind their ready times.

Source    docs/theory.md, "Items", one stage.
Notation  m items; K: the most fragments.
Cost      O(m) for each range of the stage, with limits on bytes and items too; K times that where
          more than K fragments were best.
Exact     the optimum over every admitted cut.
Traps     not for a stage that takes less for an item more: labels look at all pairs of ends then.
          The table of at most K fragments has m K entries, each looked at for each range: beyond
          `MAX_CELLS` there is none.
"""

from __future__ import annotations

from domain.items import ItemCut, ItemProblem
from solvers.items.arrays import arrays_of, item_kernels

MAX_CELLS = 2**26  # of four bytes


def is_one_wire(problem: ItemProblem) -> bool:
    """Return whether there is one stage, no window, and no fragment takes less with an item
    more.
    """
    one_stage = len(problem.pipeline) == 1 and problem.pipeline.stages[0].rises
    return one_stage and not problem.windows


def unlimited_cut(problem: ItemProblem) -> ItemCut:
    """Return the best cut of any number of fragments: what it takes is a bound for fewer. Raises
    Infeasible.
    """
    return item_kernels().one_stage(arrays_of(problem))


def one_wire_cut(problem: ItemProblem) -> ItemCut | None:
    """Return the best admitted cut, None where the table for its count is too large. Raises
    Infeasible.
    """
    arrays = arrays_of(problem)
    cut = unlimited_cut(problem)
    if len(cut) <= arrays.max_fragments:
        return cut
    if arrays.items * arrays.max_fragments * int(arrays.ranges[0]) > MAX_CELLS:
        return None
    return item_kernels().few(arrays, arrays.max_fragments)
