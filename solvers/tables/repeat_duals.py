"""Which counts can be best for a repeated size: lower bounds from means of paths.

Source    own derivation; docs/theory.md sec. 15.
Notation  B: message; s: the repeated size; k fragments: q = k - 1 of s and r = B - q s <= s; g, G:
          (n,) µs and µs/byte; b <= c: stages; a dual: paths' mean alpha q + beta s + rho r + ...
Cost      O(1) for each dual, count and end of a stretch of messages.
Exact     below the latency of every count at every message.

Derivation. The path that enters stage c with the remainder, and waited in stage b, takes
sum_{j<=c} t_j(s) + (q - 1) t_b(s) + sum_{j>=c} t_j(r). With q s = B - r this is a line in q, s, r
and B. A mean of such lines, whatever its weights, is below the latency of every count at every
message; over r in [0, B/k], s = (B - r)/q, it is least at an end of these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.kernels import PipelineArrays

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MAX_COUNTS = 16_384  # that a dual is asked of

SAFE = 1e-12


class Dual(NamedTuple):
    """A mean of paths: fixed + per_byte B + per_full q + per_size s + per_rest r, µs, no delay."""

    fixed: float
    per_byte: float
    per_full: float
    per_size: float
    per_rest: float

    @classmethod
    def at(cls, problem: Problem, k: int, message: int, size: int) -> Dual:
        """Return the mean of the longest paths at this size and at the one before it that is least
        where the two meet; the longest path alone where there are no two that fall and rise.
        """
        arrays, unit = PipelineArrays.of(problem.pipeline), problem.limits.alignment_bytes
        rising, slope = _path(arrays, k, message, size)
        falling, before = _path(arrays, k, message, max(size - unit, 1))
        if not before < 0.0 < slope:
            return rising
        share = slope / (slope - before)
        mean = share * np.array(falling) + (1.0 - share) * np.array(rising)
        return cls(*mean.tolist())

    def ends_us(self, k: Floats, message: int) -> Floats:
        """Return (2, counts) what k >= 2 fragments take at least without a remainder and with one
        that is as large as the others; the lesser of both is below all that is between.
        """
        plain = self.fixed + self.per_byte * message + self.per_full * (k - 1.0)
        ends = np.array(
            [
                self.per_size * message / (k - 1.0),
                (self.per_size + self.per_rest) * message / k,
            ]
        )
        terms = abs(self.fixed) + self.per_byte * message + self.per_full * k
        terms += (self.per_size + abs(self.per_rest)) * message / (k - 1.0)
        out: Floats = plain + ends - SAFE * terms
        return out


def _path(arrays: PipelineArrays, k: int, message: int, size: int) -> tuple[Dual, float]:
    """The longest path of a count at a size, and its slope in the size."""
    g, G, q = arrays.g, arrays.G, k - 1
    t, rest = g + G * size, g + G * (message - q * size)
    totals = np.cumsum(t) + (q - 1) * np.maximum.accumulate(t) + np.cumsum(rest[::-1])[::-1]
    c = int(np.argmax(totals))
    b = int(np.argmax(t[: c + 1]))
    before, behind, wait = float(G[: c + 1].sum()), float(G[c:].sum()), float(G[b])
    fixed = float(g[: c + 1].sum() + g[c:].sum() - g[b])
    slope = before + (q - 1) * wait - q * behind
    return Dual(fixed, wait, float(g[b]), before - wait, behind - wait), slope


class Line(NamedTuple):
    """What is known of messages: straight from one to the other, µs without delay."""

    first: int
    last: int
    first_us: float
    last_us: float


def live_counts(duals: list[Dual], known: Line, counts: tuple[int, int], near: int) -> Ints | None:
    """Return the counts, of these from the least to the greatest, that no dual shows to reach what
    is known at all of its messages. None where it takes too many of them to tell.
    """
    low, high = counts
    last = min(high, max(2 * near, near + 8))
    while last - low <= _MAX_COUNTS:
        k = np.arange(low, last + 1)
        out, is_all = np.zeros(len(k), dtype=bool), last == high
        for dual in duals:
            one, other = (
                dual.ends_us(np.maximum(k, 2).astype(float), message)
                for message in (known.first, known.last)
            )
            rows = np.concatenate([one - known.first_us, other - known.last_us])
            reached = (rows >= 0.0).all(axis=0) & (k > 1)
            out |= reached  # each row is convex in k, or rises: once it rises it does so for ever
            is_all |= bool(reached[-1]) and bool((rows[:, -1] >= rows[:, -2:][:, 0]).all())
        if is_all:
            return k[~out]
        last = min(high, 2 * last)
    return None
