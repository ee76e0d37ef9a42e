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

from dataclasses import dataclass, field
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact.dual import marginal_us
from solvers.exact.structured import solve_count
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

_CLOSE = 1e-7  # of the two bounds of one solve: far below any tolerance of a table
_LOST = 1e-12  # of the terms of a line, deducted
_CONSECUTIVE = 24  # counts up to here are all in the grid
_GROWTH = 1.06  # and those beyond grow by this factor
_WORTHWHILE = 1e-5  # relative gain for which a table takes the next greater count of the grid
_FAR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Solve:
    """T*(k, B) between two bounds (µs, no delay), the upper one's sizes, and the dual's line."""

    k: int
    at: int
    lower_us: float
    upper_us: float
    slope: float
    x: Floats

    def line_us(self, size: Floats | float) -> Floats:
        """Return a lower bound on T*(k, .) at these message sizes."""
        moved = self.slope * (np.asarray(size, dtype=float) - self.at)
        out: Floats = (self.lower_us + moved) - _LOST * (abs(self.lower_us) + np.abs(moved))
        return out


@dataclass(slots=True)
class Point:
    """One message size: its admitted counts and the solves so far."""

    problem: Problem
    minimum: int
    maximum: int
    solves: dict[int, Solve] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem) -> Point:
        """Return the point of this problem's message size."""
        counts = problem.count_range()
        return cls(problem, counts.minimum, counts.maximum)

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
            found = self.solves[k] = _solved(self.problem, k)
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


def _solved(problem: Problem, k: int) -> Solve:
    lines = LineProblem.of(problem)
    if lines is None:
        raise AssertionError("only stages of one line have parametric solves")
    found = solve_count(lines, k, Deadline.after(_FAR_S), close=_CLOSE)
    slope = float(lines.G.sum()) if k == 1 else marginal_us(lines, found.p)
    return Solve(k, problem.message_bytes, found.lower_us, found.upper_us, slope, found.x)
