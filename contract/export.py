"""Exports to libraries' configurations: what is asked of one, the targets there are, the text."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, documented, output, rule, sent
from .limits import (
    DEFAULT_AUDIT_LIMIT_S,
    DIGEST_RULE,
    MAX_AUDIT_LIMIT_S,
    MAX_AUDIT_WORKLOAD_SIZES,
    MAX_EXPORT_OPTIONS,
)
from .profile import ProfileRevisionOut
from .rules import Bytes
from .setting import SettingStepOut
from .settings_in_draws import SettingsInDrawsOut
from .workload import Objective

Takes: TypeAlias = Literal["one_size", "size_steps", "costs", "table"]
ExportTimeLimitS = Annotated[
    float, rule(gt=0.0, le=MAX_AUDIT_LIMIT_S), documented(description="of the solves")
]
Weighted = Annotated[str, rule(max_length=48, pattern=r"^[0-9]{1,15}:[0-9.eE+-]{1,32}$")]
TargetOption = Annotated[str, rule(max_length=200, pattern="^[a-z_]{1,32}:.+$")]


class ExportIn(Input):
    """The messages, by their range or a workload, and what the sizes are chosen for; limits, and
    options.
    """

    min_message_bytes: Bytes | None = asked(
        "the smallest message, bytes; null: of the workload or the table, or 1 KiB",
        help="smallest message (1 KiB)",
        default=None,
        unit="bytes",
        option="--min-message",
        metavar="SIZE",
        page="min_message",
        label="Messages from",
        hint="1 KiB",
    )
    max_message_bytes: Bytes | None = asked(
        "the largest message, bytes; null: of the workload or the table, or 16 MiB",
        help="largest (16 MiB)",
        default=None,
        unit="bytes",
        option="--max-message",
        metavar="SIZE",
        page="max_message",
        label="to",
        hint="16 MiB",
    )
    workload: Annotated[tuple[Weighted, ...], rule(max_length=MAX_AUDIT_WORKLOAD_SIZES)] = asked(
        "message_bytes:weight, in place of a range",
        help="lines SIZE WEIGHT, in place of a range of messages",
        default=(),
        unit="weights",
        option="--workload",
        metavar="FILE",
        file="workload.txt",
        is_long=True,
        label="Or a workload: a size and a weight a line",
        hint="64KiB 3",
    )
    objective: Objective | None = asked(
        "what is least: total time, mean or worst regret; null: time of a workload, mean over a "
        "range",
        help="what is least: total time (default with --workload), mean (else) or worst regret",
        default=None,
        option="--objective",
        metavar="NAME",
        label="What is to be least",
        choices=(
            ("", "total time of a workload, mean regret of a range"),
            ("time", "total time"),
            ("mean", "mean regret"),
            ("worst", "worst regret"),
        ),
    )
    min_fragment_bytes: Bytes | None = asked(
        "the least size of a fragment, bytes; null: no limit, or the table's",
        help="least size of a fragment",
        default=None,
        unit="bytes",
        option="--min-fragment-bytes",
        metavar="SIZE",
        page="min",
        label="At least",
        hint="1 B",
    )
    max_fragment_bytes: Bytes | None = asked(
        "the greatest size of a fragment, bytes; null: no limit, or the table's",
        help="greatest size of a fragment",
        default=None,
        unit="bytes",
        option="--max-fragment-bytes",
        metavar="SIZE",
        page="max",
        label="At most",
        hint="no limit",
    )
    alignment_bytes: Bytes | None = asked(
        "all fragments but the last are multiples of it, bytes; null: 1, or the table's",
        help="all fragments but the last are multiples",
        default=None,
        unit="bytes",
        option="--alignment-bytes",
        metavar="SIZE",
        page="align",
        label="Multiples of",
        hint="1 B",
    )
    max_fragments: Bytes | None = asked(
        "the greatest number of fragments; null: no limit but the service's, or the table's",
        help="most fragments",
        default=None,
        unit="whole",
        option="--max-fragments",
        metavar="COUNT",
        label="Most fragments",
        hint="no limit",
    )
    option: Annotated[tuple[TargetOption, ...], rule(max_length=MAX_EXPORT_OPTIONS)] = asked(
        "name:value, an option of the target",
        help="an option of the target; may be repeated",
        default=(),
        unit="option",
        option="--option",
        metavar="NAME=VALUE",
        is_repeated=True,
    )
    time_limit_s: ExportTimeLimitS = asked(
        "time limit of the solves, s",
        help="default 30",
        default=DEFAULT_AUDIT_LIMIT_S,
        unit="number",
        option="--time-limit",
        metavar="SECONDS",
    )


class ExportQueryIn(ExportIn):
    """The same of a stored profile, in a query, and the table that the export is written by."""

    table: Annotated[str, rule(pattern=f"^{DIGEST_RULE}$")] | None = asked(
        "a compiled table, not the active one", default=None
    )


# --- the targets ----------------------------------------------------------------------------------


@output
class ExportSizesOut(Output):
    """The sizes that a target takes: inclusive limits, multiples of one, or powers of two alone."""

    min_bytes: int = sent("the smallest size, bytes")
    max_bytes: int = sent("the largest size, bytes")
    multiple_of: int = sent("sizes are multiples of it, bytes")
    is_power_of_two: bool = sent("whether sizes are powers of two alone")


@output
class ExportOptionOut(Output):
    """An option. Without `choices` its value is any text that matches `pattern`."""

    name: str = sent("what the option is called")
    default: str = sent("its value where none is given")
    meaning: str = sent("what it means")
    choices: tuple[str, ...] = sent("the values that it takes; empty: any that match `pattern`")
    pattern: str = sent("the regular expression of its values; empty where there are `choices`")


@output
class ExportTargetOut(Output):
    """A target. `takes` is `one_size`, `size_steps`, `costs` or `table`.

    `verified_by` is the program that reads it back in the tests, with its version; null where none
    does, and then the text says so itself. `is_audited` says whether such a text can be audited.
    """

    name: str = sent("what requests call it")
    title: str = sent("what people call it")
    takes: Takes = sent(
        "one_size: one size for all messages; size_steps: a size for each range; costs: the costs "
        "of the stages; table: a compiled table"
    )
    suffix: str = sent("the suffix of its file")
    media_type: str = sent("the media type of its text")
    verified_by: str | None = sent(
        "the program that reads it back in the tests, with its version; null: none does"
    )
    grammar: str = sent("the document that its syntax follows")
    is_audited: bool = sent("whether such a text can be audited")
    sizes: ExportSizesOut | None = sent("the sizes that it takes; null: it takes none")
    options: tuple[ExportOptionOut, ...] = sent("its options")


@output
class ExportTargetsOut(Output):
    """Every target, in the order of their names."""

    items: tuple[ExportTargetOut, ...] = sent("the targets, in the order of their names")


# --- an export, out -------------------------------------------------------------------------------


@output(kw_only=True)
class ComparedSettingOut(Output):
    """A setting beside the one that an export has: its regrets over the same messages, as shares:
    of their total time, in the mean and at worst.

    Null is without a bound; `time_regret` also of exports that were kept before it was told.
    """

    steps: tuple[SettingStepOut, ...] = sent("the setting, by message size")
    time_regret: float | None = sent(
        "regret of the total time, as a share; null: without a bound", default=None
    )
    mean_regret: float | None = sent("mean regret, as a share; null: without a bound")
    worst_regret: float | None = sent("worst regret, as a share; null: without a bound")


@output(kw_only=True)
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

    steps: tuple[SettingStepOut, ...] = sent("the sizes, by message size")
    objective: Objective | None = sent("what is least of them", default=None)
    time_regret: float | None = sent(
        "regret of the total time, as a share; null: without a bound", default=None
    )
    time_at_most: float | None = sent(
        "the same over any schedules, at most; null: without a bound", default=None
    )
    mean_regret: float | None = sent("mean regret, as a share; null: without a bound")
    mean_at_most: float | None = sent("the same over any schedules, at most; null: without a bound")
    worst_regret: float | None = sent("worst regret, as a share; null: without a bound")
    worst_at_most: float | None = sent(
        "the same over any schedules, at most; null: without a bound"
    )
    # false, and null, in exports that were kept before
    is_partial: bool = sent("whether time ended the searches", default=False)
    default: ComparedSettingOut | None = sent(
        "what the library does by itself; null: that has no price", default=None
    )
    wanted: ComparedSettingOut | None = sent(
        "what would be chosen if the library took every size that the limits admit", default=None
    )


@output
class ExportedOut(Output):
    """A profile as a library's configuration: the text, and what a file of it is called.

    `chosen` is null where no sizes were chosen for it, `uncertainty` where the errors of the costs
    are not known. `is_gain_known` says whether the sizes are known to cost less than the library's
    default; `warnings` are what the text begins with.
    """

    profile: ProfileRevisionOut | None = sent("the revision that it is of; null: of no profile")
    target: str = sent("the target, as requests call it")
    file_name: str = sent("what a file of it is called")
    media_type: str = sent("the media type of the text")
    text: str = sent("the configuration, in the target's own syntax")
    chosen: ChosenOut | None = sent("the sizes that were chosen for it; null: none were")
    # null in exports that were kept before
    uncertainty: SettingsInDrawsOut | None = sent(
        "how sure the sizes are; null: the errors of the costs are not known", default=None
    )
    is_gain_known: bool | None = sent(
        "whether the sizes are known to cost less than the library's default", default=None
    )
    warnings: tuple[str, ...] = sent("what the text begins with", default=())
