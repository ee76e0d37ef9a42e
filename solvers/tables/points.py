"""Exact solves at single message sizes, and what their duals say of all other sizes.

Source    results sec. 1, 2 and 5.
Notation  k fragments; T*(k, B): the optimum in real sizes for a message of B bytes; m, M: least and
          greatest size; a line (at, value, slope): value + slope (B - at), µs without delay.
Cost      one exact solve for each (message size, count) that is asked for.
Exact     a dual for k at one B is a dual for k at every B (results sec. 1), so its line lies below
          T*(k, .) everywhere; with a cap on the sizes its value is convex in B and the line is its
          tangent.
Traps     lines far from their own B lose digits by cancellation: a share of both terms is deducted.
"""

from __future__ import annotations

from bisect import bisect, insort
from dataclasses import dataclass, field
from math import inf, isqrt

import numpy as np
from numpy.typing import NDArray

from domain.hiding import HiddenBehind
from domain.pipeline import Pipeline
from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact.dual import marginal_us
from solvers.exact.structured import solve_count
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CLOSE = 1e-7  # of the two bounds of one solve: far below any tolerance of a table
LOST = 1e-12  # of the terms of a line, deducted
_CONSECUTIVE = 24  # counts up to here are all in the grid
_GROWTH = 1.06  # and those beyond grow by this factor
_WORTHWHILE = 1e-5  # relative gain for which a table takes the next greater count of the grid
_FAR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Line:
    """A lower bound on all that k fragments cost: `value_us` for `at` bytes, and its slope."""

    at: float
    value_us: float
    slope: float

    def us(self, size: Floats | float) -> Floats:
        """Return the bound at these message sizes, what rounding may take from it deducted."""
        return lines_us(self.at, self.value_us, self.slope, np.asarray(size, dtype=float))

    def at_us(self, size: int) -> float:
        """Return the same at one message size."""
        moved = self.slope * (size - self.at)
        return self.value_us + moved - LOST * (abs(self.value_us) + abs(moved))


def lines_us(
    at: Floats | float, value_us: Floats | float, slope: Floats | float, size: Floats
) -> Floats:
    """Return what `Line.us` does, of many lines at once; the arguments are broadcast."""
    moved = slope * (size - at)
    out: Floats = (value_us + moved) - LOST * (np.abs(value_us) + np.abs(moved))
    return out


@dataclass(frozen=True, slots=True)
class HostCosts:
    """What processors do while B bytes in k fragments are under way: lines in both, µs.

    For each of `processors`, (overhead of a fragment, cost of a byte), it is `start_us` +
    `us_per_byte` B + overhead k + cost B. A message takes what of it and of T takes longest.
    """

    start_us: float
    us_per_byte: float
    processors: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, behind: HiddenBehind, lines: Pipeline) -> HostCosts:
        """Return the costs where every stage is a line."""
        ranges = [stage.ranges[0] for stage in lines.stages]
        sums = tuple(
            (
                sum(ranges[j].overhead_us for j in on),
                sum(ranges[j].ns_per_byte for j in on) / 1000.0,
            )
            for on in behind.processors
        )
        start_us, us_per_byte = behind.meanwhile_us
        return cls(start_us, us_per_byte, sums or ((0.0, 0.0),))

    def lines(self, k: int, delay_us: float) -> tuple[Line, ...]:
        """Return what k fragments cost each processor, less the delay that latencies lack here."""
        at_0 = self.at_no_bytes_us(np.array(float(k))) - delay_us
        return tuple(
            Line(0.0, us, cost) for us, cost in zip(at_0.tolist(), self.slopes, strict=True)
        )

    @property
    def slopes(self) -> tuple[float, ...]:
        """What a byte costs each processor, µs."""
        return tuple(self.us_per_byte + cost for _, cost in self.processors)

    def at_no_bytes_us(self, k: Floats) -> Floats:
        """Return the part of each processor's work that no bytes change, (processors, *k)."""
        overheads = np.array([overhead for overhead, _ in self.processors])
        out: Floats = self.start_us + np.multiply.outer(overheads, k)
        return out

    def enough(self, run_us: float, size: float) -> float:
        """Return the number of fragments from which on a processor's work alone takes this long."""
        found = [inf]
        for (overhead, _), slope in zip(self.processors, self.slopes, strict=True):
            missing_us = run_us - self.start_us - slope * size
            if missing_us <= 0.0:
                found.append(0.0)
            elif overhead > 0.0:
                found.append(missing_us / overhead)
        return min(found)

    def longer_us(self, latency_us: Floats, k: Ints | int, size: Floats | Ints | float) -> Floats:
        """Return what takes longest, elementwise, of latencies with the delay and this work."""
        found = np.asarray(latency_us, dtype=float)
        at_0 = self.at_no_bytes_us(np.asarray(k, dtype=float))
        for fixed, slope in zip(at_0, self.slopes, strict=True):
            found = np.maximum(found, fixed + slope * np.asarray(size, dtype=float))
        return found


@dataclass(frozen=True, slots=True)
class Solve:
    """What k fragments cost at least and at most (µs, no delay), sizes of it, and lines below.

    That is T*(k, B), or what a host does meanwhile where that takes longer.
    """

    k: int
    upper_us: float
    x: Floats
    lines: tuple[Line, ...]


class Solved:
    """What was solved, by count and message size, of one pipeline and its limits."""

    def __init__(self) -> None:
        self._sizes: dict[int, list[int]] = {}
        self._solves: dict[tuple[int, int], Solve] = {}

    def add(self, size: int, solve: Solve) -> None:
        """Remember a solve of this message size."""
        insort(self._sizes.setdefault(solve.k, []), size)
        self._solves[solve.k, size] = solve

    def between(self, k: int, size: int) -> Solve | None:
        """Return the mean of the solves on either side, where their lines prove it as good as one
        of its own: T*(k, B) is convex, and the mean of two cuts takes at most the mean of both.
        """
        sizes = self._sizes.get(k, [])
        at = bisect(sizes, size)
        if not 0 < at < len(sizes):
            return None
        one, other = self._solves[k, sizes[at - 1]], self._solves[k, sizes[at]]
        share = (size - sizes[at - 1]) / (sizes[at] - sizes[at - 1])
        upper_us = (one.upper_us * (1.0 - share) + other.upper_us * share) * (1.0 + 1e-13)
        lines = tuple(dict.fromkeys((*one.lines, *other.lines)))
        if upper_us > max(line.at_us(size) for line in lines) * (1.0 + _CLOSE):
            return None
        return Solve(k, upper_us, one.x * (1.0 - share) + other.x * share, lines)


@dataclass(slots=True)
class Point:
    """One message size: its admitted counts and the solves so far."""

    problem: Problem
    minimum: int
    maximum: int
    host: HostCosts | None = None
    known: Solved = field(default_factory=Solved)
    solves: dict[int, Solve] = field(default_factory=dict)

    @classmethod
    def of(
        cls, problem: Problem, host: HostCosts | None = None, known: Solved | None = None
    ) -> Point:
        """Return the point of this problem's message size, among others that share what is
        known.
        """
        counts = problem.count_range()
        return cls(problem, counts.minimum, counts.maximum, host, known or Solved())

    @property
    def size(self) -> int:
        """The message size, bytes."""
        return self.problem.message_bytes

    def solve(self, k: int) -> Solve | None:
        """Return the solve for k fragments, or None where k is not admitted."""
        if not self.minimum <= k <= self.maximum:
            return None
        found = self.solves.get(k)
        if found is None:
            found = self.known.between(k, self.size)
            if found is None:
                found = _solved(self.problem, k, self.host)
                self.known.add(self.size, found)
            self.solves[k] = found
        return found

    def nearby(self, grid: list[int], index: int) -> int:
        """Return the position in the grid of the best admitted count, by descent from this one."""
        best = min(max(index, self._first(grid)), self._last(grid))
        value = self._upper(grid[best])
        for step, worthwhile in ((1, 1.0 - _WORTHWHILE), (-1, 1.0)):
            while 0 <= best + step < len(grid):
                other = self._upper(grid[best + step])
                if not other < value * worthwhile:
                    break
                best, value = best + step, other
        return best

    def _upper(self, k: int) -> float:
        found = self.solve(k)
        return found.upper_us if found is not None else np.inf

    def _first(self, grid: list[int]) -> int:
        return int(np.searchsorted(grid, self.minimum, side="left"))

    def _last(self, grid: list[int]) -> int:
        return int(np.searchsorted(grid, self.maximum, side="right")) - 1


def count_grid(maximum: int) -> list[int]:
    """Return counts that tables are made of: all small ones, then in growing steps."""
    out = list(range(1, min(_CONSECUTIVE, maximum) + 1))
    while out[-1] < maximum:
        out.append(min(maximum, max(out[-1] + 1, int(out[-1] * _GROWTH))))
    return out


def between(low: int, high: int) -> int:
    """Return a size strictly between, in the middle of the logarithms."""
    return min(high - 1, max(low + 1, isqrt(low * high)))


def up(value: int, unit: int) -> int:
    """Return the least multiple of the unit that is not less."""
    return -(-value // unit) * unit


def _solved(problem: Problem, k: int, host: HostCosts | None) -> Solve:
    lines = LineProblem.of(problem)
    if lines is None:
        raise AssertionError("only stages of one line have parametric solves")
    found = solve_count(lines, k, Deadline.after(_FAR_S), close=_CLOSE)
    slope = float(lines.G.sum()) if k == 1 else marginal_us(lines, found.p)
    below = Line(problem.message_bytes, found.lower_us, slope)
    if host is None:
        return Solve(k, found.upper_us, found.x, (below,))
    delay_us = problem.pipeline.delay_us
    took_us = host.longer_us(np.array(found.upper_us + delay_us), k, problem.message_bytes)
    return Solve(k, float(took_us) - delay_us, found.x, (below, *host.lines(k, delay_us)))
