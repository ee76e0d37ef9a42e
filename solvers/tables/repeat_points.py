"""Repeated sizes at single message sizes, and what is known from there of all others.

Source    theory sec. 2 (`repeat`); own derivation for the bound in the message size.
Notation  B: message; s: the repeated size; k fragments: q = k-1 of size s and a remainder
          r = B - q s <= s; g, G: (n,) µs and µs/byte; b, c: stages; m: least size.
Cost      O(n) NumPy passes over the counts that can win, a dozen rounds for each message size.
Exact     among repeated sizes, in real sizes. The lines hold for every message size.
Traps     counts that this message does not admit are minimised as well: their lines hold, too.

Derivation. The q full fragments leave stage c at sum_{j<=c} t_j(s) + (q-1) max_{b<=c} t_b(s), and
the remainder crosses the stages from there: T = max_{b<=c} of lines in (s, B), so T is convex in
both together. For one B the least value over s lies where a falling and a rising line meet; the
mean of the two that does not depend on s is a lower bound for every other B as well. At an end of
the interval of s the one line there, taken along that end, is such a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.kernels import PipelineArrays
from solvers.tables.convex_minima import Between, min_between
from solvers.tables.points import HostCosts

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]

_MAX_COUNTS = 4_096
_WORTHWHILE = 1e-4  # relative gain that further fragments must bring


@dataclass(frozen=True, slots=True)
class RepeatPoint:
    """One message size: for the counts from `first` on the best real s, its latency, a line below.

    Without delay. `lower` + `slope` (B - message) is below the latency of every repeated size with
    that count. `above` and `below` are (start, cost), (n,) each: the greatest of the lines
    start + cost B is below the latency of every greater count, and of every smaller one. Beside a
    host the run time takes the place of the latency; its own lines are in `lines_us` as well.
    """

    problem: Problem
    first: int
    size: Floats
    upper_us: Floats
    lower_us: Floats
    slope: Floats
    above: tuple[Floats, Floats] | None
    below: tuple[Floats, Floats] | None
    host: HostCosts | None = None

    @property
    def message(self) -> int:
        """The message size, bytes."""
        return self.problem.message_bytes

    def lines_us(self, sizes: Floats) -> Floats:
        """Return (counts, sizes) lower bounds."""
        moved = self.slope[:, None] * (sizes - self.message)
        out: Floats = self.lower_us[:, None] + moved
        return out - 1e-12 * (np.abs(self.lower_us)[:, None] + np.abs(moved))

    def host_lines_us(self, sizes: Floats) -> Iterator[Floats]:
        """Yield for each processor of the host lower bounds, (counts, sizes)."""
        if self.host is None:
            return
        k = np.arange(self.first, self.first + len(self.size), dtype=float)
        at_0 = self.host.at_no_bytes_us(k) - self.problem.pipeline.delay_us
        for fixed, slope in zip(at_0, self.host.slopes, strict=True):
            moved = slope * sizes
            yield fixed[:, None] + moved - 1e-12 * (np.abs(fixed)[:, None] + moved)


def repeat_point(problem: Problem, host: HostCosts | None = None) -> RepeatPoint:
    """Return the best repeated size of every count that can win at this message size."""
    counts = problem.count_range()
    arrays = PipelineArrays.of(problem.pipeline)
    g, G = arrays.g, arrays.G
    B, m = float(problem.message_bytes), float(problem.smallest_fragment_bytes)
    around = g.sum() - g + m * (G.sum() - G)
    delay_us = problem.pipeline.delay_us
    known, near = _best_of_sample(problem, g, G, host)
    # T >= sum_{j != b} (g_j + m G_j) + k g_b + B G_b never falls with k.
    with np.errstate(divide="ignore", invalid="ignore"):
        maximum = np.where(g > 0.0, (1.01 * known - around - B * G) / g, np.inf).min()
    if host is not None:
        maximum = min(maximum, host.enough(known + delay_us, B))
    last = int(min(counts.maximum, max(maximum, near, counts.minimum) + 2))
    last = min(last, max(near, counts.minimum) + _MAX_COUNTS // 2)
    start = max(counts.minimum, last - _MAX_COUNTS)
    k = np.arange(start, last + 1, dtype=np.int64)
    size, upper_us, lower_us, slope = _minimised(problem, g, G, k)
    above = None if last >= counts.maximum else (around + (last + 1) * g, G)
    below = None if start <= counts.minimum else (around + counts.minimum * g, G)
    if host is not None:
        upper_us = host.longer_us(upper_us + delay_us, k, B) - delay_us
        above = _with_host(above, host, last + 1, delay_us)
        below = _with_host(below, host, counts.minimum, delay_us)
    return RepeatPoint(problem, start, size, upper_us, lower_us, slope, above, below, host)


def _with_host(
    lines: tuple[Floats, Floats] | None, host: HostCosts, k: int, delay_us: float
) -> tuple[Floats, Floats] | None:
    """The same and what k fragments cost each processor: with more of them nothing falls."""
    if lines is None:
        return None
    fixed = host.at_no_bytes_us(np.array(float(k))) - delay_us
    fixed = fixed - 1e-12 * np.abs(fixed)
    return np.concatenate([lines[0], fixed]), np.concatenate([lines[1], np.array(host.slopes)])


def _best_of_sample(
    problem: Problem, g: Floats, G: Floats, host: HostCosts | None
) -> tuple[float, int]:
    """What the best of some sixty counts takes, and the fewest fragments that come near it."""
    counts = problem.count_range()
    k = np.unique(np.geomspace(counts.minimum, counts.maximum, 64).astype(np.int64))
    latency = _minimised(problem, g, G, k)[1]
    if host is not None:
        delay_us = problem.pipeline.delay_us
        latency = host.longer_us(latency + delay_us, k, problem.message_bytes) - delay_us
    known = float(latency.min())
    return known, int(k[int(np.argmax(latency <= known * (1.0 + _WORTHWHILE)))])


def _interval(problem: Problem, k: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Real s for each count: least and greatest, and how these move with B.

    The greatest is not aligned where the message itself sets it: other messages may have more.
    """
    B, m = float(problem.message_bytes), float(problem.smallest_fragment_bytes)
    limits, unit = problem.limits, problem.limits.alignment_bytes
    minimum, maximum = float(problem.aligned_sizes()[0]), np.inf
    if limits.max_fragment_bytes is not None:
        maximum = float(limits.max_fragment_bytes // unit * unit)
    q = np.maximum(k - 1, 1).astype(float)
    low, high = B / k, np.where(k > 1, (B - m) / q, B)
    low_move, high_move = 1.0 / k, np.where(k > 1, 1.0 / q, 1.0)
    low_move = np.where(minimum > low, 0.0, low_move)
    high_move = np.where((maximum < high) & (k > 1), 0.0, high_move)
    low = np.maximum(low, np.where(k > 1, minimum, 0.0))
    high = np.where(k > 1, np.minimum(high, maximum), high)
    return low, np.maximum(low, high), low_move, high_move


def _minimised(
    problem: Problem, g: Floats, G: Floats, k: Ints
) -> tuple[Floats, Floats, Floats, Floats]:
    """Best s, its latency, and the lower line (value here, slope in B) for each count."""
    B = float(problem.message_bytes)
    ends = Between(*_interval(problem, k))
    return min_between(lambda s: value_us(g, G, B, k, s), ends)


def value_us(
    g: Floats, G: Floats, B: Floats | float, k: Ints, s: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the latency at s for each count, its slope in s (B fixed) and in B (s fixed)."""
    q = (k - 1).astype(float)
    alone = k == 1
    r = np.where(alone, B, B - q * s)
    rest_g, rest_G = np.cumsum(g[::-1])[::-1], np.cumsum(G[::-1])[::-1]
    top = np.full(len(k), -np.inf)
    top_slope, top_move = np.zeros(len(k)), np.zeros(len(k))
    longest, longest_G = np.full(len(k), -np.inf), np.zeros(len(k))
    sum_g = sum_G = 0.0
    for c in range(len(g)):
        t = g[c] + G[c] * s
        take = t > longest
        longest, longest_G = np.where(take, t, longest), np.where(take, G[c], longest_G)
        sum_g, sum_G = sum_g + g[c], sum_G + G[c]
        value = sum_g + sum_G * s + (q - 1.0) * longest + rest_g[c] + rest_G[c] * r
        higher = value > top
        slope = sum_G + (q - 1.0) * longest_G - q * rest_G[c]
        top = np.where(higher, value, top)
        top_slope = np.where(higher, slope, top_slope)
        top_move = np.where(higher, rest_G[c], top_move)
    single = g.sum() + G.sum() * B
    top = np.where(alone, single, top)
    return top, np.where(alone, 0.0, top_slope), np.where(alone, G.sum(), top_move)


def shared(first: RepeatPoint, last: RepeatPoint, point: RepeatPoint) -> slice:
    """Return the part of a point's counts that both points have."""
    low = max(first.first, last.first)
    high = min(first.first + len(first.size), last.first + len(last.size))
    return slice(low - point.first, max(low, high) - point.first)


def outside(first: RepeatPoint, last: RepeatPoint) -> list[tuple[Floats, Floats]]:
    """Return what is known of counts that neither point has: of those above, and of those below."""
    # The larger message admits the more counts: where it has no line it has them all itself.
    further = first if first.first + len(first.size) > last.first + len(last.size) else last
    above = None if last.above is None else (further.above or last.above)
    # Fewer fragments are admitted at the smaller message, so its line holds for both.
    below = first.below if first.below is not None else last.below
    return [lines for lines in (above, below) if lines is not None]


def rows_us(first: RepeatPoint, last: RepeatPoint, sizes: Floats) -> list[Floats]:
    """Return lower bounds for every count of either point, (counts, sizes) each: both points' own,
    and those of a host.
    """
    start = min(first.first, last.first)
    end = max(point.first + len(point.size) for point in (first, last))
    out = []
    for point in (first, last):
        for lines in (point.lines_us(sizes), *point.host_lines_us(sizes)):
            rows = np.full((end - start, len(sizes)), -np.inf)
            at = point.first - start
            rows[at : at + len(point.size)] = lines
            out.append(rows)
    return out
