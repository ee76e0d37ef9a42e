"""POST /audit: a setting and its hardware in, what it costs over the optimum of the model out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan, nan
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, FailFast, Field, Tag
from pydantic.config import JsonValue
from typing_extensions import TypeAliasType

from analysis.audit import (
    ADVISED,
    DEFAULT_TIME_LIMIT_S,
    MAX_AUDIT_WORKLOAD_SIZES,
    MAX_TIME_LIMIT_S,
    SETTING,
    Audit,
    AuditScope,
    Reference,
    RegretVerdict,
)
from analysis.setting_price import Priced, Span, span_of
from app.questions.question import Question
from app.schemas.base import (
    CONFIGURATION,
    STATIC,
    STEPS,
    WHOLE,
    Bytes,
    Input,
    NoticeOut,
    Output,
    ProfileRevisionOut,
    dump_json,
    notices_out,
    same_named,
    whole,
)
from app.schemas.optimize import OptimizeIn
from app.schemas.settings_in_draws import SettingsInDrawsOut
from app.schemas.source import SourceIn, pinned
from app.schemas.stages import AggregateOut, PipelineOut
from app.schemas.uncertainty import DrawsIn
from app.text.notices import setting_words
from app.text.regrets import changes_title, format_change
from app.text.transferred import transfers_sentence
from domain.errors import InconsistentInput, InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.profile import ProfileRevision
from domain.regret import Objective, Regret, SizeRule
from domain.workload import DEFAULT_MAX_MESSAGE_BYTES, Workload, default_min_message_bytes
from exports.targets.registry import TARGETS, target_named
from exports.targets.target import Takes

# --- POST /audit, in ------------------------------------------------------------------------------


MAX_CONFIGURATION_CHARACTERS = 2**18
MAX_GIVEN_STEPS = 64  # a configuration may have more

Size = Annotated[
    int, Field(ge=1, le=MAX_MESSAGE_BYTES, description="whole bytes"), BeforeValidator(whole)
]


def _readable() -> list[JsonValue]:
    return [target.name for target in TARGETS if target.read is not None]


class StepIn(Input):
    """From this message size on, messages repeat this size; null: they are sent whole."""

    from_bytes: Size
    size_bytes: Size | None


# Named aliases, because the members of a union must be hashable and FailFast is not.
StepList = TypeAliasType(
    "StepList", Annotated[list[StepIn], FailFast(), Field(min_length=1, max_length=MAX_GIVEN_STEPS)]
)


class ConfigurationIn(Input):
    """A library's configuration as text, and the export target whose syntax it has."""

    target: Annotated[str, Field(max_length=64, json_schema_extra={"enum": _readable()})]
    content: Annotated[str, Field(max_length=MAX_CONFIGURATION_CHARACTERS)]


class StaticIn(Input):
    """One size for all messages."""

    static_bytes: Bytes

    def to_domain(self) -> FragmentSetting:
        return FragmentSetting.always(self.static_bytes)


class WholeIn(Input):
    """Every message is sent whole."""

    whole: Literal[True]

    def to_domain(self) -> FragmentSetting:
        return FragmentSetting.always(None)


class StepsIn(Input):
    """A size for each range of messages; the first step begins at 1 byte."""

    steps: StepList

    def to_domain(self) -> FragmentSetting:
        """Return the setting. Raises InconsistentInput for steps that do not ascend from 1."""
        steps = tuple(SettingStep(one.from_bytes, one.size_bytes) for one in self.steps)
        try:
            return FragmentSetting(steps)
        except InvalidInput as refusal:
            raise InconsistentInput(refusal.detail, field="setting.steps") from None


class ConfiguredIn(Input):
    """What a library's configuration says."""

    configuration: ConfigurationIn

    def to_domain(self) -> FragmentSetting:
        """Return the setting. Raises InvalidInput."""
        return read_configuration(self.configuration.target, self.configuration.content)


_WAYS = {"static_bytes": STATIC, "whole": WHOLE, "steps": STEPS, "configuration": CONFIGURATION}


def _way(value: Any) -> str:
    """Return the kind by the first field that is there; errors then name that one."""
    given = value if isinstance(value, dict) else {}
    return next((tag for name, tag in _WAYS.items() if name in given), STATIC)


SettingIn = Annotated[
    Annotated[StaticIn, Tag(STATIC)]
    | Annotated[WholeIn, Tag(WHOLE)]
    | Annotated[StepsIn, Tag(STEPS)]
    | Annotated[ConfiguredIn, Tag(CONFIGURATION)],
    Discriminator(_way),
]


class WorkloadSizeIn(Input):
    """A message size and how much it counts; weights may have any sum above 0."""

    message_bytes: Size
    weight: Annotated[float, Field(ge=0.0, le=1e12)] = 1.0


WorkloadList = TypeAliasType(
    "WorkloadList",
    Annotated[
        list[WorkloadSizeIn], FailFast(), Field(min_length=1, max_length=MAX_AUDIT_WORKLOAD_SIZES)
    ],
)


def workload_of(sizes: Sequence[WorkloadSizeIn]) -> Workload:
    """Return the workload that is given. Raises InconsistentInput."""
    weights = [(size.message_bytes, size.weight) for size in sizes]
    try:
        return Workload.weighted(weights, f"the given workload of {len(weights)} sizes")
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field="workload") from None


class AuditIn(SourceIn):
    """A setting, the pipeline it is for, and the messages that count.

    Without a `workload` every octave of the range counts the same, and the `objective` is the mean
    regret; with one it is the total time of its messages. A range that is left out is the
    workload's, or 1 KiB to 16 MiB; below a largest message of less than 1 KiB, from 1 byte.
    """

    setting: SettingIn
    min_message_bytes: Bytes | None = None
    max_message_bytes: Bytes | None = None
    workload: WorkloadList | None = None
    objective: Annotated[
        Objective | None, Field(description="null: time of a workload, mean over a range")
    ] = None
    max_regret: Annotated[
        float | None, Field(ge=0.0, le=1e6, description="a share: 0.05 is 5 %")
    ] = None
    over: Reference = Reference.BEST
    in_draws: Annotated[
        float | None, Field(gt=0.0, le=1.0, description="of the draws, in which it is kept too")
    ] = None
    time_limit_s: Annotated[float, Field(gt=0.0, le=MAX_TIME_LIMIT_S)] = DEFAULT_TIME_LIMIT_S
    uncertainty: DrawsIn | None = None

    def to_domain(self) -> AuditScope:
        """Return what is audited. Raises InvalidInput."""
        workload = self._workload()
        maximum = workload.sizes[-1].message_bytes if workload else DEFAULT_MAX_MESSAGE_BYTES
        if not workload and self.min_message_bytes is not None:
            maximum = max(maximum, self.min_message_bytes)
        minimum = (
            workload.sizes[0].message_bytes
            if workload
            else default_min_message_bytes(self.max_message_bytes or maximum)
        )
        return AuditScope(
            setting=self.setting.to_domain(),
            min_message_bytes=self.min_message_bytes or minimum,
            max_message_bytes=self.max_message_bytes or maximum,
            workload=workload,
            objective=self.objective,
            max_regret=self.max_regret,
            in_draws=self.in_draws,
            reference=self.over,
            time_limit_s=self.time_limit_s,
            **self._library(),
        )

    def to_question(self) -> Question:
        """Return the question that finds or fits the model. Raises InvalidInput."""
        asked = OptimizeIn.model_construct(
            message_bytes=self.max_message_bytes or DEFAULT_MAX_MESSAGE_BYTES,
            uncertainty=self.uncertainty,
            **self.given_source(),
        )
        return asked.to_domain()

    def as_job(self, profile: ProfileRevision | None) -> bytes:
        """Return this request as a job keeps it: a profile pinned to the revision that it had."""
        # What is null is sent, as of a step's size. Pydantic warns of unions with a function for a
        # tag.
        request = pinned(self, profile)
        return request.model_dump_json(exclude_unset=True, warnings=False).encode()

    def _workload(self) -> Workload | None:
        return None if self.workload is None else workload_of(self.workload)

    def _library(self) -> dict[str, Any]:
        """Return what the configuration's library can be set to, and so be advised."""
        if not isinstance(self.setting, ConfiguredIn):
            return {"rule": SizeRule(), "takes_size_steps": True}
        target = target_named(self.setting.configuration.target)
        return {"rule": target.sizes, "takes_size_steps": target.takes is not Takes.ONE_SIZE}


def read_configuration(name: str, content: str) -> FragmentSetting:
    """Return the setting in a library's configuration. Raises InvalidInput that names the field."""
    at = "setting.configuration"
    try:
        target = target_named(name)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field=f"{at}.target") from None
    if target.read is None:
        raise InvalidInput(f"{target.name} cannot be read back", field=f"{at}.target")
    try:
        return target.read(content)
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field=f"{at}.content") from None


# --- POST /audit, out -----------------------------------------------------------------------------


@dataclass(frozen=True)
class SpanOut(Output):
    """A regret as a share: over the best schedule found, and over the proven bound of the
    model.

    Null where the optimum takes no time at all.
    """

    at_least: float | None
    at_most: float | None

    @classmethod
    def of(cls, span: Span) -> SpanOut:
        return cls(finite(span.at_least), finite(span.at_most))


@dataclass(frozen=True)
class SettingStepOut(Output):
    """From this message size on, messages repeat this size; null: they are sent whole."""

    from_bytes: int
    size_bytes: int | None


@dataclass(frozen=True)
class AuditRowOut(Output):
    """One message under the setting. Latencies in µs, delay included; sizes in bytes."""

    message_bytes: int
    size_bytes: int
    fragments: int
    latency_us: float
    best_us: float
    lower_bound_us: float
    best_repeat_bytes: int | None
    best_repeat_us: float | None
    regret: SpanOut

    @classmethod
    def of(cls, regret: Regret) -> AuditRowOut:
        best = regret.best
        return cls(
            message_bytes=regret.message_bytes,
            size_bytes=regret.size_bytes,
            fragments=-(-regret.message_bytes // regret.size_bytes),
            latency_us=regret.latency_us,
            best_us=best.latency_us,
            lower_bound_us=best.lower_bound_us,
            best_repeat_bytes=best.repeat_bytes,
            best_repeat_us=best.repeat_us,
            regret=SpanOut.of(span_of(regret)),
        )


@dataclass(frozen=True, kw_only=True)
class PricedOut(Output):
    """A setting and its regret: that of the total `time` of the workload, the `mean` of its
    messages, and the `worst` of them. `time` is null of audits that were kept before it was told.

    No message that was looked at has a regret above `worst_at_most`; null is without a bound.
    """

    steps: tuple[SettingStepOut, ...]
    time: SpanOut | None = None
    mean: SpanOut
    worst: AuditRowOut
    worst_at_most: float | None = field(default_factory=lambda: nan)  # of audits kept before

    @classmethod
    def of(cls, priced: Priced) -> PricedOut:
        return cls(
            steps=steps_out(priced.setting),
            time=SpanOut.of(priced.time),
            mean=SpanOut.of(priced.mean),
            worst=AuditRowOut.of(priced.worst),
            worst_at_most=finite(priced.worst_at_most),
        )

    @property
    def worst_span(self) -> SpanOut:
        """The worst regret as far as it is known; of audits kept before, that of its message."""
        found, at_most = self.worst.regret, self.worst_at_most
        is_known = at_most is None or not isnan(at_most)
        return SpanOut(found.at_least, at_most) if is_known else found


@dataclass(frozen=True)
class AuditWorkloadOut(Output):
    """What the means are over."""

    words: str
    sizes: int


@dataclass(frozen=True)
class AuditOut(Output):
    """What a setting costs over the optimum of the model. Regrets are shares: 0.05 is 5 %.

    `worst_of` is how many message sizes each `worst` was looked for among. `best_repeats_time` and
    `best_repeats` are the regrets of the total time and the mean one of the best repeated size of
    each message, the latter over any schedules at most `best_repeats_at_most`. Any schedules take
    less total time than the best found by at most `schedules_time_at_most`, less in the mean by
    `schedules_at_most`. `best_size_steps` is null where the configuration's library takes one size
    only.
    """

    pipeline: PipelineOut | None
    aggregate: AggregateOut | None
    profile: ProfileRevisionOut | None
    min_message_bytes: int
    max_message_bytes: int
    workload: AuditWorkloadOut
    worst_of: int
    objective: Objective
    setting: PricedOut
    at_powers: tuple[AuditRowOut, ...]
    best_size: PricedOut
    best_size_steps: PricedOut | None
    best_repeats: float | None
    schedules_at_most: float | None
    max_regret: float | None
    over: Reference
    verdict: RegretVerdict | None
    is_kept: bool
    changes: tuple[str, ...]
    audit_ms: float
    fit_warnings: tuple[NoticeOut, ...]
    warnings: tuple[NoticeOut, ...]
    best_repeats_at_most: float | None = None  # of audits kept before
    in_draws: float | None = None  # of audits kept before, as the next
    uncertainty: SettingsInDrawsOut | None = None
    best_repeats_time: SpanOut | None = None  # of audits kept before, as the next
    schedules_time_at_most: float | None = None

    @property
    def changes_title(self) -> str:
        """What heads the changes."""
        known = self.uncertainty
        return changes_title(known.decision if known else None, known.reason if known else None)

    @property
    def repeats_span(self) -> SpanOut:
        """The mean regret of a lookup as far as it is known."""
        at_most = self.best_repeats_at_most
        return SpanOut(self.best_repeats, self.best_repeats if at_most is None else at_most)

    @classmethod
    def of(cls, audit: Audit) -> AuditOut:
        """Return an audit as it is sent."""
        question, scope = audit.question, audit.question.scope
        repeats, schedules = audit.repeats, audit.schedules
        return cls(
            pipeline=PipelineOut.of_model(question.model),
            aggregate=AggregateOut.of_model(question.model),
            profile=ProfileRevisionOut.of(question.profile),
            min_message_bytes=scope.min_message_bytes,
            max_message_bytes=scope.max_message_bytes,
            workload=AuditWorkloadOut(audit.workload.words, len(audit.workload.sizes)),
            worst_of=audit.worst_of,
            objective=scope.decides_by,
            setting=PricedOut.of(audit.priced),
            at_powers=tuple(map(AuditRowOut.of, audit.at_powers)),
            best_size=PricedOut.of(audit.single),
            best_size_steps=PricedOut.of(audit.size_steps) if audit.size_steps else None,
            best_repeats=finite(repeats.mean.at_least if repeats else None),
            schedules_at_most=finite(schedules.mean.at_most),
            max_regret=scope.max_regret,
            over=scope.reference,
            verdict=audit.verdict,
            is_kept=audit.is_kept,
            changes=_changes(audit),
            audit_ms=round(audit.audit_ms, 3),
            fit_warnings=notices_out(question.fit_notices),
            warnings=notices_out(audit.notices),
            in_draws=scope.in_draws,
            uncertainty=SettingsInDrawsOut.of(
                audit.in_draws, question.errors, _words(audit), question.transfers
            ),
            best_repeats_at_most=finite(repeats.mean.at_most if repeats else None),
            best_repeats_time=SpanOut.of(repeats.time) if repeats else None,
            schedules_time_at_most=finite(schedules.time.at_most),
        )


def _changes(audit: Audit) -> tuple[str, ...]:
    """What to change, in words: what transfers say, where they decide in the place of the model."""
    say = audit.question.transfers
    if say is not None:
        return (transfers_sentence(say),)
    return tuple(format_change(audit, change) for change in audit.changes)


def _words(audit: Audit) -> dict[str, str]:
    """What the setting and those that may be advised are, by their names in draws."""
    priced = (audit.priced, audit.single, audit.size_steps)
    named = zip((SETTING, *ADVISED), priced, strict=True)
    return {name: setting_words(one.setting) for name, one in named if one is not None}


def render_audit(audit: Audit) -> bytes:
    """Return the JSON of an audit, as it is sent and stored."""
    return dump_json(AuditOut.of(audit))


def steps_out(setting: FragmentSetting) -> tuple[SettingStepOut, ...]:
    """Return the steps of a setting as they are sent."""
    return tuple(same_named(SettingStepOut, step) for step in setting.steps)


def finite(share: float | None) -> float | None:
    """Return a regret, None for one without end: of an optimum of the model that takes no time."""
    return share if share is not None and isfinite(share) else None
