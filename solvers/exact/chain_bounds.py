"""Both bounds of an iterate: the latency of its sizes, the value of its repaired dual.

Notation  as in chain.py.
Source    results sec. 1; the recurrence of Wang98 eq. (1)-(3).
Cost      O(k n).
Exact     the upper bound is a latency, the lower one a feasible dual's value; rounding errors are
          accounted for where answers are made of them (dual.value_us), not here.
"""

from __future__ import annotations

import numpy as np

from solvers.exact.chain import LONG, Chain, Iterate
from solvers.exact.dual import capped_value_us, repaired, restored, value_us
from solvers.line_problem import LineProblem

_AT_REST = 0.01  # of the distance asked for: complementarity at which the rest is of p's order


def bound_distance(chain: Chain, iterate: Iterate, close: float) -> float:
    """Return the relative distance of the two bounds.

    Where the repaired rows leave them apart, those of long chains are restored, and those of which
    the complementarity says that they should be close.
    """
    y, share = iterate.all_y(chain), max(iterate.complementarity, 0.0)
    sizes = np.minimum(y * (chain.free_bytes / y.sum()), chain.spread_bytes)
    lines = LineProblem(
        g=chain.overhead,
        G=chain.G,
        B=chain.free_bytes,
        m=0.0,
        M=chain.spread_bytes,
        k_min=1,
        k_max=len(sizes),
    )
    upper = lines.latency_us(sizes)
    lower = value_us(lines, chain.all_steps(repaired(iterate.p)))
    is_worth = chain.is_capped or chain.k > LONG or share <= _AT_REST * close
    for cut in (share**0.5, 0.0) if is_worth else ():
        if upper - lower > close * upper:
            p = chain.all_steps(restored(lines, iterate.p, chain.fragments, cut))
            lower = max(lower, capped_value_us(lines, p, upper))
    return (upper - lower) / upper
