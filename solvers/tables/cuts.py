"""Whole-byte cuts at the ends of a stretch, and what a reader's interpolation between them costs.

Source    results sec. 4 and 5; docs/format.md has the reader's arithmetic.
Notation  k fragments; a: alignment; U1, U2: (k-1,) inner positions of both cuts in units of a;
          f: the reader's share of the way, in 2^-32; n stages; G: (n,) µs/byte.
Cost      O(k n) for each message size that is evaluated.
Exact     the reader's own integers are evaluated, or bounded: interpolated real cuts are convex
          combinations, so their latency is at most the chord; positions are rounded to the nearest
          unit and the last fragment takes what the truncated share has left over.
Traps     the last fragment is off by up to half a unit, and a trace, from between those of the two
          cuts: with a unit above one byte both must leave that room.

Rounding: a path stays in stage j for consecutive fragments, so its error there is
G_j (E_end - E_start). Inner errors are at most a/2 either way, the first one is 0 and the last one
at most the trace d = (B2 - B1 + 1) / 2^32, in every stage that the path crosses with the last
fragment: in all a (sum G - (G_0 + G_{n-1})/2) + d sum G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from domain.plan_table import (
    FRACTION_BITS,
    MAX_SHIFT_UNITS,
    TableCut,
    TableRepeat,
)
from domain.problem import Problem
from domain.schedule import latency_us
from solvers.kernels import latencies_us
from solvers.rounding import nearest_cut, round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cut = tuple[int, ...]

FINE_CELLS = 400  # k n up to which all roundings are tried
_HALF = 1 << (FRACTION_BITS - 1)


def whole_cut(problem: Problem, x: Floats) -> Cut | None:
    """Return a whole-byte cut near these real sizes that leaves a reader room for its rounding."""
    x = x * (problem.message_bytes / float(x.sum()))
    if len(x) * len(problem.pipeline) <= FINE_CELLS:
        cut = round_cut(problem, x)
    else:
        nearest = nearest_cut(problem, x)
        cut = None if nearest is None else tuple(int(size) for size in nearest)
    return None if cut is None else _with_room(problem, cut)


def _with_room(problem: Problem, cut: Cut) -> Cut | None:
    """The same with the last fragment half a unit inside its limits, where the unit needs that."""
    unit, (low, high) = problem.limits.alignment_bytes, _room(problem)
    if unit == 1 or len(cut) == 1:
        return cut
    sizes = list(cut)
    while sizes[-1] < low:
        donor = max(range(len(sizes) - 1), key=sizes.__getitem__)
        sizes[donor] -= unit
        sizes[-1] += unit
    while sizes[-1] > high:
        taker = min(range(len(sizes) - 1), key=sizes.__getitem__)
        sizes[taker] += unit
        sizes[-1] -= unit
    good = problem.admits(tuple(sizes)) and low <= sizes[-1] <= high
    return tuple(sizes) if good else None


def has_room(problem: Problem, cut: Cut) -> bool:
    """Return whether a reader's rounding keeps the last fragment within its limits."""
    low, high = _room(problem)
    return problem.limits.alignment_bytes == 1 or len(cut) == 1 or low <= cut[-1] <= high


def _room(problem: Problem) -> tuple[int, int]:
    limits = problem.limits
    room = limits.alignment_bytes // 2 + 2
    maximum = limits.max_fragment_bytes or 1 << 62
    return limits.min_fragment_bytes + room, maximum - room


def shifts_fit(first: Cut, last: Cut, unit: int) -> bool:
    """Return whether no position moves by more units than a reader's products hold."""
    if sum(last) // unit <= MAX_SHIFT_UNITS:
        return True
    moved = (other - one for one, other in zip(first[:-1], last[:-1], strict=True))
    return all(abs(shift) <= MAX_SHIFT_UNITS * unit for shift in accumulate(moved))


def rounding_us(problem: Problem, first: Cut, last: Cut, length: int) -> float:
    """Return the most that the reader's rounding adds between two cuts this many bytes apart."""
    costs = [stage.ranges[0].ns_per_byte / 1000.0 for stage in problem.pipeline.stages]
    trace = float((length + 1) / 2.0**FRACTION_BITS * sum(costs))
    if first[:-1] == last[:-1]:
        return trace
    unit = problem.limits.alignment_bytes
    return unit * (sum(costs) - 0.5 * (costs[0] + costs[-1])) + trace


def reader_cuts(first: Cut, last: Cut, unit: int, sizes: Ints) -> Ints:
    """Return (messages, k) sizes that a reader computes for these message sizes of the stretch."""
    start, length = sum(first), sum(last) - sum(first)
    share = ((sizes - start) << FRACTION_BITS) // length
    U1 = np.cumsum(np.array(first[:-1], dtype=np.int64) // unit)
    U2 = np.cumsum(np.array(last[:-1], dtype=np.int64) // unit)
    moved = ((U2 - U1)[None, :] * share[:, None] + _HALF) >> FRACTION_BITS
    ends = np.concatenate([unit * (U1[None, :] + moved), sizes[:, None]], axis=1)
    out: Ints = np.diff(ends, axis=1, prepend=0)
    return out


def reader_latencies_us(problem: Problem, first: Cut, last: Cut, sizes: Ints) -> Floats:
    """Return the latency, delay included, of what a reader computes for each of these message
    sizes.
    """
    cuts = reader_cuts(first, last, problem.limits.alignment_bytes, sizes)
    return latencies_us(problem.pipeline, cuts.astype(float))


# --- no slower than the repeated sizes ------------------------------------------------------------

_COMPARED_CELLS = 2_000_000  # messages times fragments: some 2^16 messages of 30 fragments
_SPLIT_CELLS = 10_000_000  # that are evaluated to split stretches; those that need more stay whole
_SAME = 1.0 + 1e-12  # latencies that differ by less are equal


def no_slower(
    problem: Problem,
    cuts: Sequence[TableCut],
    repeats: Sequence[TableRepeat],
) -> list[TableCut]:
    """Return the cuts, with those of the repeated sizes where a reader's would be slower.

    Derivation: a cut between entries is rounded to whole bytes after it was interpolated, a
    repeated size fits its bytes exactly; of small messages that is up to 0.1 % and within the
    tolerance. Every message is compared, from the smallest on, until _COMPARED_CELLS or
    _SPLIT_CELLS are spent; a stretch with a slower one is split so that no message in it takes
    longer than its repeated size, nor longer than before: so the certificates stay true.
    """
    found: list[TableCut] = []
    of_entry = np.array([(one.message_bytes, one.size_bytes, one.fragments) for one in repeats])
    cells, work = 0, _SPLIT_CELLS
    for low, high in pairwise(cuts):
        messages = high.message_bytes - low.message_bytes + 1
        cells += messages * max(low.fragments, _count_of(of_entry, low.message_bytes))
        mended, spent = list[TableCut](), 0
        if cells <= _COMPARED_CELLS:
            sizes = low.message_bytes + np.arange(messages, dtype=np.int64)
            mended, spent = _mended(problem, low, high, sizes, of_entry, work=work)
        if not mended:  # this stretch stays, and so must the entry that it ends at
            return [*found, *(one for one in cuts if one.message_bytes >= low.message_bytes)]
        found += mended
        work -= spent
    last = cuts[-1]
    own = _Repeated.of(problem, of_entry, np.array([last.message_bytes])).cut(0)
    return [*found, _better(problem, last, own)]


def _count_of(of_entry: Ints, message_bytes: int) -> int:
    at = max(0, int(np.searchsorted(of_entry[:, 0], message_bytes, side="right")) - 1)
    return max(int(of_entry[at, 2]), 1)


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Of each message, the repeated size that a reader computes and how many fragments it makes.

    (m,) each; size 0 where the limits admit none.
    """

    messages: Ints
    size: Ints
    count: Ints

    @classmethod
    def of(cls, problem: Problem, of_entry: Ints, messages: Ints) -> _Repeated:
        """Return them for messages less than 2^31 behind the first entry (`repeated_size`).

        of_entry (r, 3): the message, the size and the number of fragments of each entry.
        """
        at = np.searchsorted(of_entry[:, 0], messages, side="right") - 1
        here, after = of_entry[at].T, of_entry[np.minimum(at + 1, len(of_entry) - 1)].T
        unit, limits = problem.limits.alignment_bytes, problem.limits
        passed, length = messages - here[0], np.maximum(1, after[0] - here[0])
        share = -((-passed << FRACTION_BITS) // length)
        grown = -(-((after[1] - here[1]) // unit * share) >> FRACTION_BITS)
        size = here[1] + np.where(after[2] == here[2], unit * grown, 0)
        count = -(-messages // np.maximum(size, 1))
        rest = messages - (count - 1) * size
        most = min(limits.max_fragments or problem.fragment_cap, problem.fragment_cap)
        maximum = np.minimum(messages, limits.max_fragment_bytes or messages)
        fits = np.where(count > 1, size, messages) <= maximum
        fits &= (count == 1) | (rest >= limits.min_fragment_bytes)
        fits &= (count == 1) | (size % unit == 0)
        return cls(messages, np.where((size > 0) & (count <= most) & fits, size, 0), count)

    def cut(self, at: int) -> Cut | None:
        """Return the cut of one message; None where the limits admit none."""
        size, before = int(self.size[at]), int(self.count[at]) - 1
        return (*[size] * before, int(self.messages[at]) - before * size) if size else None

    def latencies_us(self, problem: Problem) -> Floats:
        """Return the latencies, delay included, inf where there is none, (m,)."""
        found = np.full(len(self.messages), np.inf)
        for count in np.unique(self.count[self.size > 0]):
            at = np.flatnonzero((self.count == count) & (self.size > 0))
            x = np.repeat(self.size[at, None], count, axis=1)
            x[:, -1] = self.messages[at] - (count - 1) * self.size[at]
            found[at] = latencies_us(problem.pipeline, x.astype(float))
        return found


def _better(problem: Problem, entry: TableCut, own: Cut | None) -> TableCut:
    """The entry, or the repeated size in its place where that is quicker."""
    if own is None:
        return entry
    repeat_us = latency_us(problem.pipeline, own)
    is_slower = entry.latency_us > repeat_us * _SAME
    return replace(entry, fragment_bytes=own, latency_us=repeat_us) if is_slower else entry


def _mended(
    problem: Problem,
    low: TableCut,
    high: TableCut,
    sizes: Ints,
    of_entry: Ints,
    *,
    work: int,
) -> tuple[list[TableCut], int]:
    """The entries from `low` to before `high`, and the cells that splitting evaluated.

    sizes (m,) are all messages of both and between. No entries where it takes more than `work`.
    """
    before = _between_us(problem, low, high, sizes)
    own = _Repeated.of(problem, of_entry, sizes)
    limit = own.latencies_us(problem)
    is_slower = before > limit * _SAME
    if not is_slower.any():
        return [low], 0
    cuts = _between(low, high, sizes, problem.limits.alignment_bytes)
    best = [
        (own.cut(at) or one) if slow else one
        for at, (one, slow) in enumerate(zip(cuts, is_slower.tolist(), strict=True))
    ]
    limit = np.minimum(limit * _SAME, before)
    ends, spent = [0], 0
    while ends[-1] < len(sizes) - 2:
        end, cells = _reach(problem, best, sizes, limit, ends[-1])
        ends.append(end)
        spent += cells
        if spent > work:
            return [], spent
    entries = [
        TableCut(
            int(sizes[at]),
            best[at],
            latency_us(problem.pipeline, best[at]),
            low.relative_gap,
        )
        for at in ends
    ]
    return entries, spent


def _reach(
    problem: Problem, best: list[Cut], sizes: Ints, limit: Floats, start: int
) -> tuple[int, int]:
    """The furthest of some ends, before the last, to which nothing is above its limit, and the
    cells that were evaluated.
    """
    end, cells = len(sizes) - 2, 0
    while end > start + 1:
        if len(best[start]) == len(best[end]) and all(
            has_room(replace(problem, message_bytes=int(sizes[at])), best[at])
            for at in (start, end)
        ):
            inner = slice(start + 1, end)
            found = reader_latencies_us(problem, best[start], best[end], sizes[inner])
            cells += (end - start) * len(best[start])
            if (found <= limit[inner]).all():
                return end, cells
        end = start + max(1, (end - start) // 2)
    return start + 1, cells + len(best[start])


def _between(low: TableCut, high: TableCut, sizes: Ints, unit: int) -> list[Cut]:
    """What a reader computes for each of these messages, both entries' own included."""
    first, last = low.fragment_bytes, high.fragment_bytes
    if len(sizes) == 2:  # neighbours, of any counts
        return [first, last]
    inner = reader_cuts(first, last, unit, sizes[1:-1]).tolist()
    return [first, *map(tuple, inner), last]


def _between_us(problem: Problem, low: TableCut, high: TableCut, sizes: Ints) -> Floats:
    inner = np.empty(0)
    if len(sizes) > 2:
        inner = reader_latencies_us(problem, low.fragment_bytes, high.fragment_bytes, sizes[1:-1])
    return np.concatenate([[low.latency_us], inner, [high.latency_us]])
