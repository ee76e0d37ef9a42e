"""What the service answers about configurations of messaging libraries: exports and audits."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_client.fit_answers import Notice, ProfileRevision
from sluice_client.shapes import Aggregate, Pipeline, SettingStep
from sluice_client.uncertainty import SettingsInDraws


@dataclass(frozen=True, slots=True)
class ExportSizes:
    """The sizes that a target takes."""

    min_bytes: int
    max_bytes: int
    multiple_of: int
    is_power_of_two: bool


@dataclass(frozen=True, slots=True)
class ExportOption:
    """An option of a target; without `choices` its value is a text that matches `pattern`."""

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...]
    pattern: str


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """A library that a profile can be exported to.

    `takes` is `one_size`, `size_steps`, `costs` or `table`; `verified_by` the program that reads it
    back in the tests, None where none does.
    """

    name: str
    title: str
    takes: str
    suffix: str
    media_type: str
    verified_by: str | None
    grammar: str
    is_audited: bool
    sizes: ExportSizes | None
    options: tuple[ExportOption, ...]


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A configuration in a target's own syntax, and the name that its file goes by."""

    file_name: str
    media_type: str
    content: bytes

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode()


@dataclass(frozen=True, slots=True)
class ComparedSetting:
    """A setting beside that of an export: its regrets over the same messages, as shares: of their
    total time, in the mean and at worst.

    None is without a bound.
    """

    steps: tuple[SettingStep, ...]
    mean_regret: float | None
    worst_regret: float | None
    time_regret: float | None = None


@dataclass(frozen=True, slots=True)
class ChosenSizes:
    """The sizes that an export has, and what they cost over the best schedules known, as shares:
    of the total time of the messages, in the mean and at worst.

    They have the least of it by their `objective`. `default` is what the library does by itself,
    None where that has no price; `wanted` what would be chosen if the library took every size that
    the limits admit.
    """

    steps: tuple[SettingStep, ...]
    mean_regret: float | None
    worst_regret: float | None
    mean_at_most: float | None = None
    worst_at_most: float | None = None
    is_partial: bool = False
    default: ComparedSetting | None = None
    wanted: ComparedSetting | None = None
    objective: str | None = None
    time_regret: float | None = None
    time_at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """The same as the result of a job.

    `uncertainty` is None where the errors of the costs are not known. `is_gain_known` says whether
    the sizes are known to cost less than the library's default, None where none were chosen;
    `warnings` are what the text begins with.
    """

    profile: ProfileRevision | None
    target: str
    file_name: str
    media_type: str
    text: str
    chosen: ChosenSizes | None = None
    uncertainty: SettingsInDraws | None = None
    is_gain_known: bool | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Regret:
    """A share, 0.05 for 5 %: over the best schedule that was found, and over the proven bound of
    the model.

    None where the optimum takes no time at all.
    """

    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One message under a setting; latencies in µs, sizes in bytes."""

    message_bytes: int
    size_bytes: int
    fragments: int
    latency_us: float
    best_us: float
    lower_bound_us: float
    best_repeat_bytes: int | None
    best_repeat_us: float | None
    regret: Regret


@dataclass(frozen=True, slots=True)
class PricedSetting:
    """A setting and its regret over the workload: of the total `time` of its messages, in the
    `mean` of them, and of the `worst`, where it is greatest.

    No message that was looked at has a regret above `worst_at_most`, where that is known.
    """

    steps: tuple[SettingStep, ...]
    mean: Regret
    worst: AuditRow
    worst_at_most: float | None = None
    time: Regret | None = None


@dataclass(frozen=True, slots=True)
class AuditedWorkload:
    """The messages that total times and means are over, in words, and how many they are."""

    words: str
    sizes: int


@dataclass(frozen=True, slots=True)
class Audit:
    """What a setting costs over the optimum, and what to change.

    `best_size_steps` is None where the configuration's library takes one size only; `is_kept` says
    whether the setting keeps `max_regret`, in `in_draws` of the draws too where that was asked for.
    `uncertainty` is None where the errors of the costs are not known.
    """

    pipeline: Pipeline | None
    aggregate: Aggregate | None
    profile: ProfileRevision | None
    min_message_bytes: int
    max_message_bytes: int
    workload: AuditedWorkload
    objective: str
    setting: PricedSetting
    at_powers: tuple[AuditRow, ...]
    best_size: PricedSetting
    best_size_steps: PricedSetting | None
    best_repeats: float | None
    schedules_at_most: float | None
    max_regret: float | None
    over: str
    verdict: str | None
    is_kept: bool
    changes: tuple[str, ...]
    audit_ms: float
    warnings: tuple[Notice, ...]
    fit_warnings: tuple[Notice, ...] = ()
    worst_of: int = 0
    best_repeats_at_most: float | None = None
    in_draws: float | None = None
    uncertainty: SettingsInDraws | None = None
    best_repeats_time: Regret | None = None
    schedules_time_at_most: float | None = None
