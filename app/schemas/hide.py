"""POST /hide: a message and a calculation in; run times, fragments and limits of hiding out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Discriminator, FailFast, Field, Tag

from analysis.hidden_ratios import ModelHidden, ModelQuestion, ProcessQuestion
from analysis.hiding import (
    MAX_MESSAGES,
    MAX_TRAIN_FRAGMENTS,
    Exchange,
    Hidden,
    HideQuestion,
    HostStages,
    MessagesAre,
)
from analysis.uncertainty import UncertaintyQuestion
from app.questions.question import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S, Question
from app.schemas.base import (
    GIVEN,
    NAMED,
    Bytes,
    Input,
    NoticeOut,
    Output,
    ProfileRevisionOut,
    notices_out,
    same_named,
    timestamp,
    whole,
)
from app.schemas.optimize import (
    OptimizeIn,
    RelativeGap,
    TimeLimitS,
)
from app.schemas.source import SOURCES, SourceIn, check_exactly_one, exactly_one, pinned
from app.schemas.stages import ConstraintsIn, ConstraintsOut, Name, PipelineOut
from domain.errors import InconsistentInput, StrategyDeclined
from domain.hiding import (
    MAX_CALCULATION_US,
    MAX_EXPONENT,
    MAX_OVERHEAD,
    MAX_PROCESSES,
    CountRange,
    Granularity,
    Overlap,
    Regime,
    SpeedupReference,
)
from domain.pipeline import MAX_STAGES
from domain.problem import AnyProblem, Problem
from domain.profile import ProfileRevision
from domain.solution import Notice, Status
from domain.uncertainty import UncertainPipeline

_SOURCES = (*SOURCES, "granularity")
_OF_PIPELINES = (
    "message_bytes",
    "messages",
    "messages_are",
    "calculation_us",
    "instructions",
    "instructions_per_us",
    "streamed",
    "hiding_overhead_us",
    "host_stages",
    "exchange",
    "constraints",
)

CalculationUs = Annotated[float, Field(ge=0.0, le=MAX_CALCULATION_US, description="µs")]
Positive = Annotated[float, Field(gt=0.0, le=1e300)]
Processes = Annotated[int, Field(ge=1, le=MAX_PROCESSES), BeforeValidator(whole)]
StageAt = Annotated[
    Annotated[int, Field(ge=0, lt=MAX_STAGES), BeforeValidator(whole), Tag(GIVEN)]
    | Annotated[Name, Tag(NAMED)],
    Discriminator(lambda value: NAMED if isinstance(value, str) else GIVEN),
]


class Communication(StrEnum):
    """How the number of messages of each process grows with the number of processes, p."""

    CONSTANT = "constant"
    SQRT = "sqrt"
    LINEAR = "linear"
    EXPONENT = "exponent"


_EXPONENTS = {Communication.CONSTANT: 0.0, Communication.SQRT: 0.5, Communication.LINEAR: 1.0}


class ProcessesIn(Input):
    """Which numbers of processes; the calculation asked about is that of each of `at` ones."""

    min_processes: Processes = 1
    max_processes: Processes
    at: Processes = 1
    communication: Communication = Communication.CONSTANT
    exponent: Annotated[float, Field(ge=0.0, le=MAX_EXPONENT)] | None = None
    speedup_reference: SpeedupReference = SpeedupReference.CALCULATION

    def to_domain(self) -> ProcessQuestion:
        """Return what is asked. Raises InconsistentInput."""
        if self.min_processes > self.max_processes:
            raise InconsistentInput(
                "expected min_processes <= max_processes", field="processes.min_processes"
            )
        if (self.exponent is None) == (self.communication is Communication.EXPONENT):
            raise InconsistentInput(
                "expected an exponent with the communication `exponent`, and with no other",
                field="processes.exponent",
            )
        exponent = _EXPONENTS.get(self.communication, self.exponent)
        counts = CountRange(self.min_processes, self.max_processes)
        return ProcessQuestion(counts, self.at, exponent or 0.0, self.speedup_reference)


class GranularityIn(Input):
    """The paper's terms: instructions per byte, of the software and that a byte takes to be sent;
    `overhead` is what hiding adds, relative to the calculation.
    """

    software: Positive
    hardware: Positive
    overhead: Annotated[float, Field(ge=0.0, le=MAX_OVERHEAD)] = 0.0


class HostStagesIn(Input):
    """Stages, by name or place from 0, that run on the processor which calculates."""

    sender: Annotated[list[StageAt], FailFast(), Field(max_length=MAX_STAGES)] = Field(
        default_factory=list
    )
    receiver: Annotated[list[StageAt], FailFast(), Field(max_length=MAX_STAGES)] = Field(
        default_factory=list
    )


class HideIn(SourceIn):
    """A message, what it crosses, and the calculation that it is hidden behind.

    Exactly one of `calculation_us`, and `instructions` with `instructions_per_us`; with
    `granularity` neither, since ratios are all that is asked about.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": exactly_one(*_SOURCES)})

    granularity: GranularityIn | None = None
    constraints: ConstraintsIn = ConstraintsIn()
    message_bytes: Bytes | None = None
    messages: Annotated[int, Field(ge=1, le=MAX_MESSAGES), BeforeValidator(whole)] = 1
    messages_are: MessagesAre = MessagesAre.SERIAL
    calculation_us: CalculationUs | None = None
    instructions: Annotated[float, Field(ge=0.0, le=1e300)] | None = None
    instructions_per_us: Positive | None = None
    hideable_fraction: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    streamed: bool = False
    hiding_overhead_us: CalculationUs = 0.0
    host_stages: HostStagesIn = HostStagesIn()
    exchange: Exchange = Exchange.ONE_WAY
    min_gain: Annotated[float, Field(allow_inf_nan=False)] | None = None
    processes: ProcessesIn | None = None
    relative_gap: RelativeGap = DEFAULT_RELATIVE_GAP
    time_limit_s: TimeLimitS = DEFAULT_TIME_LIMIT_S

    def to_model(self) -> ModelQuestion | None:
        """Return the question in the paper's terms; None where a pipeline is asked about.

        Raises InvalidInput for sources that exclude others, and fields that need a pipeline.
        """
        check_exactly_one({name: getattr(self, name) for name in _SOURCES})
        if self.granularity is None:
            return None
        for name in _OF_PIPELINES:
            if name in self.model_fields_set and getattr(self, name) is not None:
                raise InconsistentInput(
                    f"{name} needs a pipeline, and granularity has none", field=name
                )
        given = self.granularity
        return ModelQuestion(
            Granularity(given.software, given.hardware),
            Overlap(self.hideable_fraction, given.overhead),
            self.min_gain,
            None if self.processes is None else self.processes.to_domain(),
        )

    def as_job(self, profile: ProfileRevision | None) -> bytes:
        """Return this request as a job keeps it: a profile pinned to the revision that it had."""
        request = pinned(self, profile)
        # Without defaults: the paper's terms exclude what needs a pipeline.
        return request.model_dump_json(exclude_unset=True, exclude_none=True).encode()

    def to_question(self) -> Question:
        """Return the question that finds or fits the pipeline. Raises InvalidInput."""
        if self.message_bytes is None:
            raise InconsistentInput("expected message_bytes", field="message_bytes")
        self._calculation_us()
        asked = OptimizeIn.model_construct(
            message_bytes=self.message_bytes,
            constraints=self.constraints,
            **self.given_source(),
        )
        return asked.to_domain()

    def to_domain(
        self, problem: AnyProblem, errors: UncertaintyQuestion | None = None
    ) -> HideQuestion:
        """Return what is hidden behind what, for the pipeline found. Raises InvalidInput, and
        StrategyDeclined where its stages are not known.
        """
        if not isinstance(problem, Problem):
            raise StrategyDeclined(
                "hiding needs the stages of a pipeline; of this one the total and the bottleneck "
                "alone are known",
                field=next(name for name in SOURCES if getattr(self, name) is not None),
            )
        uncertain = None if errors is None else errors.model
        names = [stage.name for stage in problem.pipeline.stages]
        hosts = HostStages(
            _indices(self.host_stages.sender, names, field="host_stages.sender"),
            _indices(self.host_stages.receiver, names, field="host_stages.receiver"),
        )
        return HideQuestion(
            problem=self._of_train(problem),
            calculation_us=self._calculation_us(),
            hideable_fraction=self.hideable_fraction,
            streamed=self.streamed,
            overhead_us=self.hiding_overhead_us,
            messages=self.messages,
            messages_are=self.messages_are,
            hosts=hosts,
            exchange=self.exchange,
            min_gain=self.min_gain,
            processes=None if self.processes is None else self.processes.to_domain(),
            relative_gap=self.relative_gap,
            time_limit_s=self.time_limit_s,
            uncertain=uncertain if isinstance(uncertain, UncertainPipeline) else None,
        )

    def _of_train(self, problem: Problem) -> Problem:
        """Return the problem with as many fragments as a train may have. Raises InconsistentInput.

        The answer's `constraints` say so.
        """
        if self.messages_are is MessagesAre.SERIAL or self.messages == 1:
            return problem
        most = MAX_TRAIN_FRAGMENTS // self.messages
        if problem.count_range().minimum > most:
            raise InconsistentInput(
                f"expected messages x fragments <= {MAX_TRAIN_FRAGMENTS} of a train",
                field="messages",
            )
        if problem.count_range().maximum <= most:
            return problem
        return replace(problem, limits=replace(problem.limits, max_fragments=most))

    def _calculation_us(self) -> float:
        if (self.calculation_us is None) == (self.instructions is None):
            raise InconsistentInput(
                "expected exactly one of calculation_us, instructions", field="calculation_us"
            )
        if self.calculation_us is not None:
            if self.instructions_per_us is not None:
                raise InconsistentInput(
                    "instructions_per_us is the speed of instructions, and there are none",
                    field="instructions_per_us",
                )
            return self.calculation_us
        if self.instructions_per_us is None:
            raise InconsistentInput(
                "expected instructions_per_us beside instructions", field="instructions_per_us"
            )
        time_us = (self.instructions or 0.0) / self.instructions_per_us
        if time_us > MAX_CALCULATION_US:
            raise InconsistentInput(
                f"expected instructions / instructions_per_us <= {MAX_CALCULATION_US:g} µs",
                field="instructions",
            )
        return time_us


def _indices(given: Sequence[int | str], names: Sequence[str], *, field: str) -> tuple[int, ...]:
    """Return the places of these stages. Raises InvalidInput for what is unknown or ambiguous."""
    found = []
    for place, one in enumerate(given):
        at = f"{field}.{place}"
        if isinstance(one, int):
            if one >= len(names):
                raise InconsistentInput(f"expected a stage from 0 to {len(names) - 1}", field=at)
            found.append(one)
        elif names.count(one) != 1:
            raise InconsistentInput("expected the name of one stage of the pipeline", field=at)
        else:
            found.append(names.index(one))
    if len(set(found)) < len(found):
        raise InconsistentInput("expected each stage at most once", field=field)
    return tuple(found)


# --- the answer -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LatencyOptimalOut(Output):
    """The cut of least latency, its run time behind this calculation, and by what share more."""

    fragments: int
    latency_us: float
    with_us: float
    more_by: float


@dataclass(frozen=True)
class HiddenCountOut(Output):
    """One number of fragments that was tried: latency of all messages, the processor's part, and
    the run time with hiding; µs. `bound_us` is below the run time of every such cut, of this model.
    """

    fragments: int
    latency_us: float
    host_us: float
    with_us: float
    bound_us: float


@dataclass(frozen=True)
class GammaWindowOut(Output):
    """Ratios of calculation to communication, c / T; `high` is null where it has no end."""

    low: float
    high: float | None


@dataclass(frozen=True)
class BestProcessesOut(Output):
    """The numbers of processes with the greatest speed-up without and with hiding, and gain."""

    without: int
    hidden: int
    gain: int


@dataclass(frozen=True)
class ProcessPointOut(Output):
    """One number of processes: speed-ups without and with hiding, and the gain."""

    processes: int
    speedup: float
    hidden_speedup: float
    gain: float


@dataclass(frozen=True)
class HideOut(Output):
    """Run times without and with hiding, and the best fragments behind the calculation.

    Times in µs, sizes in whole bytes. `gain` is without_us / with_us, `gain_at_most` that over the
    proven bound of this model; `overhead` is what hiding adds relative to the calculation; `gamma`
    is the calculation over the communication (least latency), `window` where it gains `min_gain`.
    Of a `granularity` all that needs a pipeline is null.
    """

    gain: float
    gain_at_most: float | None
    max_gain: float | None
    regime: Regime
    gamma: float | None
    window: GammaWindowOut | None
    min_gain: float | None
    hideable_fraction: float
    overhead: float | None
    best_processes: BestProcessesOut | None
    curve: tuple[ProcessPointOut, ...]
    warnings: tuple[NoticeOut, ...]
    message_bytes: int | None = None
    messages: int | None = None
    messages_are: MessagesAre | None = None
    calculation_us: float | None = None
    hiding_overhead_us: float | None = None
    streamed: bool | None = None
    exchange: Exchange | None = None
    without_us: float | None = None
    with_us: float | None = None
    lower_bound_us: float | None = None
    relative_gap: float | None = None
    status: Status | None = None
    fragment_bytes: tuple[int, ...] | None = None
    fragments: int | None = None
    latency_us: float | None = None
    host_us: float | None = None
    latency_optimal: LatencyOptimalOut | None = None
    calculation_for_full_hiding_us: float | None = None
    counts: tuple[HiddenCountOut, ...] = ()
    constraints: ConstraintsOut | None = None
    pipeline: PipelineOut | None = None
    profile: ProfileRevisionOut | None = None

    @classmethod
    def of(
        cls,
        found: Hidden,
        profile: ProfileRevision | None,
        of_fit: Sequence[Notice],
        said: Notice | None = None,
    ) -> HideOut:
        """Return an answer about a pipeline as it is sent; `said` is what transfers said of it."""
        first = () if said is None else (said,)
        asked, cut = found.question, found.cut
        window, best = found.window, found.best_processes
        return cls(
            gain=found.gain,
            gain_at_most=found.gain_at_most,
            max_gain=found.max_gain,
            regime=found.regime,
            gamma=found.gamma,
            window=None if window is None else same_named(GammaWindowOut, window),
            min_gain=asked.min_gain,
            hideable_fraction=asked.hideable_fraction,
            overhead=None if found.overlap is None else found.overlap.overhead,
            best_processes=None if best is None else same_named(BestProcessesOut, best),
            curve=tuple(same_named(ProcessPointOut, point) for point in found.curve),
            warnings=notices_out((*first, *found.warnings, *of_fit)),
            message_bytes=asked.problem.message_bytes,
            messages=asked.messages,
            messages_are=asked.messages_are,
            calculation_us=asked.calculation_us,
            hiding_overhead_us=asked.overhead_us,
            streamed=asked.streamed,
            exchange=asked.exchange,
            without_us=found.without_us,
            with_us=found.with_us,
            lower_bound_us=found.lower_bound_us,
            relative_gap=found.relative_gap,
            status=found.status,
            fragment_bytes=cut.fragment_bytes,
            fragments=len(cut.fragment_bytes),
            latency_us=cut.latency_us,
            host_us=cut.host_us,
            latency_optimal=same_named(LatencyOptimalOut, found.latency_optimal),
            calculation_for_full_hiding_us=found.calculation_for_full_hiding_us,
            counts=tuple(same_named(HiddenCountOut, row) for row in found.rows),
            constraints=ConstraintsOut.of(asked.problem.limits),
            pipeline=PipelineOut.of(asked.problem.pipeline),
            profile=ProfileRevisionOut.of(profile),
        )

    @classmethod
    def of_model(cls, found: ModelHidden) -> HideOut:
        """Return an answer in the paper's terms as it is sent."""
        asked, window, best = found.question, found.window, found.best_processes
        return cls(
            gain=found.gain,
            gain_at_most=found.gain,
            max_gain=asked.overlap.peak_gain,
            regime=found.regime,
            gamma=found.gamma,
            window=None if window is None else same_named(GammaWindowOut, window),
            min_gain=asked.min_gain,
            hideable_fraction=asked.overlap.hideable_fraction,
            overhead=asked.overlap.overhead,
            best_processes=None if best is None else same_named(BestProcessesOut, best),
            curve=tuple(same_named(ProcessPointOut, point) for point in found.curve),
            warnings=notices_out(found.warnings),
        )


@dataclass(frozen=True, kw_only=True)
class StoredHideOut(HideOut):
    """An answer as it is stored, and sent again for the same question."""

    id: str
    created_at: str

    @classmethod
    def stored(cls, answer: HideOut, *, id: str, created_at: datetime) -> StoredHideOut:
        """Return the answer under its identifier."""
        return cls(**vars(answer), id=id, created_at=timestamp(created_at))
