"""Costs that are not known exactly, and what this leaves of an answer.

The first half is what goes in: lines with the covariance of their estimates, or typed costs with a
deviation; the second half what `analysis.uncertainty` makes of it. Shares are of 1: 0.05 is 5 %.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import isfinite
from typing import ClassVar, TypeAlias

from domain.aggregate import Aggregate
from domain.errors import InvalidInput
from domain.model import CostModel
from domain.nested import NestedSchedule
from domain.pipeline import MAX_MESSAGE_BYTES, FitRange, Pipeline, Stage

DEFAULT_DRAWS = 400  # the standard error of a probability is 2.5 % at most
UNKNOWN_ERRORS = (
    "the errors of these costs are not known: give relative, their deviation, as 0.1, or fit "
    "measurements (again, where an earlier version did)"
)
MAX_RELATIVE = 1.0  # typed deviations: beyond that a cost is not known at all
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
    Raises InvalidInput, and InvalidStage as `Stage` does.
    """

    name: str
    lines: tuple[UncertainLine, ...]
    degrees_of_freedom: int
    size_deviation: float
    spread: float
    measured_bytes: tuple[int, ...] = ()

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
class StatedStage:
    """A stage whose costs were typed, each known to a relative standard deviation.

    Raises InvalidInput.
    """

    stage: Stage
    relative: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.relative <= MAX_RELATIVE:
            raise InvalidInput(f"expected 0 <= relative <= {MAX_RELATIVE:g}", field="relative")

    @property
    def name(self) -> str:
        """The stage's name."""
        return self.stage.name


AnyStage: TypeAlias = UncertainStage | StatedStage


@dataclass(frozen=True, slots=True)
class UncertainPipeline:
    """Stages whose costs are not known exactly, in order, and a constant delay in µs."""

    kind: ClassVar = Pipeline.kind

    stages: tuple[AnyStage, ...]
    delay_us: float = 0.0

    @property
    def model(self) -> Pipeline:
        """The pipeline at the estimates."""
        return Pipeline(tuple(one.stage for one in self.stages), self.delay_us)


@dataclass(frozen=True, slots=True)
class UncertainAggregate:
    """A total and a bottleneck that are not known exactly, and a constant delay in µs."""

    kind: ClassVar = Aggregate.kind

    total: AnyStage
    bottleneck: AnyStage
    delay_us: float = 0.0

    @property
    def stages(self) -> tuple[AnyStage, ...]:
        """The total and the bottleneck."""
        return (self.total, self.bottleneck)

    @property
    def model(self) -> Aggregate:
        """The aggregate at the estimates."""
        return Aggregate(self.total.stage, self.bottleneck.stage, self.delay_us)


UncertainModel: TypeAlias = UncertainPipeline | UncertainAggregate


def stated_model(model: CostModel, relative: float) -> UncertainModel:
    """Return a model each of whose costs is known to this relative standard deviation."""
    if isinstance(model, Aggregate):
        total, bottleneck = model.total, model.bottleneck
        return UncertainAggregate(
            StatedStage(total, relative), StatedStage(bottleneck, relative), model.delay_us
        )
    assert isinstance(model, Pipeline)  # the two kinds there are
    stages = tuple(StatedStage(stage, relative) for stage in model.stages)
    return UncertainPipeline(stages, model.delay_us)


def seed_of(model: UncertainModel) -> int:
    """Return the seed of a model's draws: 64 bits of a SHA-256 of the costs and of their errors.

    It does not depend on the message, so that every answer about these costs, a table or an audit
    of many messages too, is over the same draws.
    """
    known = [model.kind, [_key(stage) for stage in model.stages], model.delay_us]
    canonical = json.dumps(known, separators=(",", ":"), allow_nan=False)
    return int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:8], "big")


def _key(stage: AnyStage) -> list[object]:
    """What the draws of a stage depend on; its name is no part of it."""
    ranges = [[one.overhead_us, one.ns_per_byte, one.up_to_bytes] for one in stage.stage.ranges]
    if isinstance(stage, StatedStage):
        return [stage.relative, ranges]
    lines = [
        [one.free_overhead_us, one.free_ns_per_byte, one.covariance, one.end_between]
        for one in stage.lines
    ]
    return [stage.degrees_of_freedom, ranges, lines]


@dataclass(frozen=True, slots=True)
class KnownErrors:
    """Costs with their errors, and how they are drawn.

    `misfit` is the share of the latency by which measured whole messages differ from the model.
    Without `seed` it is `seed_of(model)`.
    """

    model: UncertainModel
    misfit: float = 0.0
    draws: int = DEFAULT_DRAWS
    seed: int | None = None


class Source(StrEnum):
    """Where the errors of the costs come from: a fit, or deviations that were typed."""

    FIT = "fit"
    RELATIVE = "relative"


def source_of(model: UncertainModel) -> Source:
    """Return `relative` where every stage was typed, else `fit`."""
    typed = all(isinstance(stage, StatedStage) for stage in model.stages)
    return Source.RELATIVE if typed else Source.FIT


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

    @classmethod
    def of_fragments(cls, name: str, fragment_bytes: Sequence[int]) -> NamedCut:
        """Return the cut that all stages share. Raises InvalidInput."""
        return cls(name, schedule=NestedSchedule((tuple(fragment_bytes),)))


# ---- what follows for an answer ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The 5 %, 50 % and 95 % quantiles over the draws."""

    p05: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Against:
    """The subject against another cut, on the same draws.

    `probability_faster` is the share of draws in which it takes less; `saves` is 1 - T/T_other.
    """

    name: str
    size_bytes: int | None
    probability_faster: float
    saves: Quantiles


@dataclass(frozen=True, slots=True)
class RegretFigures:
    """What a cut costs over the best repeated size of each draw: T/min T - 1.

    Below 0 where an uneven cut is faster than every repeated size.
    """

    mean: float
    p95: float
    worst_drawn: float


@dataclass(frozen=True, slots=True)
class GoodSizes:
    """Repeated sizes within this share of the best of a draw, in this share of the draws at least.

    `intervals` are (low, high) in bytes, inclusive and ascending: just below B/k there is one more,
    tiny fragment, so that the sizes form several. The low ends are sharp.
    """

    within: float
    in_draws: float
    intervals: tuple[tuple[int, int], ...]


class RoundRule(StrEnum):
    """What makes a size round, the roundest first."""

    WHOLE = "whole message"
    POWER_OF_TWO = "power of two"
    THREE_POWERS = "2^k or 3*2^k"
    PAGE = "multiple of 4 KiB"
    ALIGNMENT = "multiple of the alignment"
    MTU = "multiple of the MTU"


@dataclass(frozen=True, slots=True)
class RoundSize:
    """The size of a rule with the least expected regret, and its regret over the draws."""

    size_bytes: int
    rule: RoundRule
    regret_mean: float
    regret_p95: float


@dataclass(frozen=True, slots=True)
class RestsOn:
    """A parameter that the data do not determine, and that the latency rests on.

    `range_index` counts the stage's ranges from 0. In `share_of_draws` of the draws it makes more
    of the latency than the margin of the decision.
    """

    stage: str
    range_index: int
    parameter: Parameter
    share_of_draws: float


class MeasurementKind(StrEnum):
    """What is measured: one stage at one size, or whole messages, cut in two ways in turns."""

    STAGE = "stage"
    WHOLE_MESSAGES = "whole messages"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Something to measure, and by how much it lowers the latency to expect (µs a message).

    Of a stage, `fragment_bytes` is the size; of whole messages, `cuts` are the two ways to cut
    them. Worth one digit: the estimate is a regression over the draws.
    """

    kind: MeasurementKind
    repetitions: int
    saves_us: float
    stage: str | None = None
    fragment_bytes: int | None = None
    cuts: tuple[NamedCut, NamedCut] | None = None


class DecisionCode(StrEnum):
    """What to do.

    set_it              the advised cut is faster than the setting in use by more than the margin
    keep_yours          the user's setting is near enough to the best
    no_gain_provable    no cut is certain enough to be faster: leave it
    measure_first       the choice matters, and a measurement would settle it
    """

    SET_IT = "set_it"
    KEEP_YOURS = "keep_yours"
    NO_GAIN_PROVABLE = "no_gain_provable"
    MEASURE_FIRST = "measure_first"


class Reason(StrEnum):
    """Why it was decided so.

    faster             the gain exceeds the margin in enough draws
    near_best          the user's setting is within the regret that is admitted
    cut_not_faster     the best cut is faster than one piece in too few draws
    within_misfit      its gain may lie within what the model is known to be wrong by
    one_piece_is_best  of all repeated sizes one piece is expected to take least
    undecided          the gain is not certain, and a measurement is worth its time
    does_not_matter    the gain is not certain, and no measurement is worth its time
    """

    FASTER = "faster"
    NEAR_BEST = "near_best"
    CUT_NOT_FASTER = "cut_not_faster"
    WITHIN_MISFIT = "within_misfit"
    ONE_PIECE_IS_BEST = "one_piece_is_best"
    UNDECIDED = "undecided"
    DOES_NOT_MATTER = "does_not_matter"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits of the rules that decide; `margin` is the larger of 1 % and the known misfit.

    `probability` is asked of a gain, `regret_p95` of the user's setting, `worth_measuring` of what
    a measurement saves, as a share of the latency, and `uneven_gain` of the 5 % quantile of what an
    uneven cut gains over the best repeated size.
    """

    margin: float = 0.01
    probability: float = 0.9
    regret_p95: float = 0.02
    worth_measuring: float = 0.005
    uneven_gain: float = 0.01


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and the figures that say so.

    `advised` is the cut to use, one piece where no cut is certain enough; `against` names what it
    is compared with: the user's setting, else one piece, else the largest size that the limits
    admit. `probability` is the share of draws in which its `gain` over that, 1 - T/T_against,
    exceeds the margin. `cut` is the best cut into more than one fragment, None where the limits
    admit none, with the share of draws in which it is faster than one piece and its gain over it;
    these two are None too where the limits forbid one piece. `measure` is what to measure, where
    that is worth its time.
    """

    code: DecisionCode
    reason: Reason
    advised: NamedCut
    against: str
    probability: float
    gain: Quantiles
    cut: NamedCut | None
    cut_probability_faster: float | None
    cut_gain: Quantiles | None
    measure: Measurement | None
    thresholds: Thresholds


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What is known of an answer, over draws of the costs.

    `latency_us`, `against`, `regret` and `rests_on` are those of `subject`: the answer, where there
    is one, else the advised cut. `best_size_bytes` is the repeated size that takes least in the
    mean; `round_sizes` has one entry a rule, the recommended one first. `evpi_us` is what knowing
    the costs exactly would save, in µs a message; `measure_next` what to measure, the best first.
    """

    source: Source
    draws: int
    seed: int
    decision: Decision
    subject: NamedCut
    latency_us: Quantiles
    against: tuple[Against, ...]
    regret: RegretFigures
    best_size_bytes: int
    good_sizes: tuple[GoodSizes, ...]
    round_sizes: tuple[RoundSize, ...]
    evpi_us: float
    measure_next: tuple[Measurement, ...]
    rests_on: tuple[RestsOn, ...]


@dataclass(frozen=True, slots=True)
class SettingInDraws:
    """What a setting costs over the best repeated size of each message and draw.

    `regret` is of the mean over the messages in each draw; `good` the share of draws in which that
    mean is 2 % at most. `kept` is the share in which a limit is kept, None without one.
    """

    name: str
    regret: RegretFigures
    good: float
    kept: float | None


@dataclass(frozen=True, slots=True)
class SettingsInDraws:
    """Settings for many messages over draws of the costs; the one in question is the first.

    `advised` names the one to use: the first itself, or the other of which more is gained, 1 -
    T/T_first in the mean over the messages: `gain`, more than the margin in `probability` of the
    draws. `code` is None where there is no other. `messages` is how many were priced.
    """

    source: Source
    draws: int
    seed: int
    messages: int
    settings: tuple[SettingInDraws, ...]
    code: DecisionCode | None
    advised: str
    gain: Quantiles
    probability: float
    thresholds: Thresholds
