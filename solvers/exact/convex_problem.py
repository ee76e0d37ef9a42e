"""The relaxation of a problem whose stages have ranges: convex costs, one minorant a stage.

Source    theory sec. 1 (stages with ranges): a bound may use each stage's greatest convex minorant
          over the admitted sizes, and nothing above it.
Notation  n stages; phi_j: minorant of stage j, µs, straight between the vertices in `at`; V: number
          of vertices of all stages together; B: message; m, M: least and greatest size, bytes.
Cost      O(V n) to set up; O(k n) to evaluate a cut.
Exact     every whole-byte cut costs at least what this problem says of it.
Traps     costs are means of two vertices, never lines continued beyond their ends: a line's value
          far from its own ends is a difference of large numbers (domain/pipeline.py).

The class is that of LineProblem: k real sizes in [m, M] that sum to B, for every admitted k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Stage
from domain.problem import Problem
from solvers.kernels import exit_times_us, range_arrays

Floats = NDArray[np.float64]

_MARGIN = 1e-9  # relative, of a latency or a cost of a byte that decides what can win
_ROUNDING = 1e-12  # relative difference of a cost and its minorant that is rounding alone


@dataclass(frozen=True, slots=True)
class ConvexProblem:
    """`hulls`: vertices (bytes, µs) a stage; `at` (V,) bytes and `costs` (n, V) µs: all of them.

    `ends_at` (W,): the ends of all ranges within the limits, and the limits; the costs there, µs,
    of the range that ends (`ends_before`) and as the limit of the one behind it (`ends_behind`).
    """

    stages: tuple[Stage, ...]
    B: float
    m: float
    M: float
    k_min: int
    k_max: int
    hulls: tuple[Floats, ...]
    at: Floats
    costs: Floats
    ends_at: Floats
    ends_before: Floats
    ends_behind: Floats

    @classmethod
    def of(cls, problem: Problem) -> ConvexProblem:
        """Return the relaxation of any problem. Raises Infeasible where no cut satisfies the
        limits.
        """
        counts = problem.count_range()
        return cls.over(
            problem.pipeline.stages,
            message_bytes=float(problem.message_bytes),
            sizes=(float(problem.smallest_fragment_bytes), float(problem.largest_fragment_bytes)),
            counts=(counts.minimum, counts.maximum),
        )

    @classmethod
    def over(
        cls,
        stages: Sequence[Stage],
        *,
        message_bytes: float,
        sizes: tuple[float, float],
        counts: tuple[int, int],
    ) -> ConvexProblem:
        """Return the relaxation for sizes and counts (least, greatest) that are given."""
        hulls = tuple(np.array(stage.minorant_points(*sizes)) for stage in stages)
        at = np.unique(np.concatenate([hull[:, 0] for hull in hulls]))
        costs = np.stack([_between(hull[:, 0], hull[:, 1][None, :], at)[0] for hull in hulls])
        ends = _ends(stages, *sizes)
        return cls(tuple(stages), message_bytes, *sizes, *counts, hulls, at, costs, *ends)

    @property
    def n(self) -> int:
        """The number of stages."""
        return len(self.hulls)

    @property
    def pieces(self) -> int:
        """How many straight pieces the minorants have, all together."""
        return sum(max(1, len(hull) - 1) for hull in self.hulls)

    @property
    def is_rising(self) -> bool:
        """Whether no minorant falls with the size: then the optimum is convex in k."""
        return bool((np.diff(self.costs, axis=1) >= 0.0).all())

    @property
    def is_tight(self) -> bool:
        """Whether the minorants are the costs: every stage is convex over the admitted sizes."""
        phi = self.times_us(self.ends_at).T * (1.0 + _ROUNDING)
        return bool((self.ends_before <= phi).all() and (self.ends_behind <= phi).all())

    def narrowed(self, known_us: float) -> ConvexProblem:
        """Return it without the sizes that no cut below this latency (µs, no delay) can have.

        A path that crosses the stages a..c with a fragment of x bytes meets the bytes before it in
        stage a and those behind it in stage c: T >= sum_{j=a..c} t_j(x) + min(r_a, r_c) (B - x),
        r_j the least cost of a byte in stage j. Sizes beyond the greatest x for which this does not
        exceed the latency are left out, and with them the counts that need them.
        """
        M = min(self.M, np.ceil(self._max_below(known_us * (1.0 + _MARGIN))))
        k_min = max(self.k_min, int(np.ceil(self.B / M))) if M >= 1.0 else self.k_max + 1
        if M >= self.M or self.m > M or k_min > self.k_max:
            return self
        counts, sizes = (k_min, self.k_max), (self.m, float(M))
        return ConvexProblem.over(self.stages, message_bytes=self.B, sizes=sizes, counts=counts)

    def _max_below(self, known_us: float) -> float:
        """The greatest size x at which no path of those above is longer than this."""
        at, rates = self.ends_at, self.byte_costs()
        if len(at) < 2:
            return float(at[-1])
        sums = [np.vstack([np.zeros(len(at)), np.cumsum(side, axis=0)]) for side in self._sides]
        maximum = self.M
        for a in range(self.n):
            rest = np.minimum(rates[a], rates[a:])[:, None] * (self.B - at)[None, :]
            ends, starts = (side[a + 1 :] - side[a] + rest for side in sums)
            maximum = min(maximum, float(_last_below(at, starts, ends, known_us).min()))
        return maximum

    @property
    def _sides(self) -> tuple[Floats, Floats]:
        return self.ends_before, self.ends_behind

    def byte_costs(self) -> Floats:
        """Return the least cost of a byte, µs, in each stage: at the end of some range."""
        sizes = np.where(self.ends_at > 0.0, self.ends_at, np.inf)
        costs: Floats = np.minimum(*(side / sizes for side in self._sides)).min(axis=1)
        return costs * (1.0 - _MARGIN)

    def without_limits(self) -> ConvexProblem:
        """Return the same message and stages, sizes from 0 to the message."""
        return ConvexProblem.over(
            self.stages,
            message_bytes=self.B,
            sizes=(0.0, self.B),
            counts=(self.k_min, self.k_max),
        )

    def free_bytes(self, k: int) -> float:
        """Return what is left of the message when each of k fragments has its least size."""
        return max(0.0, self.B - k * self.m)

    def times_us(self, x: Floats) -> Floats:
        """Return phi_j(x_i) as (k, n) for sizes x (k,) within the limits."""
        times: Floats = _between(self.at, self.costs, x).T
        return times

    def latency_us(self, x: Floats) -> float:
        """Return the latency of real sizes x (k,) with the minorants for costs, without the
        delay.
        """
        return float(exit_times_us(self.times_us(x))[-1, -1])


def _last_below(at: Floats, starts: Floats, ends: Floats, limit: float) -> Floats:
    """The greatest size with a value within the limit, for each row of lines between the ends.

    Between at[w-1] and at[w] a row runs straight from starts[:, w-1] to ends[:, w].
    """
    first, last = starts[:, :-1], ends[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((limit - first) / (last - first), 0.0, 1.0)
    inner = at[:-1] + np.where(np.isfinite(share), share, 1.0) * np.diff(at)
    within = np.where(last <= limit, at[1:], np.where(first <= limit, inner, at[0]))
    maximum: Floats = within.max(axis=1)
    return maximum


def _ends(stages: Sequence[Stage], m: float, M: float) -> tuple[Floats, Floats, Floats]:
    """Sizes at the ends of ranges, and the costs (n, W) on their two sides."""
    inner = {part.up_to_bytes for stage in stages for part in stage.ranges}
    at = np.array(
        sorted({m, M} | {float(end) for end in inner if end is not None and m <= end <= M})
    )
    before, behind = np.empty((len(stages), len(at))), np.empty((len(stages), len(at)))
    for j, stage in enumerate(stages):
        ends, overhead, cost = range_arrays(stage)
        here = np.searchsorted(ends, at, side="left")  # an end belongs to the range that it ends
        above = np.searchsorted(ends, at, side="right")
        before[j] = overhead[here] + cost[here] * at / 1000.0
        behind[j] = overhead[above] + cost[above] * at / 1000.0
    behind[:, -1] = before[:, -1]
    return at, before, behind


def _between(at: Floats, costs: Floats, x: Floats) -> Floats:
    """Costs (n, len(x)) at sizes x, each the mean of two vertices; nothing cancels."""
    if len(at) == 1:
        return np.repeat(costs, len(x), axis=1)
    x = np.clip(x, at[0], at[-1])
    right = np.clip(np.searchsorted(at, x, side="left"), 1, len(at) - 1)
    start, end = at[right - 1], at[right]
    share, rest = (x - start) / (end - start), (end - x) / (end - start)
    values: Floats = costs[:, right - 1] * rest + costs[:, right] * share
    return values
