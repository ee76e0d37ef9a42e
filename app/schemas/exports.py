"""Exports to libraries' configurations: what is asked for, and the targets that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from analysis.audit import DEFAULT_TIME_LIMIT_S, MAX_AUDIT_WORKLOAD_SIZES, MAX_TIME_LIMIT_S
from app.questions.settings import Exported, ExportQuestion, ExportScope
from app.schemas.audit import SettingStepOut, WorkloadSizeIn, finite, steps_out, workload_of
from app.schemas.base import Output, ProfileRevisionOut, dump_json, same_named
from app.schemas.queries import Digits, Query
from app.schemas.settings_in_draws import SettingsInDrawsOut
from app.text.notices import setting_words
from domain.errors import InconsistentInput, InvalidInput
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.problem import FragmentLimits
from domain.regret import ChosenSetting, Objective, PricedSetting
from domain.units import format_bytes
from domain.workload import Workload
from exports.targets.registry import TARGETS
from exports.targets.target import Takes, Target

if TYPE_CHECKING:
    from measuring.trials import Trial

MAX_OPTIONS = 32
_Whole = Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits]
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_TimeLimitS = Annotated[float, Field(gt=0.0, le=MAX_TIME_LIMIT_S, description="of the solves")]
_Weighted = Annotated[str, Field(max_length=48, pattern=r"^[0-9]{1,15}:[0-9.eE+-]{1,32}$")]
_Option = Annotated[str, Field(max_length=200, pattern="^[a-z_]{1,32}:.+$")]


class _ExportFields(BaseModel):
    """The messages, by their range or a workload, and what the sizes are chosen for; limits, and
    options.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_message_bytes: _Whole | None = None
    max_message_bytes: _Whole | None = None
    workload: Annotated[
        tuple[_Weighted, ...],
        Field(
            max_length=MAX_AUDIT_WORKLOAD_SIZES,
            description="message_bytes:weight, in place of a range",
        ),
    ] = ()
    objective: Annotated[
        Objective | None, Field(description="null: time of a workload, mean over a range")
    ] = None
    min_fragment_bytes: _Whole | None = None
    max_fragment_bytes: _Whole | None = None
    alignment_bytes: _Whole | None = None
    max_fragments: _Whole | None = None
    option: Annotated[
        tuple[_Option, ...],
        Field(max_length=MAX_OPTIONS, description="name:value, an option of the target"),
    ] = ()
    time_limit_s: _TimeLimitS = DEFAULT_TIME_LIMIT_S

    def to_domain(self, target: str) -> ExportScope:
        """Return what is asked for. Raises InvalidInput."""
        minimum, maximum = self.min_message_bytes, self.max_message_bytes
        workload = self._workload() if self.workload else None
        if workload is not None:
            minimum, maximum = workload.sizes[0].message_bytes, workload.sizes[-1].message_bytes
        if minimum is not None and maximum is not None and minimum > maximum:
            raise InconsistentInput(
                "expected min_message_bytes <= max_message_bytes", field="max_message_bytes"
            )
        return ExportScope(
            target=target,
            options=tuple(split_option(option) for option in self.option),
            min_message_bytes=minimum,
            max_message_bytes=maximum,
            workload=workload,
            objective=self.objective,
            limits=self._limits(),
            time_limit_s=self.time_limit_s,
        )

    def _workload(self) -> Workload:
        if self.min_message_bytes is not None or self.max_message_bytes is not None:
            raise InconsistentInput(
                "expected a range of messages or a workload, not both", field="workload"
            )
        return workload_of_weights(self.workload)

    def _limits(self) -> FragmentLimits | None:
        given = {name: getattr(self, name) for name in FragmentLimits.__slots__}
        given = {name: value for name, value in given.items() if value is not None}
        return FragmentLimits(**given) if given else None


class ExportQuery(_ExportFields, Query):
    """The parameters of an export."""

    table: Annotated[_Digest | None, Field(description="a compiled table, not the active one")] = (
        None
    )


class ExportIn(_ExportFields):
    """The options of the command line."""


def workload_of_weights(weighted: Sequence[str]) -> Workload:
    """Return the workload of `message_bytes:weight`, once each or repeated. Raises InvalidInput and
    InconsistentInput.
    """
    if not 1 <= len(weighted) <= MAX_AUDIT_WORKLOAD_SIZES:
        raise InvalidInput(
            f"expected 1 to {MAX_AUDIT_WORKLOAD_SIZES} message sizes", field="workload"
        )
    pairs = [one.split(":") for one in weighted]
    try:
        sizes = [
            WorkloadSizeIn(message_bytes=int(size), weight=float(weight)) for size, weight in pairs
        ]
    except ValueError:
        raise InvalidInput("expected sizes and weights, as 1048576:700", field="workload") from None
    return workload_of(sizes)


def weights_of(sizes: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return the sizes and weights of a request as the query of an export has them."""
    return tuple(f"{one['message_bytes']}:{one['weight']!r}" for one in sizes)


def split_option(text: str) -> tuple[str, str]:
    """Return name and value of `name:value`."""
    name, _, value = text.partition(":")
    return name, value


@dataclass(frozen=True)
class ExportSizesOut(Output):
    """The sizes that a target takes: inclusive limits, multiples of one, or powers of two alone."""

    min_bytes: int
    max_bytes: int
    multiple_of: int
    is_power_of_two: bool


@dataclass(frozen=True)
class ExportOptionOut(Output):
    """An option. Without `choices` its value is any text that matches `pattern`."""

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...]
    pattern: str


@dataclass(frozen=True)
class ExportTargetOut(Output):
    """A target. `takes` is `one_size`, `size_steps`, `costs` or `table`.

    `verified_by` is the program that reads it back in the tests, with its version; null where none
    does, and then the text says so itself. `is_audited` says whether such a text can be audited.
    """

    name: str
    title: str
    takes: Takes
    suffix: str
    media_type: str
    verified_by: str | None
    grammar: str
    is_audited: bool
    sizes: ExportSizesOut | None
    options: tuple[ExportOptionOut, ...]

    @classmethod
    def of(cls, target: Target) -> ExportTargetOut:
        """Return a target as it is sent."""
        takes_sizes = target.takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS)
        return cls(
            name=target.name,
            title=target.title,
            takes=target.takes,
            suffix=target.suffix,
            media_type=target.media_type,
            verified_by=target.verified_by or None,
            grammar=target.grammar,
            is_audited=target.read is not None,
            sizes=same_named(ExportSizesOut, target.sizes) if takes_sizes else None,
            options=tuple(
                ExportOptionOut(
                    option.name,
                    option.default,
                    option.meaning,
                    option.choices,
                    "" if option.choices else option.pattern,
                )
                for option in target.options
            ),
        )


@dataclass(frozen=True)
class ExportTargetsOut(Output):
    """Every target, in the order of their names."""

    items: tuple[ExportTargetOut, ...]

    @classmethod
    def all(cls) -> ExportTargetsOut:
        """Return every target."""
        named = sorted(TARGETS, key=lambda target: target.name)
        return cls(tuple(map(ExportTargetOut.of, named)))


@dataclass(frozen=True, kw_only=True)
class ComparedSettingOut(Output):
    """A setting beside the one that an export has: its regrets over the same messages, as shares:
    of their total time, in the mean and at worst.

    Null is without a bound; `time_regret` also of exports that were kept before it was told.
    """

    steps: tuple[SettingStepOut, ...]
    time_regret: float | None = None
    mean_regret: float | None
    worst_regret: float | None

    @classmethod
    def of(cls, priced: PricedSetting | None) -> ComparedSettingOut | None:
        """Return a setting as it is sent, None where it has no price."""
        if priced is None:
            return None
        return cls(
            steps=steps_out(priced.setting),
            time_regret=finite(priced.time_regret),
            mean_regret=finite(priced.mean_regret),
            worst_regret=finite(priced.worst_regret),
        )


@dataclass(frozen=True, kw_only=True)
class ChosenOut(Output):
    """The sizes that an export has, and what they cost over the best schedules known, as shares:
    of the total time of the messages, in the mean and at worst.

    Over any schedules within the limits they cost `time_at_most`, `mean_at_most` and
    `worst_at_most` at most; null is without a bound. They have the least regret of those by their
    `objective`; it and the total time are null of exports kept before they were told. `is_partial`:
    time ended searches, and more of it may choose other sizes. `default` is what the library does
    by itself, null where that has no price; `wanted` what would be chosen if the library took every
    size that the limits admit.
    """

    steps: tuple[SettingStepOut, ...]
    objective: Objective | None = None
    time_regret: float | None = None
    time_at_most: float | None = None
    mean_regret: float | None
    mean_at_most: float | None
    worst_regret: float | None
    worst_at_most: float | None
    is_partial: bool = False  # in exports kept before
    default: ComparedSettingOut | None = None  # of exports kept before
    wanted: ComparedSettingOut | None = None

    @classmethod
    def of(cls, chosen: ChosenSetting | None) -> ChosenOut | None:
        """Return the chosen sizes as they are sent, None where none were chosen."""
        if chosen is None:
            return None
        return cls(
            steps=steps_out(chosen.setting),
            objective=chosen.objective,
            time_regret=finite(chosen.time_regret),
            time_at_most=finite(chosen.time_at_most),
            mean_regret=finite(chosen.mean_regret),
            mean_at_most=finite(chosen.mean_at_most),
            worst_regret=finite(chosen.worst_regret),
            worst_at_most=finite(chosen.worst_at_most),
            is_partial=chosen.is_partial,
            default=ComparedSettingOut.of(chosen.default),
            wanted=ComparedSettingOut.of(chosen.wanted),
        )


@dataclass(frozen=True)
class ExportedOut(Output):
    """A profile as a library's configuration: the text, and what a file of it is called.

    `chosen` is null where no sizes were chosen for it, `uncertainty` where the errors of the costs
    are not known. `is_gain_known` says whether the sizes are known to cost less than the library's
    default; `warnings` are what the text begins with.
    """

    profile: ProfileRevisionOut | None
    target: str
    file_name: str
    media_type: str
    text: str
    chosen: ChosenOut | None
    uncertainty: SettingsInDrawsOut | None = None  # of exports kept before
    is_gain_known: bool | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, question: ExportQuestion, made: Exported) -> ExportedOut:
        """Return an export as it is sent."""
        return cls(
            profile=ProfileRevisionOut.of(question.profile),
            target=question.target.name,
            file_name=made.file_name,
            media_type=made.media_type,
            text=made.content.decode(),
            chosen=ChosenOut.of(made.chosen),
            uncertainty=SettingsInDrawsOut.of(
                made.in_draws, question.errors, _words(made), question.transfers
            ),
            is_gain_known=made.is_gain_known,
            warnings=made.warnings,
        )


def _words(made: Exported) -> dict[str, str]:
    """What the chosen sizes and those beside them are, by their names in draws."""
    if made.chosen is None or made.in_draws is None:
        return {}
    others = made.in_draws.settings[1:]
    words = {one.name: format_bytes(int(one.name)) for one in others}
    return {made.in_draws.settings[0].name: setting_words(made.chosen.setting), **words}


def render_exported(question: ExportQuestion, made: Exported) -> bytes:
    """Return the JSON of an export, as it is sent and stored."""
    return dump_json(ExportedOut.of(question, made))


@dataclass(frozen=True)
class ComparedOut(Output):
    """A program and a size: medians in µs, and how many times as long it took with the setting.

    `low` and `high` are the interval of `ratio`; the numbers of the setting are null where its
    result was wrong.
    """

    program: str
    message_bytes: int
    before_us: float
    after_us: float | None
    ratio: float | None
    low: float | None
    high: float | None
    outcome: str


@dataclass(frozen=True)
class TrialOut(Output):
    """A trial: its pairs, and why the programs did not end with the setting, where they did not."""

    pairs: int
    failure: str
    compared: tuple[ComparedOut, ...]

    @classmethod
    def of(cls, trial: Trial) -> TrialOut:
        """Return a trial as it is printed."""
        rows = (
            ComparedOut(
                one.program,
                one.message_bytes,
                one.before_us,
                finite(one.after_us),
                finite(one.ratio),
                finite(one.low),
                finite(one.high),
                one.outcome,
            )
            for one in trial.compared
        )
        return cls(trial.pairs, trial.failure, tuple(rows))


@dataclass(frozen=True)
class AppliedOut(Output):
    """A setting that was measured over the installed library, and whether it is kept.

    `text` is what is kept, null where nothing is; `trials` are in their order: a part of the
    setting that lost is left out of the next one, and the last one confirms.
    """

    target: str
    library: str
    is_kept: bool
    reason: str
    text: str | None
    trials: tuple[TrialOut, ...]
