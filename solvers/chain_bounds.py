"""Both bounds of an iterate: the latency of its sizes, the value of its repaired dual.

Notation  as in chain.py.
Source    results sec. 1; the recurrence of Wang98 eq. (1)-(3).
Cost      O(k n).
Exact     the upper bound is a latency, the lower one a feasible dual's value; rounding errors are
          accounted for where answers are made of them (dual.value_us), not here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.chain import Chain
from solvers.dual import repaired, value_us
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]


def apart_of(chain: Chain, y: Floats, repeated_y: float, p: Floats) -> float:
    """Relative distance of the two bounds."""
    sizes = np.concatenate(
        [
            y[: chain.repeat_step + 1],
            np.full(chain.repeats - 1, repeated_y),
            y[chain.repeat_step + 1 :],
        ]
    )
    sizes = np.minimum(sizes * (chain.free_bytes / sizes.sum()), chain.spread_bytes)
    times = np.ones(len(p), dtype=np.int64)
    times[chain.repeat_step] = chain.repeats
    lines = LineProblem(
        g=chain.overhead,
        G=chain.G,
        B=chain.free_bytes,
        m=0.0,
        M=chain.spread_bytes,
        k_least=1,
        k_greatest=len(sizes),
    )
    upper = lines.latency_us(sizes)
    lower = value_us(lines, np.repeat(repaired(p), times, axis=0))
    return (upper - lower) / upper
