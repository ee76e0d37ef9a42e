"""The regions into which the cuts of one count fall, each a linear program, with a quick bound.

Source    docs/theory.md, "Machines".
Notation  k fragments; X: the greatest of them; W: bytes of a window; b = floor(W/X): its places; L:
          lag of a processor.
Cost      O(windows) for each region: as many as X leaves numbers of places, then lag by lag.
Exact     together the regions hold every cut of k fragments, and the parts of a region every lag
          that does not deadlock.
Traps     a program knows b, and not that X decides it: its sizes are at most the greatest X with
          this b. Of a window over lanes more places are no relaxation, so that no b stands for
          another one.

A region of X in (W/(b+1), W/b] caps its sizes at W/b. It proves its bound for all cuts up to that
size with b places, those that have a smaller X, and so more places, included or not: these are in
regions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from domain.machine import Machine, places_of
from domain.problem import MachineProblem
from solvers.machine.program import PartialLags, Region, node_lines

Floats = NDArray[np.float64]

_SAFETY = 1.0 - 1e-12


@dataclass(frozen=True, slots=True, order=True)
class BoundedRegion:
    """A region and a bound in µs on its cuts, without the constant delay; in order by this."""

    bound_us: float
    region: Region = field(compare=False)


def regions_of(problem: MachineProblem, k: int) -> list[BoundedRegion]:
    """Return the regions of this count, for stages of one line, processors in any order."""
    found = list[BoundedRegion]()
    minimum, processors = problem.smallest_fragment_bytes, problem.machine.network.processors
    any_order, in_turn = (None,) * len(processors), (0,) * len(processors)
    for min_max, most in _max_sizes(problem, k):
        places = _places(problem.machine, most)
        region = Region(k, float(minimum), float(most), places, any_order, in_turn)
        found.append(BoundedRegion(_bound_us(problem, region, float(min_max)), region))
    return found


def parts_of(problem: MachineProblem, bounded: BoundedRegion) -> list[BoundedRegion]:
    """Return the regions of each lag of the first processor that serves in any order; none where
    each has a lag.

    Lags from k - 1 on are one order for k fragments: the earlier stage handles all of them first.
    """
    region, found = bounded.region, dict[PartialLags, BoundedRegion]()
    at = sum(lag is not None for lag in region.lags)
    if at == len(region.lags):
        return []
    for lags, _ in problem.machine.lag_choices(region.places):
        chosen = *lags[: at + 1], *region.lags[at + 1 :]
        if lags[:at] != region.lags[:at] or lags[at] > max(0, region.k - 1) or chosen in found:
            continue
        part = replace(region, lags=chosen, live_lags=lags)
        bound_us = max(bounded.bound_us, _bound_us(problem, part, 0.0))
        found[chosen] = BoundedRegion(bound_us, part)
    return list(found.values())


def _max_sizes(problem: MachineProblem, k: int) -> Iterator[tuple[Fraction, Fraction]]:
    """Intervals of the greatest size, bytes, with as many places in every window of bytes, the
    greatest sizes first. Each holds its upper end.
    """
    low = Fraction(problem.message_bytes, k)
    high = Fraction(problem.largest_fragment_bytes)
    turns = {high}
    for window in problem.machine.windows:
        if window.bytes is not None:
            # From k places on a window does not bind.
            last = min(int(window.bytes / low), window.fragments or k, k)
            held = range(int(window.bytes / high), last + 1)
            turns.update(Fraction(window.bytes, b) for b in held)
    ends = sorted((turn for turn in turns if low <= turn <= high), reverse=True)
    yield from zip([*ends[1:], low], ends, strict=True)


def _places(machine: Machine, most: Fraction) -> tuple[int, ...]:
    """The places of each of the network's windows, in exact arithmetic."""
    return tuple(
        places_of(one.fragments, one.bytes, 1.0)
        if one.bytes is None
        else min(int(one.bytes / most), one.fragments or one.bytes)
        for one in machine.network.windows
    )


def _bound_us(problem: MachineProblem, region: Region, min_max: float) -> float:
    """What every cut of the region takes at least: through windows, and the greatest fragment."""
    machine, network = problem.machine, problem.machine.network
    k, total, delay = region.k, float(problem.message_bytes), network.delay_us
    g, G = node_lines(machine, region.minimum, region.most)
    fewest, sums = g + G * region.minimum, k * g + G * total
    best = float((g + G * min_max).sum()) + sum(delay)
    paths = [
        (one.first, one.last, min(places, k), one.return_us)
        for one, places in zip(network.windows, region.places, strict=True)
    ]
    for (early, late), lag in zip(network.processors, region.lags, strict=True):
        if lag is not None:
            paths.append((early, late, min(lag + 1, k), 0.0))
        around_us = fewest[:early].sum() + fewest[late + 1 :].sum()
        around_us += sum(delay[:early]) + sum(delay[late:])
        best = max(best, float(around_us + sums[early] + sums[late]))
    for a, z, held, return_us in paths:
        inside_us = sums[a : z + 1].sum() + k * sum(delay[a:z]) + (k - held) * return_us
        around_us = fewest[:a].sum() + fewest[z + 1 :].sum() + sum(delay[:a]) + sum(delay[z:])
        best = max(best, float(around_us + inside_us / held))
    return best * _SAFETY
