"""The best real sizes with every fragment in the region that it is in, by a linear program.

Source    own derivation; docs/theory.md sec. 7.
Notation  k fragments, n stages; region: sizes on which no stage changes its range, whole bytes
          low..high; x: (k,) real sizes.
Cost      one linear program of 2k-1 rows.
Exact     for the regions that are held, in real sizes.
Traps     a size may miss an end of its region by a solver's error, and is put on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact.lp.cells import Cells, cells_dual
from solvers.exact.lp.glop import PARAMETER_SETS, run_glop
from solvers.exact.lp.lines import spread_shares
from solvers.exact.lp.reduced_dual import NO_ROWS, with_violated
from solvers.ranges.moves import cut_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIXED_REGION_CELLS = 2_000  # k*n up to which a linear program with held regions is solved

_AT_END = 1e-6  # bytes, relative: what a solver's size may miss an end by


def fixed_region_optimum(problem: Problem, sizes: Ints, deadline: Deadline) -> Floats | None:
    """Return the best real sizes with every fragment in its region; None where that is too
    large.
    """
    count, stages = len(sizes), problem.pipeline.stages
    if count < 2 or len(stages) < 2 or count * len(stages) > FIXED_REGION_CELLS:
        return None
    low, high = regions_of(problem, sizes)
    ranges = [[stage.range_at(int(size)) for stage in stages] for size in sizes]
    overhead = np.array([[part.overhead_us for part in row] for row in ranges])
    G = np.array([[part.ns_per_byte for part in row] for row in ranges]) / 1000.0
    none = np.zeros(0, dtype=np.int64)
    cells = Cells(
        c=overhead + G * low[:, None],
        G=G,
        i=none,
        j=none,
        extra_c=np.zeros(0),
        extra_G=np.zeros(0),
        total=float(problem.message_bytes - low.sum()),
        spread=(high - low).astype(float),
        unit_us=cut_us(problem, sizes),
    )
    shares = _shares(cells, deadline) if cells.total > 0.0 else None
    if shares is None:
        return None
    x = low + spread_shares(shares, cells.total, cells.spread)
    return _on_ends(x, low, high, float(problem.message_bytes))


def _shares(cells: Cells, deadline: Deadline) -> Floats | None:
    """The multipliers of the byte rows, order rows added until none is violated."""
    rows, (k, n), shares = NO_ROWS, cells.c.shape, None
    for _ in range(4):
        found = run_glop(cells_dual(cells, rows), PARAMETER_SETS[0], deadline)
        if found is None or deadline.passed:
            break
        shares = found[1][:k]
        grown = with_violated(rows, found[0][: (k - 1) * n].reshape(k - 1, n))
        if len(grown[0]) == len(rows[0]):
            break
        rows = grown
    return shares


def _on_ends(x: Floats, low: Ints, high: Ints, total: float) -> Floats:
    """Sizes that miss an end by a solver's error are put on it; one other takes the difference."""
    close = _AT_END * np.maximum(1.0, x)
    fixed = np.where(x - low <= close, low, np.where(high - x <= close, high, x)).astype(float)
    rest = total - float(fixed.sum())
    i = int(np.argmax(np.minimum(x - low, high - x)))
    if low[i] <= fixed[i] + rest <= high[i]:
        fixed[i] += rest
        return fixed
    return x


def regions_of(problem: Problem, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the least and greatest whole size (k,) on which all stages keep the ranges they have
    here.
    """
    minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    ends = {part.up_to_bytes for stage in problem.pipeline.stages for part in stage.ranges}
    inner = np.array(sorted(end for end in ends if end is not None and minimum <= end < maximum))
    lows = np.concatenate([[minimum], inner + 1]).astype(np.int64)
    highs = np.concatenate([inner, [maximum]]).astype(np.int64)
    at = np.searchsorted(highs, sizes, side="left")
    return lows[at], highs[at]
