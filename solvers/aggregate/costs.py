"""The costs of an aggregate at many sizes at once.

Source    docs/theory.md, "From outside"; the evaluator is domain/aggregate.py.
Notation  x: sizes in bytes; S, b: total and bottleneck, µs; D: drops at the ends of ranges; k equal
          fragments; B: message; q full fragments of s, then the remainder r.
Cost      O(log of the number of ranges) an evaluation.
Exact     equal to the evaluator but for rounding; tests/solvers/test_aggregate.py.
Traps     S may lie below b in a noisy fit: the greater of the two counts as S.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.aggregate import Aggregate
from domain.pipeline import Pipeline
from domain.problem import AggregateProblem, Problem
from solvers.kernels import stage_times_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def bottleneck_problem(problem: AggregateProblem) -> Problem:
    """Return the same message through the bottleneck alone: what fragments that queue behind it
    cost.
    """
    alone = Pipeline((problem.aggregate.bottleneck,))
    return Problem(alone, problem.message_bytes, problem.limits, problem.fragment_cap)


class Costs:
    """S, b and D of one aggregate, vectorised; `after_bytes` is that of `Aggregate.falls`."""

    def __init__(self, aggregate: Aggregate, *, after_bytes: int = 1) -> None:
        self._both = Pipeline((aggregate.total, aggregate.bottleneck))
        falls = aggregate.falls(after_bytes=after_bytes)
        self._fall_ends = np.array([fall.up_to_bytes for fall in falls], dtype=float)
        self._fallen = np.cumsum([0.0, *(fall.drop_us for fall in falls)])

    def times_us(self, x: Floats) -> tuple[Floats, Floats]:
        """Return S(x) and b(x)."""
        t = stage_times_us(self._both, x)
        return t.max(axis=-1), t[..., 1]

    def drops_us(self, minimum: Floats, maximum: Floats) -> Floats:
        """Return D: by how much the costs drop between these sizes, in all."""
        ends = self._fall_ends
        upper = np.searchsorted(ends, maximum, side="left")
        dropped: Floats = self._fallen[upper] - self._fallen[np.searchsorted(ends, minimum)]
        return dropped

    def equal_us(self, total: int, k: Ints) -> Floats:
        """Return T(k) = S(B/k) + (k-1) b(B/k) of k equal real fragments, without delay: exact."""
        S, b = self.times_us(total / k)
        latency: Floats = S + (k - 1) * b
        return latency

    def repeated_us(self, q: Ints, size: Ints, rest: Ints) -> Floats:
        """Return at most what q fragments of `size` and then a remainder smaller than it take."""
        s, r = size.astype(float), rest.astype(float)
        (S, b), (S_rest, b_rest) = self.times_us(s), self.times_us(r)
        behind = np.minimum(b_rest + self.drops_us(r, s), S_rest)
        latency: Floats = S + (q - 1) * b + np.where(rest > 0, behind, 0.0)
        return latency
