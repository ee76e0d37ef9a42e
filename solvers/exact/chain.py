"""What the interior-point methods are asked and return.

Notation  k fragments, n stages; step t leads from fragment t to fragment t+1 (t = 0..k-2); p_t: a
          distribution over the stages; y_t: bytes above the least size; B' = B - km; M' = M - m.

The problem is the reduced dual (results sec. 1). Without order rows it is the dual of the no-wait
chain (theory sec. 6); `boundaries` names the stages d behind which fragments may wait, that is,
where the order rows sum_{c<=d} (p_t - p_{t+1}) >= 0 stand. One step may be repeated: the fragments
between its repetitions have one size and one p, so that k is smaller than the cut's count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LONG = 2_000  # fragments of a chain: beyond, tails take most of the iterations


@dataclass(frozen=True, slots=True)
class Chain:
    """g + mG (n,) µs, G (n,) µs/byte, B' > 0 and M' in bytes, k >= 2 fragments, n >= 2 stages.

    Step `repeat_step` is taken `repeats` times; the cut has k + repeats - 1 fragments. Fragments
    1 .. k-2 may wait behind `boundaries`, or where `waits` (k-2, n-1) says so.
    """

    overhead: Floats
    G: Floats
    free_bytes: float
    spread_bytes: float
    k: int
    boundaries: tuple[int, ...] = ()
    repeat_step: int = 0
    repeats: int = 1
    waits: NDArray[np.bool_] | None = None

    @property
    def fragments(self) -> int:
        """The number of fragments of the cut."""
        return self.k + self.repeats - 1

    def all_steps(self, p: Floats) -> Floats:
        """Return the rows of every step of the cut, of those of the chain's (k-1, n)."""
        if self.repeats == 1:
            return p
        times = np.ones(len(p), dtype=np.int64)
        times[self.repeat_step] = self.repeats
        return np.repeat(p, times, axis=0)

    @property
    def is_capped(self) -> bool:
        """Whether the greatest size can bind."""
        return self.spread_bytes < self.free_bytes

    @property
    def may_wait(self) -> NDArray[np.bool_]:
        """Which fragments, 1 .. k-2, may wait behind which boundary, (k-2, n-1)."""
        if self.waits is not None:
            return self.waits
        behind = np.isin(np.arange(len(self.G) - 1), self.boundaries)
        return np.broadcast_to(behind, (max(self.k - 2, 0), len(behind)))


@dataclass(frozen=True, slots=True)
class ChainOptions:
    """When to stop: at two bounds this close (relative), or after these iterations or seconds.

    With `check_order_at` also once the complementarity is below it and p out of order by more than
    ten times its root, a thousand times of long chains: then boundaries are missing, and going on
    is of no use. In long chains it takes that much to tell which.
    """

    close: float
    time_limit_s: float
    max_iterations: int = 80
    check_order_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Iterate:
    """The last iterate: y (k,) bytes, the repeated y, p (k-1, n), and how it stands.

    `violation` (n-1,) is how far p is out of stochastic order at each boundary; `apart` the
    relative distance of the two bounds, as the method computed it (1 where it did not).
    """

    y: Floats
    repeated_y: float
    p: Floats
    violation: Floats
    complementarity: float
    apart: float
    iterations: int

    def all_y(self, chain: Chain) -> Floats:
        """Return y of every fragment of the cut."""
        if chain.repeats == 1:
            return self.y
        split = chain.repeat_step + 1
        middle = np.full(chain.repeats - 1, self.repeated_y)
        return np.concatenate([self.y[:split], middle, self.y[split:]])


ChainMethod: TypeAlias = Callable[[Chain, ChainOptions], Iterate | None]
