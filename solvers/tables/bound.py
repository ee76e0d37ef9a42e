"""How far a stretch of a plan table can be above every cut of every count, at every byte size.

Source    results sec. 2 (convexity in k) and 5.
Notation  k fragments; B: message size in [b1, b2]; K: the counts that were solved at b1 or b2;
          L_k, U_k (B): lower and upper bound on T*(k, B), piecewise linear in B.
Cost      O(len(K) + counts between them) NumPy work for each piece of the L_k.
Exact     proven for every B of the stretch and every admitted count. On a piece where all L_k and
          U_k are linear, a bound for a fixed count is linear too, and the quotient of two linear
          functions has its greatest value at an end.
Traps     counts between two of K are bounded by secants from outside them, counts beyond by the
          slope at the last two; both need upper bounds of the neighbours, hence the chords U_k.

The counts of fragments that mixtures of stages do not exclude over a span, on stages with ranges.

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
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from domain.problem import Problem
from solvers.contract import Deadline
from solvers.exact.lp.lines import PARAMETER_SETS, SparseModel, run_glop
from solvers.line_problem import LineProblem
from solvers.ranges.bound import Span
from solvers.ranges.regions import Regions
from solvers.tables.points import Line, Point, count_grid, lines_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bounds between two points, for the counts that were solved at one of them."""

    first: Point
    last: Point
    lines: LineProblem  # for g and G alone
    counts: list[int]
    below: Floats  # (3, lines): what `Line` has, of both ends, count by count
    starts: Ints  # where each count's lines begin

    @classmethod
    def between(cls, first: Point, last: Point, lines: LineProblem, counts: list[int]) -> Stretch:
        """Return the stretch whose bounds rest on these counts, where they are admitted."""
        kept, below, starts = list[int](), list[Line](), list[int]()
        for k in counts:
            found = (first.solve(k), last.solve(k))
            if any(found):
                kept.append(k)
                starts.append(len(below))
                below += dict.fromkeys(line for one in found if one for line in one.lines)
        rows = np.array([(line.at, line.value_us, line.slope) for line in below]).T
        return cls(first, last, lines, kept, rows, np.array(starts, dtype=np.int64))

    def lower_us(self, size: Floats) -> Floats:
        """Bound over every admitted count at these message sizes of the stretch, without delay."""
        L, U = self._lower(size), self._upper(size)
        bounds = [L.min(axis=0), self._between(L, U), self._beyond(L, U, size)]
        out: Floats = np.min(bounds, axis=0)
        return out

    def worst_ratio(self, first_us: float, last_us: float, delay_us: float) -> float:
        """Return the greatest quotient of the chord of these latencies and the bound, delay
        included.

        The chord is of the latencies at the stretch's ends, without delay.
        """
        knots = self._knots()
        L, U = self._lower_pieces(knots), self._upper(knots)
        slope = (last_us - first_us) / max(1, self.last.size - self.first.size)
        chord = first_us + slope * (knots - self.first.size) + delay_us
        pieces = []
        for i in range(len(knots) - 1):
            ends = slice(i, i + 2)
            low = L[:, i]
            pieces.append(self._worst_of_piece(low, U[:, ends], chord[ends], knots[ends], delay_us))
        return max(pieces)

    # ---- on one piece ----------------------------------------------------------------------------

    def _worst_of_piece(
        self, L: Floats, U: Floats, chord: Floats, knots: Floats, delay_us: float
    ) -> float:
        """L, U (counts, 2) at the piece's ends; the worst count by its best bound."""
        own = _ratio(chord, L, delay_us)
        worst = float(own.max())
        up, down = self._secants(L, U)
        if up.shape[0]:
            between = np.minimum(_ratio(chord, up, delay_us), _ratio(chord, down, delay_us))
            worst = max(worst, float(between.max()))
        return max(worst, self._worst_beyond(L, U, chord, knots, delay_us))

    def _worst_beyond(
        self, L: Floats, U: Floats, chord: Floats, knots: Floats, delay_us: float
    ) -> float:
        worst = 1.0
        if self.counts[-1] < self.last.maximum:
            rising = len(L) > 1 and bool((L[-1] >= U[-2]).all())
            if not rising:
                plain = self._closed_form(self.counts[-1] + 1, knots)
                worst = float(_ratio(chord, plain, delay_us).min())
        if self.counts[0] > self.first.minimum:
            falling = len(L) > 1 and bool((L[0] >= U[1]).all())
            worst = worst if falling else np.inf
        return worst

    def _closed_form(self, k: int, size: Floats) -> Floats:
        """(rows, sizes): T >= sum_{j != b} (g_j + m G_j) + k g_b + B G_b, and what a host does;
        never falls with k.
        """
        g, G, m = self.lines.g, self.lines.G, self.lines.m
        ends = (g + m * G).sum() - (g + m * G)
        out: Floats = ((ends + k * g)[:, None] + G[:, None] * size[None, :]) * (1.0 - 1e-13)
        host = self.first.host
        if host is None:
            return out
        lines = host.lines(k, self.first.problem.pipeline.delay_us)
        return np.vstack([out, *(line.us(size) for line in lines)])

    # ---- the bounds ------------------------------------------------------------------------------

    def _below(self, j: int) -> list[Line]:
        """The lines below a count: one of each end, and those of a host, which the ends share."""
        end = self.starts[j + 1] if j + 1 < len(self.starts) else None
        return [Line(*row) for row in self.below[:, self.starts[j] : end].T.tolist()]

    def _lower(self, size: Floats) -> Floats:
        at, value, slope = self.below[:, :, None]
        rows = np.maximum.reduceat(lines_us(at, value, slope, size), self.starts, axis=0)
        out: Floats = np.where(self._admitted(size), rows, np.inf)
        return out

    def _admitted(self, size: Floats) -> NDArray[np.bool_]:
        """(counts, sizes): whether k fragments of m to M bytes can make up these sizes."""
        k = np.array(self.counts, dtype=float)[:, None]
        maximum = self.first.problem.limits.max_fragment_bytes or np.inf
        out: NDArray[np.bool_] = (k * self.lines.m <= size) & (size <= k * maximum)
        return out

    def _lower_pieces(self, knots: Floats) -> Floats:
        """(counts, pieces, 2): the line that is the highest one in the middle, at both ends."""
        middle = 0.5 * (knots[1:] + knots[:-1])
        rows = []
        for j in range(len(self.counts)):
            lines = self._below(j)
            values = np.array([line.us(knots) for line in lines])
            chosen = np.argmax([line.us(middle) for line in lines], axis=0)
            at = np.arange(len(middle))
            rows.append(np.stack([values[chosen, at], values[chosen, at + 1]], axis=1))
        out: Floats = np.where(self._admitted(middle)[:, :, None], np.array(rows), np.inf)
        return out

    def _upper(self, size: Floats) -> Floats:
        length = max(1, self.last.size - self.first.size)
        share = (size - self.first.size) / length
        found = [(self.first.solve(k), self.last.solve(k)) for k in self.counts]
        ends = [(one.upper_us, other.upper_us) if one and other else None for one, other in found]
        known = np.array([two or (0.0, 0.0) for two in ends])
        value = known[:, :1] * (1.0 - share) + known[:, 1:] * share
        is_known = np.array([two is not None for two in ends])[:, None]
        out: Floats = np.where(is_known, value * (1.0 + 1e-13), np.inf)
        return out

    def _knots(self) -> Floats:
        """Both ends, the first one twice, and where two lines of a count cross.

        The first message may be the greatest that a count of fragments can make up: a piece of no
        length for it alone.
        """
        low, high = float(self.first.size), float(self.last.size)
        knots = [high]
        maximum = self.first.problem.limits.max_fragment_bytes or self.last.size
        for k in self.counts:
            knots += [at for at in (k * self.lines.m, k * float(maximum)) if low < at < high]
        for j in range(len(self.counts)):
            for one, other in permutations(self._below(j), 2):
                if other.slope <= one.slope:
                    continue
                behind_us = other.value_us + other.slope * (one.at - other.at)
                at = one.at + (one.value_us - behind_us) / (other.slope - one.slope)
                if low < at < high:
                    knots.append(float(at))
        out: Floats = np.concatenate([[low, low], np.unique(np.array(knots))])
        return out

    def _secants(self, L: Floats, U: Floats) -> tuple[Floats, Floats]:
        """Bounds of the counts between neighbours of K, from below and from above; (counts, ...).

        Convexity: beyond k_j the latency rises at least as from k_{j-1} to k_j, and below k_{j+1}
        it falls at most as from k_{j+2} to k_{j+1}.
        """
        K = self.counts
        up, down = [], []
        for j in range(len(K) - 1):
            inner = np.arange(K[j] + 1, K[j + 1])
            if not len(inner):
                continue
            rows = (inner - K[j])[:, None], (K[j + 1] - inner)[:, None]
            none = np.full((len(inner), L.shape[1]), -np.inf)
            up.append(none)
            down.append(none)
            if j and np.isfinite(L[j]).all():
                up[-1] = L[j] + rows[0] * ((L[j] - U[j - 1]) / (K[j] - K[j - 1]))
            if j + 2 < len(K) and np.isfinite(L[j + 1]).all():
                down[-1] = L[j + 1] - rows[1] * ((U[j + 2] - L[j + 1]) / (K[j + 2] - K[j + 1]))
        empty = np.zeros((0, L.shape[1]))
        return (np.vstack(up), np.vstack(down)) if up else (empty, empty)

    def _between(self, L: Floats, U: Floats) -> Floats:
        up, down = self._secants(L, U)
        if not up.shape[0]:
            return np.full(L.shape[1], np.inf)
        out: Floats = np.maximum(up, down).min(axis=0)
        return out

    def _beyond(self, L: Floats, U: Floats, size: Floats) -> Floats:
        out = np.full(len(size), np.inf)
        if self.counts[-1] < self.last.maximum:
            plain = self._closed_form(self.counts[-1] + 1, size).max(axis=0)
            rising = L[-1] >= U[-2] if len(L) > 1 else np.zeros(len(size), dtype=bool)
            out = np.where(rising, np.maximum(L[-1], plain), plain)
        if self.counts[0] > self.first.minimum:
            falling = L[0] >= U[1] if len(L) > 1 else np.zeros(len(size), dtype=bool)
            out = np.where(falling, out, 0.0)
        return out


def _ratio(chord: Floats, bound: Floats, delay_us: float) -> Floats:
    """The greater quotient at the two ends for each row; infinite where a bound is not positive."""
    total = bound + delay_us
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(total > 0.0, chord / total, np.inf)
        quotient = np.where((total <= 0.0) & (chord <= 0.0), 1.0, quotient)
    out: Floats = quotient.max(axis=-1)
    return out


# --- counts of fragments, on stages with ranges ---------------------------------------------------

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
