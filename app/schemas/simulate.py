"""Answers of compiled tables to lookups; POST /simulate and POST /thresholds: a cut or many in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Literal

import orjson
from pydantic import BeforeValidator, ConfigDict, FailFast, Field
from typing_extensions import TypeAliasType

from analysis.thresholds import (
    MAX_EVALUATIONS,
    MAX_MESSAGES,
    OneChoice,
    ThresholdQuestion,
    Thresholds,
)
from app.plots.models_svg import SizeCurve
from app.questions.compare import MAX_INTERVALS, Cut, Interval, Simulation
from app.schemas.base import (
    Bytes,
    Input,
    NoticeOut,
    Output,
    PlainBytes,
    ProfileRevisionOut,
    all_whole,
    dump_json,
    notices_out,
    whole,
)
from app.schemas.optimize import (
    BestFixedOut,
    TimeLimitS,
)
from app.schemas.queries import Query
from app.schemas.source import SOURCES, SourceIn, check_exactly_one, exactly_one
from app.schemas.stages import ConstraintsOut, PipelineOut
from domain.delivery import Delivery, DeliveryRule
from domain.errors import InconsistentInput, InvalidInput
from domain.pipeline import MAX_STAGES, Pipeline
from domain.problem import FragmentLimits
from domain.profile import ProfileRevision
from domain.solution import Notice, Status
from domain.units import format_bytes
from exports.table.lookup import Answer

FORM = 1  # of the answers: to be raised with every change of what a table's answer looks like
_ULP = 2.0**-52


@dataclass(frozen=True)
class TableScheduleOut(Output):
    """A schedule out of the profile's active compiled table. Times in µs, sizes in whole bytes.

    Its fields mean what they do in the answer of an optimisation; `table` is the digest of the
    table file.
    """

    strategy: Literal["table"]
    message_bytes: int
    fragment_bytes: tuple[int, ...]
    fragments: int
    latency_us: float
    lower_bound_us: float
    relative_gap: float
    status: Literal[Status.PROVEN_GAP]
    best_fixed: BestFixedOut | None
    constraints: ConstraintsOut
    profile: ProfileRevisionOut | None
    table: str
    warnings: tuple[NoticeOut, ...]


class ScheduleRenderer:
    """Writes the answers of one table; what they all share is written once."""

    def __init__(
        self,
        digest: str,
        profile: tuple[str, int],
        limits: FragmentLimits,
        *,
        relative_gap: float,
        stages: int,
    ) -> None:
        name, revision = profile
        about = ProfileRevisionOut(name, revision) if name else None
        self._tolerance = relative_gap
        self._stages = stages
        shared = {"constraints": ConstraintsOut.of(limits), "profile": about, "table": digest}
        self._tail = b"," + dump_json(shared)[1:-1] + b',"warnings":%b}'
        self._unwarned = self._tail % b"[]"

    def body(self, message_bytes: int, answer: Answer, verified: Notice | None = None) -> bytes:
        """Return TableScheduleOut as JSON. `verified` is what transfers said of the model."""
        fragments, sizes, latency_us, gap, size_bytes, repeats, repeat_us = answer
        bound = bound_below(latency_us, gap, operations=fragments + self._stages)
        # A message below the table's size is sent whole, and the answer has it so.
        repeated_bytes = min(size_bytes, message_bytes)
        best = _BEST % (repeated_bytes, repeats, _number(repeat_us)) if repeats else b"null"
        if repeats and gap <= self._tolerance and verified is None:
            tail = self._unwarned
        else:
            first = () if verified is None else (verified,)
            notices = (*first, *_notices(missed=gap > self._tolerance, repeats=repeats))
            tail = self._tail % dump_json(notices_out(notices))
        return _BODY % (
            message_bytes,
            sizes,
            fragments,
            _number(latency_us),
            _number(bound),
            _number(gap),
            best,
            tail,
        )


_number = orjson.dumps
_BODY = (
    b'{"strategy":"table","message_bytes":%d,"fragment_bytes":[%b],"fragments":%d,"latency_us":%b,'
    b'"lower_bound_us":%b,"relative_gap":%b,"status":"proven_gap","best_fixed":%b%b'
)
_BEST = b'{"size_bytes":%d,"fragments":%d,"latency_us":%b}'


def bound_below(latency_us: float, relative_gap: float, *, operations: int) -> float:
    """Return latency / (1 + gap), rounded down by more than rounding could have added.

    Derivation: the latency is a sum of at most `operations` terms of three roundings each, along
    one path of the recurrence; two more roundings are in this quotient.
    """
    return latency_us / (1.0 + relative_gap) * (1.0 - (operations + 4) * _ULP)


def _notices(*, missed: bool, repeats: int) -> Iterator[Notice]:
    if missed:
        yield Notice(
            "tolerance_missed",
            "at this message size the table is not proven to its tolerance; relative_gap is what "
            "is proven of its model",
        )
    if not repeats:
        yield Notice("no_repeated_size", "no size can be repeated within the limits")


# --- POST /simulate -------------------------------------------------------------------------------


# Named aliases, because the members of a union must be hashable and FailFast is not.
Sizes = TypeAliasType(
    "Sizes",
    Annotated[
        list[PlainBytes],
        FailFast(),
        Field(min_length=1, max_length=MAX_INTERVALS),
        BeforeValidator(all_whole),
    ],
)
Levels = TypeAliasType(
    "Levels", Annotated[list[Sizes], FailFast(), Field(min_length=1, max_length=MAX_STAGES)]
)


class DeliveryIn(Input):
    """How one stage cuts what arrives.

    `pulse_bytes` goes with `static`, `threshold_bytes` (1) and `max_pulse_bytes` with `eager`, and
    `planned_bytes`, which sum to the message, with `planned`.
    """

    rule: DeliveryRule
    pulse_bytes: Bytes | None = None
    threshold_bytes: Bytes | None = None
    max_pulse_bytes: Bytes | None = None
    planned_bytes: Sizes | None = None

    def to_domain(self, place: int) -> Delivery:
        """Return the rule. Raises InvalidInput naming the field of this place."""
        planned = None if self.planned_bytes is None else tuple(self.planned_bytes)
        sizes = self.pulse_bytes, self.threshold_bytes, self.max_pulse_bytes, planned
        try:
            return Delivery(self.rule, *sizes)
        except InvalidInput as refusal:
            refusal.field = f"delivery.{place}.{refusal.field}"
            raise


Rules = TypeAliasType(
    "Rules", Annotated[list[DeliveryIn], FailFast(), Field(min_length=1, max_length=MAX_STAGES)]
)


class SimulationFormat(StrEnum):
    """Every interval as data, or all of them as a picture."""

    JSON = "json"
    SVG = "svg"


class SimulateQuery(Query):
    """What to answer with, where `Accept` does not say it."""

    format: SimulationFormat | None = None


class SimulateIn(SourceIn):
    """Stages or an aggregate, wherever their costs come from, and one cut for all stages, one cut a
    stage, or a rule a stage by which it cuts what arrives of a message.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"oneOf": exactly_one(*SOURCES)},
                {"oneOf": exactly_one("fragment_bytes", "levels", "delivery")},
            ]
        }
    )

    fragment_bytes: Sizes | None = None
    levels: Levels | None = None
    delivery: Rules | None = None
    message_bytes: Bytes | None = None

    def cut(self) -> Cut:
        """Return the shared cut, the cuts by stage, or the rules. Raises InvalidInput for more than
        one of them, or none, and for rules that contradict themselves.
        """
        check_exactly_one(
            {
                "fragment_bytes": self.fragment_bytes,
                "levels": self.levels,
                "delivery": self.delivery,
            }
        )
        if (self.delivery is None) != (self.message_bytes is None):
            raise InconsistentInput(
                "delivery needs message_bytes, and other cuts say it themselves",
                field="message_bytes",
            )
        if self.delivery is not None:
            rules = tuple(rule.to_domain(place) for place, rule in enumerate(self.delivery))
            return Cut((), is_nested=True, rules=rules, message_bytes=self.message_bytes or 0)
        levels = self.levels or [self.fragment_bytes or []]
        return Cut(tuple(tuple(sizes) for sizes in levels), is_nested=self.levels is not None)


@dataclass(frozen=True)
class PathStepOut(Output):
    """One step of the critical path."""

    fragment: int
    stage: int


@dataclass(frozen=True)
class SimulateOut(Output):
    """A run of a cut. `critical_path` is null where stages cut differently."""

    message_bytes: int
    latency_us: float
    intervals: tuple[Interval, ...]
    critical_path: tuple[PathStepOut, ...] | None
    bottleneck_stage: int
    busy_us: tuple[float, ...]
    pipeline: PipelineOut
    profile: ProfileRevisionOut | None

    @classmethod
    def of(cls, simulation: Simulation) -> SimulateOut:
        """Return a run as it is sent."""
        path = simulation.critical_path
        common = cls(
            message_bytes=simulation.message_bytes,
            latency_us=simulation.latency_us,
            intervals=simulation.intervals,
            critical_path=None if path is None else tuple(PathStepOut(*step) for step in path),
            bottleneck_stage=simulation.bottleneck_stage,
            busy_us=simulation.busy_us,
            pipeline=PipelineOut.of(simulation.pipeline),
            profile=ProfileRevisionOut.of(simulation.profile),
        )
        delivered = simulation.delivered
        if delivered is None:
            return common
        return DeliveredOut(
            **{one.name: getattr(common, one.name) for one in fields(common)},
            levels=delivered.levels,
            store_and_forward_us=delivered.store_and_forward_us,
            lower_bound_us=delivered.lower_bound_us,
            warnings=notices_out(delivered.notices),
        )


@dataclass(frozen=True)
class DeliveredOut(SimulateOut):
    """A run of what the stages chose: their pulses, and what to compare the latency with.

    `lower_bound_us` is proven of this model, for every cut of every stage. A step of the critical
    path may end inside its pulse, at the byte that the next stage waits for; the path is null where
    a stage passes bytes on as they come.
    """

    levels: tuple[tuple[int, ...], ...]
    store_and_forward_us: float
    lower_bound_us: float
    warnings: tuple[NoticeOut, ...]


# --- POST /thresholds -----------------------------------------------------------------------------


DEFAULT_THRESHOLDS_LIMIT_S = 10.0
StagePlaces = TypeAliasType(
    "StagePlaces",
    Annotated[
        list[Annotated[int, Field(ge=0, lt=MAX_STAGES), BeforeValidator(whole)]],
        FailFast(),
        Field(min_length=1, max_length=MAX_STAGES),
    ],
)
TriedSizes = TypeAliasType(
    "TriedSizes",
    Annotated[list[Bytes], FailFast(), Field(min_length=1, max_length=MAX_EVALUATIONS)],
)


class ThresholdsIn(SourceIn):
    """Stages, wherever their costs come from, messages, and the sizes to try as thresholds or as
    static pulses.

    All stages have the same size, or those named in `stages` vary independently of each other and
    the others take whatever has arrived. Without `sizes`, powers of two up to the largest message.
    """

    message_bytes: Annotated[list[Bytes], FailFast(), Field(min_length=1, max_length=MAX_MESSAGES)]
    rule: Literal[DeliveryRule.STATIC, DeliveryRule.EAGER] = DeliveryRule.EAGER
    stages: StagePlaces | None = None
    sizes: TriedSizes | None = None
    time_limit_s: TimeLimitS = DEFAULT_THRESHOLDS_LIMIT_S

    def to_domain(
        self,
        pipeline: Pipeline,
        profile: ProfileRevision | None,
        *,
        max_pulses: int,
        said: Notice | None = None,
    ) -> ThresholdQuestion:
        """Return the question; `said` is what transfers said of the profile. Raises what
        ThresholdQuestion does.
        """
        return ThresholdQuestion(
            pipeline=pipeline,
            message_bytes=tuple(self.message_bytes),
            rule=self.rule,
            stages=None if self.stages is None else tuple(self.stages),
            sizes=None if self.sizes is None else tuple(self.sizes),
            max_pulses=max_pulses,
            time_limit_s=self.time_limit_s,
            profile=profile,
            said=said,
        )


@dataclass(frozen=True)
class MessageThresholdsOut(Output):
    """One message. `latencies_us` are those of `choices`, in their order, null where not priced.

    `best_bytes` is the best of the choices, null where none was priced; `ideal_us` the limit of
    cut-through, each byte passed on as it comes; `lower_bound_us` is proven of this model, for
    every cut of every stage.
    """

    message_bytes: int
    latencies_us: tuple[float | None, ...]
    best_bytes: tuple[int, ...] | None
    best_us: float | None
    store_and_forward_us: float
    ideal_us: float
    lower_bound_us: float


@dataclass(frozen=True)
class OneChoiceOut(Output):
    """The choice of least mean regret over the messages; regrets are above the best of choices."""

    sizes_bytes: tuple[int, ...]
    mean_regret: float
    max_regret: float
    worst_message_bytes: int

    @classmethod
    def of(cls, one: OneChoice, choices: tuple[tuple[int, ...], ...]) -> OneChoiceOut:
        """Return the choice as it is sent."""
        return cls(choices[one.place], one.mean_regret, one.max_regret, one.worst_message_bytes)


@dataclass(frozen=True)
class ThresholdsOut(Output):
    """Latencies by threshold or pulse size. A choice has one size for each of `stages`, or where
    that is null one for all.

    `one` is null where no choice was priced for every message. `cut_off` says that time ended
    before all were priced.
    """

    rule: DeliveryRule
    stages: tuple[int, ...] | None
    choices: tuple[tuple[int, ...], ...]
    messages: tuple[MessageThresholdsOut, ...]
    one: OneChoiceOut | None
    cut_off: bool
    pipeline: PipelineOut
    profile: ProfileRevisionOut | None
    warnings: tuple[NoticeOut, ...]

    @classmethod
    def of(cls, found: Thresholds) -> ThresholdsOut:
        """Return the prices as they are sent."""
        question, choices, one = found.question, found.question.choices, found.one
        messages = [
            MessageThresholdsOut(
                message_bytes=message.message_bytes,
                latencies_us=message.latencies_us,
                best_bytes=None if message.best is None else choices[message.best],
                best_us=None if message.best is None else message.latencies_us[message.best],
                store_and_forward_us=message.store_and_forward_us,
                ideal_us=message.ideal_us,
                lower_bound_us=message.lower_bound_us,
            )
            for message in found.messages
        ]
        return cls(
            rule=question.rule,
            stages=question.stages,
            choices=choices,
            messages=tuple(messages),
            one=None if one is None else OneChoiceOut.of(one, choices),
            cut_off=found.cut_off,
            pipeline=PipelineOut.of(question.pipeline),
            profile=ProfileRevisionOut.of(question.profile),
            warnings=notices_out(found.notices),
        )


def size_curves(found: ThresholdsOut) -> list[SizeCurve]:
    """Return the curves of a picture of the first message: one, or where stages vary by themselves
    those of the best choice, the smallest and the largest sizes of the stages before the last.

    All of them would be a tangle.
    """
    message = found.messages[0]
    curves: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    for choice, us in zip(found.choices, message.latencies_us, strict=True):
        if us is not None:
            curves.setdefault(choice[:-1], []).append((choice[-1], us))
    best = (message.best_bytes or ())[:-1]
    wanted = dict.fromkeys((min(curves), best, max(curves)))
    return [
        SizeCurve(
            f"{' / '.join(map(format_bytes, one))} before" if one else "latency",
            tuple(curves[one]),
        )
        for one in wanted
        if one in curves
    ]
