"""Real sizes to whole, aligned sizes that sum to the message, within all limits.

Source    theory.md sec. 6 (rounding lemma).
Notation  a: alignment; x: (k,) real sizes; X: (k-1,) inner cut positions, cumulative; n stages;
          tau: (k, n) exit times; rest: (k, n) longest path from entering (i, j) to the end.
Cost      O(OFFSETS k n) for the roundings; O(k n) for all 2(k-1) moves of one pass of the search.
Exact     no: rounding to a adds at most a*min(sum G_1.., sum ..G_{n-2}, sum G - (G_0+G_{n-1})/2),
          whatever k is; tests/solvers/test_rounding.py checks the lemma.
Traps     sizes must not be rounded one by one: the error would grow with k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline
from domain.problem import MessageProblem, Problem
from solvers.assemble import rank_of
from solvers.contract import Deadline
from solvers.kernels import active, cut_latency_us, exit_times_us, latencies_us, stage_times_us
from solvers.kernels.native_whole import whole_of
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OFFSETS = np.linspace(0.0, 1.0, 33)  # floor(X + u): 0 is the floor, 1/2 the nearest, 1 the ceiling
SEARCH_CELLS = 400_000  # matrix cells that one local search may evaluate in all
_ROUNDING_CELLS = 2_000_000  # and that all roundings of one cut may
_GAIN = 1.0 - 1e-13  # what a move must win
_TIE = 1.0 + 1e-13  # values this close are equal, whatever their last digits
# Of the smooth maxima, as shares of the slowest stage's mean time; each wider one starts afresh.
WIDTHS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1.0, 0.1, 0.01, 0.3, 0.03, 0.003)
EXCHANGE_CELLS = 120_000  # matrix cells that the exchanges from one start may evaluate
_EXCHANGED = OFFSETS[[0, 16, 32]]  # further starts of exchanges
_EXPONENT = 0.1  # of 2: so finely first sizes of ramps are searched
_ROOM = 1e-9  # bytes by which the sums of a ramp may be short from rounding alone
_NO_WIDTHS = np.zeros(0)


def round_cut(
    problem: Problem,
    real_sizes: Floats,
    *,
    search_cells: int = SEARCH_CELLS,
    exchange_cells: int = 0,
    enough_us: float = 0.0,
) -> tuple[int, ...] | None:
    """Return the best whole-byte cut found near these sizes, or None where the limits admit none.

    The cumulative positions are rounded with several offsets (floor, nearest and ceiling among
    them), repaired into the limits and compared; then single cut positions move by one unit while
    that helps. With `exchange_cells`, units are then exchanged between any two fragments, as
    `_exchanged` says, from floor, nearest and ceiling besides, unless the cut takes no more than
    `enough_us` without. C and NumPy give the same cut.
    """
    if len(real_sizes) == 1:
        whole = (problem.message_bytes,)
        return whole if problem.admits(whole) else None
    exchanges = _exchanges(problem, len(real_sizes), exchange_cells)
    native = _found_natively(problem, real_sizes, search_cells, exchanges, enough_us)
    cuts: Sequence[Ints] = [] if native is None else list(native)
    if native is None:
        cuts = _found(problem, real_sizes, search_cells, exchanges, enough_us)
    if len(cuts) < 2:
        return tuple(cuts[0].tolist()) if len(cuts) else None
    latencies = latencies_us(problem.pipeline, np.array(cuts, dtype=float))
    return tuple(cuts[_first_minimum(latencies)].tolist())


def _found_natively(
    problem: Problem, real_sizes: Floats, search_cells: int, exchanges: int, enough_us: float
) -> Ints | None:
    """The best cuts that each start leads to, (cuts, k), in C; None where this is not for C."""
    whole = whole_of(problem) if active.NATIVE is not None else None
    if active.NATIVE is None or whole is None:
        return None
    offsets = _offsets(problem, real_sizes)
    return active.NATIVE.whole.rounded(
        whole,
        real_sizes,
        np.concatenate([offsets, _EXCHANGED]) if exchanges else offsets,
        others=len(_EXCHANGED) if exchanges else 0,
        passes=_passes(problem, real_sizes, search_cells),
        widths=_widths(problem, len(real_sizes)) if exchanges else _NO_WIDTHS,
        exchanges=exchanges,
        enough_us=enough_us,
    )


def _found(
    problem: Problem, real_sizes: Floats, search_cells: int, exchanges: int, enough_us: float
) -> Sequence[Ints]:
    """The same in NumPy; starts that lead to the same place are gone on from once."""
    offsets = _offsets(problem, real_sizes)
    starts = [offsets, *_EXCHANGED.reshape(-1, 1)] if exchanges else [offsets]
    found: dict[bytes, Ints] = {}
    for start in starts:
        cuts = [cut for cut in rounded_cuts(problem, real_sizes, start) if cut is not None]
        if cuts:
            latencies = latencies_us(problem.pipeline, np.array(cuts, dtype=float))
            best = _improve(problem, cuts[_first_minimum(latencies)], search_cells)
            priced_us = cut_latency_us(problem.pipeline, best.astype(float))
            if start is offsets and exchanges and priced_us <= enough_us:
                return [best]
            found.setdefault(best.tobytes(), best)
    widths = _widths(problem, len(real_sizes)) if exchanges else _NO_WIDTHS
    return [_exchanged(problem, cut, widths, exchanges) for cut in found.values()]


def rounding_loss_us(problem: Problem) -> float:
    """Return what rounding a real cut may add to its latency, µs, whatever its count is.

    The rounding lemma (docs/theory.md sec. 6), for stages of one line each over the admitted
    sizes; infinite for others, of which it says nothing.
    """
    lines = LineProblem.of(problem)
    if lines is None:
        return float("inf")
    total, ends = float(lines.G.sum()), float(lines.G[0] + lines.G[-1]) / 2.0
    unit = problem.limits.alignment_bytes
    return unit * min(total - float(lines.G[0]), total - float(lines.G[-1]), total - ends)


def steady_ramps(problem: Problem, real_sizes: Floats) -> list[tuple[int, ...]]:
    """Return whole-byte ramps that leave no gap in the slowest stage, where that is an end stage.

    Each fragment is the largest that arrives there before the stage is free, the first one the end
    of the real ramp, rounded down and up. Rounded positions add up to a unit in every stage that a
    path crosses; here only the growth is held up (docs/theory.md sec. 6). O(k n); none where other
    stages are the slowest or the limits admit none.
    """
    unit = problem.limits.alignment_bytes
    found: list[tuple[int, ...]] = []
    for reverse in _slowest_ends(problem):
        first = int(real_sizes[-1 if reverse else 0] / unit) * unit
        sizes = (max(first, unit), first + unit)
        found += [_steady(problem, size, reverse=reverse) for size in sizes]
    return [cut for cut in found if cut]


def steady_start(problem: Problem, *, enough_us: float, deadline: Deadline) -> tuple[int, ...]:
    """Return the best of these ramps over first sizes; empty where there is none.

    It needs no program, and it is near the optimum where the stages are nearly alike. A larger
    first size fills the pipeline later and saves fragments, so that the latency falls and then
    rises: thirds of its exponent. The smallest is the optimum where no stage has an overhead, and
    comes first: nothing else is tried once a ramp is as good as `enough_us`, or time is up.
    """
    unit = problem.limits.alignment_bytes
    smallest, largest = problem.aligned_sizes()
    ramps: list[tuple[int, ...]] = [()]

    def price_us(exponent: float, reverse: bool) -> float:
        size = min(max(int(2.0**exponent / unit) * unit, smallest), largest)
        ramps.append(_steady(problem, size, reverse=reverse))
        return _priced_us(problem, ramps[-1])

    for reverse in _slowest_ends(problem):
        low, high = math.log2(smallest), math.log2(max(smallest, largest))
        if price_us(low, reverse) <= enough_us:
            break
        while high - low > _EXPONENT and not deadline.passed:
            third = (high - low) / 3.0
            # Where neither is a ramp the first size is too small: there are too many fragments.
            if price_us(low + third, reverse) < price_us(high - third, reverse):
                high -= third
            else:
                low += third
    return min(
        filter(None, ramps), key=lambda cut: rank_of(_priced_us(problem, cut), cut), default=()
    )


def smallest_ramp(problem: Problem) -> tuple[int, ...]:
    """Return the steady ramp from the smallest size, of which the optimum is one where no stage
    has an overhead; empty where there is none. See `steady_start`.
    """
    smallest, _ = problem.aligned_sizes()
    for reverse in _slowest_ends(problem):
        cut = _steady(problem, smallest, reverse=reverse)
        if cut:
            return cut
    return ()


def _priced_us(problem: Problem, cut: tuple[int, ...]) -> float:
    return cut_latency_us(problem.pipeline, np.array(cut, dtype=float)) if cut else math.inf


def _slowest_ends(problem: Problem) -> list[bool]:
    """For each end stage that no stage exceeds in overhead or cost, whether it is the first."""
    lines = LineProblem.of(problem)
    if lines is None or lines.n < 2:
        return []
    ends = []
    for reverse in (False, True):
        g, G = (of[::-1] if reverse else of for of in (lines.g, lines.G))
        if g[-1] >= g.max() and G[-1] >= G.max() and G[:-1].all():
            ends.append(reverse)
    return ends


def _steady(problem: Problem, size: int, *, reverse: bool) -> tuple[int, ...]:
    """Grow from this first size as fast as the last stage never waits; empty where not admitted."""
    whole = whole_of(problem)
    if active.NATIVE is not None and whole is not None:
        cut = active.NATIVE.whole.steady(whole, size, reverse=reverse)
    else:
        cut = _steady_sizes(problem, size, reverse=reverse)
    cut = cut[::-1] if reverse else cut
    return cut if cut and problem.admits(cut) else ()


def _steady_sizes(problem: Problem, size: int, *, reverse: bool) -> tuple[int, ...]:
    """The same as sluice_steady of kernels/native/steady.c: its operations, in its order."""
    lines, unit, left = (
        LineProblem.of(problem),
        problem.limits.alignment_bytes,
        problem.message_bytes,
    )
    assert lines is not None
    g, G = ((of[::-1] if reverse else of).tolist() for of in (lines.g, lines.G))
    minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    tau, sizes, k_max = [0.0] * len(g), list[int](), problem.count_range().maximum
    to_last = [(sum(g[a:-1]), sum(G[a:-1])) for a in range(len(g) - 1)]
    while left:
        if len(sizes) == k_max:
            return ()
        size = min(max(size, minimum), maximum, left)
        sizes.append(size)
        left -= size
        ready = 0.0
        for j, (overhead, slope) in enumerate(zip(g, G, strict=True)):
            ready = tau[j] = max(ready, tau[j]) + overhead + slope * size
        room = min((tau[-1] - at - a) / b for at, (a, b) in zip(tau, to_last, strict=False))
        size = int((room + _ROOM) / unit) * unit if room < maximum else maximum
    return tuple(sizes)


def nearest_cut(problem: MessageProblem, real_sizes: Floats) -> Ints | None:
    """Return the nearest multiples of the cumulative positions, moved into the limits; None where
    none.
    """
    unit = problem.limits.alignment_bytes
    positions = np.rint(np.cumsum(real_sizes)[:-1] / unit) * unit
    return _repair(problem, positions.astype(np.int64))


def rounded_cuts(problem: MessageProblem, real_sizes: Floats, offsets: Floats) -> list[Ints | None]:
    """Return the cuts floor(X + u) of the cumulative positions X, in units, for these offsets u,
    each moved into the limits; None for one that cannot be.
    """
    unit, count = problem.limits.alignment_bytes, len(real_sizes)
    positions = np.cumsum(real_sizes)[:-1] / unit
    places = np.floor(positions[None, :] + offsets[:, None])
    if count > 1:
        places = np.unique(places, axis=0)
    return [_repair(problem, (place * unit).astype(np.int64)) for place in places]


def _offsets(problem: Problem, real_sizes: Floats) -> Floats:
    """All of them where there is time for that."""
    cells = len(OFFSETS) * len(real_sizes) * len(problem.pipeline)
    few: Floats = OFFSETS if cells <= _ROUNDING_CELLS else OFFSETS[[0, 16, 32]]
    return few


def _passes(problem: Problem, sizes: Floats | Ints, search_cells: int) -> int:
    """How many passes of the steepest descent fit."""
    count = len(sizes)
    return min(search_cells // (4 * count * len(problem.pipeline)), 4 * count) * (count > 1)


def _repair(problem: MessageProblem, positions: Ints) -> Ints | None:
    """Move aligned cut positions as little as needed so that every size is within its limits.

    Forwards, each position is pushed into [previous + least, previous + greatest]; backwards,
    into what the last fragment and its predecessors still need. None where that cannot work.
    """
    count = len(positions) + 1
    if count == 1:
        return np.array([problem.message_bytes], dtype=np.int64)
    minimum, maximum = problem.aligned_sizes()
    low, high = _windows(problem, count, minimum, maximum)
    if (low > high).any():
        return None
    steps = np.arange(1, count, dtype=np.int64)
    positions = np.clip(positions, low, high)
    # Keeping sizes >= least means position - i*least never falls; <= greatest likewise from above.
    positions = np.maximum.accumulate(positions - steps * minimum) + steps * minimum
    positions = _rising_by_at_most(positions, maximum)
    sizes = np.diff(positions, prepend=0, append=problem.message_bytes)
    return sizes if problem.admits(tuple(int(size) for size in sizes)) else None


def _windows(problem: MessageProblem, count: int, minimum: int, maximum: int) -> tuple[Ints, Ints]:
    """Where each inner position may lie, given the limits on both of its sides (aligned)."""
    size, limits = problem.message_bytes, problem.limits
    unit = limits.alignment_bytes
    steps = np.arange(1, count, dtype=np.int64)
    last_low = _up(size - problem.largest_fragment_bytes, unit)
    last_high = (size - limits.min_fragment_bytes) // unit * unit
    behind = count - 1 - steps
    low = np.maximum(steps * minimum, last_low - _products(behind, maximum, size))
    high = np.minimum(_products(steps, maximum, size), last_high - behind * minimum)
    return low, high


def _products(counts: Ints, maximum: int, cap: int) -> Ints:
    """counts * greatest, or the cap where that is less: the product may not fit 64 bits."""
    products: Ints = np.where(counts > cap // maximum, cap, counts * maximum)
    return products


def _rising_by_at_most(positions: Ints, maximum: int) -> Ints:
    """Lower positions so that each is at most `greatest` above the one before; the first stands."""
    if maximum * (len(positions) + 1) < 2**62:
        steps = np.arange(len(positions), dtype=np.int64) * maximum
        capped: Ints = np.minimum.accumulate(positions - steps) + steps
        return capped
    lowered = accumulate(positions.tolist(), lambda last, place: min(place, last + maximum))
    return np.fromiter(lowered, dtype=np.int64, count=len(positions))


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _improve(problem: Problem, sizes: Ints, search_cells: int) -> Ints:
    """Steepest descent: all 2(k-1) moves of one cut position by one unit, the best one taken."""
    for _ in range(_passes(problem, sizes, search_cells)):
        moved = _best_move(problem, sizes)
        if moved is None:
            break
        sizes = moved
    return sizes


def _best_move(problem: Problem, sizes: Ints) -> Ints | None:
    """The best cut that differs by one unit in one position, if it is better; limits are kept."""
    pipeline, unit = problem.pipeline, problem.limits.alignment_bytes
    t = stage_times_us(pipeline, sizes.astype(float))
    tau, rest = exit_times_us(t), exit_times_us(t[::-1, ::-1])[::-1, ::-1]
    places, shifts = np.repeat(np.arange(len(sizes) - 1), 2), np.tile([-unit, unit], len(sizes) - 1)
    pairs = np.stack([sizes[places] + shifts, sizes[places + 1] - shifts])
    moved_to = moved_us(pipeline, pairs, places, tau, rest)
    values = np.where(within(problem, pairs), moved_to, np.inf)
    best = _first_minimum(values)
    if not values[best] < float(tau[-1, -1]) * _GAIN:
        return None
    moved = sizes.copy()
    moved[places[best]] += shifts[best]
    moved[places[best] + 1] -= shifts[best]
    return moved


def _first_minimum(values: Floats) -> int:
    """The first of those that are the least but for rounding: ties are broken by place alone."""
    return int(np.argmax(values <= values.min() * _TIE))


def within(problem: Problem, pairs: Ints) -> NDArray[np.bool_]:
    """Return whether all sizes of each column lie within the limits."""
    low, high = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    inside: NDArray[np.bool_] = np.logical_and(pairs.min(axis=0) >= low, pairs.max(axis=0) <= high)
    return inside


def moved_us(pipeline: Pipeline, pairs: Ints, places: Ints, tau: Floats, rest: Floats) -> Floats:
    """Return the latency, without delay, after fragments i and i+1 take the sizes pairs[:, c]; i =
    places[c].

    The path up to fragment i-1 and the path from fragment i+2 on do not change: two rows of the
    recurrence join what lies before with what lies behind.
    """
    first, second = stage_times_us(pipeline, pairs.astype(float))
    none = np.zeros((1, tau.shape[1]))
    exits = np.vstack([none, tau])[places]
    behind = np.vstack([rest, none])[places + 2]
    for times in (first, second):
        ready = np.zeros(len(exits))
        for j in range(exits.shape[1]):
            ready = exits[:, j] = np.maximum(ready, exits[:, j]) + times[:, j]
    joined: Floats = (exits + behind).max(axis=1)
    return joined


# ---- exchanges between any two fragments --------------------------------------------------------


def _widths(problem: Problem, count: int) -> Floats:
    """How wide the smooth maxima are, in µs^2: shares of the slowest stage's time, squared."""
    slowest = max(problem.pipeline.times_us(problem.message_bytes / count))
    shares: Floats = np.array([(share * slowest) ** 2 for share in WIDTHS])
    return shares


def _exchanges(problem: Problem, count: int, cells: int) -> int:
    """How many passes over all pairs fit, for each width; a single one is not worth its time."""
    each = count * max(1, count - 1) * count * len(problem.pipeline) * len(WIDTHS)
    passes = min(cells // each, 4 * count) * (count > 1)
    return passes if passes > 1 else 0


def _exchanged(problem: Problem, sizes: Ints, widths: Floats, passes: int) -> Ints:
    """Move a unit between any two fragments, the best pair by a smooth path length; the best kept.

    The latency does not see paths that are almost the longest; with smooth maxima it does, and
    plateaus get a slope. Narrower maxima go on where wider ones ended; where they widen again, from
    the best. The sizes of least latency that were met on the way are returned.
    """
    if not passes:
        return sizes  # before any array of all pairs
    unit, count = problem.limits.alignment_bytes, len(sizes)
    givers, takers = np.nonzero(~np.eye(count, dtype=bool))
    best, known = sizes, float(_lengths(problem, sizes[None, :], 0.0)[1][0])
    at = best
    for level, width in enumerate(widths.tolist()):
        if level and width > widths[level - 1]:
            at = best
        soft = float(_lengths(problem, at[None, :], width)[0][0])
        for _ in range(passes):
            cuts = np.repeat(at[None, :], len(givers), axis=0)
            rows = np.arange(len(givers))
            cuts[rows, givers] -= unit
            cuts[rows, takers] += unit
            pairs = np.stack([cuts[rows, givers], cuts[rows, takers]])
            lengths = np.where(within(problem, pairs), _lengths(problem, cuts, width), np.inf)
            smooth, true = (_first_minimum(values) for values in lengths)
            if lengths[1][true] < known * _GAIN:
                best, known = cuts[true], float(lengths[1][true])
            if not lengths[0][smooth] < soft * _GAIN:
                break
            at, soft = cuts[smooth], float(lengths[0][smooth])
    return best


def _lengths(problem: Problem, cuts: Ints, width: float) -> Floats:
    """Path lengths (2, c) of cuts (c, k), µs without delay: with smooth maxima, and the true ones.

    The smooth maximum of a and b is (a + b + sqrt((a - b)^2 + width)) / 2.
    """
    n = len(problem.pipeline)
    soft, tau = np.zeros((n, len(cuts))), np.zeros((n, len(cuts)))
    for i in range(cuts.shape[1]):
        times = stage_times_us(problem.pipeline, cuts[:, i].astype(float)).T
        before, ready = np.zeros(len(cuts)), np.zeros(len(cuts))
        for j in range(n):
            if i and j:
                apart = before - soft[j]
                before = 0.5 * ((before + soft[j]) + np.sqrt(apart * apart + width))
            elif i:
                before = soft[j]
            before = soft[j] = before + times[j]
            ready = tau[j] = np.maximum(tau[j], ready) + times[j]
    lengths: Floats = np.stack([soft[-1], tau[-1]])
    return lengths
