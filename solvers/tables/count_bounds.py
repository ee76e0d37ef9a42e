"""The counts of fragments that no mixture of stages excludes over a span, on stages with ranges.

Source    theory sec. 7; solvers/bounds.py has the paths of single stages at one message size.
Notation  k fragments; d: a distribution over stages; D = sum_b d_b t_b; B in [b1, b2]; lambda: a
          price of a byte; phi, psi: D over the sizes of all fragments but the last, which are whole
          units, and over those of the last.
Cost      a linear program of n + 2 variables for each mixture that is added; O(V) for each of them
          and span, V the ends of all ranges.
Exact     T >= sum_j (1-d_j) min t_j + lambda B + (k-1) min (phi - lambda x) + min (psi - lambda x)
          for any d and price, a line in B and in k: once it is above what is asked and does not
          fall in k, it stays there.
Traps     lambda B and the minima are far larger than their sum: what rounding may take is deducted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact.lp.glop import PARAMETER_SETS, SparseModel, run_glop
from solvers.ranges.bound import Span
from solvers.ranges.regions import Regions
from solvers.tables.points import count_grid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FIRST_COUNTS, _GROWTH = 32, 8
_COUNTS_CELLS = 1_000_000  # counts and mixtures in one pass
_MAX_COUNTS, _MAX_FRAGMENTS = 24, 40  # that are bounded by nodes
_MAX_MIXTURES = 48  # beside the stages themselves
_ALIKE = 1.15  # ratio of counts and of messages for which a mixture is not sought again
_LOST, _EPS = 1e-12, 1e-14  # of the terms of a bound and of a fragment's cost, deducted
_NO_SIZE_US = 1e250  # what a fragment costs where no size is admitted
_FAR_S = 3600.0


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """The counts left to other bounds, ascending, and the quotient that is proven of each."""

    open: list[int]
    ratios: list[float]

    @property
    def ratio(self) -> float:
        """The worst quotient; 0 where no count is left."""
        return max(self.ratios, default=0.0)

    def beyond(self, k: int) -> OpenCounts:
        """Return those that are greater."""
        kept = [(one, ratio) for one, ratio in zip(self.open, self.ratios, strict=True) if one > k]
        return OpenCounts([one for one, _ in kept], [ratio for _, ratio in kept])

    @property
    def are_many(self) -> bool:
        """Whether bounding each by itself would take too long."""
        return len(self.open) > _MAX_COUNTS or max(self.open, default=0) > _MAX_FRAGMENTS


class CountBounds:
    """Bounds of all counts over any span: mixtures of stages that were best somewhere serve
    everywhere.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._every = problem, Regions.of(problem.pipeline)
        self._d = np.eye(len(problem.pipeline))  # (M, n)
        self._price = np.zeros(len(problem.pipeline))
        self._sought: list[tuple[int, int]] = []

    def open_counts(self, span: Span) -> OpenCounts:
        """Return the admitted counts that no mixture excludes over this span."""
        limits = self._problem.limits
        maximum = span.last // min(limits.min_fragment_bytes, span.last)
        maximum = min(maximum, limits.max_fragments or maximum, self._problem.fragment_cap)
        minimum = max(1, -(-span.first // (limits.max_fragment_bytes or span.first)))
        maximum, costs = max(minimum, maximum), _Costs.of(self._every, self._problem, span)
        some = np.array(sorted(k for k in {minimum, *count_grid(maximum)} if k >= minimum))
        while True:
            lines = costs.lines(self._d, self._price, span)
            reached, _, ratio = lines.reached(some)
            open_, ratios = some[~reached], ratio[~reached]
            if not len(open_) or not self._has_sought(costs, open_, ratios, span.last):
                return lines.open_counts(minimum, maximum)

    def _has_sought(self, costs: _Costs, open_: Ints, ratios: Floats, message: int) -> bool:
        """Whether there is a new mixture, for the worst of these counts, the last or the first."""
        for k in (open_[int(np.argmax(ratios))], open_[-1], open_[0]):
            if not self._is_sought(int(k), message) and self._seek(costs, int(k), message):
                return True
        return False

    def _is_sought(self, k: int, message: int) -> bool:
        return any(
            max(k, count) <= _ALIKE * min(k, count) and max(message, B) <= _ALIKE * min(message, B)
            for count, B in self._sought
        )

    def _seek(self, costs: _Costs, k: int, message: int) -> bool:
        """Add the mixture that is best for this count and message; whether there is one."""
        self._sought.append((k, message))
        found = costs.best_mixture(k, message)
        if found is None:
            return False
        n, kept = len(self._problem.pipeline), len(self._price)
        if kept - n >= _MAX_MIXTURES:
            self._d, self._price = np.delete(self._d, n, axis=0), np.delete(self._price, n)
            self._sought = self._sought[1:]
        self._d, self._price = np.vstack([self._d, found[0]]), np.append(self._price, found[1])
        return True


@dataclass(frozen=True, slots=True)
class _Costs:
    """Ends of all ranges over a span, (V,) bytes, and what they cost, (V, n) µs: for the last
    fragment, and for all others.
    """

    last_at: Floats
    last_us: Floats
    inner_at: Floats
    inner_us: Floats

    @classmethod
    def of(cls, every: Regions, problem: Problem, span: Span) -> _Costs:
        limits, unit = problem.limits, problem.limits.alignment_bytes
        minimum = float(min(limits.min_fragment_bytes, span.first))
        maximum = float(min(span.last, limits.max_fragment_bytes or span.last))
        regions = every.within(minimum, maximum)
        _, at, us = regions.ends()
        if unit == 1:
            return cls(at, us, at, us)
        low, high = np.ceil(regions.low / unit) * unit, np.floor(regions.high / unit) * unit
        _, inner_at, inner_us = replace(regions, low=low, high=high).only(low <= high).ends()
        return cls(at, us, inner_at, inner_us)

    def lines(self, d: Floats, price: Floats, span: Span) -> _Lines:
        """Return what these mixtures, (M, n), say."""
        cheapest_us, found = self.last_us.min(axis=0), list[Floats]()
        for at, us in ((self.inner_at, self.inner_us), (self.last_at, self.last_us)):
            cost, moved = us @ d.T, at[:, None] * price
            low = cost - moved - _EPS * (cost + np.abs(moved))
            found.append(low.min(axis=0, initial=_NO_SIZE_US))
        return _Lines(price, found[0], found[1], (1.0 - d) @ cheapest_us, span)

    def best_mixture(self, k: int, message: int) -> tuple[Floats, float] | None:
        """Return the distribution and price of the greatest bound of k fragments of this message.

        Derivation: max sum_j (1-d_j) min t_j + lambda B + k theta over d, lambda and theta, with
        theta <= sum_j d_j t_j(v) - lambda v for each end v of a range: a linear program.
        """
        n, V = self.last_us.shape[1], len(self.inner_at)
        cheapest_us = self.last_us.min(axis=0)
        unit_us = float(self.last_us.max()) or 1.0
        if not V:
            return None
        rows = np.concatenate(
            [-self.inner_us / unit_us, self.inner_at[:, None] / message, np.ones((V, 1))], axis=1
        )
        whole = np.concatenate([np.ones(n), np.zeros(2)])[None, :]
        model = SparseModel(
            cost=np.concatenate([cheapest_us / unit_us, [-1.0, -float(k)]]),
            low=np.concatenate([np.zeros(n), [-np.inf, -np.inf]]),
            high=np.full(n + 2, np.inf),
            row_low=np.append(np.full(V, -np.inf), 1.0),
            row_high=np.append(np.zeros(V), 1.0),
            matrix=sparse.csr_matrix(np.concatenate([rows, whole])),
        )
        found = run_glop(model, PARAMETER_SETS[0], Deadline.after(_FAR_S))
        if found is None:
            return None
        d = np.maximum(found[0][:n], 0.0)
        return d / d.sum(), float(found[0][n]) * unit_us / message


@dataclass(frozen=True, slots=True)
class _Lines:
    """Of each mixture what a fragment and what the last one costs at least.

    price, inner, last (M,): a price, the least of phi - price x over the sizes of all fragments but
    the last, and over the last one's; `others_us` (M,) the least of all other stages.
    """

    price: Floats
    inner: Floats
    last: Floats
    others_us: Floats
    span: Span

    def open_counts(self, minimum: int, maximum: int) -> OpenCounts:
        """Return those of these counts that are not excluded."""
        open_, ratios, low = list[int](), list[float](), minimum
        while low <= maximum:
            room = max(_FIRST_COUNTS, _COUNTS_CELLS // len(self.price))
            high = min(maximum, max(_FIRST_COUNTS, _GROWTH * low), low + room)
            k = np.arange(low, high + 1, dtype=np.int64)
            reached, is_rising, ratio = self.reached(k)
            open_ += k[~reached].tolist()
            ratios += ratio[~reached].tolist()
            if reached[-1] and is_rising:
                break
            low = high + 1
        return OpenCounts(open_, ratios)

    def reached(self, k: Ints) -> tuple[NDArray[np.bool_], bool, Floats]:
        """Whether each count's bound reaches both targets, whether the last rises; quotients."""
        more = k[:, None] - 1.0
        inner = np.where(more > 0.0, more * np.where(more > 0.0, self.inner, 0.0), 0.0)
        plain = self.others_us + self.last + inner
        size = self.others_us + np.abs(self.last) + np.abs(inner)
        one, other = self.span.targets()
        ends = []
        for message in (self.span.first, self.span.last):
            moved = self.price * message
            ends.append(plain + moved - _LOST * (size + np.abs(moved)))
        here = (ends[0] >= one) & (ends[1] >= other)
        is_rising = bool((here[-1] & (self.inner >= 0.0)).any())
        reached: NDArray[np.bool_] = np.logical_or.reduce(here, axis=1)
        ratio: Floats = self.span.ratio(*ends).min(axis=1)
        return reached, is_rising, ratio
