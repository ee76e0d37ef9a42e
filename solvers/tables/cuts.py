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

from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from domain.plan_table import FRACTION_BITS, MAX_SHIFT_UNITS
from domain.problem import Problem
from solvers.kernels import latencies_us
from solvers.rounding import nearest_cut, round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cut = tuple[int, ...]

_FINE_CELLS = 400  # k n up to which all roundings are tried
_HALF = 1 << (FRACTION_BITS - 1)


def whole_cut(problem: Problem, x: Floats) -> Cut | None:
    """Return a whole-byte cut near these real sizes that leaves a reader room for its rounding."""
    x = x * (problem.message_bytes / float(x.sum()))
    if len(x) * len(problem.pipeline) <= _FINE_CELLS:
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
