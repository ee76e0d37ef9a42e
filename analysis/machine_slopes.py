"""How the latency of a cut that a machine keeps moves with its costs, delays and ways back.

Source    docs/theory.md, "Machines" and "Sensitivities of an answer": a latency is the longest of
          paths, whose derivatives are how often a path has a cost; of several lags the least.
Notation  (i, v): fragment i in node v; p: parameters, (overheads, costs per byte, delays, returns).
Cost      for each of the best lags an evaluation, and O(p) for each cell on a longest path.
Exact     derivatives are whole numbers, of fragments and of bytes on the cut's critical paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.machine import Lags, Machine, NodeTimes
from domain.sensitivity import Slope
from solvers.machine.costs import Costs

Ints = NDArray[np.int64]
Cell = tuple[int, int]

_TIE = 1e-12  # of the latency: paths, and lags, that differ by less are equally good
_NONE = -1


@dataclass(frozen=True, slots=True)
class MachineSlopes:
    """Derivatives by each stage's overhead, cost per byte and delay, and by each window's way
    back.
    """

    overhead: tuple[Slope, ...]
    per_byte: tuple[Slope, ...]
    delay: tuple[Slope, ...]
    way_back: tuple[Slope, ...]


def machine_slopes(machine: Machine, cut: Sequence[int]) -> MachineSlopes:
    """Return the derivatives of a cut's latency on both sides.

    A stage's costs move at all sizes alike; what its lanes share stays. Raises Infeasible.
    """
    places, tied = machine.places(max(cut)), tied_lags(machine, cut)
    found = [machine.node_times(cut, lags) for lags in tied]
    tie_us = _TIE * min(one.latency_us for one in found)
    sides = [_sides(machine, cut, times, places, tie_us) for times in found]
    most = np.min([one for one, _ in sides], axis=0)
    minimum = np.max([one for _, one in sides], axis=0)
    n, can_fall = len(machine), _can_fall(machine)
    slopes = [
        Slope(float(low) if falls else None, float(high))
        for low, high, falls in zip(minimum, most, can_fall, strict=True)
    ]
    parts = slopes[:n], slopes[n : 2 * n], slopes[2 * n : 3 * n], slopes[3 * n :]
    return MachineSlopes(*(tuple(part) for part in parts))


def tied_lags(machine: Machine, cut: Sequence[int]) -> list[Lags]:
    """Return the lags at which a cut takes least, each order of the processors once. Raises
    Infeasible.
    """
    # Lags from k - 1 on are one order for k fragments.
    orders = dict[Lags, tuple[Lags, float]]()
    for lags, us in Costs(machine).by_lags(cut):
        orders.setdefault(tuple(min(lag, len(cut) - 1) for lag in lags), (lags, us))
    best_us = min(us for _, us in orders.values())
    return [lags for lags, us in orders.values() if us <= best_us * (1.0 + _TIE)]


def _can_fall(machine: Machine) -> list[bool]:
    """Whether each parameter can be less than it is."""
    stages, rules = machine.stages, machine.rules
    overheads = [all(part.overhead_us > 0.0 for part in stage.ranges) for stage in stages]
    per_byte = [
        all(part.ns_per_byte > one.shared_ns_per_byte for part in stage.ranges)
        for stage, one in zip(stages, rules, strict=True)
    ]
    delays = [one.delay_us > 0.0 for one in rules]
    return [*overheads, *per_byte, *delays, *(one.return_us > 0.0 for one in machine.windows)]


def _sides(
    machine: Machine, cut: Sequence[int], times: NodeTimes, places: Sequence[int], tie_us: float
) -> tuple[Ints, Ints]:
    """The most and the least of each parameter on the longest paths at these lags."""
    network, n = machine.network, len(machine)
    width, last = 3 * n + len(machine.windows), len(network) - 1
    offsets = machine.offsets(places, times.lags)
    assert offsets is not None, "these lags were evaluated"
    final_us = max(row[-1] for row in times.end_us)
    ends = [(i, last) for i, row in enumerate(times.end_us) if row[-1] >= final_us - tie_us]
    before = _longest(machine, times, places, ends, tie_us)
    most, minimum = dict[Cell, Ints](), dict[Cell, Ints]()
    for cell in sorted(before, key=lambda one: (one[0] + offsets[one[1]], one[1])):
        i, v = cell
        own, stage = np.zeros(width, dtype=np.int64), network.stage_of[v]
        if not network.is_shared[v]:
            own[stage], own[n + stage] = 1, cut[i]
        highs, lows = [own] * (not before[cell]), [own] * (not before[cell])
        for other, edge in before[cell]:
            step = own.copy()
            if edge != _NONE:
                step[edge] += 1
            highs.append(most[other] + step if other in most else step)
            lows.append(minimum[other] + step if other in minimum else step)
        most[cell], minimum[cell] = np.max(highs, axis=0), np.min(lows, axis=0)
    through = np.zeros(width, dtype=np.int64)
    through[3 * n - 1] = 1  # the delay behind the last stage
    return (
        np.max([most[cell] for cell in ends], axis=0) + through,
        np.min([minimum[cell] for cell in ends], axis=0) + through,
    )


_SOURCE: Cell = (-1, -1)  # where every message begins, at 0


def _longest(
    machine: Machine,
    times: NodeTimes,
    places: Sequence[int],
    ends: Sequence[Cell],
    tie_us: float,
) -> dict[Cell, list[tuple[Cell, int]]]:
    """The cells on longest paths, each with those before it on them, and the parameter of the edge
    between.
    """
    found, open_cells = dict[Cell, list[tuple[Cell, int]]](), list(ends)
    while open_cells:
        cell = open_cells.pop()
        if cell in found:
            continue
        limit_us = times.start_us[cell[0]][cell[1]] - tie_us
        found[cell] = [
            (other, edge)
            for other, edge, us in _waited_for(machine, times, places, cell)
            if us >= limit_us
        ]
        open_cells += [other for other, _ in found[cell] if other != _SOURCE]
    return found


def _waited_for(
    machine: Machine, times: NodeTimes, places: Sequence[int], cell: Cell
) -> Iterator[tuple[Cell, int, float]]:
    """What a cell waits for: a cell before it, the parameter of the edge, and until when."""
    (i, v), network, ends, n = cell, machine.network, times.end_us, len(machine)
    if v == 0:
        yield _SOURCE, _NONE, 0.0
    else:
        is_last = network.stage_of[v - 1] != network.stage_of[v]
        delay = 2 * n + network.stage_of[v - 1] if is_last else _NONE
        yield (i, v - 1), delay, ends[i][v - 1] + network.delay_us[v - 1]
    for one, b in zip(network.windows, places, strict=True):
        if one.first == v and i >= b:
            way = _NONE if one.window is None else 3 * n + one.window
            yield (i - b, one.last), way, ends[i - b][one.last] + one.return_us
    for (first, second), lag in zip(network.processors, times.lags, strict=True):
        if v == second:
            ahead = min(i + lag, len(ends) - 1)
            yield (ahead, first), _NONE, ends[ahead][first]
        if v == first and i > lag:
            yield (i - 1 - lag, second), _NONE, ends[i - 1 - lag][second]
