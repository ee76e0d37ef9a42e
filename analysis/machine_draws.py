"""What cuts of a machine take in many draws of its costs at once.

Source    docs/theory.md, "Machines"; the evaluator is domain/machine.py, here with arrays.
Notation  (i, j): fragment i in node j; d: draws; q full fragments of s, then the remainder.
Cost      O(lags k (nodes + windows)) passes over the draws.
Exact     equal to the evaluator, draw by draw; lags are the best of each draw. The bounds of
          repeated sizes hold at any lags.
Traps     a size that does not fit a window takes infinitely long here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from domain.errors import Infeasible
from domain.machine import Lags, Machine, places_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAFETY = 1.0 - 1e-12  # sums of some hundred terms are rounded by less


def node_times_us(machine: Machine, sizes: Ints, times_us: Sequence[Floats]) -> list[Floats]:
    """Return what fragments of these sizes take in each node, (sizes, draws) each, of what they
    take in each stage. What lanes share takes no longer than the whole.
    """
    network, found = machine.network, list[Floats]()
    for j, is_shared in zip(network.stage_of, network.is_shared, strict=True):
        shared = machine.rules[j].shared_ns_per_byte * sizes[:, None].astype(float) / 1000.0
        own = np.maximum(0.0, times_us[j] - shared)
        found.append(np.broadcast_to(shared, own.shape) if is_shared else own)
    return found


def latencies_us(machine: Machine, cut: Ints, places: NDArray[np.intp], times: Floats) -> Floats:
    """Return what a cut takes, without the constant delay, (draws,).

    `times` are those of its distinct sizes, (sizes, nodes, draws), of which `places` says which one
    each fragment has.
    """
    try:
        held = machine.places(int(cut.max()))
    except Infeasible:
        return np.full(times.shape[2], np.inf)
    found = np.full(times.shape[2], np.inf)
    for lags, offsets in machine.lag_choices(held):
        taken_us = _run_us(machine, places.tolist(), times, held, lags, offsets)
        np.minimum(found, taken_us, out=found)
    return found


def _run_us(
    machine: Machine,
    at: Sequence[int],
    times: Floats,
    held: Sequence[int],
    lags: Lags,
    offsets: Sequence[int],
) -> Floats:
    """The same at these lags, by the rules of `Machine`."""
    network, count, nodes = machine.network, len(at), len(machine.network)
    delay = network.delay_us
    ends: list[list[Floats]] = [[np.zeros(0)] * nodes for _ in range(count)]
    for step in range(count + max(offsets)):
        for j in range(nodes):
            i = step - offsets[j]
            if not 0 <= i < count:
                continue
            waits = [ends[i][j - 1] + delay[j - 1]] if j else []
            for one, b in zip(network.windows, held, strict=True):
                if one.first == j and i >= b:
                    waits.append(ends[i - b][one.last] + one.return_us)
            for (first, second), lag in zip(network.processors, lags, strict=True):
                if j == second:
                    waits.append(ends[min(i + lag, count - 1)][first])
                if j == first and i > lag:
                    waits.append(ends[i - 1 - lag][second])
            start = waits[0] if waits else 0.0
            for other in waits[1:]:
                start = np.maximum(start, other)
            ends[i][j] = start + times[at[i], j]
    last: Floats = np.max([row[-1] for row in ends], axis=0) + delay[-1]
    return last


def repeated_bounds_us(
    machine: Machine, full: Ints, sizes: Ints, times: Sequence[Floats]
) -> Floats:
    """Return what `full` fragments of each size take at least, without the constant delay: of the
    times in each node, (sizes, draws) each. What follows them takes more.

    A window's rounds are a path, and so is all that a processor does.
    """
    network = machine.network
    delay = np.array(network.delay_us)
    through = np.sum(times, axis=0) + delay.sum()
    found: Floats = through.copy()
    for one in network.windows:
        held = np.array([places_of(one.fragments, one.bytes, size) for size in sizes.tolist()])
        rounds = np.where(held > 0, (full - 1) // np.maximum(held, 1), 0)[:, None]
        trip = np.sum(times[one.first : one.last + 1], axis=0)
        trip = trip + (delay[one.first : one.last].sum() + one.return_us)
        np.maximum(found, through + rounds * trip, out=found)
    for first, second in network.processors:
        np.maximum(found, full[:, None] * (times[first] + times[second]), out=found)
    found *= _SAFETY
    return found
