"""The answer: a schedule with a proof of how good it is."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from domain.delivery import Delivery
from domain.problem import AnyProblem
from domain.schedule import Schedule

NoticeValues: TypeAlias = tuple[tuple[str, float | str], ...]  # pairs, so that a notice is hashable


class Strategy(StrEnum):
    """The published algorithms that choose a schedule, by the names clients use."""

    AUTO = "auto"
    EXACT = "exact"
    FIXED = "fixed"
    REPEAT = "repeat"
    RAMP = "ramp"
    RAMP_UP_DOWN = "ramp_up_down"
    RAMP_REPEAT = "ramp_repeat"
    HIERARCHICAL = "hierarchical"
    HIERARCHICAL_RAMP = "hierarchical_ramp"
    STATIC = "static"
    SINGLE = "single"
    EAGER = "eager"
    PULSES = "pulses"


# What is compared where nobody names strategies: all that shape fragments for plain stages, and
# those that hold for lanes, windows, delays and processors.
COMPARED = tuple(one for one in Strategy if one is not Strategy.RAMP_REPEAT)
COMPARED_ON_MACHINES = (
    Strategy.SINGLE,
    Strategy.REPEAT,
    Strategy.FIXED,
    Strategy.RAMP_REPEAT,
    Strategy.EXACT,
)


class Status(StrEnum):
    """What was proven, never more.

    optimal                  the whole-byte schedule is within the gap asked for
    optimal_before_rounding  the real-valued optimum is proven to that gap; whole bytes and
                             alignment add the rounding gap
    proven_gap               neither; the relative gap stated is true
    time_limit               the search was cut off; best so far, with its true gap
    """

    OPTIMAL = "optimal"
    OPTIMAL_BEFORE_ROUNDING = "optimal_before_rounding"
    PROVEN_GAP = "proven_gap"
    TIME_LIMIT = "time_limit"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user must see: a stable code and a sentence.

    `stage` is the name of the one stage that it is about, None where it is about the whole;
    `values` are the figures behind the sentence by name, in the units that the names say.
    """

    code: str
    detail: str
    stage: str | None = None
    values: NoticeValues = ()

    @classmethod
    def of_stage(cls, stage: str, code: str, words: str, **values: float | str) -> Notice:
        """Return the notice about one stage, whose sentence begins with the stage's name."""
        return cls(code, f"stage {stage}: {words}", stage, tuple(values.items()))

    def value(self, name: str) -> float | str | None:
        """Return the figure of this name, None where there is none."""
        return dict(self.values).get(name)


@dataclass(frozen=True, slots=True)
class Solution:
    """A schedule, its latency on those very bytes, and a proven lower bound (µs, delay included).

    `unrounded_latency_us` is that of the real-valued schedule behind it, where there is one.
    A hierarchical answer has `levels`, the cut each stage sees; its `schedule` is the coarsest of
    them, `latency_us` the true pipelined latency and `latency_paper_us` that of the convention in
    Wang98 sec. 5.5. The bound covers nested cuts where the answer, or the question, allows them.
    `cut_off` says that the time limit ended the search, whatever had been proven by then. Where
    only an aggregate is known, `latency_us` is the most that any pipeline with it can take.
    `delivery` has each stage's rule where the strategy chose one.
    """

    problem: AnyProblem
    strategy: Strategy
    schedule: Schedule
    latency_us: float
    lower_bound_us: float
    status: Status
    unrounded_latency_us: float | None = None
    limited_by: str | None = None
    levels: tuple[tuple[int, ...], ...] | None = None
    latency_paper_us: float | None = None
    notices: tuple[Notice, ...] = ()
    cut_off: bool = False
    delivery: tuple[Delivery, ...] | None = None

    @property
    def cells(self) -> int:
        """Fragments times stages; fragments alone where no stage is known."""
        if self.levels:
            return sum(map(len, self.levels))
        stages = self.problem.model.stages
        return self.schedule.fragments * (len(stages) if stages else 1)

    @property
    def relative_gap(self) -> float:
        """(latency - bound) / bound; 0 where they are equal, 0 included."""
        return relative_excess(self.latency_us, self.lower_bound_us, self.lower_bound_us)

    @property
    def rounding_gap(self) -> float | None:
        """What whole bytes and alignment add, relative to the bound; None without real sizes."""
        if self.unrounded_latency_us is None:
            return None
        return relative_excess(self.latency_us, self.unrounded_latency_us, self.lower_bound_us)


def relative_excess(value: float, reference: float, scale: float) -> float:
    """Return (value - reference) / scale, never negative and always finite."""
    if value <= reference:
        return 0.0
    if scale <= 0.0 or (value - reference) >= scale * sys.float_info.max:
        return sys.float_info.max
    return (value - reference) / scale
