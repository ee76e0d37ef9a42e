"""Repeated sizes of one message over draws of the costs: which are tried, good, and round.

Source    docs/theory.md, "Uncertain costs". The regret of a size in a draw is T/min T - 1, min T
          that of the best of all sizes that are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import lcm, log2

import numpy as np
from numpy.typing import NDArray

from analysis.draw_costs import (
    PricedSizes,
    at_least_us,
    costs_of,
    native_of,
    quantiles_of_rows,
    regrets_over,
    repeated_us,
)
from analysis.draws import Draws
from domain.errors import StrategyDeclined
from domain.machine import Machine
from domain.problem import MessageProblem
from domain.uncertain_answer import GoodSizes, RoundRule, RoundSize
from solvers.kernels import active
from solvers.kernels.native_recurrence import GoodSearch, SizeGrid, SizeLimits, SizeSearch

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

GOOD_WITHIN = (0.01, 0.02, 0.05)
GOOD_IN_DRAWS = 0.9
PAGE_BYTES, MEBIBYTE_BYTES = 4096, 1 << 20
_PER_OCTAVE = 16
_MAX_COUNT = 96  # sizes at which the message is cut into one fragment fewer, up to this many
_MAX_JUMP = 32  # up to so many fragments one more, a tiny one, is felt: the size before is tried
_SEVERAL = 4  # places of a machine's window: of fewer a round is short
_MAX_INNER_JUMP = 512  # and up to so many between sizes that are good
_SMALLEST_BYTES = 64  # of the sizes that are tried where the limits and the counts admit less
_SCREENED_DRAWS = 16
_SAMPLED = 8  # sizes of least bounds, by which the bounds of the others are judged
_SCREENED_REGRET = 0.1  # a size beyond that in every one of these draws is not looked at again
_ROUNDED_SIZES = 12  # so many of the best sizes are rounded to every unit
_NEIGHBOURS = 12  # sizes on either side of the best one
_END_PRECISION = 0.01  # of the ends of intervals, relative
_GOOD_SHARE = GOOD_IN_DRAWS - 1e-12  # but for rounding
_GOOD_SEARCH = GoodSearch(_MAX_JUMP + 1, _MAX_INNER_JUMP, _MAX_JUMP, _END_PRECISION, _GOOD_SHARE)
_GOOD_LIMITS = 1.0 + np.array(GOOD_WITHIN)[:, None]
_AS_GOOD = 5e-3  # expected regrets that differ by less: the rounder size is taken
_AS_FAST = 1e-9  # and by so little: they are the same but for rounding, as in sizes.c
_OCTAVES = 2.0 ** (np.arange(64 * _PER_OCTAVE) / _PER_OCTAVE)
_POWERS = 2 ** np.arange(62, dtype=np.int64)
_COUNTS = np.arange(1, _MAX_COUNT + 1, dtype=np.int64)


def is_admitted(problem: MessageProblem, sizes: Ints) -> Flags:
    """Return whether the limits admit the message in each of these repeated sizes."""
    total, limits, counts = problem.message_bytes, problem.limits, problem.count_range()
    whole = np.minimum(sizes, total)
    count = -(-total // whole)
    admitted: Flags = (whole <= problem.largest_fragment_bytes) & (count <= counts.maximum)
    if limits.alignment_bytes > 1 or limits.min_fragment_bytes > 1:
        last = total - (count - 1) * whole
        cut_well = (whole % limits.alignment_bytes == 0) & (last >= limits.min_fragment_bytes)
        admitted &= (count == 1) | cut_well
    return admitted


def admits(problem: MessageProblem, size: int) -> bool:
    """Return the same of one size, which takes a tenth of the time of an array of one."""
    total, limits = problem.message_bytes, problem.limits
    whole = min(size, total)
    count = -(-total // whole)
    if whole > problem.largest_fragment_bytes or count > problem.count_range().maximum:
        return False
    last = total - (count - 1) * whole
    cut_well = whole % limits.alignment_bytes == 0 and last >= limits.min_fragment_bytes
    return count == 1 or cut_well


def largest_admitted(problem: MessageProblem, priced: PricedSizes) -> int:
    """Return the largest repeated size that the limits admit, measured or not."""
    largest = _largest(problem)
    return largest if admits(problem, largest) else int(priced.sizes[-1])


def price_sizes(
    problem: MessageProblem,
    draws: Draws,
    *,
    also: Sequence[int] = (),
    mtu_bytes: int | None = None,
    measured_bytes: tuple[int, int] | None = None,
) -> PricedSizes:
    """Return the sizes that are tried, priced in all draws.

    Tried are ceil(B/k) for k to 96, the size before it to 32, 16 sizes an octave, powers of two and
    three times these, ends of ranges and the size behind them, all rounded up to the alignment, and
    the least and the greatest size that the limits admit; then multiples of pages, of 1 MiB and of
    the MTU, and sizes around the best. Most are priced in a few draws alone: those that are far
    from good in each of them are left out. Those of `also` that the limits admit are always among
    them. Where the limits admit a cut from the one to the other of the measured sizes, only such
    cuts are, and one piece. Raises StrategyDeclined where the limits admit no repeated size, and
    Infeasible.
    """
    total, native = problem.message_bytes, native_of(draws)
    given = (*also, *(measured_bytes or ()), total, _largest(problem))
    always = np.array(sorted([min(one, total) for one in given]), dtype=np.int64)
    grid, limits = _grid(problem), _native_limits(problem, measured_bytes)
    search = _search(_screened(draws))
    if native is not None:
        costs, ends = costs_of(draws), _ends(draws)
        near = native.near_sizes(costs, limits, search, *grid, ends, always)
    else:
        tried = _admitted(problem, np.concatenate([_candidates(problem, draws, *grid), always]))
        tried = _known(problem, tried, _known_between(problem, tried, measured_bytes))
        near = tried[_is_near_best(problem, draws, tried) | _are_among(always, tried)]
    if not len(near):
        raise StrategyDeclined(
            "no repeated size satisfies the limits: with every one of them the remainder is "
            "smaller than min_fragment_bytes or the fragments are too many",
            field="constraints",
        )
    between = _known_between(problem, near[:1], measured_bytes)  # where one cut is, all are
    units = _units(problem, mtu_bytes)
    if native is not None:
        limits = limits if between else _native_limits(problem)
        return PricedSizes(*native.price_sizes(costs, limits, search, near, units), between)
    priced = _priced(problem, draws, near)
    leading = priced.sizes[priced.order[:_ROUNDED_SIZES]]
    more = [_rounded(leading, unit) for unit in units]
    more.append(_between(priced.sizes, int(priced.order[0])))
    found = _with(problem, draws, priced, _known(problem, np.concatenate(more), between))
    return replace(found, between=between)


@lru_cache(_SCREENED_DRAWS)
def _search(screened: int) -> SizeSearch:
    return SizeSearch(screened, _SCREENED_REGRET, _ROUNDED_SIZES, _NEIGHBOURS)


def _known_between(
    problem: MessageProblem, sizes: Ints, measured_bytes: tuple[int, int] | None
) -> tuple[int, int] | None:
    """The measured sizes where one of these cuts is between them, else None."""
    if measured_bytes is None:
        return None
    cuts = sizes[sizes < problem.message_bytes]
    is_known = (measured_bytes[0] <= cuts) & (cuts <= measured_bytes[1])
    return measured_bytes if is_known.any() else None


def _native_limits(problem: MessageProblem, between: tuple[int, int] | None = None) -> SizeLimits:
    limits = problem.limits
    return SizeLimits(
        problem.message_bytes,
        limits.min_fragment_bytes,
        problem.largest_fragment_bytes,
        limits.alignment_bytes,
        problem.count_range().maximum,
        *(between or (1, problem.message_bytes)),
    )


def _known(problem: MessageProblem, sizes: Ints, between: tuple[int, int] | None) -> Ints:
    """Those from the one to the other, and one piece."""
    if between is None:
        return sizes
    inside = (between[0] <= sizes) & (sizes <= between[1])
    return sizes[inside | (sizes >= problem.message_bytes)]


def good_sizes(problem: MessageProblem, draws: Draws, priced: PricedSizes) -> tuple[GoodSizes, ...]:
    """Return the sizes within 1, 2 and 5 % of the best in 90 % of the draws, as intervals.

    An interval is a run of good sizes among those that were priced; how far it goes on towards the
    next one, which is not good, is found by halving to 1 %; its ends are good themselves. Between
    sizes of as many fragments lines are convex; where one fragment more begins, and beside the ends
    of ranges, sizes are priced. No interval but that of one piece goes beyond `priced.between`.
    """
    limits_us = priced.best_us * _GOOD_LIMITS
    native = native_of(draws)
    if native is not None:
        found = native.good_sizes(
            costs_of(draws),
            _native_limits(problem),
            _GOOD_SEARCH,
            priced.sizes,
            priced.latency_us,
            limits_us,
            _ends(draws),
        )
    else:
        found = _good_intervals(problem, draws, priced, limits_us)
    total, between = problem.message_bytes, priced.between
    return tuple(
        GoodSizes(
            within,
            GOOD_IN_DRAWS,
            _inside(tuple((low, high) for at, low, high in found if at == place), total, between),
        )
        for place, within in enumerate(GOOD_WITHIN)
    )


def _good_intervals(
    problem: MessageProblem, draws: Draws, priced: PricedSizes, limits_us: Floats
) -> list[list[int]]:
    """[level, low, high] of each interval, by level, ascending."""
    near = good_in_draws(priced.latency_us, limits_us[-1])
    jumps = _inner_jumps(problem, draws, priced.sizes, near)
    if len(jumps):
        priced = _with(problem, draws, priced, jumps)
        near = good_in_draws(priced.latency_us, limits_us[-1])
    are_good = np.zeros((len(limits_us), len(priced.sizes)), dtype=bool)
    are_good[-1] = near
    rows = near.nonzero()[0]
    for place in reversed(range(len(limits_us) - 1)):  # what is not within 5 % is not within 1 %
        rows = rows[good_in_draws(priced.latency_us[rows], limits_us[place])]
        are_good[place, rows] = True
    which, inside = _runs(are_good)
    outward = np.tile([-1, 1], len(inside) // 2)
    good = priced.sizes[inside]
    bad = priced.sizes[np.clip(inside + outward, 0, len(priced.sizes) - 1)]
    good = _good_ends(problem, draws, limits_us[which], good, bad)
    found: list[list[int]] = np.column_stack([which[::2], good[::2], good[1::2]]).tolist()
    return found


def _inside(
    intervals: tuple[tuple[int, int], ...], total: int, between: tuple[int, int] | None
) -> tuple[tuple[int, int], ...]:
    """The parts of intervals that were measured, and one piece by itself where that was not."""
    if between is None:
        return intervals
    cut = ((max(low, between[0]), min(high, between[1])) for low, high in intervals)
    found = [(low, high) for low, high in cut if low <= high]
    if intervals and found[-1:] != [intervals[-1]] and intervals[-1][1] == total:
        found.append((total, total))
    return tuple(found)


def _inner_jumps(problem: MessageProblem, draws: Draws, sizes: Ints, are_good: Flags) -> Ints:
    """The sizes before B/k, k above those that are tried, among and next to good ones; and those
    beside which fragments or the remainder pass an estimated end of a range.
    """
    unit, total = problem.limits.alignment_bytes, problem.message_bytes
    good = are_good.nonzero()[0]
    if not len(good):
        return sizes[:0]
    low, high = sizes[max(0, good[0] - 1)], sizes[min(good[-1] + 1, len(sizes) - 1)]
    fewest = max(_MAX_JUMP + 1, total // int(high))
    counts = np.arange(fewest, min(_MAX_INNER_JUMP, -(-total // int(low))) + 1)
    if draws.machine is not None:
        counts = counts[_are_felt(draws.machine, counts)]
    ends = _ends(draws)
    whole = max(1, min(_MAX_JUMP, _MAX_INNER_JUMP // max(1, len(ends))))  # fragments before a rest
    rests = (total - ends[ends < total, None]) // _COUNTS[:whole]
    passed = np.concatenate([ends, rests.ravel()]) // unit * unit
    passed = np.concatenate([passed, passed + unit])
    inner = passed[(low <= passed) & (passed <= high)]
    return np.concatenate([_before(problem, counts), inner])


def _are_felt(machine: Machine, counts: Ints) -> Flags:
    """Behind which counts of fragments one more may be felt: of many those that fill the places of
    several in each round, since one more begins another round.
    """
    places = {one.fragments for one in machine.network.windows if one.fragments}
    felt: Flags = counts <= _MAX_COUNT
    for held in (one for one in places if one >= _SEVERAL):
        felt |= counts % held == 0
    return felt


def _ends(draws: Draws) -> Ints:
    """The last bytes of ranges as estimated, and the greatest sizes of which a machine's window of
    bytes holds so many, ascending, each once.
    """
    return draws.derived(_estimated_ends)


def _estimated_ends(draws: Draws) -> Ints:
    ends = draws.ends_bytes[..., 0]
    found = [ends[np.isfinite(ends)].astype(np.int64)]
    if draws.machine is not None:
        windows = [one.bytes for one in draws.machine.windows if one.bytes is not None]
        found += [size // _COUNTS[:_MAX_JUMP] for size in windows]
    return np.unique(np.concatenate(found))


def _before(problem: MessageProblem, counts: Ints) -> Ints:
    """The greatest sizes with one fragment more than each of these counts, the least admitted."""
    limits = problem.limits
    unit, minimum = limits.alignment_bytes, limits.min_fragment_bytes
    found: Ints = (problem.message_bytes - minimum) // (counts * unit) * unit
    return found


def round_sizes(
    problem: MessageProblem, priced: PricedSizes, *, mtu_bytes: int | None
) -> tuple[RoundSize, ...]:
    """Return for each rule its size of least expected regret, the one to recommend first.

    Of sizes whose expected regrets differ by less than 0.5 % the roundest is recommended. A size
    is listed under the roundest rule that it keeps; a rule that no size keeps is left out.
    """
    sizes, mean, total = priced.sizes, priced.mean_regret, problem.message_bytes
    rules = _rules(problem, mtu_bytes)
    if active.NATIVE is not None:
        kept = active.NATIVE.recurrence.round_sizes(total, sizes, mean, [*rules.values()])
    else:
        kept = [_best_of(sizes, mean, total, *one) for one in rules.values()]
    whole = len(sizes) - 1 if sizes[-1] == total else -1
    places: dict[int, RoundRule] = {}
    for rule, at in zip((RoundRule.WHOLE, *rules), (whole, *kept), strict=True):
        if at >= 0:
            places.setdefault(at, rule)
    regrets = regrets_over(priced.latency_us[[*places]], priced.best_us)
    listed = [  # the roundest rule first
        RoundSize(int(sizes[at]), rule, float(mean[at]), p95)
        for (at, rule), (p95,) in zip(
            places.items(), quantiles_of_rows(regrets, (0.95,)), strict=True
        )
    ]
    as_good = min((one.regret_mean for one in listed), default=0.0) + _AS_GOOD
    first = [one for one in listed if one.regret_mean <= as_good][:1]
    rest = [one for one in listed if one not in first]
    return (*first, *sorted(rest, key=lambda one: one.regret_mean))


def _rules(problem: MessageProblem, mtu_bytes: int | None) -> dict[RoundRule, tuple[int, int]]:
    """The rules that a cut may keep, the roundest first, each as a unit and the greatest odd part
    that a size may have.
    """
    alignment = problem.limits.alignment_bytes
    rules = {
        RoundRule.POWER_OF_TWO: (1, 1),
        RoundRule.THREE_POWERS: (1, 3),
        RoundRule.MEBIBYTE: (MEBIBYTE_BYTES, problem.message_bytes),
        RoundRule.PAGE: (PAGE_BYTES, problem.message_bytes),
    }
    if alignment > 1:
        rules[RoundRule.ALIGNMENT] = alignment, problem.message_bytes
    if mtu_bytes is not None:
        rules[RoundRule.MTU] = mtu_bytes, problem.message_bytes
    return rules


def _best_of(sizes: Ints, mean_regret: Floats, total: int, unit: int, max_odd: int) -> int:
    """The place of the size of least mean regret that keeps a rule, -1 without any: of those that
    are as fast the one that the highest power of two divides, and of these the first.
    """
    powers = sizes & -sizes
    kept = ((sizes % unit == 0) & (sizes // powers <= max_odd) & (sizes != total)).nonzero()[0]
    if not len(kept):
        return -1
    kept = kept[mean_regret[kept] <= mean_regret[kept].min() + _AS_FAST]
    return int(kept[powers[kept].argmax()])


def _grid(problem: MessageProblem) -> tuple[SizeGrid, Floats]:
    """Which sizes are tried, and what the message is divided by for some of them."""
    total = problem.message_bytes
    smallest = max(1, min(_SMALLEST_BYTES, total // _MAX_COUNT))
    smallest = max(smallest, problem.limits.min_fragment_bytes)
    octaves = max(0.0, log2(total / smallest))
    powers = int(octaves) + smallest.bit_length() + 1
    return (
        SizeGrid(smallest, powers, _MAX_COUNT, _MAX_JUMP),
        _OCTAVES[: int(octaves * _PER_OCTAVE) + 1],
    )


def _candidates(problem: MessageProblem, draws: Draws, grid: SizeGrid, octaves: Floats) -> Ints:
    total, unit, ends = problem.message_bytes, problem.limits.alignment_bytes, _ends(draws)
    powers, divided = _POWERS[: grid.powers], -(-total // _COUNTS[: grid.divided])
    fewest = np.array([-(-total // problem.count_range().maximum)])
    evenly = np.rint(total / octaves).astype(np.int64)
    found = np.concatenate([evenly, powers, powers * 3, divided, ends, ends + 1, fewest])
    before = _before(problem, _COUNTS[: grid.before])
    aligned: Ints = np.concatenate([-(-found // unit) * unit, before])
    tried: Ints = aligned[(aligned >= grid.smallest_bytes) & (aligned <= total)]
    return tried


def _largest(problem: MessageProblem) -> int:
    """The greatest aligned size that is no larger than fragments may be; one piece if that is."""
    total, unit = problem.message_bytes, problem.limits.alignment_bytes
    largest = problem.largest_fragment_bytes
    return total if largest >= total else max(1, largest // unit * unit)


def _admitted(problem: MessageProblem, sizes: Ints) -> Ints:
    """Those that the limits admit, ascending; the whole message is one of at most its size."""
    clipped = np.sort(np.minimum(sizes, problem.message_bytes))
    once = clipped[np.concatenate([clipped[:1] >= 1, clipped[1:] > np.maximum(clipped[:-1], 0)])]
    admitted: Ints = once[is_admitted(problem, once)]
    return admitted


def _are_among(sizes: Ints, asked: Ints) -> Flags:
    """Whether each one that is asked for is among these, which ascend and are some."""
    found: Flags = sizes[np.minimum(np.searchsorted(sizes, asked), len(sizes) - 1)] == asked
    return found


def _is_near_best(problem: MessageProblem, draws: Draws, sizes: Ints) -> Flags:
    """Which are near the best in some of a few draws, and the best cut into more than one."""
    are_near = np.zeros(len(sizes), dtype=bool)
    could = _could_be_near(problem, draws.derived(_few), sizes).nonzero()[0]
    if not len(could):
        return are_near
    few = _priced(problem, draws.derived(_few), sizes[could])
    near_us = few.best_us * (1.0 + _SCREENED_REGRET)
    are_near[could] = np.any(few.latency_us <= near_us, axis=1)
    cuts = len(could) - int(sizes[could[-1]] == problem.message_bytes)
    if cuts:
        are_near[could[few.latency_us[:cuts].sum(axis=1).argmin()]] = True
    return are_near


def _could_be_near(problem: MessageProblem, few: Draws, sizes: Ints) -> Flags:
    """Which sizes' bounds admit that they are near the best in some draw, where there are bounds;
    and the cut and the size of least bounds.
    """
    bounds_us = at_least_us(few, problem.message_bytes, sizes)
    if bounds_us is None or not len(sizes):
        return np.ones(len(sizes), dtype=bool)
    sample = bounds_us.sum(axis=1).argsort(kind="stable")[:_SAMPLED]
    best_us = repeated_us(few, problem.message_bytes, sizes[sample]).min(axis=0)
    could: Flags = np.any(bounds_us <= best_us * (1.0 + _SCREENED_REGRET), axis=1)
    could[sample] = True
    return could


def _few(draws: Draws) -> Draws:
    return draws.part(0, _screened(draws))


def _screened(draws: Draws) -> int:
    return min(_SCREENED_DRAWS, draws.count)


def _priced(problem: MessageProblem, draws: Draws, sizes: Ints) -> PricedSizes:
    return PricedSizes(sizes, repeated_us(draws, problem.message_bytes, sizes))


def _with(problem: MessageProblem, draws: Draws, priced: PricedSizes, more: Ints) -> PricedSizes:
    """The same and the sizes of `more` that are admitted."""
    asked = _admitted(problem, more)
    new = _priced(problem, draws, asked[~_are_among(priced.sizes, asked)])
    sizes = np.concatenate([priced.sizes, new.sizes])
    order = np.argsort(sizes)
    return PricedSizes(sizes[order], np.concatenate([priced.latency_us, new.latency_us])[order])


def _units(problem: MessageProblem, mtu_bytes: int | None) -> list[int]:
    alignment = problem.limits.alignment_bytes
    given = (1, PAGE_BYTES, MEBIBYTE_BYTES, *([mtu_bytes] if mtu_bytes else []))
    units = (lcm(alignment, unit) for unit in given)
    return [unit for unit in units if unit <= problem.message_bytes]


def _rounded(sizes: Ints, unit: int) -> Ints:
    """The multiples of the unit below and above each size."""
    below = sizes // unit * unit
    return np.concatenate([below, below + unit])


def _between(sizes: Ints, at: int) -> Ints:
    """Evenly spread sizes between one of these and its two neighbours."""
    before, after = sizes[max(0, at - 1)], sizes[min(len(sizes) - 1, at + 1)]
    steps = np.arange(_NEIGHBOURS + 2)
    sides = ((before, sizes[at]), (sizes[at], after))
    evenly = [low + steps * ((high - low) / (_NEIGHBOURS + 1)) for low, high in sides]
    return np.concatenate(evenly).astype(np.int64)


def good_in_draws(latency_us: Floats, limit_us: Floats) -> Flags:
    """Return whether each row of latencies, (rows, draws), keeps to the limit in enough draws."""
    within = (latency_us <= limit_us).view(np.uint8).sum(axis=-1, dtype=np.int32)
    good: Flags = within / latency_us.shape[-1] >= _GOOD_SHARE
    return good


def _runs(are_good: Flags) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first and the last place of every run of good ones, row by row: (rows, places)."""
    edges = np.zeros((len(are_good), are_good.shape[1] + 2), dtype=bool)
    edges[:, 1:-1] = are_good
    rows, places = np.nonzero(edges[:, 1:] != edges[:, :-1])
    places[1::2] -= 1  # every second change is the one behind a run
    return rows, places


def _good_ends(
    problem: MessageProblem, draws: Draws, limits_us: Floats, good: Ints, bad: Ints
) -> Ints:
    """Move good sizes towards bad ones, by halving to 1 %, as far as they keep to their limits,
    (sizes, draws).
    """
    unit = problem.limits.alignment_bytes
    while True:
        middle = (good + bad) // 2 // unit * unit
        is_between = (middle > np.minimum(good, bad)) & (middle < np.maximum(good, bad))
        left = np.flatnonzero(is_between & (np.abs(good - bad) > _END_PRECISION * good))
        if not len(left):
            break
        at = middle[left]
        latency_us = repeated_us(draws, problem.message_bytes, at)
        is_good = good_in_draws(latency_us, limits_us[left])
        is_good &= is_admitted(problem, at)
        good[left] = np.where(is_good, at, good[left])
        bad[left] = np.where(is_good, bad[left], at)
    return good
