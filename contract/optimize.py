"""POST /optimize: a message and what it crosses in, a schedule with a proof out."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar, TypeAlias, get_args

from .constraints import ConstraintsIn, ConstraintsOut
from .declare import Input, Output, asked, exactly_one, output, sent
from .fit import FitOut
from .in_flight import InFlightOut, LimitOut
from .items import (
    BestCapOut,
    CurrentCapOut,
    FillIn,
    FillOut,
    ItemsIn,
    ItemsLimitOut,
    ItemsOut,
    SetItemsOut,
)
from .limits import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S, MAX_ASKED_ROWS
from .notices import NoticeOut
from .pipeline import AggregateOut, PipelineOut
from .profile import ProfileRevisionOut
from .rules import (
    RULE_MEANS,
    STATUS_MEANS,
    Bytes,
    DeliveryRule,
    ProfileName,
    Share,
    Status,
    Strategy,
    TimeLimitS,
)
from .sensitivities import SensitivitiesOut
from .source import SOURCES, SourceIn
from .transfers import TransferIn, TransfersIn, TransfersOut
from .uncertainty import SetThisOut, UncertaintyIn, UncertaintyOut


class OptimizeIn(SourceIn):
    """A message, where its pipeline comes from, and how to cut it. Own `transfers` of this message
    decide in the place of the pipeline; without one they stand alone, with the size in use,
    `uncertainty.current`. `items` in the place of `message_bytes` are a message that may be cut
    between them alone.
    """

    schema_rules: ClassVar = {
        "allOf": [
            {"oneOf": [*exactly_one(*SOURCES), exactly_one("transfers", *SOURCES)[0]]},
            {"oneOf": exactly_one("message_bytes", "items")},
        ]
    }
    max_members: ClassVar[int] = Input.max_members + len(fields(TransferIn)) * MAX_ASKED_ROWS

    message_bytes: Bytes | None = asked(
        "size of the message, bytes; null: `items` are given",
        help="size of the message",
        default=None,
        unit="bytes",
        option="--bytes",
        metavar="SIZE",
        is_required=True,
        page="message",
        label="Message size",
    )
    strategy: Strategy = asked(
        "the algorithm that chooses the cut; auto: the best of those that hold here",
        help=f"one of {', '.join(get_args(Strategy))} (default auto)",
        default="auto",
        option="--strategy",
        metavar="NAME",
        label="Strategy",
        choices=tuple((name, name.replace("_", " ")) for name in get_args(Strategy)),
    )
    static_bytes: Bytes | None = asked(
        "the size that the strategy static repeats, bytes",
        help="with strategy static",
        default=None,
        unit="bytes",
        option="--static-bytes",
        metavar="SIZE",
        page="static_size",
        label="Size of mine to repeat",
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
        page="may_refragment",
        label="stages may cut anew (refragmentation)",
    )
    relative_gap: Share = asked(
        "the gap to the optimum of this model that suffices, a share",
        help="gap to the optimum of this model that suffices (1e-6)",
        default=DEFAULT_RELATIVE_GAP,
        unit="number",
        option="--relative-gap",
        also="--gap",
        metavar="GAP",
        label="Proven of this model to within, as 0.01 % or 0.0001",
    )
    time_limit_s: TimeLimitS = asked(
        "time limit of the search, s",
        help="default 10",
        default=DEFAULT_TIME_LIMIT_S,
        unit="number",
        option="--time-limit",
        metavar="SECONDS",
        page="time_limit",
        label="Time limit, s",
    )
    save_as: ProfileName | None = asked(
        "the name of a profile under which the stages are stored; null: they are not",
        help="store the stages under this name",
        default=None,
        option="--save-as",
        metavar="PROFILE",
        label="Save as profile",
        hint="optional",
    )
    uncertainty: UncertaintyIn | None = asked(
        "the setting in use, and over which draws of the costs the answer is looked at",
        default=None,
        block=UncertaintyIn,
    )
    transfers: TransfersIn | None = asked(
        "own transfers of this message, which decide in the place of the model",
        default=None,
        block=TransfersIn,
    )
    items: ItemsIn | None = asked(
        "in the place of message_bytes: what the message may be cut between, in their order",
        default=None,
    )
    fill: FillIn | None = asked(
        "with items: how a program fills fragments up to a cap; null: until", default=None
    )


@output
class BestFixedOut(Output):
    """The best single size for a library that repeats one size."""

    size_bytes: int = sent("the size, bytes")
    fragments: int = sent("number of fragments that it makes")
    latency_us: float = sent("latency of the message cut by it, µs")


@output
class BaselineOut(Output):
    """One other setting by `name`; `declined` says why where the limits forbid its cut.

    `default_bytes` is what the system of this name comes with, as `source` says, and `parameter`
    what it is set by; `static_bytes` is that, rounded up to the alignment. Where the message goes
    in one piece and was timed so, `measured_us` is what it took, and `latency_us` no more than
    that. They and `name` are null in answers of earlier versions.
    """

    strategy: Strategy = sent("the strategy that makes its cut")
    static_bytes: int | None = sent("the size that is repeated, bytes; null: another cut")
    latency_us: float | None = sent("latency of its cut, µs; null: the limits forbid it")
    fragments: int | None = sent("number of fragments; null: the limits forbid it")
    declined: str | None = sent("why the limits forbid its cut; null where they do not")
    name: str | None = sent("what it is called; null in answers of earlier versions", default=None)
    default_bytes: int | None = sent(
        "the size that the system of this name comes with, bytes; null: it is no system's",
        default=None,
    )
    parameter: str | None = sent(
        "what that size is set by in the system; null: it is no system's", default=None
    )
    source: str | None = sent(
        "where that default is published; null: it is no system's", default=None
    )
    measured_us: float | None = sent(
        "what the message in one piece was measured to take, µs; null: it was not, or is cut",
        default=None,
    )


@output
class BestSoFarOut(Output):
    """The best schedule that a job has found, with the bound proven so far of this model."""

    strategy: Strategy = sent("the strategy that gave it")
    message_bytes: int = sent("size of the message, bytes")
    fragment_bytes: tuple[int, ...] = sent("the fragments in their order, bytes")
    fragments: int = sent("number of fragments")
    latency_us: float = sent("latency of the cut, µs")
    unrounded_latency_us: float | None = sent(
        "latency of the real-valued cut before rounding, µs; null: there is none"
    )
    lower_bound_us: float = sent("proven so far of this model: no cut takes less, µs")
    relative_gap: float = sent("how far the latency is at most above the bound, as a share of that")
    rounding_gap: float | None = sent(
        "what whole bytes and alignment add, a share of the bound; null: no real-valued cut"
    )
    status: Status = sent(STATUS_MEANS)
    limited_by: str | None = sent("which limit the cut stands at; null: at none")
    levels: tuple[tuple[int, ...], ...] | None = sent(
        "the fragments of each stage, bytes, where stages cut differently; else null"
    )
    latency_paper_us: float | None = sent(
        "the latency in the convention of Wang98, section 5.5, µs; null but of hierarchical ones"
    )


@output
class OptimizeOut(Output):
    """A schedule with a proof, of this model, of how good it is. Times in µs, sizes in whole bytes.

    One of `pipeline` and `aggregate` is null. Of an aggregate no stage is known to be the
    bottleneck, and `latency_us` is the most that any pipeline with these costs can take.
    `uncertainty` is null where the costs' errors are not known, `sensitivities` of an aggregate and
    of very many fragments, `set_this` where no size can be repeated, and all three in answers of
    earlier versions.
    """

    id: str = sent("the identifier under which the answer is stored")
    created_at: str = sent("when it was stored, in UTC, as RFC 3339")
    strategy: Strategy = sent("the strategy that gave the cut")
    message_bytes: int = sent("size of the message, bytes")
    fragment_bytes: tuple[int, ...] = sent("the fragments in their order, bytes")
    fragments: int = sent("number of fragments")
    latency_us: float = sent("latency of the cut, µs; of an aggregate the most that it can be")
    unrounded_latency_us: float | None = sent(
        "latency of the real-valued cut before rounding, µs; null: there is none"
    )
    lower_bound_us: float = sent("proven of this model: no cut takes less, µs")
    relative_gap: float = sent("how far the latency is at most above the bound, as a share of that")
    rounding_gap: float | None = sent(
        "what whole bytes and alignment add, a share of the bound; null: no real-valued cut"
    )
    status: Status = sent(STATUS_MEANS)
    limited_by: str | None = sent("which limit the cut stands at; null: at none")
    levels: tuple[tuple[int, ...], ...] | None = sent(
        "the fragments of each stage, bytes, where stages cut differently; else null"
    )
    latency_paper_us: float | None = sent(
        "the latency in the convention of Wang98, section 5.5, µs; null but of hierarchical ones"
    )
    bottleneck_stage: int | None = sent(
        "the stage that takes longest, by its place from 0; null of an aggregate"
    )
    best_fixed: BestFixedOut | None = sent(
        "the best single size for a library that repeats one; null: none can be repeated"
    )
    baselines: tuple[BaselineOut, ...] = sent("what other settings take, to compare with")
    constraints: ConstraintsOut = sent("the limits that the cut respects")
    allow_refragmentation: bool = sent(
        "whether stages were allowed to reassemble fragments, or cut them again"
    )
    pipeline: PipelineOut | None = sent("the stages that the message crosses; null of an aggregate")
    aggregate: AggregateOut | None = sent("all stages together; null of a pipeline")
    fit: FitOut | None = sent("the fit that was asked about, or made; null of other costs")
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does"
    )
    solve_ms: float = sent("what the search took, ms")
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")
    uncertainty: UncertaintyOut | None = sent(
        "how sure the answer is; null where the costs' errors are not known", default=None
    )
    sensitivities: SensitivitiesOut | None = sent(
        "how the latency moves with the costs; null of an aggregate, and of very many fragments",
        default=None,
    )
    set_this: SetThisOut | None = sent(
        "the size to set where a library repeats one; null: none can be repeated", default=None
    )

    @property
    def model(self) -> PipelineOut | AggregateOut:
        """What the message crosses: the one of `pipeline` and `aggregate` that is there."""
        found = self.pipeline or self.aggregate
        assert found is not None
        return found

    @property
    def is_fitted(self) -> bool:
        """Whether the costs are known to be those of a fit."""
        of_fit = self.uncertainty is not None and self.uncertainty.source == "fit"
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


@output
class StageDeliveryOut(Output):
    """What to set in one stage, and how many pulses that makes; `busy_us` is what they take of it.

    `threshold_bytes` goes with the rule `eager`, `pulse_bytes` with `static`.
    """

    stage: int = sent("the stage by its place, from 0")
    rule: DeliveryRule = sent(RULE_MEANS)
    threshold_bytes: int | None = sent("with eager: no smaller pulse but the last, bytes")
    pulse_bytes: int | None = sent("with static: the size of each pulse, bytes")
    max_pulse_bytes: int | None = sent("with eager: no larger pulse, bytes; null: no limit")
    pulses: int = sent("how many pulses that makes")
    busy_us: float = sent("how long they occupy the stage, µs")


@output(kw_only=True)
class DeliveredOptimizeOut(OptimizeOut):
    """An answer of `eager` or `pulses`: stages choose their pulses. No other has these fields.

    `ideal_us` is the limit of cut-through, each byte passed on as it comes; `store_and_forward_us`
    that of whole messages; `sustained_mb_per_s` what back-to-back messages reach at most, null
    where no stage takes any time.
    """

    delivery: tuple[StageDeliveryOut, ...] = sent("what to set in each stage")
    ideal_us: float = sent("what cut-through takes at best, each byte passed on as it comes, µs")
    store_and_forward_us: float = sent("what the message takes whole, µs")
    sustained_mb_per_s: float | None = sent(
        "what back-to-back messages reach at most, MB/s; null: no stage takes any time"
    )


@output(kw_only=True)
class MachineOptimizeOut(OptimizeOut):
    """An answer whose stages have lanes, delays, processors or windows. No other has these
    fields.
    """

    in_flight: InFlightOut = sent("lanes and places: given, in use, and enough")
    period_us: float = sent("the time between two fragments of a message without end, µs")
    limit: LimitOut = sent("what sets this pace")


@output(kw_only=True)
class ItemsOptimizeOut(OptimizeOut):
    """An answer about a message that is cut between items alone. No other has these fields.

    It compares the cut with one cap alone: `best_fixed`, `set_this` and `sensitivities` are null,
    and there are no `baselines`. `uncertainty` is of caps: its sizes are those.
    """

    items: ItemsOut = sent("the items, in their order")
    fill: FillOut = sent("how a program fills fragments up to a cap")
    fragment_items: tuple[int, ...] = sent("how many items each fragment holds, in their order")
    set_items: SetItemsOut = sent("what to set: a list of caps, or one cap")
    best_cap: BestCapOut | None = sent("the best single cap; null: the limits admit none")
    current: CurrentCapOut | None = sent("what the cap in use takes; null: none was given")
    limit: ItemsLimitOut = sent("what most of the latency is")


StoredOptimizeOut: TypeAlias = (
    OptimizeOut | DeliveredOptimizeOut | MachineOptimizeOut | ItemsOptimizeOut
)
AnyOptimizeOut: TypeAlias = StoredOptimizeOut | TransfersOut
