"""POST /thresholds: messages and sizes to try in; latencies by threshold or pulse size out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Output, asked, output, rule, sent
from .limits import (
    DEFAULT_THRESHOLDS_LIMIT_S,
    MAX_EVALUATIONS,
    MAX_STAGES,
    MAX_TRIED_MESSAGES,
)
from .notices import NoticeOut
from .pipeline import PipelineOut
from .profile import ProfileRevisionOut
from .rules import Bytes, TimeLimitS
from .source import SourceIn

Places = Annotated[
    list[Annotated[int, rule(ge=0, lt=MAX_STAGES, is_whole=True)]],
    rule(min_length=1, max_length=MAX_STAGES, fail_fast=True),
]
TriedSizes = Annotated[list[Bytes], rule(min_length=1, max_length=MAX_EVALUATIONS, fail_fast=True)]
Messages = Annotated[list[Bytes], rule(min_length=1, max_length=MAX_TRIED_MESSAGES, fail_fast=True)]
TriedRule: TypeAlias = Literal["static", "eager"]


class ThresholdsIn(SourceIn):
    """Stages, wherever their costs come from, messages, and the sizes to try as thresholds or as
    static pulses.

    All stages have the same size, or those named in `stages` vary independently of each other and
    the others take whatever has arrived. Without `sizes`, powers of two up to the largest message.
    """

    message_bytes: Messages = asked(
        "sizes of the messages, bytes",
        help="messages, as 8KiB or 1KiB..256KiB",
        unit="sizes",
        option="--bytes",
        metavar="SIZES",
        is_required=True,
        page="message",
        label="Message",
        hint="8 KiB",
        begins_with="8 KiB",
    )
    rule: TriedRule = asked(
        "whether stages take whatever has arrived, a threshold at least, or pulses of one size",
        help="or static",
        default="eager",
        option="--rule",
        metavar="NAME",
        label="Stages take",
        choices=(
            ("eager", "whatever is there, a threshold at least"),
            ("static", "pulses of one size"),
        ),
    )
    stages: Places | None = asked(
        "places from 0 of the stages whose sizes vary independently; null: all have the same size",
        help="those that vary by themselves, from 0, as 1,2 (all have the same size)",
        default=None,
        unit="places",
        option="--stages",
        metavar="STAGES",
        label="Stages that vary by themselves, from 0",
        hint="all have the same size, or 1,2",
    )
    sizes: TriedSizes | None = asked(
        "sizes to try, bytes; null: powers of two up to the largest message",
        help="to try, as 128..8KiB (powers of two)",
        default=None,
        unit="sizes",
        option="--sizes",
        metavar="SIZES",
        label="Sizes to try",
        hint="powers of two, or 128..8KiB",
    )
    time_limit_s: TimeLimitS = asked(
        "time limit of the pricing, s",
        help="default 10",
        default=DEFAULT_THRESHOLDS_LIMIT_S,
        unit="number",
        option="--time-limit",
        metavar="SECONDS",
    )


@output
class MessageThresholdsOut(Output):
    """One message. `latencies_us` are those of `choices`, in their order, null where not priced.

    `best_bytes` is the best of the choices, null where none was priced; `ideal_us` the limit of
    cut-through, each byte passed on as it comes; `lower_bound_us` is proven of this model, for
    every cut of every stage. `serial_us` is what the best choice takes if stages work one after
    another, null where it is known whether they do.
    """

    message_bytes: int = sent("size of the message, bytes")
    latencies_us: tuple[float | None, ...] = sent(
        "latencies of the choices, in their order, µs; null where not priced"
    )
    best_bytes: tuple[int, ...] | None = sent(
        "the best of the choices, a size for each of `stages`, or one for all, bytes; null: none "
        "was priced"
    )
    best_us: float | None = sent("its latency, µs; null: none was priced")
    store_and_forward_us: float = sent("what the message takes whole, µs")
    ideal_us: float = sent("what cut-through takes at best, each byte passed on as it comes, µs")
    lower_bound_us: float = sent("proven of this model: no cut of any stage takes less, µs")
    serial_us: float | None = sent(
        "what the best choice takes if stages work one after another, µs; null where it is known "
        "whether they do",
        default=None,
    )


@output
class OneChoiceOut(Output):
    """The choice of least mean regret over the messages; regrets are above the best of choices."""

    sizes_bytes: tuple[int, ...] = sent(
        "the choice: a size for each of `stages`, or one for all, bytes"
    )
    mean_regret: float = sent(
        "its mean regret over the messages, a share above the best of the choices"
    )
    max_regret: float = sent("its greatest regret, a share above the best of the choices")
    worst_message_bytes: int = sent("the message of that, bytes")


@output
class ThresholdsOut(Output):
    """Latencies by threshold or pulse size. A choice has one size for each of `stages`, or where
    that is null one for all.

    `one` is null where no choice was priced for every message. `cut_off` says that time ended
    before all were priced.
    """

    rule: TriedRule = sent("what was tried: eager, thresholds, or static, sizes of pulses")
    stages: tuple[int, ...] | None = sent(
        "places from 0 of the stages that vary independently; null: all have the same size"
    )
    choices: tuple[tuple[int, ...], ...] = sent(
        "the choices: a size for each of `stages`, or one for all, bytes"
    )
    messages: tuple[MessageThresholdsOut, ...] = sent("each message, in the order of the question")
    one: OneChoiceOut | None = sent(
        "the choice of least mean regret; null: none was priced for every message"
    )
    cut_off: bool = sent("whether time ended before all were priced")
    pipeline: PipelineOut = sent("the stages that messages cross")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")
