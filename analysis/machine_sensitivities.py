"""How an answer's latency moves with a machine: its costs, and what it has beside them.

Source    docs/theory.md, "Sensitivities of an answer" and "Machines".
Cost      the slopes of one cut (machine_slopes.py), and an evaluation for each change.
Exact     of the cut as it is, and of a repeated size with one lane or place fewer and more: what
          the best other cut gains then is not looked for.
Traps     with unequal fragments more lanes may cost time: they are changed for a repeated size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.machine_slopes import MachineSlopes, machine_slopes
from contract.limits import (
    MAX_NS_PER_BYTE,
    MAX_PLACES,
    MAX_WINDOW_FRAGMENTS,
)
from domain.machine import Machine, Window
from domain.problem import MachineProblem
from domain.sensitivity import (
    Basis,
    CostChange,
    PlacesChange,
    Sensitivities,
    Slope,
    StageSensitivity,
    WordSensitivity,
)
from solvers.heuristics.constant import repeated_cut
from solvers.machine.costs import Costs

MAX_CELLS = 20_000  # fragments times nodes of an answer that is looked at


def machine_sensitivities(
    problem: MachineProblem,
    cut: Sequence[int],
    changes: Sequence[float],
    *,
    latency_us: float,
    repeated_bytes: int | None,
) -> Sensitivities | None:
    """Return how the latency of a cut, which is known, moves with its machine; None of very many
    fragments, and of costs so near the greatest that the changes, shares of them, are none.

    Lanes and places are changed for the size that the cut repeats, else for `repeated_bytes`.
    """
    machine = problem.machine
    is_long = len(cut) * len(machine.network) > MAX_CELLS
    if is_long or latency_us <= 0.0 or not machine.pipeline.may_cost(1.0 + max(changes)):
        return None
    slopes = machine_slopes(machine, cut)
    changed = [
        tuple(
            CostChange(by, _cut_us(_scaled(machine, stage, 1.0 + by), cut), None, None)
            for by in changes
        )
        for stage in range(len(machine))
    ]
    of_stages = zip(slopes.overhead, slopes.per_byte, changed, strict=True)
    return Sensitivities(
        Basis.CUT,
        latency_us,
        None,
        Slope(),
        tuple(StageSensitivity(*one) for one in of_stages),
        _of_words(problem, slopes, _repeated_bytes(cut) or repeated_bytes),
    )


def _of_words(problem: MachineProblem, slopes: MachineSlopes, size: int | None) -> WordSensitivity:
    found = WordSensitivity(slopes.delay, slopes.way_back)
    if size is None:
        return found
    machine, cut = problem.machine, repeated_cut(problem, size)
    lanes = tuple(
        _changed(machine, cut, rules.lanes, MAX_PLACES, stage=stage) if rules.lanes > 1 else None
        for stage, rules in enumerate(machine.rules)
    )
    windows = tuple(
        _changed(machine, cut, one.places(cut[0]), MAX_WINDOW_FRAGMENTS, window=w)
        for w, one in enumerate(machine.windows)
    )
    return replace(
        found,
        size_bytes=cut[0],
        repeated_us=_cut_us(machine, cut),
        lanes=lanes,
        windows=windows,
    )


def _changed(
    machine: Machine,
    cut: Sequence[int],
    places: int,
    most: int,
    *,
    stage: int | None = None,
    window: int | None = None,
) -> PlacesChange:
    fewer_us, more_us = (
        _cut_us(_with_places(machine, count, stage=stage, window=window), cut)
        if 1 <= count <= most
        else None
        for count in (places - 1, places + 1)
    )
    return PlacesChange(places, fewer_us, more_us)


def _with_places(machine: Machine, count: int, *, stage: int | None, window: int | None) -> Machine:
    """The machine with so many lanes of a stage, or places of a window at the size at hand."""
    if stage is not None:
        return machine.with_rules(lanes={stage: count})
    windows = [
        Window(one.first, one.last, count, None, one.return_us) if w == window else one
        for w, one in enumerate(machine.windows)
    ]
    return replace(machine, windows=tuple(windows))


def _scaled(machine: Machine, stage: int, factor: float) -> Machine:
    """The machine with all costs of a stage times a factor, what its lanes share too."""
    pipeline = machine.pipeline.scaled(stage, overhead=factor, per_byte=factor)
    rules = list(machine.rules)
    shared = rules[stage].shared_ns_per_byte * factor
    rules[stage] = replace(rules[stage], shared_ns_per_byte=min(shared, MAX_NS_PER_BYTE))
    return replace(machine, pipeline=pipeline, rules=tuple(rules))


def _cut_us(machine: Machine, cut: Sequence[int]) -> float:
    return Costs(machine).cut_us(cut) + machine.delay_us


def _repeated_bytes(cut: Sequence[int]) -> int | None:
    """The size that a cut repeats; None of other cuts."""
    first, last = cut[0], cut[-1]
    return first if last <= first and all(one == first for one in cut[:-1]) else None
