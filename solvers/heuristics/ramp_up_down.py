"""Three stages, the middle one slow: sizes grow up to a peak and shrink behind it.

Source    Wang98 sec. 4.2; theory.md sec. 3.
Notation  g, G: (3,) µs and µs/byte; c: size of the peak; L_0 = c, L_1, ...: sizes before
          it, going backwards; R_0 = c, R_1, ...: sizes behind it; k1, k2: how many of each, the
          peak in both, so that k1 + k2 = k + 1 (Wang98 prints k, counting the peak twice).
Cost      O(K1 K2) vectorised, K1 and K2 the longest ramps that the limits leave; above GRID_CELLS
          a search over k by convexity, O(k) an evaluation.
Exact     over all k where the middle stage is slowest at every size, unless a least or greatest
          size binds: then it never waits, and the search over all k1 + k2 = k + 1 is complete.
Traps     both recurrences are run away from the peak, where they contract; elsewhere the sizes may
          grow, which the limits catch, and the cut is a heuristic.

G_0 L_i + g_0 = G_1 L_{i+1} + g_1: a fragment is through stage 0 when the one before it is through
stage 1. G_1 R_{i+1} + g_1 = G_2 R_i + g_2: it is through stage 1 when that one is through stage 2.

The best pair of ramp lengths around a peak, over every number of fragments.

Source    Wang98 sec. 4.2; theory.md sec. 3.
Notation  as above; i = k1 - 1, j = k2 - 1: sizes before and behind the peak.
Cost      O(K1 K2), the longest ramps within the limits, where that is at most GRID_CELLS; else O(k)
          for each of O(log k) counts.
Exact     over all pairs where the grid is searched; else where the best pairs' latencies are convex
          in k, as they are where the ramps are optimal (theory.md sec. 5).
Traps     the value of a pair is its latency only where the middle stage never waits; elsewhere it
          is the longest of three paths, a lower bound, and orders the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.heuristics.ramp import Recurrence, best_rounded, promising_length
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


_FREE = 1e-6  # bytes: a least size so small that it binds no better cut


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return the best ramp up and down. Raises StrategyDeclined where it cannot run or nothing
    fits.
    """
    lines = _lines(problem)
    slowest = bool((lines.g[1] >= lines.g).all() and (lines.G[1] >= lines.G).all())
    cuts = _proven_cuts(lines, deadline) if slowest else []
    proven, cut_off = bool(cuts), False
    if not proven:
        peaks = search_peaks(lines, deadline)
        cuts, cut_off = [peaks.sizes(peak) for peak in peaks.found], peaks.cut_off
    if not cuts:
        raise StrategyDeclined(
            "no ramp up and down satisfies the limits: for every count its sizes leave "
            "min_fragment_bytes or max_fragment_bytes",
            field="strategy",
        )
    notices = () if proven else (_LIMITS_BIND if slowest else _NOT_SLOWEST,)
    candidate = best_rounded(problem, cuts, deadline, notices=notices)
    return replace(candidate, cut_off=cut_off or candidate.cut_off)


def _proven_cuts(lines: LineProblem, deadline: Deadline) -> list[Floats]:
    """The best cuts without limits on sizes, where the limits admit the best of them; else none."""
    free = replace(lines, m=min(lines.m, _FREE), M=lines.B, k_min=1)
    peaks = search_peaks(free, deadline)
    cuts = [peaks.sizes(peak) for peak in peaks.found]
    kept = [_within(lines, sizes) for sizes in cuts]
    if peaks.cut_off or not kept or not kept[0]:
        return []
    return [sizes for sizes, keeps in zip(cuts, kept, strict=True) if keeps]


def _within(lines: LineProblem, sizes: Floats) -> bool:
    inside = lines.m <= sizes.min() and sizes.max() <= lines.M
    return bool(inside and len(sizes) >= lines.k_min)


def _lines(problem: Problem) -> LineProblem:
    if len(problem.pipeline) != 3:
        raise StrategyDeclined("ramp_up_down needs exactly three stages", field="strategy")
    lines = LineProblem.of(problem)
    if lines is None:
        raise StrategyDeclined("ramp_up_down needs stages of one line each", field="strategy")
    if lines.G[1] <= 0.0:
        raise StrategyDeclined(
            "ramp_up_down needs a per-byte cost in the middle stage", field="strategy"
        )
    return lines


_LIMITS_BIND = Notice(
    "not_proven_optimal",
    "the ramp is a heuristic here: the best sizes would leave the least or the greatest fragment "
    "size, and with a count that was skipped a cut that is no ramp may be better",
)
_NOT_SLOWEST = Notice(
    "not_proven_optimal",
    "the ramp is a heuristic here: it is exact where the middle stage has the greatest overhead "
    "and the greatest per-byte cost",
)

SPEC = StrategySpec(
    name=Strategy.RAMP_UP_DOWN,
    run=run,
    needs="exactly three stages of one line each, the middle one with a per-byte cost",
    optimal_when="the middle stage is slowest at every size and no least or greatest size binds",
)
