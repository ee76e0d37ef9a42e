"""The search over the number of fragments, with its proof.

Source    results sec. 2: T*(k), the optimum in real sizes, is convex in k.
Notation  k fragments; L(k): proven lower bound on T*(k); U: least latency of a known real cut.
Cost      a few solves (bisection by supporting lines), each of one linear program.
Exact     `bound_us` is below T*(k) for every admitted k; the search is complete when U is within
          the relative gap asked for.
Traps     solves are inexact: the line that a solve at k gives beyond k+1 is lb' + r (lb' - ub),
          with lb' a proven bound on T*(k+1) and ub >= T*(k), so its slope errs on the safe side.
          Whole bytes are not convex in k, nor unimodal: this bounds the real optimum only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.bounds import closed_form_us
from solvers.contract import Deadline
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.dual import sharper
from solvers.exact.lp.lines import CountResult
from solvers.exact.relaxation import (
    Relaxation,
    above_us,
    below_us,
    is_convex_in_count,
    like_us,
    solve_relaxed,
    true_like_us,
    two_fragments_us,
    vertices_of,
)
from solvers.exact.structured import AIM
from solvers.kernels import active
from solvers.kernels.native_whole import whole_of
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FIRST_COUNT = 256  # the first solve is never larger than this
_ROUNDING = 1e-9  # of the evaluator, which adds up to 100 000 times 64 terms one by one
_SAMPLES = 48  # counts whose closed form brackets the last one that could win
_WORTH_BISECTING = 4_000  # fewer counts than this cost less than a bisection over them
_ADAPTED_CELLS = 500_000  # k*V of the counts that one solve bounds where T* is not convex
_TIGHTENED_CELLS = 40_000  # k*n of the counts that are bounded at the true costs
_NEAREST = 2  # solved counts whose mixtures of paths are adapted to such a count
_MAX_ENDS = 100  # ends of ranges beyond which they are not
_SHARPER = 1e-3  # a solve than the gap asked for: blunt slopes exclude no count where T* is flat
_FINEST = 1e-12
_GROWTH = 4  # nor any later one larger than this many times the largest before it
_JUMP_GROWTH = 16  # where the slopes of solved counts say how far the best one is
_MAX_JUMPS = 6
_NEAR = 0.02  # of the count jumped to: farther from it nothing is left to be solved there
_EQUAL_SIZES_RATE = 2.2  # equal sizes win k^-2 by one more fragment; faster than this is a ramp


@dataclass(slots=True)
class CountSearch:
    """State of one search. Latencies leave out the constant delay until the properties add it."""

    problem: Problem
    lines: Relaxation
    lower: Floats  # L(k) from k_min to the last count that could win, without delay
    beyond_us: float = np.inf  # proven bound on the cuts left out, delay included
    floor_us: float = 0.0  # what is proven of all cuts from elsewhere, delay included
    solved: dict[int, CountResult] = field(default_factory=dict)
    aim: float = AIM  # of one solve
    _best: CountResult | None = None
    _gains: dict[int, tuple[float, float]] = field(default_factory=dict)  # see `_jump`
    _jumps: int = 0

    @classmethod
    def start(
        cls, problem: Problem, lines: Relaxation, *, known_us: float = np.inf, near: int = 1
    ) -> CountSearch:
        """Return a search that knows only the closed-form bounds.

        `known_us` is the latency of some admitted whole-byte cut: counts whose bound lies above it
        are left out, because neither a real nor a whole-byte cut of theirs can win. Where `lines`
        has been narrowed to the sizes of cuts that can win, it must have been for this latency.
        `near` is best the count of that cut.
        """
        last = _last_that_could_win(problem, lines, known_us, near=near)
        counts = np.arange(lines.k_min, last + 1, dtype=np.int64)
        every = closed_form_us(problem, counts, max_fragment_bytes=lines.M)
        narrowed = last < lines.k_max or problem.largest_fragment_bytes > lines.M
        lower = every - problem.pipeline.delay_us
        return cls(problem, lines, lower, known_us if narrowed else np.inf)

    @property
    def best(self) -> CountResult:
        """The solve with the least latency; the fewest fragments of equals."""
        assert self._best is not None, "nothing was solved"
        return self._best

    @property
    def bound_us(self) -> float:
        """Proven lower bound on every real cut of every admitted count, delay included."""
        minimum = float(np.minimum.reduce(self.lower)) + self.problem.pipeline.delay_us
        return max(min(minimum, self.beyond_us), self.floor_us)

    @property
    def unrounded_us(self) -> float:
        """Latency of the best real cut found, delay included."""
        return self.best.upper_us + self.problem.pipeline.delay_us

    def is_proven(self, relative_gap: float) -> bool:
        """Return whether the best real cut is within this gap of the bound over all admitted
        counts.
        """
        if not self.solved:
            return False
        return self.unrounded_us <= self.bound_us * (1.0 + relative_gap)

    def run(
        self, *, near: int, relative_gap: float, deadline: Deadline, max_cells: int | None = None
    ) -> bool:
        """Solve counts until the best is proven to the gap, or the deadline has passed.

        `max_cells` ends the search by work instead of time: no solve begins that would bring the
        sum of k*n over all solves above it. Return whether it ended otherwise. A search that was
        ended so goes on when it is run again.
        """
        self.aim = min(AIM, max(_FINEST, _SHARPER * relative_gap))
        k = max(self.lines.k_min, min(near, self._last, self._reach()))
        if isinstance(self.lines, LineProblem) and self.lines.n > 1 and not self.lines.g.any():
            k = self._last  # a fragment more costs nothing; what is proven does not rest on it
        cells = 0
        while True:
            if k not in self.solved:
                cells += k * self.lines.n
                if max_cells is not None and cells > max_cells:
                    return False
                self.solve(k, deadline)
            if deadline.passed or self.is_proven(relative_gap):
                return True
            candidates = self.unsolved_below(self.unrounded_us / (1.0 + relative_gap))
            if not len(candidates):
                return True
            k = self._next(candidates)

    def sharpen(self, relative_gap: float, deadline: Deadline, *, solves: int) -> None:
        """Solve so many further counts, at most, until the best is proven to this smaller gap."""
        for _ in range(solves):
            candidates = self.unsolved_below(self.unrounded_us / (1.0 + relative_gap))
            if deadline.passed or self.is_proven(relative_gap) or not len(candidates):
                return
            self.solve(self._next(candidates), deadline)

    def solve(self, k: int, deadline: Deadline) -> CountResult:
        """Solve one count and let its dual raise the bounds of all others."""
        result = solve_relaxed(self.lines, k, deadline, aim=self.aim)
        if isinstance(self.lines, LineProblem) and k >= _FIRST_COUNT:
            result = replace(result, p=sharper(self.lines, result.p, result.lower_us))
        self.solved[k] = result
        if self._best is None or _rank(result) < _rank(self._best):
            self._best = result
        first = self.lines.k_min
        self._raise(k - first, result.lower_us)
        if k >= 2 and k < self.lines.k_max:
            above = above_us(self.lines, result)
            self._raise_from(k + 1 - first, above, above - result.upper_us, towards=1)
            if isinstance(self.lines, LineProblem) and k >= _FIRST_COUNT:
                overhead = float((result.p @ self.lines.g).mean())
                self._gains[k] = (overhead, overhead - (above - result.upper_us))
        if k >= 3 and k > first:
            below = below_us(self.lines, result)
            self._raise_from(k - 1 - first, below, below - result.upper_us, towards=-1)
        if not self._is_convex:
            self._raise_each(result)
        return result

    def tighten(self, known_us: float, deadline: Deadline) -> None:
        """Tighten bounds to the true costs, where ranges make these differ from their minorants.

        For the counts that could still beat a known cut, each by the mixtures of paths of the
        nearest counts that were solved.
        """
        relaxed, cells = self.lines, 0
        if not isinstance(relaxed, ConvexProblem) or len(relaxed.ends_at) > _MAX_ENDS:
            return
        near = np.array(sorted(self.solved))
        below = np.flatnonzero(self.lower < known_us - self.problem.pipeline.delay_us)
        counts = below[np.argsort(self.lower[below], kind="stable")] + relaxed.k_min
        for k in counts:
            cells += int(k) * relaxed.n
            if cells > _TIGHTENED_CELLS or deadline.passed:
                return
            for at in near[np.argsort(np.abs(near - k), kind="stable")[:_NEAREST]]:
                value = true_like_us(relaxed, self.solved[int(at)], int(k))
                self._raise(int(k) - relaxed.k_min, value)

    def unsolved_below(self, latency_us: float) -> Ints:
        """Return counts not solved yet whose bound lies below this latency (delay included)."""
        limit = latency_us - self.problem.pipeline.delay_us
        below = self.lower < limit
        for k in self.solved:
            if k <= self._last:
                below[k - self.lines.k_min] = False
        out: Ints = below.nonzero()[0] + self.lines.k_min
        return out

    def lower_at(self, counts: Ints) -> Floats:
        """Return L(k), without delay, for these counts."""
        values: Floats = self.lower[counts - self.lines.k_min]
        return values

    def more_could_win(self) -> bool:
        """Return whether one fragment more than the greatest admitted count could lower the
        latency.

        Asked of the dual at the greatest count (results sec. 2); a single fragment has none, so
        two fragments without a least size are solved instead.
        """
        k = self.lines.k_max
        result = self.solved.get(k)
        if self.lines.n == 1 or result is None:
            return False
        if k == 1:
            return two_fragments_us(self.lines) < result.upper_us
        return above_us(self.lines, result) < result.upper_us

    def _next(self, candidates: Ints) -> int:
        """Halfway from the best count to the one with the least bound, within reach.

        The least bound lies where two lines cross, and bounds are weakest far from what was
        solved: half the way there needs a third fewer solves than all of it.
        """
        reachable = candidates[candidates <= self._reach()]
        pool = reachable if len(reachable) else candidates[:1]
        minimum = int(pool[int(np.argmin(self.lower_at(pool)))])
        if not self._is_convex:
            return minimum
        jump = self._jump()
        if jump is not None:
            jump = min(jump, float(_JUMP_GROWTH * max(self.solved)))
            nearest = int(candidates[int(np.argmin(np.abs(candidates - jump)))])
            if abs(nearest - jump) <= _NEAR * jump:
                return nearest
        halfway = self.best.k + int((minimum - self.best.k) / 2)
        return int(pool[int(np.argmin(np.abs(pool - halfway)))])

    def _jump(self) -> float | None:
        """Where one more fragment wins what it costs, by the slopes at the solved counts.

        One more fragment costs the mean overhead c of a step and wins f(k), both of the dual:
        slope = c - f. Equal sizes win A / k^2; ramps of many fragments exp(-b k). Either is laid
        through the two solved counts nearest to the end. What is proven does not depend on it.
        """
        known = [(k, *pair) for k, pair in self._gains.items() if min(pair) > 0.0]
        if not known or self._jumps >= _MAX_JUMPS:
            return None
        self._jumps += 1
        known.sort(key=lambda one: abs(np.log(one[1] / one[2])))
        k, cost, gain = known[0]
        rate = 2.0
        if len(known) > 1:
            other, _, gain_there = known[1]
            rate = float(np.log(gain_there / gain) / np.log(k / other))
            if rate > _EQUAL_SIZES_RATE:
                decay = float(np.log(gain_there / gain)) / (k - other)
                return k + float(np.log(gain / cost)) / decay
        return k * float((gain / cost) ** (1.0 / max(rate, 1.0)))

    @property
    def _is_convex(self) -> bool:
        return is_convex_in_count(self.lines)

    @property
    def _last(self) -> int:
        return self.lines.k_min + len(self.lower) - 1

    def _reach(self) -> int:
        largest = max(self.solved, default=0)
        return max(_FIRST_COUNT, _GROWTH * largest)

    def _raise_each(self, result: CountResult) -> None:
        """Without convexity: the same mixture of paths, adapted to each count that could win.

        Only up to the next counts on both sides that were solved, whose own are nearer from there.
        """
        counts = self.unsolved_below(self.unrounded_us)
        below = max((k for k in self.solved if k < result.k), default=0)
        above = min((k for k in self.solved if k > result.k), default=self._last + 1)
        counts = counts[(counts > below) & (counts < above)]
        counts = counts[np.argsort(self.lower_at(counts), kind="stable")]
        cells = np.cumsum(counts * vertices_of(self.lines))
        for k in counts[cells <= _ADAPTED_CELLS]:
            self._raise(int(k) - self.lines.k_min, like_us(self.lines, result, int(k)))

    def _raise(self, index: int, value: float) -> None:
        self.lower[index] = max(float(self.lower[index]), value)

    def _raise_from(self, index: int, value: float, slope: float, *, towards: int) -> None:
        """A supporting line from this index to the end of the range in one direction."""
        if not 0 <= index < len(self.lower):
            return
        if not self._is_convex:
            self._raise(index, value)
            return
        part = self.lower[index:] if towards > 0 else self.lower[: index + 1][::-1]
        np.maximum(part, value + slope * np.arange(len(part)), out=part)


def _rank(result: CountResult) -> tuple[float, int]:
    """The latency, but for what rounding makes of the sum of many fragments; then the count."""
    return float(f"{result.upper_us:.11e}"), result.k


def _last_that_could_win(
    problem: Problem,
    lines: Relaxation,
    known_us: float,
    *,
    near: int,
    worth_bisecting: int = _WORTH_BISECTING,
) -> int:
    """The greatest admitted count whose closed-form bound does not exceed a known latency.

    From k_min + 1 on the ends of the closed form have their least cost, and k phi(B/k) is convex
    in k (a perspective), so the counts that do not exceed it are an interval: samples find a count
    inside, or the two around it, and a bisection its end. Small ranges are not worth it.
    """
    low, high = lines.k_min + 1, lines.k_max
    if high <= low or not np.isfinite(known_us):
        return high
    limit = known_us * (1.0 + _ROUNDING)
    if active.NATIVE is not None and problem.largest_fragment_bytes == lines.M:
        whole = whole_of(problem)
        if whole is not None:
            return max(low, active.NATIVE.whole.counts_within(whole, limit, near=near)[1])
    if high - low < worth_bisecting:
        return high
    samples = np.unique(np.geomspace(low, high, _SAMPLES).astype(np.int64))
    values = closed_form_us(problem, samples, max_fragment_bytes=lines.M)
    below = np.flatnonzero(values <= limit)
    at = int(below[-1]) if len(below) else int(np.argmin(values))
    low, high = int(samples[at]), int(samples[min(at + 1, len(samples) - 1)])
    if not len(below):
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if closed_form_us(problem, np.array([middle]), max_fragment_bytes=lines.M)[0] <= limit:
            low = middle
        else:
            high = middle - 1
    return low
