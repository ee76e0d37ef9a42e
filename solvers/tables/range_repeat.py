"""The best repeated size for every message size of a range, on stages with several fit ranges.

Source    theory sec. 2 (`repeat`); repeat.py has the same for stages of one line.
Notation  B: message; s: the repeated size; k fragments: q = k-1 of size s and r = B - q s <= s;
          a piece: (q, region of s, region of r), on which every stage is one line for s and one
          for r: g, G and h, H, (n, P) µs and µs/byte; b, c: stages.
Cost      O(n) NumPy passes over the pieces that can win, a dozen rounds for each span.
Exact     among repeated sizes, in real sizes within the regions; readers round up, and what that
          costs is in the certificate.
Traps     a piece may hold for a part of a span alone: it is bounded at the ends of that part.

Derivation. T = max over c of sum_{j<=c} t_j(s) + (q-1) max_{b<=c} t_b(s) + sum_{j>=c} u_j(r) is
convex in s and B together on a piece, so its least value over s is convex in B on the messages
that the piece has, and a supporting line at either end of them is below it at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.plan_table import FRACTION_BITS, TableRepeat
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import relative_excess
from solvers.contract import Deadline
from solvers.heuristics.repeat import search
from solvers.heuristics.repeat_search import Best
from solvers.kernels import stage_times_us
from solvers.ranges.bound import Span
from solvers.ranges.regions import Regions
from solvers.tables.convex_minima import Between, min_between
from solvers.tables.count_bounds import CountBounds
from solvers.tables.points import up
from solvers.tables.stretches import Stretch, StretchCompiler

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MAX_COUNTS, _LAST_COUNTS = 2_048, 4  # that are bounded one by one; when time is over
_MAX_POINTS = 6_000  # message sizes that are tried; then the gaps reached are stated
# Messages of a stretch, and the greatest, of which the best size of each is sought.
_SHORT, _MAX_EXACT = 64, 1_024
_EACH_BYTE = 2_048  # message sizes of a stretch that are evaluated one by one
_FLOOR_SLACK = 1.05
_NEAR = 1.05
_FEW = 4  # whole sizes of a piece up to which each is a piece of its own
_SAFE = 1e-12
_MAX_GAP = 1e300
_FAR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces that hold for some message of a span: (P,) each, and their lines (n, P)."""

    q: Ints
    s_region: Ints
    r_region: Ints
    low_s: Floats
    high_s: Floats
    low_r: Floats
    high_r: Floats
    first: Floats  # the messages that the piece has, within the span
    last: Floats
    g: Floats
    G: Floats
    h: Floats
    H: Floats

    def interval(self, B: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the least and greatest s, and how these move with B."""
        q, k = self.q.astype(float), self.q + 1.0
        by_rest, moves = (B - self.high_r) / q, 1.0 / q
        low = np.maximum(np.maximum(self.low_s, B / k), by_rest)
        low_move = np.where(low == by_rest, moves, np.where(low == B / k, 1.0 / k, 0.0))
        high = np.minimum(self.high_s, (B - self.low_r) / q)
        high_move = np.where(high == self.high_s, 0.0, moves)
        return low, np.maximum(low, high), low_move, high_move


@dataclass(frozen=True, slots=True)
class Lines:
    """Of each piece at one of its messages: the best s, its latency, and a line below, no delay."""

    at: Floats
    size: Floats
    upper_us: Floats
    lower_us: Floats
    slope: Floats

    def us(self, B: Floats) -> Floats:
        """Return the lines at these messages, (P,)."""
        moved = self.slope * (B - self.at)
        out: Floats = self.lower_us + moved - 1e-12 * (np.abs(self.lower_us) + np.abs(moved))
        return out


def minimised(pieces: Pieces, B: Floats) -> Lines:
    """Return the best s of each piece for its own message, by supporting lines from both ends."""
    ends = Between(*pieces.interval(B))
    return Lines(B, *min_between(lambda s: _value(pieces, B, s), ends))


def _value(pieces: Pieces, B: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
    """Latency at s, its slope in s (B fixed) and in B (s fixed)."""
    q = pieces.q.astype(float)
    r = B - q * s
    rest = np.cumsum((pieces.h + pieces.H * r)[::-1], axis=0)[::-1]
    rest_H = np.cumsum(pieces.H[::-1], axis=0)[::-1]
    top = np.full(len(s), -np.inf)
    slope, move = np.zeros(len(s)), np.zeros(len(s))
    longest, longest_G = np.full(len(s), -np.inf), np.zeros(len(s))
    total, total_G = np.zeros(len(s)), np.zeros(len(s))
    for c in range(len(pieces.g)):
        t = pieces.g[c] + pieces.G[c] * s
        longer = t > longest
        longest, longest_G = np.where(longer, t, longest), np.where(longer, pieces.G[c], longest_G)
        total, total_G = total + t, total_G + pieces.G[c]
        value = total + (q - 1.0) * longest + rest[c]
        higher = value > top
        top = np.where(higher, value, top)
        slope = np.where(higher, total_G + (q - 1.0) * longest_G - q * rest_H[c], slope)
        move = np.where(higher, rest_H[c], move)
    return top, slope, move


@dataclass(frozen=True, slots=True)
class Choice:
    """Sizes at both ends of a stretch, of one count; `stays` where no region is left between."""

    first: int
    last: int
    stays: bool


class RangeRepeatCompiler(StretchCompiler[int, TableRepeat]):
    """Compiles the repeated sizes of one table, from the least message size upwards."""

    def __init__(
        self, problem: Problem, *, min_message_bytes: int, max_message_bytes: int, tolerance: float
    ) -> None:
        regions = Regions.of(problem.pipeline)
        super().__init__(
            regions, min_message_bytes=min_message_bytes, max_message_bytes=max_message_bytes
        )
        self._problem, self._tolerance = problem, tolerance
        self._counts, self._is_over = CountBounds(problem), False
        self._unit = problem.limits.alignment_bytes
        self._best: dict[int, int] = {}

    def restart(self, tolerance: float) -> None:
        """Begin anew to this tolerance, with what is known of single messages."""
        self._tolerance, self._entries, self._points = tolerance, [], 0

    def spend(self) -> None:
        """Take what little work proves from now on."""
        self._points, self._is_over = _MAX_POINTS + 1, True

    @property
    def is_spent(self) -> bool:
        """Whether more message sizes were asked for than are tried."""
        return self._points > _MAX_POINTS

    # ---- one stretch -----------------------------------------------------------------------------

    def _tried(self, first: int, last: int, pending: int | None) -> Stretch[int] | None:
        final = self._points > _MAX_POINTS
        for choice in self._choices(first, last, pending):
            relative_gap = self._measured(first, last, choice) - 1.0
            is_exact = relative_gap > self._tolerance and self._is_short(first, last)
            if is_exact:
                relative_gap = self._exact_gap(first, last, choice)
            if relative_gap <= self._tolerance or (final and np.isfinite(relative_gap)):
                return Stretch(choice.first, choice.last, max(0.0, relative_gap) + _SAFE)
            if last <= first * _NEAR and np.isfinite(relative_gap) and not is_exact:
                floor = max(self._floor(first), self._floor(last))
                if floor > self._tolerance and relative_gap <= _FLOOR_SLACK * floor:
                    return Stretch(choice.first, choice.last, max(0.0, relative_gap) + _SAFE)
            break
        return None

    def _is_short(self, first: int, last: int) -> bool:
        """Whether the best whole size of every message of a stretch may be sought."""
        return last - first <= _SHORT and last <= _MAX_EXACT

    def _exact_gap(self, first: int, last: int, choice: Choice) -> float:
        """The greatest gap of what a reader takes to the best whole sizes, message by message."""
        sizes = np.arange(first, last, dtype=np.int64)
        own = [*self._each_us(first, last, choice, sizes), self._latency_us(last, choice.last)]
        best = [self._best_us(size) for size in range(first, last + 1)]
        gaps = map(relative_excess, own, best, best)
        return min(_MAX_GAP, max(gaps)) if np.isfinite(best).all() else np.inf

    def _choices(self, first: int, last: int, pending: int | None) -> list[Choice]:
        """What suits both ends, the best first."""
        sizes = self._best_at(first), self._best_at(last)
        if not all(sizes):
            return []
        known = [self._latency_us(first, sizes[0]), self._latency_us(last, sizes[1])]
        found = []
        for choice in self._proposed(first, last, pending, sizes):
            excess = max(
                self._latency_us(first, choice.first) / max(1e-300, known[0]),
                self._latency_us(last, choice.last) / max(1e-300, known[1]),
            )
            kept = choice.first == pending and excess <= 1.0 + 0.5 * self._tolerance
            found.append((not kept, excess, -choice.first, choice))
        found.sort(key=lambda entry: entry[:3])
        return [entry[3] for entry in found]

    def _proposed(
        self, first: int, last: int, pending: int | None, sizes: tuple[int, int]
    ) -> list[Choice]:
        """The best sizes of either end, kept or moved on to the other end; and the pending one."""
        out = []
        pairs = {sizes, (sizes[0], sizes[0]), (sizes[1], sizes[1])}
        if pending is not None:
            pairs |= {(pending, sizes[1]), (pending, pending)}
        for one, _ in list(pairs):
            k = -(-first // one)
            moved = up(up(last, k) // k, self._unit)
            pairs.add((one, max(moved, one if (k - 1) * one < last <= k * one else 0)))
            pairs.add((one, int(one * (last / first)) // self._unit * self._unit))
        if first == last:
            pairs = {pair for pair in pairs if pair[0] == pair[1]}
        for one, other in sorted(pairs):
            choice = self._choice(first, last, one, other)
            if choice is not None:
                out.append(choice)
        k = -(-first // sizes[0])
        while not out and k > 1:  # where best counts differ at both ends: a smaller one of both
            k //= 2
            one, other = (up(up(size, k) // k, self._unit) for size in (first, last))
            choice = self._choice(first, last, one, other)
            out += [choice] if choice is not None else []
        return out

    def _choice(self, first: int, last: int, one: int, other: int) -> Choice | None:
        """These two sizes as a stretch's ends, where a table admits them."""
        if one < 1 or other < 1:
            return None
        k = -(-first // one)
        if k != -(-last // other) or (k > 1 and other < one):
            return None
        if not (self._admitted(first, one) and self._admitted(last, other)):
            return None
        if k == 1:
            ends = self._regions.structure_of((first, last))
            return Choice(up(first, self._unit), up(last, self._unit), ends[0] == ends[1])
        q, grown = k - 1, other > one
        rests = first - q * one, last - q * other
        room = -(-3 * self._unit * q // 2) if grown else 0
        minimum = self._problem.limits.min_fragment_bytes
        if grown and minimum > 1 and min(rests) - minimum < room:
            return None
        at = self._regions.structure_of((one, other, rests[0] - room, rests[0], rests[1] - room))
        end = self._regions.structure_of((rests[1],))[0]
        stays = at[0] == at[1] and at[2] == at[3] == at[4] == end and min(rests) > room
        return Choice(one, other, stays)

    def _measured(self, first: int, last: int, choice: Choice) -> float:
        """The proven quotient over every repeated size, infinite where nothing is proven."""
        span = self._span(first, last, choice)
        if span is None:
            return np.inf
        counts = self._counts.open_counts(span)
        if len(counts.open) > (_LAST_COUNTS if self._is_over else _MAX_COUNTS):
            return max(counts.ratio, 1.0 + span.tolerance)
        worst = 1.0
        if counts.open and counts.open[0] == 1:
            worst = max(worst, self._single_ratio(span))
        pieces = self._pieces(span, np.array([k - 1 for k in counts.open if k > 1], dtype=np.int64))
        if pieces is not None:
            worst = max(worst, _worst(pieces, span))
        # Counts that were left out are excluded at the tolerance, and no further.
        return max(worst, 1.0 + span.tolerance)

    def _single_ratio(self, span: Span) -> float:
        """Against the whole message in one fragment; straight in B within a region."""
        if span.last > (self._problem.limits.max_fragment_bytes or span.last):
            return np.inf if span.first != span.last else 1.0
        ends = self._regions.structure_of((span.first, span.last))
        if ends[0] != ends[1]:
            return np.inf
        low = [
            float((self._regions.g[ends[0]] + self._regions.G[ends[0]] * size).sum())
            for size in (span.first, span.last)
        ]
        one, other = (np.array([value * (1.0 - 1e-13)]) for value in low)
        return float(span.ratio(one, other)[0])

    def _span(self, first: int, last: int, choice: Choice) -> Span | None:
        """The latencies at the ends and what readers' roundings add, or None where unknown."""
        latency = [self._latency_us(first, choice.first), self._latency_us(last, choice.last)]
        delay_us, added = self._problem.pipeline.delay_us, 0.0
        if last - first <= _EACH_BYTE:
            sizes = np.arange(first, last, dtype=np.int64)
            values = self._each_us(first, last, choice, sizes) if last > first else np.zeros(0)
            share = (sizes - first) / max(1, last - first)
            chord = latency[0] * (1.0 - share) + latency[1] * share
            added = max(0.0, float((values - chord).max(initial=0.0))) + _SAFE * latency[1]
        elif not choice.stays:
            return None
        elif choice.last > choice.first and -(-first // choice.first) > 1:
            added = self._rounding_us(first, choice)
        return Span(first, last, latency[0] + added, latency[1] + added, delay_us, self._tolerance)

    def _rounding_us(self, first: int, choice: Choice) -> float:
        """A size that is greater by 1.5 units, in the steepest of all paths."""
        q = (first - 1) // choice.first
        at = self._regions.structure_of((choice.first, first - q * choice.first))
        G, H = self._regions.G[at[0]], self._regions.G[at[1]]
        before, after = np.cumsum(G), np.cumsum(H[::-1])[::-1]
        steepest = (before + (q - 1) * np.maximum.accumulate(G) - q * after).max()
        return 1.5 * self._unit * max(0.0, float(steepest))

    def _each_us(self, first: int, last: int, choice: Choice, sizes: Ints) -> Floats:
        """Latency of what a reader takes for each message size of the stretch."""
        share = -((-(sizes - first) << FRACTION_BITS) // (last - first))
        grown = -(-((choice.last - choice.first) // self._unit * share) >> FRACTION_BITS)
        s = choice.first + self._unit * grown
        q = (sizes - 1) // s
        t = stage_times_us(self._problem.pipeline, s.astype(float)).T
        u = stage_times_us(self._problem.pipeline, (sizes - q * s).astype(float)).T
        left = np.cumsum(t, axis=0) + (q - 1) * np.maximum.accumulate(t, axis=0)
        rest = np.cumsum(u[::-1], axis=0)[::-1]
        many: Floats = (left + rest).max(axis=0)
        out: Floats = np.where(q > 0, many, u.sum(axis=0)) + self._problem.pipeline.delay_us
        return out

    def _pieces(self, span: Span, q: Ints) -> Pieces | None:
        """All pieces of these numbers of full fragments that hold for a message of the span."""
        regions, limits = self._regions, self._problem.limits
        minimum = float(limits.min_fragment_bytes)
        low = np.maximum(regions.low, minimum)
        high = np.minimum(regions.high, float(limits.max_fragment_bytes or span.last))
        unit = float(self._unit)  # a size is a whole number of them, a rest is not
        low_s = np.ceil(low / unit) * unit
        high_s = np.where(np.isfinite(high), high // unit * unit, high)
        # Few regions of a size suit a count: the others go before they are paired with the rests'.
        suit = (q[:, None] * low_s <= span.last) & ((q[:, None] + 1) * high_s >= span.first)
        i, a = np.nonzero(suit & (low_s <= high_s))
        b = np.tile(np.arange(len(low)), len(a))
        i, a = np.repeat(i, len(low)), np.repeat(a, len(low))
        kept = (b <= a) & (low[b] <= high[b])
        i, a, b = i[kept], a[kept], b[kept]
        # Of all messages of the span: whole sizes from here to there.
        from_s = np.maximum(span.first / (q[i] + 1), (span.first - high[b]) / q[i])
        from_s = np.maximum(low_s[a], np.ceil(from_s * (1.0 - _SAFE) / unit) * unit)
        to_s = np.floor((span.last - low[b]) / q[i] * (1.0 + _SAFE) / unit) * unit
        to_s = np.minimum(high_s[a], to_s)
        few = np.clip((to_s - from_s) / unit + 1.0, 0.0, _FEW + 1.0).astype(np.int64)
        of = np.repeat(np.arange(len(i)), np.where(few > _FEW, 1, few))  # few sizes: each alone
        step = np.arange(len(of)) - np.searchsorted(of, of)
        i, a, b, low_s = i[of], a[of], b[of], from_s[of] + unit * step
        high_s = np.where(few[of] > _FEW, to_s[of], low_s)
        first = q[i] * np.maximum(low_s, low[b]) + low[b]
        last = q[i] * high_s + np.minimum(high[b], high_s)
        kept = (first <= span.last) & (last >= span.first)
        if not kept.any():
            return None
        i, a, b, low_s, high_s = i[kept], a[kept], b[kept], low_s[kept], high_s[kept]
        return Pieces(
            q=q[i],
            s_region=a,
            r_region=b,
            low_s=low_s,
            high_s=high_s,
            low_r=low[b],
            high_r=high[b],
            first=np.maximum(first[kept], float(span.first)),
            last=np.minimum(last[kept], float(span.last)),
            g=regions.g[a].T,
            G=regions.G[a].T,
            h=regions.g[b].T,
            H=regions.G[b].T,
        )

    # ---- single sizes ----------------------------------------------------------------------------

    def _floor(self, size: int) -> float:
        """The gap of the best whole size at one message: it stays, however one halves."""
        best = self._best_at(size)
        choice = self._choice(size, size, best, best) if best else None
        return 0.0 if choice is None else self._measured(size, size, choice) - 1.0

    def _best_at(self, size: int) -> int:
        """The best repeated size of one message; 0 where none is admitted."""
        if size not in self._best:
            best = Best()
            try:
                search(replace(self._problem, message_bytes=size), best, Deadline.after(_FAR_S))
            except StrategyDeclined:
                self._best[size] = 0
            else:
                self._best[size] = best.size
        return self._best[size]

    def _best_us(self, message: int) -> float:
        """What the best repeated size of one message takes; infinite where none is admitted."""
        size = self._best_at(message)
        return self._latency_us(message, size) if size else np.inf

    def _admitted(self, message: int, size: int) -> bool:
        q = (message - 1) // size
        cut = (size,) * q + (message - q * size,)
        return replace(self._problem, message_bytes=message).admits(cut)

    def _latency_us(self, message: int, size: int) -> float:
        q = (message - 1) // size
        return latency_us(self._problem.pipeline, (size,) * q + (message - q * size,))

    def _is_same(self, end: int, pending: int) -> bool:
        return end == pending

    def _close(self, message: int, pending: int | None) -> None:
        size = self._best_at(message) if pending is None else pending
        if not size:
            self._add(message, 0, 0.0)
            return
        best = self._latency_us(message, self._best_at(message) or size)
        own = self._latency_us(message, size)
        excess = min(_MAX_GAP, relative_excess(own, best, best))
        self._add(message, size, excess + _SAFE)

    def _add(self, message: int, end: int, relative_gap: float) -> None:
        latency = self._latency_us(message, end) if end else 0.0
        self._entries.append(TableRepeat(message, end, latency, relative_gap if end else 0.0))


def _worst(pieces: Pieces, span: Span) -> float:
    """The greatest quotient of the chord and the pieces' bounds, where both are straight."""
    lines = minimised(pieces, pieces.first), minimised(pieces, pieces.last)
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = (lines[1].us(pieces.first) - lines[0].us(pieces.first)) / (
            lines[0].slope - lines[1].slope
        )
    cross = np.clip(pieces.first + np.nan_to_num(cross), pieces.first, pieces.last)
    length = max(1, span.last - span.first)
    worst = 1.0
    for at in (pieces.first, cross, pieces.last):
        bound = np.maximum(lines[0].us(at), lines[1].us(at)) + span.delay_us
        share = (at - span.first) / length
        chord = span.first_us * (1.0 - share) + span.last_us * share
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(bound > 0.0, chord / bound, np.where(chord > 0.0, np.inf, 1.0))
        worst = max(worst, float(ratio.max()))
    return worst
