"""Cuts of items in many draws of the stages' costs and of the ready times, in NumPy.

Source    docs/theory.md, "Items", draws; the same in C: kernels/native/item_draws.c.
Notation  m items, n stages, d draws.
Cost      a pass over the draws for each fragment and stage.
Exact     the operations of the C code in its order: the same bits.
Traps     the stages' constant delay is in these latencies, other than in those of kernels/items.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ItemDraws:
    """Items behind stages whose costs are drawn.

    `overhead_us`, `ns_per_byte` (n, ranges, d) and `range_ends_bytes` (n, ranges - 1, d) are those
    of draws; `ready_us`, `ends_bytes` (m+1) are of the first 0 .. m items, `own_us` (n, m+1) what
    they take besides in each stage; `ready_factors` (d,) scale all ready times of a draw.
    `is_serial`: a fragment enters when the one before has left all stages.
    """

    overhead_us: Floats
    ns_per_byte: Floats
    range_ends_bytes: Floats
    delay_us: float
    ready_us: Floats
    ready_factors: Floats
    ends_bytes: Ints
    own_us: Floats
    is_serial: bool = False

    @property
    def draws(self) -> int:
        """How many draws there are."""
        return int(self.overhead_us.shape[-1])

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return len(self.overhead_us)


def latencies_us(of: ItemDraws, fragments: Ints, ends: Ints) -> Floats:
    """Return the latencies in µs, (cuts, draws), of cuts of so many fragments, whose ends are one
    behind the other.
    """
    found, at = np.empty((len(fragments), of.draws)), 0
    for row, count in zip(found, fragments.tolist(), strict=True):
        row[:] = _latency_us(of, ends[at : at + count].tolist())
        at += count
    return found


def _latency_us(of: ItemDraws, ends: list[int]) -> Floats:
    left, first = [np.zeros(of.draws) for _ in range(of.stages)], 0
    for last in ends:
        size = float(of.ends_bytes[last] - of.ends_bytes[first])
        ready = of.ready_us[last] * of.ready_factors
        taken = np.zeros(of.draws)
        for stage in range(of.stages):
            time_us = _time_us(of, stage, size) + (of.own_us[stage, last] - of.own_us[stage, first])
            if of.is_serial:
                taken = taken + time_us
            else:
                ready = left[stage] = np.maximum(ready, left[stage]) + time_us
        if of.is_serial:
            left[-1] = np.maximum(ready, left[-1]) + taken
        first = last
    found: Floats = left[-1] + of.delay_us
    return found


def _time_us(of: ItemDraws, stage: int, size: float) -> Floats:
    """What a fragment of this size takes in a stage, (d,)."""
    kilobytes = size / 1000.0
    costs = zip(of.ns_per_byte[stage], of.overhead_us[stage], strict=True)
    times = [kilobytes * cost + overhead for cost, overhead in costs]
    found: Floats = times[0]
    for end, behind in zip(of.range_ends_bytes[stage], times[1:], strict=True):
        found = np.where(size > end, behind, found)
    return found
