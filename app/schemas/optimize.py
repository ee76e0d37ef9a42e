"""POST /optimize: the question in, the answer out; and the listing of stored answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypeAlias

from pydantic import ConfigDict, Field

from app.questions.optimize import Answer
from app.questions.question import (
    DEFAULT_RELATIVE_GAP,
    DEFAULT_TIME_LIMIT_S,
    MAX_TIME_LIMIT_S,
    Question,
    UncertaintyOptions,
    notices_of_costs,
)
from app.questions.transfers import MAX_ASKED_ROWS, TransfersQuestion
from app.schemas.base import (
    MAX_MEMBERS,
    Bytes,
    NoticeOut,
    Output,
    ProfileName,
    ProfileRevisionOut,
    dump_json,
    notices_out,
    read_output,
    same_named,
    timestamp,
)
from app.schemas.fits import FitOut
from app.schemas.source import SOURCES, SourceIn, exactly_one
from app.schemas.stages import (
    AggregateOut,
    ConstraintsIn,
    ConstraintsOut,
    PipelineOut,
    SensitivitiesOut,
)
from app.schemas.sureness import notices_of
from app.schemas.transfers import TransferIn, TransfersIn, TransfersOut
from app.schemas.uncertainty import SetThisOut, UncertaintyIn, UncertaintyOut
from app.text.numbers import format_count, format_figure
from app.text.units import format_time
from domain.default_sizes import CURRENT
from domain.delivery import (
    Delivery,
    DeliveryRule,
    busy_us,
    ideal_us,
    store_and_forward_us,
    sustained_mb_per_s,
)
from domain.errors import InconsistentInput, UnreadableRecord
from domain.pipeline import Pipeline, unique_names
from domain.solution import Solution, Status, Strategy
from domain.uncertainty import Source as ErrorSource

RelativeGap = Annotated[float, Field(ge=0.0, le=1.0)]
TimeLimitS = Annotated[float, Field(gt=0.0, le=MAX_TIME_LIMIT_S)]


_OWN_TRANSFERS = frozenset({"message_bytes", "transfers", "uncertainty"})


class OptimizeIn(SourceIn):
    """A message, where its pipeline comes from, and how to cut it. Own `transfers` of this message
    decide in the place of the pipeline; without one they stand alone, with the size in use,
    `uncertainty.current`.
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [*exactly_one(*SOURCES), exactly_one("transfers", *SOURCES)[0]]}
    )

    max_members: ClassVar[int] = MAX_MEMBERS + len(TransferIn.model_fields) * MAX_ASKED_ROWS

    message_bytes: Bytes
    strategy: Strategy = Strategy.AUTO
    static_bytes: Bytes | None = None
    constraints: ConstraintsIn = ConstraintsIn()
    allow_refragmentation: bool = False
    relative_gap: RelativeGap = DEFAULT_RELATIVE_GAP
    time_limit_s: TimeLimitS = DEFAULT_TIME_LIMIT_S
    save_as: ProfileName | None = None
    uncertainty: UncertaintyIn | None = None
    transfers: TransfersIn | None = None

    def of_transfers(self) -> TransfersQuestion | None:
        """Return what is asked of own transfers, None of a question about a model. Raises
        InvalidInput.
        """
        if self.transfers is None or any(getattr(self, name) is not None for name in SOURCES):
            return None
        for name in sorted(self.model_fields_set - _OWN_TRANSFERS):
            if getattr(self, name) is not None:
                raise InconsistentInput(
                    "own transfers decide alone, among the sizes that were transferred", field=name
                )
        return self._transfers_question()

    def _transfers_question(self) -> TransfersQuestion | None:
        if self.transfers is None:
            return None
        known = self.uncertainty.to_domain() if self.uncertainty else UncertaintyOptions()
        return self.transfers.to_domain(
            self.message_bytes, current_bytes=known.current_bytes, sends_whole=known.sends_whole
        )

    def to_domain(self) -> Question:
        """Return the question. Raises InvalidInput for sources or fields that exclude others."""
        return Question(
            message_bytes=self.message_bytes,
            source=self.source(),
            strategy=self.strategy,
            static_bytes=self.static_bytes,
            limits=self.constraints.to_domain(),
            allow_refragmentation=self.allow_refragmentation,
            relative_gap=self.relative_gap,
            time_limit_s=self.time_limit_s,
            save_as=self.save_as,
            fit_options=self.options(),
            uncertainty=self.uncertainty.to_domain() if self.uncertainty else None,
            transfers=self._transfers_question(),
        )


@dataclass(frozen=True)
class BestFixedOut(Output):
    """The best single size for a library that repeats one size."""

    size_bytes: int
    fragments: int
    latency_us: float


@dataclass(frozen=True)
class BaselineOut(Output):
    """One other setting by `name`; `declined` says why where the limits forbid its cut.

    `default_bytes` is what the system of this name comes with, as `source` says, and `parameter`
    what it is set by; `static_bytes` is that, rounded up to the alignment. Where the message goes
    in one piece and was timed so, `measured_us` is what it took, and `latency_us` no more than
    that. They and `name` are null in answers of earlier versions.
    """

    strategy: Strategy
    static_bytes: int | None
    latency_us: float | None
    fragments: int | None
    declined: str | None
    name: str | None = None
    default_bytes: int | None = None
    parameter: str | None = None
    source: str | None = None
    measured_us: float | None = None


@dataclass(frozen=True)
class BestSoFarOut(Output):
    """The best schedule that a job has found, with the bound proven so far of this model."""

    strategy: Strategy
    message_bytes: int
    fragment_bytes: tuple[int, ...]
    fragments: int
    latency_us: float
    unrounded_latency_us: float | None
    lower_bound_us: float
    relative_gap: float
    rounding_gap: float | None
    status: Status
    limited_by: str | None
    levels: tuple[tuple[int, ...], ...] | None
    latency_paper_us: float | None

    @classmethod
    def of(cls, solution: Solution) -> BestSoFarOut:
        """Return a solution as a job shows it."""
        return cls(
            strategy=solution.strategy,
            message_bytes=solution.problem.message_bytes,
            fragment_bytes=solution.schedule.fragment_bytes,
            fragments=solution.schedule.fragments,
            latency_us=solution.latency_us,
            unrounded_latency_us=solution.unrounded_latency_us,
            lower_bound_us=solution.lower_bound_us,
            relative_gap=solution.relative_gap,
            rounding_gap=solution.rounding_gap,
            status=solution.status,
            limited_by=solution.limited_by,
            levels=solution.levels,
            latency_paper_us=solution.latency_paper_us,
        )


@dataclass(frozen=True)
class OptimizeOut(Output):
    """A schedule with a proof, of this model, of how good it is. Times in µs, sizes in whole bytes.

    One of `pipeline` and `aggregate` is null. Of an aggregate no stage is known to be the
    bottleneck, and `latency_us` is the most that any pipeline with these costs can take.
    `uncertainty` is null where the costs' errors are not known, `sensitivities` of an aggregate and
    of very many fragments, `set_this` where no size can be repeated, and all three in answers of
    earlier versions.
    """

    id: str
    created_at: str
    strategy: Strategy
    message_bytes: int
    fragment_bytes: tuple[int, ...]
    fragments: int
    latency_us: float
    unrounded_latency_us: float | None
    lower_bound_us: float
    relative_gap: float
    rounding_gap: float | None
    status: Status
    limited_by: str | None
    levels: tuple[tuple[int, ...], ...] | None
    latency_paper_us: float | None
    bottleneck_stage: int | None
    best_fixed: BestFixedOut | None
    baselines: tuple[BaselineOut, ...]
    constraints: ConstraintsOut
    allow_refragmentation: bool
    pipeline: PipelineOut | None
    aggregate: AggregateOut | None
    fit: FitOut | None
    profile: ProfileRevisionOut | None
    solve_ms: float
    warnings: tuple[NoticeOut, ...]
    uncertainty: UncertaintyOut | None = None
    sensitivities: SensitivitiesOut | None = None
    set_this: SetThisOut | None = None

    @property
    def model(self) -> PipelineOut | AggregateOut:
        """What the message crosses: the one of `pipeline` and `aggregate` that is there."""
        found = self.pipeline or self.aggregate
        assert found is not None
        return found

    @property
    def is_fitted(self) -> bool:
        """Whether the costs are known to be those of a fit."""
        of_fit = self.uncertainty is not None and self.uncertainty.source == ErrorSource.FIT
        return of_fit or self.fit is not None

    @property
    def has_premise(self) -> bool:
        """Whether it is taken for granted that nothing cut the messages that were measured."""
        return self.aggregate is not None and not self.aggregate.total_is_uncut

    @property
    def cells(self) -> int:
        """Fragments times stages; fragments alone where no stage is known."""
        if self.levels:
            return sum(map(len, self.levels))
        return self.fragments * (len(self.pipeline.stages) if self.pipeline else 1)

    def delivery_facts(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: stages that choose their pulses are of `DeliveredOptimizeOut`."""
        return iter(())

    @classmethod
    def of(cls, answer: Answer) -> OptimizeOut:
        """Return an answer as it is sent and stored."""
        solution = answer.solution
        problem, best = solution.problem, answer.baselines.best_repeat
        known = UncertaintyOut.of(answer.uncertainty, answer.prepared.uncertain)
        set_this = SetThisOut.of(
            answer.choice,
            known,
            problem.message_bytes,
            has_premise=bool(problem.model.premise),
        )
        if answer.measured is not None:
            set_this = SetThisOut.measured(answer.measured, set_this)
            known = None if known is None else known.measured(answer.measured)
        of_costs = notices_of_costs(problem.model, answer.prepared.fit)
        return cls(
            id=answer.id,
            created_at=timestamp(answer.created_at),
            strategy=solution.strategy,
            message_bytes=problem.message_bytes,
            fragment_bytes=solution.schedule.fragment_bytes,
            fragments=solution.schedule.fragments,
            latency_us=solution.latency_us,
            unrounded_latency_us=solution.unrounded_latency_us,
            lower_bound_us=solution.lower_bound_us,
            relative_gap=solution.relative_gap,
            rounding_gap=solution.rounding_gap,
            status=solution.status,
            limited_by=solution.limited_by,
            levels=solution.levels,
            latency_paper_us=solution.latency_paper_us,
            bottleneck_stage=answer.bottleneck_stage,
            best_fixed=same_named(BestFixedOut, best) if best else None,
            baselines=tuple(same_named(BaselineOut, one) for one in answer.baselines.entries),
            constraints=ConstraintsOut.of(problem.limits),
            allow_refragmentation=problem.allow_refragmentation,
            pipeline=PipelineOut.of_model(problem.model),
            aggregate=AggregateOut.of_model(problem.model),
            fit=_fit_out(answer),
            profile=ProfileRevisionOut.of(answer.profile),
            solve_ms=round(answer.solve_ms, 3),
            warnings=notices_out((*notices_of(answer), *solution.notices, *of_costs)),
            uncertainty=known,
            sensitivities=SensitivitiesOut.of(answer.sensitivities, problem.model),
            set_this=set_this,
        )


@dataclass(frozen=True)
class StageDeliveryOut(Output):
    """What to set in one stage, and how many pulses that makes; `busy_us` is what they take of it.

    `threshold_bytes` goes with the rule `eager`, `pulse_bytes` with `static`.
    """

    stage: int
    rule: DeliveryRule
    threshold_bytes: int | None
    pulse_bytes: int | None
    max_pulse_bytes: int | None
    pulses: int
    busy_us: float


@dataclass(frozen=True, kw_only=True)
class DeliveredOptimizeOut(OptimizeOut):
    """An answer of `eager` or `pulses`: stages choose their pulses. No other has these fields.

    `ideal_us` is the limit of cut-through, each byte passed on as it comes; `store_and_forward_us`
    that of whole messages; `sustained_mb_per_s` what back-to-back messages reach at most, null
    where no stage takes any time.
    """

    delivery: tuple[StageDeliveryOut, ...]
    ideal_us: float
    store_and_forward_us: float
    sustained_mb_per_s: float | None

    @classmethod
    def delivered(
        cls,
        answer: OptimizeOut,
        pipeline: Pipeline,
        rules: Sequence[Delivery],
        levels: Sequence[tuple[int, ...]],
    ) -> DeliveredOptimizeOut:
        """Return an answer with what its stages do."""
        delivery = tuple(
            StageDeliveryOut(
                stage,
                rule.rule,
                rule.threshold if rule.rule is DeliveryRule.EAGER else None,
                rule.pulse_bytes,
                rule.max_pulse_bytes,
                len(pulses),
                busy,
            )
            for stage, (rule, pulses, busy) in enumerate(
                zip(rules, levels, busy_us(pipeline, levels), strict=True)
            )
        )
        return cls(
            **vars(answer),
            delivery=delivery,
            ideal_us=ideal_us(pipeline, answer.message_bytes),
            store_and_forward_us=store_and_forward_us(pipeline, answer.message_bytes),
            sustained_mb_per_s=sustained_mb_per_s(pipeline, levels),
        )

    def delivery_facts(self) -> Iterator[tuple[str, str]]:
        """Yield labels and values of what its stages do, as a person reads it."""
        for one in self.delivery:
            eager = f"eager from {format_count(one.threshold_bytes or 1)} bytes"
            static = f"{format_count(one.pulse_bytes or 0)} bytes each"
            what = static if one.threshold_bytes is None else eager
            noun = "pulse" if one.pulses == 1 else "pulses"
            yield f"stage {one.stage}", f"{format_count(one.pulses)} {noun}, {what}"
        yield "cut-through", f"{format_time(self.ideal_us)} at best"
        yield "whole", f"{format_time(self.store_and_forward_us)}, store and forward"
        if self.sustained_mb_per_s is not None:
            yield "back to back", f"{format_figure(self.sustained_mb_per_s)} MB/s at most"


StoredOptimizeOut: TypeAlias = OptimizeOut | DeliveredOptimizeOut
AnyOptimizeOut: TypeAlias = StoredOptimizeOut | TransfersOut


def answer_out(answer: Answer) -> OptimizeOut:
    """Return an answer as it is sent and stored."""
    solution, sent = answer.solution, OptimizeOut.of(answer)
    pipeline = solution.problem.model
    if solution.delivery is None or solution.levels is None or not isinstance(pipeline, Pipeline):
        return sent
    return DeliveredOptimizeOut.delivered(sent, pipeline, solution.delivery, solution.levels)


def read_answer(body: bytes) -> OptimizeOut:
    """Return what a stored answer says, of stages that choose their pulses too.

    Raises UnreadableRecord for one of another version.
    """
    try:
        return read_output(OptimizeOut, body)
    except UnreadableRecord:
        return read_output(DeliveredOptimizeOut, body)


def current_of(answer: OptimizeOut) -> int | None:
    """Return the size that is repeated today, bytes; None where the answer does not have it."""
    found = next((one for one in answer.baselines if one.name == CURRENT), None)
    return None if found is None else found.static_bytes or answer.message_bytes


def _fit_out(answer: Answer) -> FitOut | None:
    """The fit that was asked about, or made: a profile names its own."""
    fitted, given = answer.prepared.fitted, answer.prepared.given
    if fitted is not None:
        return FitOut.of(fitted, None)
    return None if given is None else FitOut.of_given(given)


def render_answer(answer: Answer) -> bytes:
    """Return the JSON of an answer, as it is sent and stored."""
    return dump_json(answer_out(answer))


def with_unique_names(answer: OptimizeOut) -> OptimizeOut:
    """Return an answer whose stages have names of their own: the same one where they have."""
    if answer.pipeline is None:
        return answer
    stages = answer.pipeline.stages
    names = [stage.name for stage in stages]
    if len(set(names)) == len(names):
        return answer
    renamed = tuple(
        replace(stage, name=name) for stage, name in zip(stages, unique_names(names), strict=True)
    )
    return replace(answer, pipeline=replace(answer.pipeline, stages=renamed))
