"""POST /compare: messages and strategies in, what each gives out."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from .constraints import ConstraintsIn, ConstraintsOut
from .declare import Output, asked, exactly_one, output, rule, sent
from .items import FILL_MEANS, FillIn, FillName, FillOut, ItemsIn, ItemsOut
from .limits import (
    DEFAULT_RELATIVE_GAP,
    DEFAULT_TIME_LIMIT_S,
    MAX_COMPARED,
    NUM_STRATEGIES,
)
from .notices import NoticeOut
from .pipeline import AggregateOut, PipelineOut
from .profile import ProfileRevisionOut
from .rules import STATUS_MEANS, Bytes, Share, Status, Strategy, TimeLimitS
from .source import SOURCES, SourceIn

Messages = Annotated[list[Bytes], rule(min_length=1, max_length=MAX_COMPARED, fail_fast=True)]
Strategies = Annotated[
    list[Strategy], rule(min_length=1, max_length=NUM_STRATEGIES, fail_fast=True)
]
Caps = Annotated[list[Bytes], rule(min_length=1, max_length=MAX_COMPARED, fail_fast=True)]
ItemWayName: TypeAlias = Literal[
    "exact",
    "best_cap_until",
    "best_cap_before",
    "one_fragment",
    "one_item_each",
    "cap",
    "pytorch_default",
]


class CompareIn(SourceIn):
    """What to compare: strategies on messages, or with `items` the ways to cut between them.
    `time_limit_s` is for the entire table.
    """

    schema_rules: ClassVar = {
        "allOf": [
            {"oneOf": exactly_one(*SOURCES)},
            {"oneOf": exactly_one("message_bytes", "items")},
            {"oneOf": exactly_one("strategies", "items")},
        ]
    }

    message_bytes: Messages | None = asked(
        "sizes of the messages, bytes; null: `items` are given",
        help="message sizes",
        default=None,
        unit="bytes",
        option="--bytes",
        metavar="SIZE",
        is_repeated=True,
        takes_several=True,
        is_required=True,
    )
    strategies: Strategies | None = asked(
        "the strategies, in the order in which the rows have them; null: `items` are given",
        help="separated by commas",
        default=None,
        unit="strategies",
        option="--strategies",
        metavar="NAMES",
    )
    static_bytes: Bytes | None = asked(
        "the size that the strategy static repeats, bytes",
        help="with strategy static",
        default=None,
        unit="bytes",
        option="--static-bytes",
        metavar="SIZE",
    )
    constraints: ConstraintsIn = asked(
        "limits of fragments", default=ConstraintsIn(), block=ConstraintsIn
    )
    allow_refragmentation: bool = asked(
        "whether stages may reassemble fragments, or cut them again",
        help="stages may reassemble or cut again",
        default=False,
        option="--allow-refragmentation",
        mark=True,
    )
    relative_gap: Share = asked(
        "the gap to the optimum of this model that suffices, a share",
        help="gap to the optimum of this model that suffices (1e-6)",
        default=DEFAULT_RELATIVE_GAP,
        unit="number",
        option="--relative-gap",
        also="--gap",
        metavar="GAP",
    )
    time_limit_s: TimeLimitS = asked(
        "time limit of the entire table, s",
        help="default 10",
        default=DEFAULT_TIME_LIMIT_S,
        unit="number",
        option="--time-limit",
        metavar="SECONDS",
    )
    items: ItemsIn | None = asked(
        "in the place of message_bytes and strategies: what the message may be cut between",
        default=None,
    )
    fill: FillIn | None = asked(
        "with caps_bytes: how fragments are filled up to them; null: until", default=None
    )
    caps_bytes: Caps | None = asked(
        "with items: caps to price besides, bytes; the rows have them in this order",
        help="with --items: caps to price",
        default=None,
        unit="bytes",
        option="--cap",
        metavar="SIZE",
        is_repeated=True,
        takes_several=True,
    )


@output
class CompareRowOut(Output):
    """One strategy on one message size. `chosen` is the strategy that `auto` took.

    Where time ended its search (`status`), more of it finds a latency of `lower_bound_us` at least.
    It is `excess_at_least` to `excess_at_most` (shares) above the best of the message's rows; the
    two differ where time ended a search, and null is without a bound. `serial_us` is what the cut
    takes if stages work one after another, null where it is known whether they do. `declined` says
    why there is no answer; the other fields are then null.
    """

    message_bytes: int = sent("size of the message, bytes")
    strategy: Strategy = sent("the strategy that was asked for")
    chosen: Strategy | None = sent("the strategy that gave the cut: another one of auto alone")
    latency_us: float | None = sent("latency of the cut, µs")
    lower_bound_us: float | None = sent("proven of this model: no cut takes less, µs")
    relative_gap: float | None = sent(
        "how far the latency is at most above the bound, as a share of that"
    )
    fragments: int | None = sent("number of fragments")
    largest_fragment_bytes: int | None = sent("size of the largest fragment, bytes")
    status: Status | None = sent(STATUS_MEANS)
    declined: str | None = sent("why there is no answer; null where there is one")
    # Comparisons kept before have none of these.
    excess_at_least: float | None = sent(
        "how far it is at least above the best of the message's rows, a share", default=None
    )
    excess_at_most: float | None = sent(
        "how far it is at most above that, a share; null: without a bound", default=None
    )
    serial_us: float | None = sent(
        "what the cut takes if stages work one after another, µs; null where it is known whether "
        "they do",
        default=None,
    )


@output
class CompareOut(Output):
    """Rows by message size, then in the order of the strategies asked for.

    One of `pipeline` and `aggregate` is null.
    """

    pipeline: PipelineOut | None = sent("the stages that messages cross; null of an aggregate")
    aggregate: AggregateOut | None = sent("all stages together; null of a pipeline")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    rows: tuple[CompareRowOut, ...] = sent(
        "a row for each message and strategy, in the order of both"
    )

    @property
    def said(self) -> tuple[NoticeOut, ...]:
        """What is said of the model that was compared on, which may be nothing."""
        return ()


@output
class VerifiedCompareOut(CompareOut):
    """A comparison of which there is more to say: `warnings` are what was measured for or against
    the profile, and what the model takes for granted of its stages.
    """

    warnings: tuple[NoticeOut, ...] = sent(
        "what was measured for or against the profile, and what the model takes for granted"
    )

    @property
    def said(self) -> tuple[NoticeOut, ...]:
        """What is said of the model that was compared on."""
        return self.warnings


@output
class ItemsCompareRowOut(Output):
    """One way of cutting between items. Shares are above the best of the rows.

    A row without an answer says why in `declined`; what is of its cut is then null.
    """

    way: ItemWayName = sent(
        "exact: the best cut; best_cap_until, best_cap_before: the best layout of one cap by this "
        "rule; one_fragment; one_item_each; cap: of a given cap; pytorch_default: 25 MiB, the "
        "first fragment 1 MiB"
    )
    rule: FillName | None = sent(f"of caps alone: {FILL_MEANS}; null: no cap")
    first_bytes: int | None = sent(
        "the cap of the first fragment, bytes; null: as the others, or no cap"
    )
    from_bytes: int | None = sent("the least cap that makes this cut, bytes; null: no cap")
    to_bytes: int | None = sent(
        "the greatest cap that makes it, bytes; null: no cap, or any greater one makes it too"
    )
    fragments: int | None = sent("number of fragments")
    largest_fragment_bytes: int | None = sent("size of the largest fragment, bytes")
    latency_us: float | None = sent("latency of the cut, µs")
    lower_bound_us: float | None = sent(
        "of exact alone, proven of this model: no cut takes less, µs"
    )
    relative_gap: float | None = sent(
        "of exact alone: how far the latency is at most above the bound, as a share of that"
    )
    status: Status | None = sent(f"of exact alone: {STATUS_MEANS}")
    excess_at_least: float | None = sent(
        "how far it is at least above the best of the rows, a share"
    )
    excess_at_most: float | None = sent(
        "how far it is at most above that, a share; more only where time ended a search; null: "
        "without a bound"
    )
    declined: str | None = sent("why there is no answer; null where there is one")


@output
class ItemsCompareOut(Output):
    """Ways of cutting a message between items, in the order of `way`."""

    message_bytes: int = sent("size of the message, bytes")
    pipeline: PipelineOut = sent("the stages that the message crosses")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    items: ItemsOut = sent("the items, in their order")
    fill: FillOut = sent("how given caps are filled")
    constraints: ConstraintsOut = sent("the limits that were kept")
    rows: tuple[ItemsCompareRowOut, ...] = sent("a row for each way, and for each given cap")
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")


# A field that is only there where it is set: bodies of others stay as they were.
AnyCompareOut: TypeAlias = VerifiedCompareOut | CompareOut | ItemsCompareOut
