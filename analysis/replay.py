"""What a message takes by rules that bound the begins of its fragments, event by event.

Source    docs/theory.md, "What overlaps". Fragments are handed over in order; where several may
          begin, those of later stages do. Fragments of stages that share P processors progress at
          min(1, P/m) while m of them work.
Cost      O(events * (stages + windows)), in Python: for traced messages, not for a search.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SAME_US = 1e-6


class Window(NamedTuple):
    """At most `places` fragments from the start of a stage to the end of another; a place is free
    again `return_us` after that.
    """

    first: int
    last: int
    places: int
    return_us: float


@dataclass(frozen=True, slots=True)
class Rules:
    """What bounds the begins; stages by their place, times in µs.

    `turns` are sets of stages of which one works at a time, `shares` sets with their processors.
    `is_barrier`: a stage begins when the whole message has left the one before. `hand_us` is what
    handing a fragment over to each stage takes; empty: nothing.
    """

    lanes: tuple[int, ...]
    windows: tuple[Window, ...] = ()
    turns: tuple[tuple[int, ...], ...] = ()
    shares: tuple[tuple[tuple[int, ...], float], ...] = ()
    is_barrier: bool = False
    hand_us: tuple[float, ...] = ()


@dataclass(slots=True)
class _State:
    """One message: what works, (fragment, stage) to µs of work left, and the ends so far."""

    work: list[list[float]]
    rules: Rules
    now_us: float = 0.0
    active: dict[tuple[int, int], float] = field(default_factory=dict)
    next_fragment: list[int] = field(default_factory=list)
    end_us: list[dict[int, float]] = field(default_factory=list)
    in_order: list[list[float]] = field(default_factory=list)
    working: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        stages = len(self.rules.lanes)
        self.next_fragment = [0] * stages
        self.working = [0] * stages
        self.end_us = [{} for _ in range(stages)]
        self.in_order = [[] for _ in range(stages)]

    def ready_us(self, stage: int) -> float:
        """When the next fragment of a stage may begin by what has ended; inf: not yet known."""
        fragment, rules = self.next_fragment[stage], self.rules
        if fragment >= len(self.work) or self.working[stage] >= rules.lanes[stage]:
            return inf
        if any(stage in one and any(self.working[q] for q in one) for one in rules.turns):
            return inf
        at_us = 0.0
        if stage:
            hand_us = rules.hand_us[stage] if rules.hand_us else 0.0
            before = self.end_us[stage - 1]
            if rules.is_barrier:
                all_left = len(before) == len(self.work)
                at_us = self.in_order[stage - 1][-1] + hand_us if all_left else inf
            else:
                at_us = before.get(fragment, inf) + hand_us
        for first, last, places, return_us in rules.windows:
            if first == stage and fragment >= places:
                ends, freed = self.in_order[last], fragment - places
                at_us = max(at_us, ends[freed] + return_us if freed < len(ends) else inf)
        return at_us

    def begin(self) -> float:
        """Begin all that may, and return when the next may by what has ended."""
        soon_us, has_begun = inf, True
        while has_begun:
            soon_us, has_begun = inf, False
            for stage in reversed(range(len(self.next_fragment))):
                at_us = self.ready_us(stage)
                if at_us > self.now_us + _SAME_US:
                    soon_us = min(soon_us, at_us)
                    continue
                fragment = self.next_fragment[stage]
                self.active[fragment, stage] = self.work[fragment][stage]
                self.next_fragment[stage] += 1
                self.working[stage] += 1
                has_begun = True
        return soon_us

    def rates(self) -> list[float]:
        """How fast each stage's fragments progress."""
        found = [1.0] * len(self.working)
        for stages, processors in self.rules.shares:
            working = sum(self.working[stage] for stage in stages)
            for stage in stages:
                found[stage] = min(1.0, processors / max(working, 1))
        return found

    def advance(self, soon_us: float) -> None:
        """Go on to the next end, or to when the next may begin. Raises RuntimeError: neither."""
        rates = self.rates()
        step_us = min(
            (left / rates[stage] for (_, stage), left in self.active.items()), default=inf
        )
        step_us = min(step_us, soon_us - self.now_us)
        if step_us == inf:
            raise RuntimeError("no fragment may begin by these rules")
        self.now_us += step_us
        for (fragment, stage), left in list(self.active.items()):
            left -= rates[stage] * step_us
            self.active[fragment, stage] = left
            if left <= _SAME_US:
                del self.active[fragment, stage]
                self.working[stage] -= 1
                self.end_us[stage][fragment] = self.now_us
                insort(self.in_order[stage], self.now_us)


def replayed_us(rules: Rules, work_us: Floats) -> float:
    """Return when the last fragment has left, in µs; `work_us` is (fragments, stages).

    Raises RuntimeError for rules by which none may begin.
    """
    state = _State(work_us.tolist(), rules)
    left = work_us.size
    while left:
        before = len(state.active)
        soon_us = state.begin()
        before = len(state.active)
        state.advance(soon_us)
        left -= before - len(state.active)
    return state.now_us
