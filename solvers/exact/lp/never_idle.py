"""Sizes with which the slowest stage is never idle: they grow from the least one, and shrink again.

Source    docs/theory.md sec. 14.
Notation  k fragments; g, G: (n,) µs and µs/byte; b: the slowest stage; B: message, bytes.
Cost      O(k n).
Exact     what the sizes are worth is said by the two bounds of the result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.exact.dual import value_us
from solvers.exact.lp.lines import CountResult
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

# Bytes that a fragment is smaller than it could be: whole ones near it mostly fit, too.
_SPARE = 2.0


class _Ramp:
    """Sizes that grow from the least one, each such that the slowest stage has the fragment when it
    has done the one before: g, G of the stages from one end of the pipeline to it, inclusive.
    """

    def __init__(self, g: Floats, G: Floats, minimum: float) -> None:
        self._g, self._G, self._minimum = g.tolist(), G.tolist(), minimum
        self._leaves = [0.0] * len(g)
        self._next = minimum if len(g) > 1 else np.inf
        self.sizes: list[float] = []

    def extend(self, size: float, most: int) -> bool:
        """Add fragments below this size; return whether they grew to it, and are few enough."""
        while self._next < size:
            here = self._next
            if len(self.sizes) >= most or here < self._minimum:
                return False
            self._add(here)
            if not self._next > here:
                return False
        return True

    def _add(self, size: float) -> None:
        ready = 0.0
        for c, (g, G) in enumerate(zip(self._g, self._G, strict=True)):
            ready = self._leaves[c] = max(ready, self._leaves[c]) + (g + G * size)
        self.sizes.append(size)
        self._next = self._largest()

    def _largest(self) -> float:
        size, overhead, cost = np.inf, 0.0, 0.0
        for c in range(len(self._g) - 2, -1, -1):
            overhead += self._g[c]
            cost += self._G[c]
            room = self._leaves[-1] - self._leaves[c] - overhead
            size = min(size, room / cost if cost > 0.0 else -1.0 if room < 0.0 else np.inf)
        return size - min(_SPARE, 0.5 * (size - self._minimum))


def never_idle(lines: LineProblem, k: int) -> CountResult | None:
    """Return sizes with which the slowest stage is never idle, and its bound on k >= 2 fragments.

    None where the fragments are too few to grow to the size in the middle, or too large. What the
    sizes are worth is said by the two bounds (docs/theory.md sec. 14).
    """
    g, G = lines.g, lines.G
    b = int(np.argmax((k - 1) * g + G * (lines.B - lines.m)))
    before = _Ramp(g[: b + 1], G[: b + 1], lines.m)
    behind = _Ramp(g[b:][::-1], G[b:][::-1], lines.m)
    size, count = lines.B / k, -1
    while count != len(before.sizes) + len(behind.sizes):
        count = len(before.sizes) + len(behind.sizes)
        if not before.extend(size, k - 1 - len(behind.sizes)):
            return None
        if not behind.extend(size, k - 1 - len(before.sizes)):
            return None
        rest = k - len(before.sizes) - len(behind.sizes)
        size = (lines.B - sum(before.sizes) - sum(behind.sizes)) / rest
    if size > lines.M:
        return None
    x = np.concatenate([before.sizes, np.full(rest, size), behind.sizes[::-1]])
    p = np.zeros((k - 1, lines.n))
    p[:, b] = 1.0
    latency_us = lines.latency_us(x)  # where the two meet, either may be the greater by rounding
    return CountResult(k, min(value_us(lines, p), latency_us), latency_us, x, p)
