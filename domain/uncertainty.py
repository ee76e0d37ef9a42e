"""Costs that are not known exactly: lines with their covariances, or typed costs with
a deviation, and the cuts to compare on draws of them. Shares are of 1: 0.05 is 5 %.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from math import exp, isfinite, log
from typing import ClassVar, TypeAlias

from contract.limits import DEFAULT_DRAWS, MAX_MESSAGE_BYTES, MAX_RELATIVE
from domain.aggregate import Aggregate
from domain.derived import Derived
from domain.errors import InconsistentInput, InvalidInput
from domain.machine import Machine, StageRules, Window
from domain.measured_times import MeasuredTimes, rounded
from domain.model import CostModel
from domain.nested import NestedSchedule
from domain.pipeline import FitRange, Pipeline, Stage
from domain.structure import KnownOverlap

UNKNOWN_ERRORS = (
    "the errors of these costs are not known: give relative, their deviation, as 0.1, or fit "
    "measurements (again, where an earlier version did)"
)
ANSWER = "answer"  # the name of a cut that a solver found
_IN_95_PERCENT = 1.959963984540054  # standard deviations on either side
_ROUNDING = 1e-6  # by which a stored covariance may exceed what its variances allow


class Parameter(StrEnum):
    """The two parameters of a cost line."""

    OVERHEAD = "overhead_us"
    PER_BYTE = "ns_per_byte"


@dataclass(frozen=True, slots=True)
class UncertainLine:
    """A line fitted over one range of fragment sizes, and how far it is determined.

    `estimate` is the range as the model has it, costs >= 0. `free_overhead_us` and
    `free_ns_per_byte` are the estimates before they were clipped at 0; `covariance` is theirs:
    (µs², µs·ns/B, (ns/B)²), the variance between sizes included. `end_between` are the measured
    sizes in bytes between which the range ends, None for the last range and where the end is
    known. `unsupported` names the parameters about which the data decide nothing. Raises
    InvalidInput.
    """

    estimate: FitRange
    free_overhead_us: float
    free_ns_per_byte: float
    covariance: tuple[float, float, float]
    end_between: tuple[int, int] | None = None
    unsupported: tuple[Parameter, ...] = ()

    def __post_init__(self) -> None:
        if not all(map(isfinite, (self.free_overhead_us, self.free_ns_per_byte, *self.covariance))):
            raise InvalidInput("expected finite estimates and covariances", field="covariance")
        overhead, both, per_byte = self.covariance
        if overhead < 0.0 or per_byte < 0.0 or both**2 > overhead * per_byte * (1.0 + _ROUNDING):
            raise InvalidInput("expected a positive semidefinite covariance", field="covariance")
        if self.end_between is None:
            return
        left, right = self.end_between
        if self.estimate.up_to_bytes is None or not 1 <= left < right <= MAX_MESSAGE_BYTES:
            raise InvalidInput(
                "expected an end between two sizes of which the second is larger",
                field="end_between",
            )


@dataclass(frozen=True, slots=True)
class UncertainStage:
    """A fitted stage: its lines, ascending, and what is known of their errors.

    `degrees_of_freedom` are those of the estimated error, shared by the lines. `size_deviation` is
    the relative deviation between sizes, `spread` that of single times around their median;
    `measured_bytes` the measured sizes, ascending: what to measure next is chosen by these three.
    `mean_ratio` is the factor by which means of times are above their medians, which the lines are
    of, with its standard error. Raises InvalidInput, and InvalidStage as `Stage` does.
    """

    name: str
    lines: tuple[UncertainLine, ...]
    degrees_of_freedom: int
    size_deviation: float
    spread: float
    measured_bytes: tuple[int, ...] = ()
    mean_ratio: float = 1.0
    mean_ratio_error: float = 0.0

    def __post_init__(self) -> None:
        _ = self.stage
        if self.degrees_of_freedom < 1:
            raise InvalidInput("expected degrees_of_freedom >= 1", field="degrees_of_freedom")
        if not all(isfinite(one) and one >= 0.0 for one in (self.size_deviation, self.spread)):
            raise InvalidInput("expected finite deviations >= 0", field="spread")
        if any(not low < high for low, high in pairwise(self.measured_bytes)):
            raise InvalidInput("expected measured sizes that ascend", field="measured_bytes")
        if any(not low[1] <= high[0] for low, high in pairwise(self._brackets())):
            raise InvalidInput("expected ends between sizes of their own", field="end_between")

    def _brackets(self) -> list[tuple[int, int]]:
        """Where each end may be: (last byte that is left of it, first one right of it)."""
        found = []
        for line in self.lines[:-1]:
            end = line.estimate.up_to_bytes or 0
            left, right = line.end_between or (end, end + 1)
            found.append((min(left, end), max(right, end + 1)))
        return found

    @property
    def stage(self) -> Stage:
        """The stage at its estimates."""
        return Stage(self.name, tuple(line.estimate for line in self.lines))


@dataclass(frozen=True, slots=True)
class StatedInterval:
    """95 % intervals, (low, high), of what a typed range of a stage costs; None: not given.

    `range_index` counts the stage's ranges from 0. Raises InconsistentInput.
    """

    stage: str
    range_index: int = 0
    overhead_us: tuple[float, float] | None = None
    ns_per_byte: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.overhead_us is None and self.ns_per_byte is None:
            raise InconsistentInput(
                "expected overhead_us, ns_per_byte or both", field="overhead_us"
            )


@dataclass(frozen=True, slots=True)
class StatedStage:
    """A stage whose costs were typed, each known to a relative standard deviation.

    `deviations` has those of each range in its place, where intervals were given: of the overhead
    and of the per-byte cost, each below the cost and above it. Raises InvalidInput.
    """

    stage: Stage
    relative: float
    deviations: tuple[tuple[tuple[float, float], tuple[float, float]], ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 <= self.relative <= MAX_RELATIVE:
            raise InvalidInput(f"expected 0 <= relative <= {MAX_RELATIVE:g}", field="relative")
        if self.deviations and len(self.deviations) != len(self.stage.ranges):
            raise InvalidInput("expected deviations of each range", field="deviations")

    @property
    def known(self) -> tuple[tuple[tuple[float, float], tuple[float, float]], ...]:
        """The deviations of each range."""
        all_alike = ((self.relative, self.relative), (self.relative, self.relative))
        return self.deviations or (all_alike,) * len(self.stage.ranges)

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.stage.name


AnyStage: TypeAlias = UncertainStage | StatedStage


@dataclass(frozen=True)  # no slots: the seed is kept beside the fields
class UncertainPipeline(Derived):
    """Stages whose costs are not known exactly, in order, and a constant delay in µs."""

    kind: ClassVar = Pipeline.kind

    stages: tuple[AnyStage, ...]
    delay_us: float = 0.0

    @cached_property
    def model(self) -> Pipeline:
        """The pipeline at the estimates."""
        return Pipeline(tuple(one.stage for one in self.stages), self.delay_us)


@dataclass(frozen=True)  # as above
class UncertainAggregate(Derived):
    """A total and a bottleneck that are not known exactly, and a constant delay in µs."""

    kind: ClassVar = Aggregate.kind

    total: AnyStage
    bottleneck: AnyStage
    delay_us: float = 0.0
    total_is_uncut: bool = False

    @property
    def stages(self) -> tuple[AnyStage, ...]:
        """The total and the bottleneck."""
        return (self.total, self.bottleneck)

    @cached_property
    def model(self) -> Aggregate:
        """The aggregate at the estimates."""
        costs = self.total.stage, self.bottleneck.stage, self.delay_us
        return Aggregate(*costs, self.total_is_uncut)


@dataclass(frozen=True)  # as above
class UncertainMachine(Derived):
    """A machine whose stages' costs are not known exactly. Its rules and windows are: lanes,
    what lanes share, delays, processors, places and ways back count as known.
    """

    kind: ClassVar = Machine.kind

    costs: UncertainPipeline
    rules: tuple[StageRules, ...]
    windows: tuple[Window, ...] = ()

    @property
    def stages(self) -> tuple[AnyStage, ...]:
        """The stages in order."""
        return self.costs.stages

    @property
    def delay_us(self) -> float:
        """The constant delay of the whole, µs."""
        return self.costs.delay_us

    @cached_property
    def model(self) -> Machine:
        """The machine at the estimates. Raises InvalidStage as `Machine` does."""
        return Machine(self.costs.model, self.rules, self.windows)


UncertainModel: TypeAlias = UncertainPipeline | UncertainAggregate | UncertainMachine


def stated_model(
    model: CostModel, relative: float, intervals: Sequence[StatedInterval] = ()
) -> UncertainModel:
    """Return a model each of whose costs is known to this relative standard deviation, or as its
    interval says. Raises InconsistentInput for an interval of no cost there, or not around it.
    """
    outside = (model.total, model.bottleneck) if isinstance(model, Aggregate) else ()
    stages = model.stages if isinstance(model, (Pipeline, Machine)) else outside
    places = {(stage.name, r) for stage in stages for r in range(len(stage.ranges))}
    given: dict[tuple[str, int], tuple[int, StatedInterval]] = {}
    for at, one in enumerate(intervals):
        place, field = (one.stage, one.range_index), f"intervals.{at}.stage"
        if place not in places:
            raise InconsistentInput("expected a stage and a range of it", field=field)
        if place in given:
            raise InconsistentInput("expected each range of a stage once", field=field)
        given[place] = (at, one)
    stated = [_stated(stage, relative, given) for stage in stages]
    if isinstance(model, Aggregate):
        return UncertainAggregate(stated[0], stated[1], model.delay_us, model.total_is_uncut)
    costs = UncertainPipeline(tuple(stated), model.delay_us)
    if isinstance(model, Machine):
        return UncertainMachine(costs, model.rules, model.windows)
    assert isinstance(model, Pipeline)  # the three kinds there are
    return costs


def _stated(
    stage: Stage, relative: float, given: Mapping[tuple[str, int], tuple[int, StatedInterval]]
) -> StatedStage:
    known, alike = [], (relative, relative)
    for r, part in enumerate(stage.ranges):
        if (stage.name, r) not in given:
            known.append((alike, alike))
            continue
        at, one = given[stage.name, r]
        both = (
            ("overhead_us", one.overhead_us, part.overhead_us),
            ("ns_per_byte", one.ns_per_byte, part.ns_per_byte),
        )
        overhead, per_byte = (
            alike if interval is None else _deviations(interval, cost, f"intervals.{at}.{kind}")
            for kind, interval, cost in both
        )
        known.append((overhead, per_byte))
    has_own = any((stage.name, r) in given for r in range(len(stage.ranges)))
    return StatedStage(stage, relative, tuple(known) if has_own else ())


def _deviations(interval: tuple[float, float], cost: float, field: str) -> tuple[float, float]:
    """Of the cost's logarithm, below it and above it."""
    low, high = interval
    widest = exp(_IN_95_PERCENT * MAX_RELATIVE)
    if not (0.0 < low <= cost <= high <= widest * cost and cost <= widest * low):
        raise InconsistentInput(
            f"expected 0 < low <= {cost:g}, the cost, <= high, both within a factor of "
            f"{widest:.3g} of it",
            field=field,
        )
    return log(cost / low) / _IN_95_PERCENT, log(high / cost) / _IN_95_PERCENT


def seed_of(model: UncertainModel) -> int:
    """Return the seed of a model's draws: 64 bits of a SHA-256 of the costs and of their errors.

    Nine digits of each count: processors add the sums of a fit in different orders, and the same
    measurements are to have the same draws on each of them.

    It does not depend on the message, so that every answer about these costs, a table or an audit
    of many messages too, is over the same draws. Those of a machine are of its costs alone: with
    other lanes or places it has the same draws.
    """
    return model.derived(_seed)


def _seed(model: UncertainModel) -> int:
    if isinstance(model, UncertainMachine):
        return seed_of(model.costs)
    known = rounded([model.kind, [_key(stage) for stage in model.stages], model.delay_us])
    canonical = json.dumps(known, separators=(",", ":"), allow_nan=False)
    return int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:8], "big")


def _key(stage: AnyStage) -> list[object]:
    """What the draws of a stage depend on; its name is no part of it."""
    ranges = [[one.overhead_us, one.ns_per_byte, one.up_to_bytes] for one in stage.stage.ranges]
    if isinstance(stage, StatedStage):
        return [stage.relative, ranges, *([stage.deviations] if stage.deviations else [])]
    lines = [
        [one.free_overhead_us, one.free_ns_per_byte, one.covariance, one.end_between]
        for one in stage.lines
    ]
    return [stage.degrees_of_freedom, ranges, lines]


@dataclass(frozen=True, slots=True)
class KnownErrors:
    """Costs with their errors, and how they are drawn.

    `misfit` is the share of the latency by which measured whole messages differ from the model.
    Without `seed` it is `seed_of(model)`. `whole_us` are the messages that were timed in one piece,
    in bytes, and what each took, in µs. `times` are what the measured sizes took, None where the
    costs are of none. `overlap` is what is known of the stages' overlap.
    """

    model: UncertainModel
    misfit: float = 0.0
    draws: int = DEFAULT_DRAWS
    seed: int | None = None
    whole_us: tuple[tuple[int, float], ...] = ()
    times: MeasuredTimes | None = None
    overlap: KnownOverlap = field(default_factory=KnownOverlap)


class Source(StrEnum):
    """Where the errors of the costs come from: a fit, or deviations or intervals of typed costs; of
    costs that count as known, the ready times of items alone have errors.
    """

    FIT = "fit"
    RELATIVE = "relative"
    INTERVALS = "intervals"
    READY = "ready"


def source_of(model: UncertainModel) -> Source:
    """Return `relative` where every stage was typed, `intervals` where some of its costs have their
    own, `ready` where none has any, else `fit`.
    """
    return model.derived(_source)


def _source(model: UncertainModel) -> Source:
    typed = [stage for stage in model.stages if isinstance(stage, StatedStage)]
    if len(typed) < len(model.stages):
        return Source.FIT
    if any(one.deviations for one in typed):
        return Source.INTERVALS
    return Source.RELATIVE if any(one.relative > 0.0 for one in typed) else Source.READY


@dataclass(frozen=True, slots=True)
class NamedCut:
    """One way to cut the message: a repeated size, or the fragments that each stage sees.

    `name` is what the caller calls it. Exactly one of the two is given: `size_bytes`, a message
    smaller than it being sent whole, or `schedule`. Raises InvalidInput.
    """

    name: str
    size_bytes: int | None = None
    schedule: NestedSchedule | None = None

    def __post_init__(self) -> None:
        if (self.size_bytes is None) == (self.schedule is None):
            raise InvalidInput("expected a size or a schedule", field=self.name)
        if self.size_bytes is not None and not 1 <= self.size_bytes <= MAX_MESSAGE_BYTES:
            raise InvalidInput(f"expected 1 <= size <= {MAX_MESSAGE_BYTES}", field=self.name)

    def is_whole(self, message_bytes: int) -> bool:
        """Return whether a message of this size is sent in one piece through all stages."""
        if self.schedule is None:
            return self.size_bytes is not None and self.size_bytes >= message_bytes
        return all(len(one) == 1 for one in self.schedule.stage_bytes)

    def fragments(self, message_bytes: int) -> int:
        """Return into how many fragments a message of this size is cut, where most are."""
        if self.schedule is None:
            return -(-message_bytes // min(self.size_bytes or 1, message_bytes))
        return max(map(len, self.schedule.stage_bytes))

    @classmethod
    def of_fragments(cls, name: str, fragment_bytes: Sequence[int]) -> NamedCut:
        """Return the cut that all stages share. Raises InvalidInput."""
        return cls(name, schedule=NestedSchedule((tuple(fragment_bytes),)))
