"""The best pair of ramp lengths around a peak, over every number of fragments.

Source    Wang98 sec. 4.2; theory.md sec. 3.
Notation  as in ramp_up_down.py; i = k1 - 1, j = k2 - 1: sizes before and behind the peak.
Cost      O(K1 K2), the longest ramps within the limits, where that is at most GRID_CELLS; else O(k)
          for each of O(log k) counts.
Exact     over all pairs where the grid is searched; else where the best pairs' latencies are convex
          in k, as they are where the ramps are optimal (theory.md sec. 5).
Traps     the value of a pair is its latency only where the middle stage never waits; elsewhere it
          is the longest of three paths, a lower bound, and orders the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline
from solvers.heuristics.ramp import Recurrence, promising_length
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRID_CELLS = 300_000  # pairs that are all evaluated
MAX_PAIRS = 8  # pairs that are handed on
_SAMPLES = 48  # counts that bracket the best one


@dataclass(frozen=True, slots=True)
class Peak:
    """One pair of lengths: its value in µs, without delay, and the size of the peak."""

    value_us: float
    before: int
    behind: int
    size: float


@dataclass(frozen=True, slots=True)
class Peaks:
    """The best pairs found, the best first, and whether the deadline ended the search."""

    found: tuple[Peak, ...]
    up: Recurrence
    down: Recurrence
    cut_off: bool = False

    def sizes(self, peak: Peak) -> Floats:
        """Return all sizes of this pair in sending order."""
        before = self.up.sizes(peak.size, peak.before + 1)[::-1]
        behind = self.down.sizes(peak.size, peak.behind + 1)[1:]
        return np.concatenate([before, behind])


def search_peaks(lines: LineProblem, deadline: Deadline) -> Peaks:
    """Return the best pairs whose sizes and count keep the limits; none where there are none.

    Counts that cost the middle stage more than equal fragments take are left out at first.
    """
    length = promising_length(lines)
    peaks = _Search(lines, length).run(deadline)
    if peaks.found or length == lines.k_max:
        return peaks
    return _Search(lines, lines.k_max).run(deadline)


class _Search:
    """Pairs of ramps of at most `length` fragments."""

    def __init__(self, lines: LineProblem, length: int) -> None:
        self._lines = lines
        self._length = length
        self._up, self._down = self._ramp(0), self._ramp(2)
        self._up_starts = self._up.starts_within(lines.m, lines.M)
        self._down_starts = self._down.starts_within(lines.m, lines.M)
        self._before, self._behind = _longest(self._up_starts), _longest(self._down_starts)

    def run(self, deadline: Deadline) -> Peaks:
        if self._before * self._behind <= GRID_CELLS:
            return Peaks(self._grid(), self._up, self._down)
        found = self._by_count(deadline)
        return Peaks(found, self._up, self._down, cut_off=deadline.passed)

    def _ramp(self, outer: int) -> Recurrence:
        g, G = self._lines.g, self._lines.G
        with np.errstate(over="ignore"):  # no ramp but the peak alone is left then
            ratio, step = float(G[outer] / G[1]), float((g[outer] - g[1]) / G[1])
        return Recurrence.of(ratio, step, self._length)

    def _grid(self) -> tuple[Peak, ...]:
        i = np.arange(self._before)[:, None]
        j = np.arange(self._behind)[None, :]
        value, peak = self._evaluate(i, j)
        order = np.argsort(value, axis=None, kind="stable")[:MAX_PAIRS]
        pairs = (divmod(int(index), self._behind) for index in order)
        return tuple(
            Peak(float(value[at]), *at, float(peak[at])) for at in pairs if value[at] < np.inf
        )

    def _by_count(self, deadline: Deadline) -> tuple[Peak, ...]:
        """Samples bracket the best count; then the wider gap beside it is halved, again and again.

        The least value of a convex function stays within its bracket.
        """
        maximum = min(self._length, self._before + self._behind - 1)
        minimum = min(self._lines.k_min, maximum)
        samples = np.unique(np.geomspace(minimum, maximum, _SAMPLES).astype(np.int64))
        known = {int(k): self._best_of_count(int(k)) for k in samples}
        best = min(known, key=lambda k: (known[k].value_us, k))
        low = max((k for k in known if k < best), default=best)
        high = min((k for k in known if k > best), default=best)
        while max(high - best, best - low) > 1 and not deadline.passed:
            behind = high - best >= best - low
            k = (best + high) // 2 if behind else (low + best) // 2
            known[k] = self._best_of_count(k)
            if known[k].value_us < known[best].value_us:
                low, best, high = (best, k, high) if behind else (low, k, best)
            else:
                low, high = (low, k) if behind else (k, high)
        order = sorted(known.values(), key=lambda peak: peak.value_us)
        return tuple(peak for peak in order if peak.value_us < np.inf)[:MAX_PAIRS]

    def _best_of_count(self, k: int) -> Peak:
        i = np.arange(max(0, k - self._behind), min(k, self._before))
        value, peak = self._evaluate(i, k - 1 - i)
        at = int(np.argmin(value))
        return Peak(float(value[at]), int(i[at]), int(k - 1 - i[at]), float(peak[at]))

    def _evaluate(self, i: Ints, j: Ints) -> tuple[Floats, Floats]:
        """Values in µs, infinite where the limits are left, and peaks in bytes."""
        lines, up, down = self._lines, self._up, self._down
        with np.errstate(over="ignore", invalid="ignore"):  # only where the sizes do not fit
            rest = lines.B - up.offset_sums[i] - down.offset_sums[j]
            peak = rest / (up.power_sums[i] + down.power_sums[j] - 1.0)
            first = up.powers[i] * peak + up.offsets[i]
            last = down.powers[j] * peak + down.offsets[j]
            k = i + j + 1.0
            (g0, g1, g2), (G0, G1, G2) = lines.g, lines.G
            value = k * g1 + lines.B * G1 + (g0 + G0 * first) + (g2 + G2 * last)
            np.maximum(value, k * g0 + lines.B * G0 + (g1 + g2 + (G1 + G2) * last), out=value)
            np.maximum(value, k * g2 + lines.B * G2 + (g0 + g1 + (G0 + G1) * first), out=value)
        low = np.maximum(self._up_starts[0][i], self._down_starts[0][j])
        high = np.minimum(self._up_starts[1][i], self._down_starts[1][j])
        fits = (peak >= low) & (peak <= high) & (k >= lines.k_min) & (k <= self._length)
        return np.where(fits, value, np.inf), peak


def _longest(starts: tuple[Floats, Floats]) -> int:
    """The longest ramp that some peak admits."""
    return int(np.flatnonzero(starts[0] <= starts[1]).max(initial=0)) + 1
