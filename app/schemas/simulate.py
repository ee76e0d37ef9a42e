"""Answers of compiled tables to lookups, and POST /simulate: a cut in, every interval out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Literal

import orjson
from pydantic import BeforeValidator, ConfigDict, FailFast, Field
from typing_extensions import TypeAliasType

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
)
from app.schemas.optimize import BestFixedOut, ProfileAt, check_exactly_one, exactly_one
from app.schemas.queries import Query
from app.schemas.stages import ConstraintsOut, PipelineIn, PipelineOut
from domain.delivery import Delivery, DeliveryRule
from domain.errors import InconsistentInput, InvalidInput
from domain.pipeline import MAX_STAGES, Pipeline
from domain.problem import FragmentLimits
from domain.profile import ProfileReference
from domain.solution import Notice, Status
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

    def body(self, message_bytes: int, answer: Answer) -> bytes:
        """Return TableScheduleOut as JSON."""
        fragments, sizes, latency_us, gap, size_bytes, repeats, repeat_us = answer
        bound = bound_below(latency_us, gap, operations=fragments + self._stages)
        # A message below the table's size is sent whole, and the answer has it so.
        repeated_bytes = min(size_bytes, message_bytes)
        best = _BEST % (repeated_bytes, repeats, _number(repeat_us)) if repeats else b"null"
        if repeats and gap <= self._tolerance:
            tail = self._unwarned
        else:
            tail = self._tail % _warnings(missed=gap > self._tolerance, repeats=repeats)
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


def _warnings(*, missed: bool, repeats: int) -> bytes:
    return dump_json(notices_out(_notices(missed=missed, repeats=repeats)))


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
        """Return the rule. Raises InvalidInput and InvalidLimits naming the field of this place."""
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


class SimulateIn(Input):
    """A pipeline or a profile, and one cut for all stages, one cut a stage, or a rule a stage by
    which it cuts what arrives of a message.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"oneOf": exactly_one("pipeline", "profile")},
                {"oneOf": exactly_one("fragment_bytes", "levels", "delivery")},
            ]
        }
    )

    pipeline: PipelineIn | None = None
    profile: ProfileAt | None = None
    fragment_bytes: Sizes | None = None
    levels: Levels | None = None
    delivery: Rules | None = None
    message_bytes: Bytes | None = None

    def source(self) -> Pipeline | ProfileReference:
        """Return the pipeline or the profile that holds it. Raises InvalidInput for both, none."""
        check_exactly_one({"pipeline": self.pipeline, "profile": self.profile})
        if self.pipeline is not None:
            return self.pipeline.to_domain()
        return ProfileReference.parse(self.profile or "")

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
    path may end inside its pulse, at the byte that the next stage waits for.
    """

    levels: tuple[tuple[int, ...], ...]
    store_and_forward_us: float
    lower_bound_us: float
    warnings: tuple[NoticeOut, ...]
