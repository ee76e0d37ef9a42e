"""The regions into which the cuts of one count fall, each a linear program, with a quick bound.

Source    docs/theory.md, "Machines".
Notation  k fragments; X: the greatest of them; W: bytes of a window; b = floor(W/X): its places; L:
          lag of a processor.
Cost      O(windows) for each region: as many as X leaves numbers of places, times the lags.
Exact     together the regions hold every cut of k fragments at every lag that does not deadlock.
Traps     a program knows b, and not that X decides it: its sizes are at most the greatest X with
          this b. Of a window over lanes more places are no relaxation, so that no b stands for
          another one.

A region of X in (W/(b+1), W/b] caps its sizes at W/b. It proves its bound for all cuts up to that
size with b places, those that have a smaller X, and so more places, included or not: these are in
regions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from domain.machine import Lags, Machine, places_of
from domain.problem import MachineProblem
from solvers.machine.program import Region, node_lines

Floats = NDArray[np.float64]

MAX_REGIONS = 4_000  # of one count: beyond that its bound is what is left
_SAFETY = 1.0 - 1e-12


@dataclass(frozen=True, slots=True)
class BoundedRegion:
    """A region and a bound in µs on its cuts, without the constant delay."""

    region: Region
    bound_us: float


def regions_of(problem: MachineProblem, k: int) -> list[BoundedRegion] | None:
    """Return all regions of this count, for stages of one line; None where they are too many."""
    found = list[BoundedRegion]()
    for least_greatest, most in _greatest_sizes(problem, k):
        places = _places(problem.machine, most)
        for lags in _lags(problem.machine, places, k):
            region = Region(
                k, float(problem.smallest_fragment_bytes), float(most), tuple(places), lags
            )
            found.append(BoundedRegion(region, _bound_us(problem, region, float(least_greatest))))
            if len(found) > MAX_REGIONS:
                return None
    return found


def _greatest_sizes(problem: MachineProblem, k: int) -> Iterator[tuple[Fraction, Fraction]]:
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


def _places(machine: Machine, most: Fraction) -> list[int]:
    """The places of each of the network's windows, in exact arithmetic."""
    return [
        places_of(one.fragments, one.bytes, 1.0)
        if one.bytes is None
        else min(int(one.bytes / most), one.fragments or one.bytes)
        for one in machine.network.windows
    ]


def _lags(machine: Machine, places: list[int], k: int) -> list[Lags]:
    """Lags that do not deadlock, without those that are one order for k fragments: from k - 1 on
    the earlier stage handles all of them first.
    """
    most = max(0, k - 1)
    return [lags for lags, _ in machine.lag_choices(places) if max(lags, default=0) <= most]


def _bound_us(problem: MachineProblem, region: Region, least_greatest: float) -> float:
    """What every cut of the region takes at least: through windows, and the greatest fragment."""
    machine, network = problem.machine, problem.machine.network
    k, total, delay = region.k, float(problem.message_bytes), network.delay_us
    g, G = node_lines(machine, region.least, region.most)
    fewest, sums = g + G * region.least, k * g + G * total
    best = float((g + G * least_greatest).sum()) + sum(delay)
    paths = [
        (one.first, one.last, min(places, k), one.return_us)
        for one, places in zip(network.windows, region.places, strict=True)
    ]
    for (j, l), lag in zip(network.processors, region.lags or (), strict=True):
        paths.append((j, l, min(lag + 1, k), 0.0))
        around_us = fewest[:j].sum() + fewest[l + 1 :].sum() + sum(delay[:j]) + sum(delay[l:])
        best = max(best, float(around_us + sums[j] + sums[l]))
    for a, z, held, return_us in paths:
        inside_us = sums[a : z + 1].sum() + k * sum(delay[a:z]) + (k - held) * return_us
        around_us = fewest[:a].sum() + fewest[z + 1 :].sum() + sum(delay[:a]) + sum(delay[z:])
        best = max(best, float(around_us + inside_us / held))
    return best * _SAFETY
