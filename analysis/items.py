"""A message that is cut between items: its best cut, one cap instead, and what its time is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, floor
from typing import TYPE_CHECKING

from domain.items import (
    CapChoice,
    FillRule,
    ItemCut,
    ItemProblem,
    ItemSolution,
    ItemTimes,
    layout,
)
from domain.solution import relative_excess
from solvers.contract import Deadline, SolveOptions

if TYPE_CHECKING:
    from domain.uncertain_items import ItemErrors, SureItems

MIB = 2**20
_MAX_DECIMALS = 17  # of a cap in MiB: a double has no more
_SAME = 1e-9  # latencies that differ by less, relative, are equal
CAPS_S = 2.0  # that the walk over all caps may take
_SOLVE_SHARE, _CAPS_SHARE = 0.8, 0.1  # of the time limit; the rest is for what is said of the cut


class ItemLimit(StrEnum):
    """What most of the latency is."""

    CALCULATION = "calculation"
    BYTES = "bytes"
    OVERHEADS = "overheads"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class ItemPath:
    """Where the time of a cut goes, along a longest path of steps that wait for each other, in µs.

    With the pipeline's delay the times sum to the latency; `return_us` passes until places of
    windows are free. `stage` is the one that takes most of what `limit` says, None of the
    calculation and of places.
    """

    limit: ItemLimit
    stage: int | None
    calculation_us: float
    bytes_us: float
    overheads_us: float
    return_us: float = 0.0


@dataclass(frozen=True, slots=True)
class WindowSlots:
    """The slots of a window, counted from 0, for the fragments of a cut.

    So many of `slot_bytes` there are, `used` at once at most; with `enough` the cut takes no longer
    than with all, and without the window it takes `costs_us` less.
    """

    window: int
    slots: int
    slot_bytes: int
    used: int
    enough: int
    costs_us: float


@dataclass(frozen=True, slots=True)
class PricedCap:
    """A cap in bytes, the cut that it gives, and what that takes, in µs."""

    cap_bytes: int
    cut: ItemCut
    latency_us: float

    def loss(self, latency_us: float) -> float:
        """Return by which share of this latency it takes longer."""
        return relative_excess(self.latency_us, latency_us, latency_us)


@dataclass(frozen=True, slots=True)
class ItemsSolved:
    """The best cut of items, the best single cap and the one in use, and where the time goes.

    `sure` is how sure that is: None where it was not asked, where no errors are known, and where no
    cap gives a layout.
    """

    solution: ItemSolution
    best_cap: CapChoice | None
    current: PricedCap | None
    path: ItemPath
    slots: tuple[WindowSlots, ...]
    solve_ms: float
    sure: SureItems | None = None

    @property
    def best_us(self) -> float:
        """The least latency of any cut that was priced, in µs."""
        caps = [one.latency_us for one in (self.best_cap, self.current) if one is not None]
        return min(self.solution.latency_us, *caps) if caps else self.solution.latency_us


@dataclass(frozen=True, slots=True)
class ItemsQuestion:
    """What is asked of items. `current_bytes` is the cap in use, `errors` what is known of those of
    costs and of ready times; `caps_s` is what the walk over all caps may take. Picklable.
    """

    problem: ItemProblem
    fill: FillRule
    relative_gap: float
    time_limit_s: float
    current_bytes: int | None = None
    errors: ItemErrors | None = None
    caps_s: float = CAPS_S


def solve_items_question(question: ItemsQuestion) -> ItemsSolved:
    """Solve, and price the single caps. Raises Infeasible."""
    from solvers.items.caps import best_cap
    from solvers.items.solve import solve_items

    problem, started_s = question.problem, time.perf_counter()
    limit_s = question.time_limit_s
    options = SolveOptions(relative_gap=question.relative_gap, time_limit_s=_SOLVE_SHARE * limit_s)
    solution = solve_items(problem, options)
    solve_ms = (time.perf_counter() - started_s) * 1e3
    return ItemsSolved(
        solution,
        best_cap(
            problem, question.fill, Deadline.after(min(question.caps_s, _CAPS_SHARE * limit_s))
        ),
        _priced(problem, question.current_bytes, question.fill),
        item_path(problem, solution.cut),
        window_slots(problem, solution.cut),
        solve_ms,
    )


def _priced(problem: ItemProblem, cap_bytes: int | None, fill: FillRule) -> PricedCap | None:
    if cap_bytes is None:
        return None
    cut = layout(problem.sequence, cap_bytes, fill)
    return PricedCap(cap_bytes, cut, problem.latency_us(cut))


def item_path(
    problem: ItemProblem, cut: Sequence[int], *, calculation: int | None = None
) -> ItemPath:
    """Return where the time of a cut goes; what the stage `calculation` takes besides overheads is
    calculation. Raises InvalidInput where it is no cut of the items.
    """
    times, stages = problem.simulate(cut), problem.pipeline.stages
    sizes = problem.sequence.fragment_bytes(cut)
    steps, calculation_us, return_us = critical_steps(problem, times)
    overheads_us, bytes_us = [0.0] * len(stages), [0.0] * len(stages)
    for fragment, stage in steps:
        starts, exits = times.in_stages.start_us[fragment], times.in_stages.exit_us[fragment]
        overhead_us = stages[stage].range_at(sizes[fragment]).overhead_us
        overheads_us[stage] += overhead_us
        own_us = max(0.0, exits[stage] - starts[stage] - overhead_us)
        if stage == calculation:
            calculation_us += own_us
        else:
            bytes_us[stage] += own_us
    parts = {
        ItemLimit.BYTES: sum(bytes_us),
        ItemLimit.OVERHEADS: sum(overheads_us),
        ItemLimit.CALCULATION: calculation_us,
        ItemLimit.RETURN: return_us,
    }
    limit = max(parts, key=parts.__getitem__)
    of_stages = overheads_us if limit is ItemLimit.OVERHEADS else bytes_us
    is_stage = limit in (ItemLimit.BYTES, ItemLimit.OVERHEADS)
    return ItemPath(
        limit,
        of_stages.index(max(of_stages)) if is_stage else None,
        calculation_us,
        parts[ItemLimit.BYTES],
        parts[ItemLimit.OVERHEADS],
        return_us,
    )


def critical_steps(
    problem: ItemProblem, times: ItemTimes
) -> tuple[tuple[tuple[int, int], ...], float, float]:
    """Return (fragment, stage) steps of a longest path, first to last; when its first fragment is
    ready, in µs: what is before the path is calculation; and what it waits for places of windows
    that come back, in µs.
    """
    exit_us, ready_us = times.in_stages.exit_us, times.ready_us
    fragment, stage = len(exit_us) - 1, len(exit_us[0]) - 1
    path, return_us = [(fragment, stage)], 0.0
    windows = tuple(zip(problem.windows, problem.places(times.cut), strict=True))
    while True:
        queue_us = exit_us[fragment - 1][stage] if fragment else -1.0
        arrival_us = exit_us[fragment][stage - 1] if stage else ready_us[fragment]
        waited_us, before = max(queue_us, arrival_us), None
        for window, places in windows:
            if window.first == stage and fragment >= places:
                back_us = exit_us[fragment - places][window.last] + window.return_us
                if back_us > waited_us:
                    waited_us, before = back_us, (window, places)
        if before is not None:
            window, places = before
            fragment, stage = fragment - places, window.last
            return_us += window.return_us
        elif not stage and arrival_us >= queue_us:
            return tuple(reversed(path)), arrival_us, return_us
        elif queue_us >= arrival_us:
            fragment -= 1
        else:
            stage -= 1
        path.append((fragment, stage))


def window_slots(problem: ItemProblem, cut: ItemCut) -> tuple[WindowSlots, ...]:
    """Return the slots of each window for this cut. O(m n log k) each. Raises Infeasible where the
    cut does not fit one.
    """
    if not problem.windows:
        return ()
    latency_us, spans = problem.latency_us(cut), problem.simulate(cut).in_stages
    found = []
    for place, (window, slots) in enumerate(zip(problem.windows, problem.places(cut), strict=True)):
        in_use = _most_at_once(
            [row[window.first] for row in spans.start_us],
            [row[window.last] + window.return_us for row in spans.exit_us],
        )
        largest = max(problem.sequence.fragment_bytes(cut))
        others = (*problem.windows[:place], *problem.windows[place + 1 :])
        found.append(
            WindowSlots(
                place,
                slots,
                largest if window.bytes is None else window.bytes // slots,
                in_use,
                _enough(problem, cut, place, min(slots, in_use)),
                latency_us - replace(problem, windows=others).latency_us(cut),
            )
        )
    return tuple(found)


def _most_at_once(taken_us: list[float], back_us: list[float]) -> int:
    """How many places are in use at once, at most, of which each is taken and comes back in turn;
    both never fall.
    """
    most, free = 0, 0
    for number, at_us in enumerate(taken_us, start=1):
        while free < number - 1 and back_us[free] <= at_us:
            free += 1
        most = max(most, number - free)
    return most


def _enough(problem: ItemProblem, cut: ItemCut, place: int, slots: int) -> int:
    """The fewest slots of a window with which a cut takes no longer than with so many, which are as
    good as all of them: with more of them no fragment is later.
    """

    def latency_us(count: int) -> float:
        windows = list(problem.windows)
        windows[place] = replace(windows[place], fragments=count)
        return replace(problem, windows=tuple(windows)).latency_us(cut)

    known_us = latency_us(slots) * (1.0 + _SAME)
    low, high = 1, slots
    while low < high:
        middle = (low + high) // 2
        if latency_us(middle) <= known_us:
            high = middle
        else:
            low = middle + 1
    return high


def most_of_cap(problem: ItemProblem, cut: Sequence[int], to_bytes: int | None) -> int | None:
    """Return the greatest cap up to `to_bytes` that gives this layout and of which each window
    holds as many slots as of the layout's largest fragment; None: any greater one does. A cap may
    be below that fragment, which then says the size.
    """
    largest = max(problem.sequence.fragment_bytes(cut))
    sizes = [
        max(largest, window.bytes // places)
        for window, places in zip(problem.windows, problem.places(cut), strict=True)
        if window.bytes is not None
    ]
    return min((one for one in (to_bytes, *sizes) if one is not None), default=None)


def cap_mib(from_bytes: int, to_bytes: int | None) -> float:
    """Return the number of MiB of fewest decimals that is one of these caps, in whole bytes and cut
    off as programs do; `to_bytes` None: any greater one is.
    """
    last = 2 * from_bytes if to_bytes is None else to_bytes
    for decimals in range(_MAX_DECIMALS):
        unit: int = 10**decimals
        lowest = ceil(from_bytes * unit / MIB)
        for count in (lowest, floor(last * unit / MIB)):
            mib = count / unit
            if from_bytes <= int(mib * MIB) <= last:
                return mib
    return from_bytes / MIB
