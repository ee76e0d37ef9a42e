"""A message that is cut between items: its best cut, one cap instead, and what its time is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor

from domain.items import CapChoice, FillRule, ItemCut, ItemProblem, ItemSolution, layout
from domain.solution import relative_excess
from solvers.contract import Deadline, SolveOptions

MIB = 2**20
_MAX_DECIMALS = 17  # of a cap in MiB: a double has no more
CAPS_S = 2.0  # that the walk over all caps may take


class ItemLimit(StrEnum):
    """What most of the latency is."""

    CALCULATION = "calculation"
    BYTES = "bytes"
    OVERHEADS = "overheads"


@dataclass(frozen=True, slots=True)
class ItemPath:
    """Where the time of a cut goes, along a longest path of steps that wait for each other, in µs.

    With the pipeline's delay the three times sum to the latency. `stage` is the one that takes most
    of what `limit` says, None of the calculation.
    """

    limit: ItemLimit
    stage: int | None
    calculation_us: float
    bytes_us: float
    overheads_us: float


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
    """The best cut of items, the best single cap and the one in use, and where the time goes."""

    solution: ItemSolution
    best_cap: CapChoice | None
    current: PricedCap | None
    path: ItemPath
    solve_ms: float

    @property
    def best_us(self) -> float:
        """The least latency of any cut that was priced, in µs."""
        caps = [one.latency_us for one in (self.best_cap, self.current) if one is not None]
        return min(self.solution.latency_us, *caps) if caps else self.solution.latency_us


@dataclass(frozen=True, slots=True)
class ItemsQuestion:
    """What is asked of items. `current_bytes` is the cap in use; `caps_s` is what the walk over all
    caps may take. Picklable.
    """

    problem: ItemProblem
    fill: FillRule
    relative_gap: float
    time_limit_s: float
    current_bytes: int | None = None
    caps_s: float = CAPS_S


def solve_items_question(question: ItemsQuestion) -> ItemsSolved:
    """Solve, and price the single caps. Raises Infeasible."""
    from solvers.items.caps import best_cap
    from solvers.items.solve import solve_items

    problem, started_s = question.problem, time.perf_counter()
    options = SolveOptions(relative_gap=question.relative_gap, time_limit_s=question.time_limit_s)
    solution = solve_items(problem, options)
    solve_ms = (time.perf_counter() - started_s) * 1e3
    return ItemsSolved(
        solution,
        best_cap(problem, question.fill, Deadline.after(question.caps_s)),
        _priced(problem, question.current_bytes, question.fill),
        item_path(problem, solution.cut),
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
    steps, calculation_us = critical_steps(times.ready_us, times.in_stages.exit_us)
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
    }
    limit = max(parts, key=parts.__getitem__)
    of_stages = overheads_us if limit is ItemLimit.OVERHEADS else bytes_us
    is_stage = limit is not ItemLimit.CALCULATION
    return ItemPath(
        limit,
        of_stages.index(max(of_stages)) if is_stage else None,
        calculation_us,
        parts[ItemLimit.BYTES],
        parts[ItemLimit.OVERHEADS],
    )


def critical_steps(
    ready_us: Sequence[float], exit_us: Sequence[Sequence[float]]
) -> tuple[tuple[tuple[int, int], ...], float]:
    """Return (fragment, stage) steps of a longest path, first to last, and when its first fragment
    is ready, in µs: what is before the path is calculation.
    """
    fragment, stage = len(exit_us) - 1, len(exit_us[0]) - 1
    path = [(fragment, stage)]
    while True:
        queue_us = exit_us[fragment - 1][stage] if fragment else -1.0
        arrival_us = exit_us[fragment][stage - 1] if stage else ready_us[fragment]
        if not stage and arrival_us >= queue_us:
            return tuple(reversed(path)), arrival_us
        if queue_us >= arrival_us:
            fragment -= 1
        else:
            stage -= 1
        path.append((fragment, stage))


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
