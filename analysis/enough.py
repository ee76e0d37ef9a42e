"""How many lanes and places of a machine are enough.

Source    docs/theory.md, "Machines": with repeated sizes more lanes or places are never slower, so
          that the fewest with which some size is within the margin are found by bisection.
Cost      a few tests for each lanes and window, most of one evaluation: the best size and the last
          one found are tried first. A test looks at the counts of fragments that could be within
          the margin with all that was given: fewer lanes or places make none of the others faster.
Exact     the fewest of lanes and places; of bytes to a 64th of what was given.
Traps     fewer lanes want other sizes: the best size of what was given is not that of fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from domain.errors import Infeasible
from domain.in_flight import InUse
from domain.machine import Machine, Window
from domain.problem import MachineProblem
from domain.uncertain_answer import Thresholds
from solvers.contract import Deadline
from solvers.machine.costs import Costs
from solvers.machine.counts import bounds_us, counts_below
from solvers.machine.repeat import size_within

MARGIN = Thresholds().margin
_PARTS = 64  # in which a window's bytes are counted


@dataclass(frozen=True, slots=True)
class Enough:
    """The fewest lanes by stage, places by window, and bytes by window of bytes."""

    lanes: Mapping[int, int] = field(default_factory=dict)
    places: Mapping[int, int] = field(default_factory=dict)
    bytes: Mapping[int, int] = field(default_factory=dict)


def find_enough(problem: MachineProblem, best_bytes: int, deadline: Deadline) -> Enough:
    """Return the fewest lanes and places, one of them at a time, with which some repeated size
    costs no more than the margin over the best one with all that was given.

    What was not decided in time counts as too few.
    """
    search, machine = _Search(problem, best_bytes, deadline), problem.machine
    return Enough(
        {j: search.lanes(j) for j, rules in enumerate(machine.rules) if rules.lanes > 1},
        {w: search.places(w) for w in range(len(machine.windows))},
        {w: search.bytes(w) for w, one in enumerate(machine.windows) if one.bytes is not None},
    )


def enough_of_first(machine: Machine, message_bytes: int, size: int) -> int | None:
    """Return how many lanes of the first stage that has some, else places of the first window, are
    enough for a message in this repeated size: a quarter more than the fewest within the margin, no
    more than given, nor than there are fragments. None of a machine without either.
    """
    stage = next((j for j, rules in enumerate(machine.rules) if rules.lanes > 1), None)
    if stage is None and not machine.windows:
        return None
    given = machine.windows[0].places(size) if stage is None else machine.rules[stage].lanes
    most_us = _message_us(machine, message_bytes, size) * (1.0 + MARGIN)
    low, high = 0, given
    while high - low > 1:
        count = (low + high) // 2
        fewer = _with_first(machine, stage, count)
        if _message_us(fewer, message_bytes, size) <= most_us:
            high = count
        else:
            low = count
    enough = InUse(given, None, high).enough or given
    return min(enough, -(-message_bytes // size))


def _with_first(machine: Machine, stage: int | None, count: int) -> Machine:
    if stage is None:
        return machine.with_rules(places={0: count})
    return machine.with_rules(lanes={stage: count})


def repeated_us(problem: MachineProblem, size: int) -> float:
    """Return what a repeated size takes, the delay included, in µs."""
    return _message_us(problem.machine, problem.message_bytes, size)


def _message_us(machine: Machine, message_bytes: int, size: int) -> float:
    q, r = np.divmod(np.array([message_bytes]), size)
    return float(Costs(machine).repeated_us(q, np.array([size]), r)[0]) + machine.delay_us


class _Search:
    """Looks for the fewest of one thing, with all else as it was given."""

    def __init__(self, problem: MachineProblem, size: int, deadline: Deadline) -> None:
        self._problem, self._size, self._deadline = problem, size, deadline
        self._limit_us = repeated_us(problem, size) * (1.0 + MARGIN)
        counts, _ = counts_below(problem, self._limit_us)
        known_us = bounds_us(problem)[counts - problem.count_range().minimum]
        self._counts = counts[known_us <= self._limit_us]

    def lanes(self, stage: int) -> int:
        """The fewest lanes of a stage."""
        machine = self._problem.machine
        return self._fewest(
            machine.rules[stage].lanes, lambda count: machine.with_rules(lanes={stage: count})
        )

    def places(self, window: int) -> int:
        """The fewest places of a window; its bytes stay."""
        machine = self._problem.machine
        given = machine.windows[window].places(self._size)
        return self._fewest(given, lambda count: machine.with_rules(places={window: count}))

    def bytes(self, window: int) -> int:
        """The fewest bytes of a window; its places stay."""
        machine, given = self._problem.machine, self._problem.machine.windows[window].bytes or 1
        parts = min(_PARTS, given)
        fewest = self._fewest(
            parts, lambda part: with_bytes(machine, window, -(-given * part // parts))
        )
        return -(-given * fewest // parts)

    def _fewest(self, given: int, with_count: Callable[[int], Machine]) -> int:
        """The least count that is within the margin; `given` is."""
        low, high, known = 0, given, [self._size]
        while high - low > 1:
            count = (low + high) // 2
            found = self._within(with_count(count), known)
            if found is None:
                low = count
            else:
                high, known = count, list(dict.fromkeys([found, self._size]))
        return high

    def _within(self, machine: Machine, known: list[int]) -> int | None:
        """A repeated size that is within the margin on this machine."""
        problem = replace(self._problem, machine=machine)
        try:
            problem.count_range()
        except Infeasible:
            return None
        return size_within(problem, self._limit_us, self._counts, known, self._deadline)


def with_bytes(machine: Machine, window: int, window_bytes: int) -> Machine:
    """Return the same with other bytes of a window."""
    windows, one = list(machine.windows), machine.windows[window]
    windows[window] = Window(one.first, one.last, one.fragments, window_bytes, one.return_us)
    return replace(machine, windows=tuple(windows))
