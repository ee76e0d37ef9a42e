"""POST /hide: a message and a calculation in; run times, fragments and limits of hiding out."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from .constraints import ConstraintsIn, ConstraintsOut
from .declare import Input, Output, asked, by_type, echoed, exactly_one, one_of, output, rule, sent
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
from .limits import (
    DEFAULT_RELATIVE_GAP,
    DEFAULT_TIME_LIMIT_S,
    MAX_CALCULATION_US,
    MAX_EXPONENT,
    MAX_HIDDEN_MESSAGES,
    MAX_OVERHEAD,
    MAX_PROCESSES,
    MAX_STAGES,
)
from .notices import NoticeOut
from .pipeline import PipelineOut
from .profile import ProfileRevisionOut
from .rules import STATUS_MEANS, Bytes, Name, Positive, Share, Status, TimeLimitS
from .source import SOURCES, SourceIn

Microseconds = Annotated[float, rule(ge=0.0, le=MAX_CALCULATION_US)]
Processes = Annotated[int, rule(ge=1, le=MAX_PROCESSES, is_whole=True)]
Place = Annotated[int, rule(ge=0, lt=MAX_STAGES, is_whole=True)]
StageAt = Annotated[int | str, one_of(by_type(str, "named", "given"), given=Place, named=Name)]
StagesAt = Annotated[tuple[StageAt, ...], rule(max_length=MAX_STAGES, fail_fast=True)]
MessagesAre: TypeAlias = Literal["serial", "train"]
Exchange: TypeAlias = Literal["one_way", "both_ways"]
Communication: TypeAlias = Literal["constant", "sqrt", "linear", "exponent"]
Reference: TypeAlias = Literal["calculation", "same", "own"]
Regime: TypeAlias = Literal["fully_hidden", "communication_bound", "loss"]
SOURCES_OF_HIDING = (*SOURCES, "granularity")


class ProcessesIn(Input):
    """Which numbers of processes; the calculation asked about is that of each of `at` ones."""

    min_processes: Processes = asked("the least number of processes", default=1)
    max_processes: Processes = asked(
        "the greatest number of processes; curves go from the least one to it",
        help="curves from 1 to so many",
        unit="whole",
        option="--processes",
        metavar="COUNT",
        page="processes",
        label="Speed-up for 1 to so many processes",
        hint="as 1000",
    )
    at: Processes = asked("the number that the calculation is that of each of", default=1)
    communication: Communication = asked(
        "how the number of messages of each process grows with the number of processes, p",
        help="how messages grow with processes: constant (default), sqrt, linear",
        default="constant",
        option="--communication",
        metavar="NAME",
        needs="processes",
        label="Messages of more processes",
        choices=(
            ("constant", "constant"),
            ("sqrt", "as their square root"),
            ("linear", "as their number"),
        ),
    )
    exponent: Annotated[float, rule(ge=0.0, le=MAX_EXPONENT)] | None = asked(
        "with the communication `exponent`", default=None
    )
    speedup_reference: Reference = asked(
        "what the run time on p processes is compared with", default="calculation"
    )


class GranularityIn(Input):
    """The paper's terms: instructions per byte, of the software and that a byte takes to be sent;
    `overhead` is what hiding adds, relative to the calculation.
    """

    software: Positive = asked(
        "instructions per byte of the software",
        help="granularity of the software, no SOURCE",
        unit="number",
        option="--software",
        metavar="RATIO",
    )
    hardware: Positive = asked(
        "instructions per byte that the hardware takes to send it",
        help="granularity of the hardware, no SOURCE",
        unit="number",
        option="--hardware",
        metavar="RATIO",
    )
    overhead: Annotated[float, rule(ge=0.0, le=MAX_OVERHEAD)] = asked(
        "what hiding adds, relative to the calculation",
        help="with these: of hiding",
        default=0.0,
        unit="number",
        option="--overhead",
        metavar="RATIO",
    )


class HostStagesIn(Input):
    """Stages, by name or place from 0, that run on the processor which calculates."""

    sender: StagesAt = asked(
        "stages, by name or place from 0, on the processor where the sender calculates",
        help="runs on the sender's calculating processor; may be repeated",
        default=(),
        unit="stage",
        option="--sender-stage",
        metavar="STAGE",
        is_repeated=True,
        label="Sender's own stages",
        hint="none, or 0, 1",
    )
    receiver: StagesAt = asked(
        "stages, by name or place from 0, on the processor where the receiver calculates",
        help="runs on the receiver's calculating processor; may be repeated",
        default=(),
        unit="stage",
        option="--receiver-stage",
        metavar="STAGE",
        is_repeated=True,
        label="Receiver's own stages",
        hint="none, or 3",
    )


class HideIn(SourceIn):
    """A message, what it crosses, and the calculation that it is hidden behind.

    Exactly one of `calculation_us`, and `instructions` with `instructions_per_us`; with
    `granularity` neither, since ratios are all that is asked about. With `items` fragments are runs
    of them, which leave while the rest is calculated: when each is ready, `ready_us`, is the
    calculation then, or `stage_us` of the name `calculation`, or one of those, shared by bytes.
    """

    schema_rules: ClassVar = {"oneOf": exactly_one(*SOURCES_OF_HIDING)}

    granularity: GranularityIn | None = asked(
        "ratios, in place of a pipeline", default=None, block=GranularityIn
    )
    constraints: ConstraintsIn = asked(
        "limits of fragments", default=ConstraintsIn(), block=ConstraintsIn
    )
    message_bytes: Bytes | None = asked(
        "size of the message, bytes",
        help="size of the message",
        default=None,
        unit="bytes",
        option="--bytes",
        metavar="SIZE",
        is_required=True,
        page="message",
        label="Message",
        hint="4 KiB",
        begins_with="4 KiB",
    )
    messages: Annotated[int, rule(ge=1, le=MAX_HIDDEN_MESSAGES, is_whole=True)] = asked(
        "how many messages of this size are sent in an iteration",
        help="one after the other (1)",
        default=1,
        unit="whole",
        option="--messages",
        metavar="COUNT",
    )
    messages_are: MessagesAre = asked(
        "whether each message waits for the one before it, or they follow right behind each other",
        help="right behind each other instead",
        default="serial",
        option="--train",
        mark="train",
    )
    calculation_us: Microseconds | None = asked(
        "the calculation of an iteration, µs",
        help="of an iteration, in µs",
        default=None,
        unit="number",
        option="--calculation",
        metavar="US",
        is_required=True,
        page="calculation",
        label="Calculation, µs",
        hint="120",
        begins_with="120",
    )
    instructions: Annotated[float, rule(ge=0.0, le=1e300)] | None = asked(
        "the calculation in instructions, in place of µs",
        help="instead of that",
        default=None,
        unit="number",
        option="--instructions",
        metavar="COUNT",
    )
    instructions_per_us: Positive | None = asked(
        "instructions that the processor does in a µs",
        help="of these",
        default=None,
        unit="number",
        option="--instructions-per-us",
        metavar="RATE",
    )
    hideable_fraction: Share = asked(
        "the share of the calculation that does not need the message",
        help="of the calculation (100%)",
        default=1.0,
        unit="share",
        option="--hideable-fraction",
        metavar="SHARE",
        page="hideable",
        label="Share that does not need the message",
        hint="100 %",
    )
    streamed: bool = asked(
        "whether fragments leave while the rest of the message is calculated",
        help="fragments leave while the rest is calculated",
        default=False,
        option="--streamed",
        mark=True,
        label="The rest produces the message, whose fragments leave while it goes on",
    )
    hiding_overhead_us: Microseconds = asked(
        "what hiding adds to the calculation, µs",
        help="what hiding adds, in µs",
        default=0.0,
        unit="number",
        option="--hiding-overhead",
        metavar="US",
    )
    host_stages: HostStagesIn = asked(
        "stages on the processor that calculates", default=HostStagesIn(), block=HostStagesIn
    )
    exchange: Exchange = asked(
        "whether processes send or receive at a time, or do both on the same processor",
        help="both ends are one processor",
        default="one_way",
        option="--both-ways",
        mark="both_ways",
        page="both_ways",
        label="Each process sends and receives: both are one processor",
    )
    min_gain: float | None = asked(
        "a gain; the answer says at which ratios of calculation to communication it is reached",
        help="show where it is reached",
        default=None,
        unit="number",
        option="--min-gain",
        metavar="GAIN",
        label="Where is this gain reached",
        hint="as 1.2",
    )
    processes: ProcessesIn | None = asked(
        "speed-ups by number of processes", default=None, block=ProcessesIn
    )
    relative_gap: Share = asked(
        "the gap to the optimum that suffices", default=DEFAULT_RELATIVE_GAP
    )
    time_limit_s: TimeLimitS = asked(
        "time limit of the search, s",
        help="default 10",
        default=DEFAULT_TIME_LIMIT_S,
        unit="number",
        option="--time-limit",
        metavar="SECONDS",
    )
    items: ItemsIn | None = asked(
        "in the place of message_bytes: what the message may be cut between, in their order",
        default=None,
    )
    fill: FillIn | None = asked(
        "with items: how a program fills fragments up to a cap; null: until", default=None
    )
    cap_bytes: Bytes | None = asked(
        "with items: the cap in use, bytes; null: none is compared with",
        help="with --items: the cap in use",
        default=None,
        unit="bytes",
        option="--current",
        metavar="SIZE",
    )
    fragment_overhead_us: Microseconds = asked(
        "with items: what each fragment costs the processor that calculates, µs",
        help="with --items: of each fragment, on the calculating processor, in µs",
        default=0.0,
        unit="number",
        option="--fragment-overhead",
        metavar="US",
    )
    loading: bool = asked(
        "with items: whether the calculation takes the items as they come, and does not make them",
        help="with --items: the calculation takes them, in place of making them",
        default=False,
        option="--loading",
        mark=True,
    )


HIDDEN_BEHIND = (  # what a table of hidden messages is asked for by, too
    "calculation_us",
    "hideable_fraction",
    "hiding_overhead_us",
    "host_stages",
    "exchange",
)


@output
class LatencyOptimalOut(Output):
    """The cut of least latency, its run time behind this calculation, and by what share more."""

    fragments: int = sent("number of fragments")
    latency_us: float = sent("its latency, µs")
    with_us: float = sent("its run time behind this calculation, µs")
    more_by: float = sent("by which share that is more than the best")


@output
class HiddenCountOut(Output):
    """One number of fragments that was tried: latency of all messages, the processor's part, and
    the run time with hiding; µs. `bound_us` is below the run time of every such cut, of this model.
    """

    fragments: int = sent("number of fragments")
    latency_us: float = sent("latency of all messages, µs")
    host_us: float = sent("the part of it that is the processor's, µs")
    with_us: float = sent("the run time with hiding, µs")
    bound_us: float = sent("no such cut has less run time, of this model, µs")


@output
class GammaWindowOut(Output):
    """Ratios of calculation to communication, c / T; `high` is null where it has no end."""

    low: float = sent("the least ratio of calculation to communication")
    high: float | None = sent("the greatest ratio; null: it has no end")


@output
class BestProcessesOut(Output):
    """The numbers of processes with the greatest speed-up without and with hiding, and gain."""

    without: int = sent("the number of processes of the greatest speed-up without hiding")
    hidden: int = sent("that of the greatest speed-up with hiding")
    gain: int = sent("that of the greatest gain")


@output
class ProcessPointOut(Output):
    """One number of processes: speed-ups without and with hiding, and the gain."""

    processes: int = sent("the number of processes")
    speedup: float = sent("the speed-up without hiding")
    hidden_speedup: float = sent("the speed-up with hiding")
    gain: float = sent("what hiding gains, as a factor")


@output
class HideOut(Output):
    """Run times without and with hiding, and the best fragments behind the calculation.

    Times in µs, sizes in whole bytes. `gain` is without_us / with_us, `gain_at_most` that over the
    proven bound of this model; `overhead` is what hiding adds relative to the calculation; `gamma`
    is the calculation over the communication (least latency), `window` where it gains `min_gain`.
    Of a `granularity` all that needs a pipeline is null.
    """

    gain: float = sent("run time without hiding over that with it")
    gain_at_most: float | None = sent(
        "the same over the proven bound of this model; null: not known"
    )
    max_gain: float | None = sent("the greatest gain of any message; null: not known")
    regime: Regime = sent(
        "fully_hidden, all communication is done behind the calculation; communication_bound, the "
        "calculation hides a part of it; loss, hiding takes longer than one after the other"
    )
    gamma: float | None = sent("calculation over communication; null: not known")
    window: GammaWindowOut | None = sent(
        "where that ratio gains `min_gain`; null: nowhere, or not asked for"
    )
    min_gain: float | None = echoed("the gain that was asked about; null: none")
    hideable_fraction: float = echoed("the share of the calculation that does not need the message")
    overhead: float | None = sent("what hiding adds, relative to the calculation; null: not known")
    best_processes: BestProcessesOut | None = sent(
        "the best numbers of processes; null: not asked for"
    )
    curve: tuple[ProcessPointOut, ...] = sent("speed-ups by number of processes")
    warnings: tuple[NoticeOut, ...] = sent("what a user must see beside the answer")
    message_bytes: int | None = sent(
        "size of the message, bytes; null of a granularity", default=None
    )
    messages: int | None = echoed("messages in an iteration; null of a granularity", default=None)
    messages_are: MessagesAre | None = sent(
        "serial, each waits for the one before it, or train; null of a granularity", default=None
    )
    calculation_us: float | None = echoed(
        "the calculation of an iteration, µs; null of a granularity", default=None
    )
    hiding_overhead_us: float | None = sent(
        "what hiding adds to the calculation, µs; null of a granularity", default=None
    )
    streamed: bool | None = echoed(
        "whether fragments leave while the rest is calculated; null of a granularity", default=None
    )
    exchange: Exchange | None = sent("one_way or both_ways; null of a granularity", default=None)
    without_us: float | None = sent(
        "run time without hiding, µs; null of a granularity", default=None
    )
    with_us: float | None = sent("run time with hiding, µs; null of a granularity", default=None)
    lower_bound_us: float | None = sent(
        "proven of this model: no cut has less run time, µs; null of a granularity", default=None
    )
    relative_gap: float | None = sent(
        "how far the run time is at most above the bound, a share; null of a granularity",
        default=None,
    )
    status: Status | None = sent(STATUS_MEANS, default=None)
    fragment_bytes: tuple[int, ...] | None = sent(
        "the fragments in their order, bytes; null of a granularity", default=None
    )
    fragments: int | None = sent("number of fragments; null of a granularity", default=None)
    latency_us: float | None = sent(
        "latency of all messages, µs; null of a granularity", default=None
    )
    host_us: float | None = sent(
        "the part of it that is the processor's, µs; null of a granularity", default=None
    )
    latency_optimal: LatencyOptimalOut | None = sent(
        "the cut of least latency; null of a granularity", default=None
    )
    calculation_for_full_hiding_us: float | None = sent(
        "the calculation that hides all of the communication, µs; null: none does", default=None
    )
    counts: tuple[HiddenCountOut, ...] = sent(
        "the numbers of fragments that were tried", default=()
    )
    constraints: ConstraintsOut | None = sent(
        "the limits that the cut respects; null of a granularity", default=None
    )
    pipeline: PipelineOut | None = sent(
        "the stages that the message crosses; null of a granularity", default=None
    )
    profile: ProfileRevisionOut | None = sent(
        "the revision of the profile that holds these costs; null where none does", default=None
    )


@output(kw_only=True)
class StoredHideOut(HideOut):
    """An answer as it is stored, and sent again for the same question."""

    id: str = sent("the identifier under which the answer is stored")
    created_at: str = sent("when it was stored, in UTC, as RFC 3339")


@output(kw_only=True)
class ItemsHideOut(StoredHideOut):
    """An answer about items. `with_us` is the run time of the cut; `hideable_fraction` is 0, since
    all of the calculation makes or takes items, and fragments are `streamed`.
    """

    items: ItemsOut = sent("the items, in their order")
    fill: FillOut = sent("how a program fills fragments up to a cap")
    loading: bool = sent("whether the calculation takes the items, and does not make them")
    fragment_overhead_us: float = sent("what each fragment costs the processor that calculates, µs")
    communication_us: float = sent(
        "what the communication takes one after the other, by its best cut, µs"
    )
    exposed_us: float = sent("what the run time is longer than the calculation, µs")
    hidden_share: float | None = sent(
        "the share of the communication that takes no time of its own; below 0 where hiding loses; "
        "null: there is none"
    )
    fragment_items: tuple[int, ...] = sent("how many items each fragment holds, in their order")
    set_items: SetItemsOut = sent("what to set")
    best_cap: BestCapOut | None = sent(
        "the best layout of one cap, by its run time; null: the limits admit none"
    )
    current: CurrentCapOut | None = sent("the run time of the cap in use; null: none is given")
    limit: ItemsLimitOut = sent("what most of the run time is")


AnyHideOut: TypeAlias = ItemsHideOut | StoredHideOut
