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
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from solvers.line_problem import LineProblem
from solvers.tables.points import Line, Point, lines_us

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
