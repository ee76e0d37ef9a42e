"""POST /audit: a setting and its hardware in, what it costs over the optimum of the model out."""

from __future__ import annotations

from math import isnan, nan
from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, echoed, output, rule, sent
from .items import (
    BestCapOut,
    FillIn,
    FillOut,
    ItemsIn,
    ItemsLimitOut,
    ItemsOut,
    SetItemsOut,
)
from .limits import (
    DEFAULT_AUDIT_LIMIT_S,
    MAX_ALLOWED_REGRET,
    MAX_AUDIT_LIMIT_S,
    MAX_AUDIT_SEQUENCES,
)
from .notices import NoticeOut
from .pipeline import AggregateOut, PipelineOut
from .profile import ProfileRevisionOut
from .rules import STATUS_MEANS, Bytes, Status
from .setting import ConfiguredIn, SettingIn, SettingStepOut
from .settings_in_draws import SettingsInDrawsOut
from .source import SourceIn
from .uncertainty import DrawsIn
from .workload import Objective, Weight, WorkloadList

Reference: TypeAlias = Literal["best", "bound"]
Verdict: TypeAlias = Literal["within", "above", "between"]
ItemAdvice: TypeAlias = Literal["keep", "set"]


class SequenceIn(Input):
    """Items of one message, and how often it is sent; weights may have any sum above 0."""

    items: ItemsIn = asked("what the message may be cut between, in their order")
    weight: Weight = asked("how often it is sent, beside the others", default=1.0)


SequenceList = Annotated[
    list[SequenceIn], rule(min_length=1, max_length=MAX_AUDIT_SEQUENCES, fail_fast=True)
]


class AuditIn(SourceIn):
    """A setting, the pipeline it is for, and the messages that count.

    With `items`, or several `sequences` of them, the setting is a cap in use: `static_bytes`, or
    `whole` for all items in one fragment.

    Without a `workload` every octave of the range counts the same, and the `objective` is the mean
    regret; with one it is the total time of its messages. A range that is left out is the
    workload's, or 1 KiB to 16 MiB; below a largest message of less than 1 KiB, from 1 byte.
    """

    setting: SettingIn = asked(
        "the setting: one size, whole messages, a size for each range, or a configuration",
        help="512KiB, whole, or steps as 1:whole,64KiB:512KiB",
        unit="setting",
        option="--setting",
        metavar="SETTING",
        label="A size, “whole”, or steps by message size",
        hint="512 KiB",
        is_long=True,
        block=ConfiguredIn,
    )
    min_message_bytes: Bytes | None = asked(
        "the smallest message, bytes; null: of the workload, or 1 KiB",
        help="smallest message (1 KiB)",
        default=None,
        unit="bytes",
        option="--min-message",
        metavar="SIZE",
        page="min_message",
        label="From",
        hint="1 KiB",
    )
    max_message_bytes: Bytes | None = asked(
        "the largest message, bytes; null: of the workload, or 16 MiB",
        help="largest (16 MiB)",
        default=None,
        unit="bytes",
        option="--max-message",
        metavar="SIZE",
        page="max_message",
        label="to",
        hint="16 MiB",
    )
    workload: WorkloadList | None = asked(
        "the messages and their weights; null: every octave of the range counts the same",
        help="lines SIZE WEIGHT (default log-uniform)",
        default=None,
        unit="workload",
        option="--workload",
        metavar="FILE",
        file="workload.txt",
        label="A workload of your own: a size and a weight a line",
        hint="64KiB 3",
        is_long=True,
    )
    objective: Objective | None = asked(
        "what counts: the total time of the messages, their mean regret, or the worst of them; "
        "null: time of a workload, mean over a range",
        help="what counts: total time (default with --workload), mean (else) or worst regret",
        default=None,
        option="--objective",
        metavar="NAME",
        label="What counts",
        choices=(
            ("", "total time of a workload, mean regret of a range"),
            ("time", "total time"),
            ("mean", "mean regret"),
            ("worst", "worst regret"),
        ),
    )
    max_regret: Annotated[float, rule(ge=0.0, le=MAX_ALLOWED_REGRET)] | None = asked(
        "the regret that is allowed, a share: 0.05 is 5 %; null: no limit",
        help="exit with 7 above this, as 5%",
        default=None,
        unit="share",
        option="--max-regret",
        metavar="SHARE",
        label="Allowed regret, as 5 % or 0.05",
        hint="no limit, or 5 %",
    )
    over: Reference = asked(
        "what the regret is of where a limit is to be kept: over the best schedule found, or over "
        "the proven bound of this model",
        help="what decides: best (default)",
        default="best",
        option="--over",
        metavar="NAME",
        label="Who decides",
        choices=(("best", "the best found"), ("bound", "the proven bound of this model")),
    )
    in_draws: Annotated[float, rule(gt=0.0, le=1.0)] | None = asked(
        "the share of the draws of the costs in which the limit is to be kept too; null: in none",
        help="and above it in more draws, as 95%",
        default=None,
        unit="share",
        option="--in-draws",
        metavar="SHARE",
        needs="max_regret",
    )
    time_limit_s: Annotated[float, rule(gt=0.0, le=MAX_AUDIT_LIMIT_S)] = asked(
        "time limit of the searches, s",
        help="default 30",
        default=DEFAULT_AUDIT_LIMIT_S,
        unit="seconds",
        option="--time-limit",
        metavar="SECONDS",
        page="time_limit",
        label="Time to solve, s",
        begins_with=f"{DEFAULT_AUDIT_LIMIT_S:g}",
    )
    uncertainty: DrawsIn | None = asked(
        "over which draws of the costs the setting is looked at; null: by their known errors",
        default=None,
        block=DrawsIn,
    )
    items: ItemsIn | None = asked(
        "in the place of messages: what one message may be cut between; setting is the cap in use",
        default=None,
    )
    sequences: SequenceList | None = asked(
        "the same of several messages, and how often each is sent", default=None
    )
    fill: FillIn | None = asked(
        "with items or sequences: how a program fills fragments up to the cap; null: until",
        default=None,
    )


@output
class SpanOut(Output):
    """A regret as a share: over the best schedule found, and over the proven bound of the
    model.

    Null where the optimum takes no time at all.
    """

    at_least: float | None = sent("over the best schedule found, a share")
    at_most: float | None = sent("over the proven bound of this model, a share")


@output
class AuditRowOut(Output):
    """One message under the setting. Latencies in µs, delay included; sizes in bytes."""

    message_bytes: int = sent("size of the message, bytes")
    size_bytes: int = sent("the size that it repeats, bytes; its own where it is sent whole")
    fragments: int = sent("number of fragments")
    latency_us: float = sent("what it takes under the setting, µs")
    best_us: float = sent("what the best schedule found takes, µs")
    lower_bound_us: float = sent("proven of this model: no cut takes less, µs")
    best_repeat_bytes: int | None = sent("the best size to repeat, bytes; null: none is known")
    best_repeat_us: float | None = sent("what that takes, µs; null: none is known")
    regret: SpanOut = sent("what the setting costs more")


@output(kw_only=True)
class PricedOut(Output):
    """A setting and its regret: that of the total `time` of the workload, the `mean` of its
    messages, and the `worst` of them. `time` is null of audits that were kept before it was told.

    No message that was looked at has a regret above `worst_at_most`; null is without a bound.
    """

    steps: tuple[SettingStepOut, ...] = sent("the setting by message size, ascending")
    time: SpanOut | None = sent(
        "regret of the total time of the workload; null of audits kept by earlier versions",
        default=None,
    )
    mean: SpanOut = sent("mean regret of its messages")
    worst: AuditRowOut = sent("the message of the worst regret that was found")
    worst_at_most: float | None = sent(
        "no message that was looked at has a greater regret, a share; null: without a bound",
        default_factory=lambda: nan,  # of audits kept before
    )

    @property
    def worst_span(self) -> SpanOut:
        """The worst regret as far as it is known; of audits kept before, that of its message."""
        found, at_most = self.worst.regret, self.worst_at_most
        is_known = at_most is None or not isnan(at_most)
        return SpanOut(found.at_least, at_most) if is_known else found


@output
class AuditWorkloadOut(Output):
    """What the means are over."""

    words: str = sent("the workload in words")
    sizes: int = sent("how many message sizes it has")


@output
class AuditOut(Output):
    """What a setting costs over the optimum of the model. Regrets are shares: 0.05 is 5 %.

    `worst_of` is how many message sizes each `worst` was looked for among. `best_repeats_time` and
    `best_repeats` are the regrets of the total time and the mean one of the best repeated size of
    each message, the latter over any schedules at most `best_repeats_at_most`. Any schedules take
    less total time than the best found by at most `schedules_time_at_most`, less in the mean by
    `schedules_at_most`. `best_size_steps` is null where the configuration's library takes one size
    only.
    """

    pipeline: PipelineOut | None = sent("the stages that messages cross; null of an aggregate")
    aggregate: AggregateOut | None = sent("all stages together; null of a pipeline")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    min_message_bytes: int = echoed("the smallest message, bytes")
    max_message_bytes: int = echoed("the largest message, bytes")
    workload: AuditWorkloadOut = sent("what the means are over")
    worst_of: int = sent("how many message sizes each worst regret was looked for among")
    objective: Objective = sent("what is held against the limit, and advised for")
    setting: PricedOut = sent("the setting and its regret")
    at_powers: tuple[AuditRowOut, ...] = sent("the messages of powers of two under it")
    best_size: PricedOut = sent("the best single size for all messages")
    best_size_steps: PricedOut | None = sent(
        "the best size for each range; null where the library takes one size only"
    )
    best_repeats: float | None = sent(
        "mean regret of the best repeated size of each message, a share; null: not known"
    )
    schedules_at_most: float | None = sent(
        "how much less any schedules take in the mean at most, a share; null: without a bound"
    )
    max_regret: float | None = echoed("the regret that is allowed, a share; null: no limit")
    over: Reference = sent("what the regret is of where the limit is to be kept")
    verdict: Verdict | None = sent(
        "within, the limit is kept even over the bound; above, it is not even over the best found; "
        "between, `over` decides; null: no limit"
    )
    is_kept: bool = sent("whether the limit is kept, or none is asked for")
    changes: tuple[str, ...] = sent("what to change, in words")
    audit_ms: float = sent("what the audit took, ms")
    fit_warnings: tuple[NoticeOut, ...] = sent("what the fit of the costs warns of")
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")
    # Audits kept before have none of these.
    best_repeats_at_most: float | None = sent(
        "the same of `best_repeats` over any schedules at most, a share; null: without a bound",
        default=None,
    )
    in_draws: float | None = echoed(
        "the share of draws in which the limit is to be kept; null: in none", default=None
    )
    uncertainty: SettingsInDrawsOut | None = sent(
        "the setting over draws of the costs; null where their errors are not known", default=None
    )
    best_repeats_time: SpanOut | None = sent(
        "regret of the total time of the best repeated size of each message; null: not known",
        default=None,
    )
    schedules_time_at_most: float | None = sent(
        "how much less total time any schedules take at most, a share; null: without a bound",
        default=None,
    )

    @property
    def repeats_span(self) -> SpanOut:
        """The mean regret of a lookup as far as it is known."""
        at_most = self.best_repeats_at_most
        return SpanOut(self.best_repeats, self.best_repeats if at_most is None else at_most)


# --- caps of items --------------------------------------------------------------------------------


@output
class BucketOut(Output):
    """One fragment that the cap in use makes. Times in µs from the start of the message."""

    first_item: str = sent("its first item, by its name or its number from 1")
    last_item: str = sent("its last item")
    items: int = sent("number of items")
    bytes: int = sent("size of the fragment, bytes")
    ready_us: float = sent("when all its items are ready, µs")
    begins_us: float = sent("when it enters the first stage, µs")
    done_us: float = sent("when the last stage has done it, µs; the pipeline's delay is left out")


@output
class AuditedItemsOut(Output):
    """One sequence under the cap in use. Latencies in µs, delay included."""

    items: ItemsOut = sent("the items, in their order")
    weight: float = sent("how often it is sent, beside the others")
    message_bytes: int = sent("size of the message, bytes")
    latency_us: float = sent("what it takes under the cap in use, µs")
    buckets: tuple[BucketOut, ...] = sent("the fragments that the cap in use makes, in their order")
    limit: ItemsLimitOut = sent("what most of the time under the cap in use is")
    best_us: float = sent("what the best cut found takes, µs")
    lower_bound_us: float = sent("proven of this model: no cut takes less, µs")
    status: Status = sent(STATUS_MEANS)
    fragment_items: tuple[int, ...] = sent("the best cut: how many items each fragment holds")
    set_items: SetItemsOut = sent("what to set for this sequence")
    best_cap: BestCapOut | None = sent(
        "the best layout of one cap for this sequence; null: there is none"
    )
    regret: SpanOut = sent("what the cap in use costs more")


@output
class CapRegretsOut(Output):
    """Regrets of one cap over all sequences, as shares."""

    time: SpanOut = sent("regret of the total time of all sequences")
    mean: SpanOut = sent("mean of the sequences' regrets")
    worst: SpanOut = sent("the worst of the sequences' regrets")


@output
class AdvisedCapOut(Output):
    """The best cap of all sequences together, and all caps that cut each of them alike."""

    from_bytes: int = sent("the least cap, bytes")
    to_bytes: int | None = sent("the greatest cap, bytes; null: any greater one does")
    cap_mb: float = sent("one of them in MiB, of the fewest decimals")
    regret: CapRegretsOut = sent("what it costs over the best cuts")
    layouts: int = sent("how many caps with layouts of their own were looked at")
    is_complete: bool = sent("whether these are all that there are")


@output
class ItemsAuditOut(Output):
    """What a cap in use costs over the best cut of items, and what to set. Regrets are shares."""

    pipeline: PipelineOut = sent("the stages that the items cross")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    cap_bytes: int | None = sent("the cap in use, bytes; null: all items in one fragment")
    fill: FillOut = sent("how fragments are filled up to it")
    objective: Objective = sent("what is held against the limit, and advised for")
    setting: CapRegretsOut = sent("what the cap in use costs over the best cuts")
    best_cap: AdvisedCapOut | None = sent("the best cap of all sequences; null: there is none")
    sequences: tuple[AuditedItemsOut, ...] = sent("each sequence under the cap in use")
    max_regret: float | None = sent("the regret that is allowed, a share; null: no limit")
    over: Reference = sent("what the regret is of where the limit is to be kept")
    verdict: Verdict | None = sent(
        "within, the limit is kept even over the bound; above, it is not even over the best found; "
        "between, `over` decides; null: no limit"
    )
    is_kept: bool = sent("whether the limit is kept, or none is asked for")
    advice: ItemAdvice = sent("keep: nothing gains 0.1 % or more; set: what `changes` say")
    changes: tuple[str, ...] = sent("what to set, in words")
    audit_ms: float = sent("what the audit took, ms")
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")


AnyAuditOut: TypeAlias = AuditOut | ItemsAuditOut
