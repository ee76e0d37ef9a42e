"""What an answer of a machine has in flight: lanes and places in use, what of them is enough, and
what sets the pace.

Source    docs/theory.md, "Machines".
Notation  x: the greatest fragment of the cut; C_w, b_w: round trip and places of a window at x.
Cost      the evaluator for the cut, and analysis/enough.py.
Exact     periods are those of a message without end in fragments of x.
Traps     a place that is on its way back is in use. Lanes and places that limit are compared with
          what no number of them could raise: single stages, shared parts, processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from analysis.enough import Enough, find_enough
from domain.in_flight import (
    FullRate,
    InFlight,
    InUse,
    Limit,
    LimitKind,
    ProcessorLag,
    StageLanes,
    WindowPlaces,
)
from domain.machine import Lags, Machine, NodeWindow
from domain.problem import MachineProblem
from domain.solution import Solution
from solvers.contract import Deadline
from solvers.machine.costs import Costs

Floats = NDArray[np.float64]

MAX_CELLS = 200_000  # fragments times nodes of a cut whose places in use are counted
_SEARCH_S = 2.0  # what the search for what is enough may take
_TIE = 1e-9
_COUNTED = (LimitKind.LANES, LimitKind.WINDOW)  # what more of them would raise


def in_flight(solution: Solution, problem: MachineProblem, best_bytes: int | None) -> InFlight:
    """Return what an answer has in flight. `best_bytes` is the best repeated size, None where none
    can be repeated.
    """
    cut = solution.schedule.fragment_bytes
    enough = Enough()
    if best_bytes is not None:
        enough = find_enough(problem, best_bytes, Deadline.after(_SEARCH_S))
    machine, size = problem.machine, max(cut)
    lags, used = _evaluated(machine, cut)
    limits = list(_limits(machine, size, lags))
    limit = max(limits, key=lambda one: one.period_us * (1.0 + _TIE * -limits.index(one)))
    return InFlight(
        size_bytes=size,
        period_us=limit.period_us,
        stages=tuple(_lanes(machine, cut, used, enough)),
        windows=tuple(_windows(machine, size, used, enough)),
        processors=tuple(_lags(machine, size, lags)),
        limit=_with_full_rate(limit, limits, size),
        work_us=max(
            (
                sum(machine.stages[j].time_us(one) for j in pair for one in cut)
                for pair in machine.processors.values()
            ),
            default=0.0,
        ),
        delays_alone=_delays_alone(machine),
    )


def _evaluated(machine: Machine, cut: tuple[int, ...]) -> tuple[Lags, list[int] | None]:
    """The lags of the processors, and the places of each of the network's windows that are in use
    at once; the lags of a part, and None, where the cut is too long for that.
    """
    most = MAX_CELLS // len(machine.network)
    costs = Costs(machine)
    lags = costs.best_lags(cut[:most])
    if len(cut) > most:
        return lags, None
    return lags, places_in_use(machine, cut, lags)


def places_in_use(machine: Machine, cut: Sequence[int], lags: Lags) -> list[int]:
    """Return how many places of each of the network's windows a cut has in use at once, at most, at
    these lags. O(k log k windows). Raises Infeasible, and WouldDeadlock.
    """
    start_us, end_us = Costs(machine).node_times_us(cut, lags)
    return [
        _most_in_use(start_us[:, one.first], end_us[:, one.last] + one.return_us)
        for one in machine.network.windows
    ]


def _most_in_use(taken_us: Floats, back_us: Floats) -> int:
    """How many places are in use at once at most, each until it has come back. A place that comes
    back just then is free.
    """
    number = np.arange(len(taken_us))
    free = np.searchsorted(np.sort(back_us), np.sort(taken_us), side="right")
    return int((number + 1 - np.minimum(free, number)).max())


# --- lanes, places, lags --------------------------------------------------------------------------


def _lanes(
    machine: Machine, cut: tuple[int, ...], used: list[int] | None, enough: Enough
) -> Iterator[StageLanes]:
    size = max(cut)
    for j, rules in enumerate(machine.rules):
        if rules.lanes == 1:
            continue
        place = _window_of_lanes(machine, j)
        lanes = InUse(rules.lanes, used[place] if used else None, enough.lanes.get(j))
        alone_us = machine.stages[j].time_us(size)
        shared_us = rules.shared_ns_per_byte * size / 1000.0
        last_round = len(cut) % rules.lanes or rules.lanes
        last_us = machine.stages[j].time_us(max(cut[-last_round:]))
        yield StageLanes(j, lanes, alone_us, shared_us, last_round, last_us)


def _window_of_lanes(machine: Machine, stage: int) -> int:
    """The network's window that is the lanes of a stage: over both its nodes where it has two."""
    network = machine.network
    nodes = [node for node, of in enumerate(network.stage_of) if of == stage]
    ends = nodes[0], nodes[-1]
    return next(
        place
        for place, one in enumerate(network.windows)
        if one.window is None and (one.first, one.last) == ends
    )


def _windows(
    machine: Machine, size: int, used: list[int] | None, enough: Enough
) -> Iterator[WindowPlaces]:
    given = machine.places(size)
    for place, one in enumerate(machine.network.windows):
        if one.window is None:
            continue
        in_use = used[place] if used else None
        places = InUse(given[place], in_use, enough.places.get(one.window))
        in_bytes = None
        if one.bytes is not None:
            in_bytes = InUse(
                one.bytes, None if in_use is None else in_use * size, enough.bytes.get(one.window)
            )
        yield WindowPlaces(one.window, places, in_bytes, _never_binds(machine, one))


def _never_binds(machine: Machine, one: NodeWindow) -> bool:
    """Whether equal fragments take no longer with a window than without: it holds as many as the
    lanes of its stages, and nothing passes in it but their work. Processors are not looked at; and
    one of bytes bounds the sizes.
    """
    if one.fragments is None or one.bytes is not None:
        return False
    network = machine.network
    held = sum(
        1 if network.is_shared[node] else machine.rules[network.stage_of[node]].lanes
        for node in range(one.first, one.last + 1)
    )
    passes_us = sum(network.delay_us[one.first : one.last]) + one.return_us
    return not network.processors and passes_us == 0.0 and one.fragments >= held


def _delays_alone(machine: Machine) -> bool:
    """Whether there are delays, and no window or processor is over any of them."""
    delay = machine.network.delay_us[:-1]
    spans = [(one.first, one.last) for one in machine.network.windows]
    spans += machine.network.processors
    return any(delay) and not any(sum(delay[first:last]) for first, last in spans)


def _lags(machine: Machine, size: int, lags: Lags) -> Iterator[ProcessorLag]:
    places = machine.places(size)
    for at, (name, stages) in enumerate(machine.processors.items()):
        yield ProcessorLag(name, stages, lags[at], _max_lag(machine, places, lags, at))


def _max_lag(machine: Machine, places: list[int], lags: Lags, at: int) -> int | None:
    """The greatest lag of one processor that does not deadlock, with those of the others; None
    where any would do: a bound on it is a cycle, whose places no cycle has more of than all.
    """

    def is_live(lag: int) -> bool:
        return machine.offsets(places, (*lags[:at], lag, *lags[at + 1 :])) is not None

    low, high = lags[at], sum(places) + sum(lags) + 1
    if is_live(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_live(middle) else (low, middle)
    return low


# --- what sets the pace ---------------------------------------------------------------------------


def _limits(machine: Machine, size: int, lags: Lags) -> Iterator[Limit]:
    """What could set the pace, each with its own: stages before windows before processors."""
    network = machine.network
    times, trips = machine.node_times_us(size), machine.round_trips(size)
    for one, (trip_us, places) in zip(network.windows, trips, strict=True):
        stages = network.stage_of[one.first], network.stage_of[one.last]
        if one.window is not None:
            yield Limit(LimitKind.WINDOW, *stages, trip_us, places, window=one.window)
        elif places > 1:
            yield Limit(LimitKind.LANES, *stages, trip_us, places)
        else:
            kind = LimitKind.SHARED_PART if network.is_shared[one.first] else LimitKind.STAGE
            yield Limit(kind, *stages, trip_us, 1)
    for (name, stages), (j, z), lag in zip(
        machine.processors.items(), network.processors, lags, strict=True
    ):
        through_us = sum(times[j : z + 1]) + sum(network.delay_us[j:z])
        yield Limit(LimitKind.PROCESSOR, *stages, times[j] + times[z], 1, processor=name)
        yield Limit(LimitKind.PROCESSOR, *stages, through_us, 1 + lag, processor=name)


def _with_full_rate(limit: Limit, limits: list[Limit], size: int) -> Limit:
    """The same with the lanes or places that let the rate of all else through."""
    period_us = max((one.period_us for one in limits if one.kind not in _COUNTED), default=0.0)
    if limit.kind not in _COUNTED or period_us <= 0.0:
        return limit
    needed = limit.round_trip_us / period_us
    return replace(limit, full_rate=FullRate(period_us, ceil(needed), ceil(needed * size)))
