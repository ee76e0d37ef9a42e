"""POST /layer-costs: what a messaging layer's software costs, and what features would save."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .constraints import ConstraintsOut
from .declare import Input, Output, asked, documented, output, rule, sent
from .layer import (
    PUBLISHED_LAYERS,
    Cycles,
    End,
    LayerGiven,
    LayerOut,
    NetworkFeature,
    PacketWords,
    Service,
)
from .limits import (
    DEFAULT_RELATIVE_GAP,
    DEFAULT_TIME_LIMIT_S,
    MAX_CLOCK_MHZ,
    MAX_LAYER_MESSAGES,
    MAX_PACKET_SIZES,
    MAX_STAGES,
    NETWORK_FEATURES,
)
from .notices import NoticeOut
from .pipeline import PipelineOut, StageIn
from .profile import ProfileRevisionOut
from .rules import STATUS_MEANS, Bytes, OverheadUs, ProfileName, Share, Status, TimeLimitS

StageMapping: TypeAlias = Literal["packet", "transfer"]
Handshake: TypeAlias = Literal["overlapped", "blocking"]
Features = Annotated[list[NetworkFeature], rule(max_length=len(NETWORK_FEATURES))]
_LISTED = 2_000  # characters of sizes, counts and prices
ClockMhz = Annotated[float, rule(gt=0.0, le=MAX_CLOCK_MHZ), documented(description="MHz")]


class LayerCostsIn(Input):
    """A layer by name or as a document, messages, and what is wanted of them.

    `cycles` add to the layer's own or take their place, class by class. `features` None: each that
    would remove something. The largest of `packet_words` bounds the packets that are chosen with
    the mapping `packet`. `between` are the stages between both ends. With `tune` each message is
    cut anew for each set of features; `time_limit_s` is for all of them. `save_as` stores the
    stages of the layer as it is.
    """

    layer: LayerGiven = asked(
        "a published layer's name, or a layer as a document",
        help="a published one, as cmam-finite, or a document's file",
        metavar="LAYER",
        label="A published one",
        offers=tuple((name, name) for name in PUBLISHED_LAYERS),
        is_source=True,
    )
    cycles: Cycles | None = asked(
        "cycles of an instruction, by class; they replace the layer's own, class by class",
        help="of an instruction, as reg=1,mem=1,dev=5",
        default=None,
        unit="prices",
        option="--cycles",
        metavar="CYCLES",
        label="Cycles of an instruction",
        hint="reg=1,mem=1,dev=5",
        max_characters=_LISTED,
    )
    clock_mhz: ClockMhz | None = asked(
        "the clock of the processors, MHz; null: no times, and no stages",
        help="as 33MHz",
        default=None,
        unit="clock",
        option="--clock",
        metavar="CLOCK",
        page="clock",
        label="Clock of the processors",
        hint="33 MHz",
    )
    message_bytes: Annotated[
        list[Bytes], rule(min_length=1, max_length=MAX_LAYER_MESSAGES, fail_fast=True)
    ] = asked(
        "sizes of the messages, bytes",
        help="message sizes",
        unit="sizes",
        option="--bytes",
        metavar="SIZE",
        takes_several=True,
        is_required=True,
        page="bytes",
        label="Sizes, as 64, 4 KiB or 64..4 KiB",
        hint="64, 4 KiB",
        max_characters=_LISTED,
    )
    features: Features | None = asked(
        "what a network may do itself; null: each that would remove something",
        help=", ".join(NETWORK_FEATURES) + " (all)",
        default=None,
        unit="features",
        option="--features",
        metavar="NAMES",
        label="Features of the network",
        offers=(
            ("all", "each and all"),
            *((name, name.replace("_", " ")) for name in NETWORK_FEATURES),
            ("none", "none"),
        ),
    )
    packet_words: Annotated[
        list[PacketWords], rule(max_length=MAX_PACKET_SIZES, fail_fast=True)
    ] = asked(
        "other sizes of packets to count at, words; the largest bounds packets that are chosen",
        help="other packets, as 4,16 or 4..128",
        default_factory=list,
        unit="counts",
        option="--packet-words",
        metavar="COUNTS",
        label="Other packets, in words",
        hint="4..128",
        max_characters=_LISTED,
    )
    mapping: StageMapping = asked(
        "what a fragment is: one packet, or one transfer of several",
        help="a fragment is a packet or a transfer",
        default="packet",
        option="--mapping",
        metavar="NAME",
        label="A fragment is",
        choices=(("packet", "a packet"), ("transfer", "a transfer")),
    )
    handshake: Handshake = asked(
        "whether the trips before a later transfer's data overlap with earlier ones, or block",
        help="overlapped (default) or blocking",
        default="overlapped",
        option="--handshake",
        metavar="NAME",
    )
    between: Annotated[list[StageIn], rule(max_length=MAX_STAGES - 2, fail_fast=True)] = asked(
        "the stages between both ends, in their order",
        help="stages between both ends",
        default_factory=list,
        option="--between",
        metavar="FILE",
    )
    wire_us: OverheadUs = asked(
        "one trip from end to end, µs",
        help="one-way trip",
        default=0.0,
        unit="time",
        option="--wire",
        metavar="TIME",
        page="wire",
        label="One-way trip",
        hint="0 µs",
    )
    out_of_order: Share | None = asked(
        "the share of packets that arrive out of order; null: as the layer was counted",
        help="packets out of order, as counted",
        default=None,
        unit="share",
        option="--out-of-order",
        metavar="SHARE",
    )
    tune: bool = asked(
        "whether each message is cut anew for each set of features",
        help="cut anew with each set of features",
        default=False,
        option="--tune",
        mark=True,
        label="Choose fragments anew",
    )
    relative_gap: Share = asked(
        "the gap to the optimum that suffices of each cut", default=DEFAULT_RELATIVE_GAP
    )
    time_limit_s: TimeLimitS = asked(
        "time limit of all cuts together, s",
        help="default 10",
        default=DEFAULT_TIME_LIMIT_S,
        unit="number",
        option="--time-limit",
        metavar="SECONDS",
        page="time_limit",
        label="Time to solve, s",
        begins_with="10",
    )
    save_as: ProfileName | None = asked(
        "the profile that the stages of the layer as it is are stored as",
        help="store the stages under this name",
        default=None,
        option="--save-as",
        metavar="PROFILE",
    )


# --- costs, out -----------------------------------------------------------------------------------


@output
class LayerStagesOut(Output):
    """The stages of the layer as it is, for POST /optimize with these constraints.

    `last_fragment_us_at_most` bounds by how much the software of the last fragment, at both ends
    together, may take longer than the stages say, µs.
    """

    pipeline: PipelineOut = sent("the stages, in the form that requests have")
    constraints: ConstraintsOut = sent("the limits under which they hold")
    last_fragment_us_at_most: float = sent(
        "how much longer the software of the last fragment may take than the stages say, at both "
        "ends together, µs at most"
    )


@output
class FeatureStagesOut(Output):
    """The stages on a network that has these features."""

    features: tuple[NetworkFeature, ...] = sent("what the network does itself")
    pipeline: PipelineOut = sent("the stages, in the form that requests have")
    constraints: ConstraintsOut = sent("the limits under which they hold")


@output
class ServiceCostOut(Output):
    """What one service does at one end for a message; its shares of all instructions and cycles."""

    service: Service = sent("what users get")
    end: End = sent("where it is executed")
    counts: dict[str, float] = sent("instructions by class")
    instructions: float = sent("instructions of all classes")
    cycles: float | None = sent("cycles of these; null: the cycles of an instruction are not known")
    us: float | None = sent("processor time, µs; null: no clock is given")
    share_of_instructions: float = sent("its share of all instructions of the message")
    share_of_cycles: float | None = sent("its share of all cycles of the message")


@output
class FullPacketsOut(Output):
    """The work of a message whose packets are all full, as the formulas of the paper count."""

    words: int = sent("words of the message if its last packet were full")
    instructions: float = sent("instructions at both ends")
    cycles: float | None = sent("cycles of these; null: the cycles of an instruction are not known")


@output
class PacketSizeOut(Output):
    """The work of a message in packets of this many words; the overhead is all but the base."""

    packet_words: int = sent("words of data in a packet")
    packets: int = sent("packets of the message")
    instructions: float = sent("instructions at both ends")
    cycles: float | None = sent("cycles of these; null: the cycles of an instruction are not known")
    overhead_of_instructions: float = sent("the share of instructions that is not the base service")
    overhead_of_cycles: float | None = sent("the share of cycles that is not the base service")


@output
class BestCutOut(Output):
    """The best cut of a message with its bound, µs; `declined` says why there is none."""

    latency_us: float | None = sent("latency of the best cut, µs")
    lower_bound_us: float | None = sent("what no cut beats, proven of this model, µs")
    relative_gap: float | None = sent("the gap between both, as a share of the bound")
    fragments: int | None = sent("number of fragments")
    largest_fragment_bytes: int | None = sent("size of the largest fragment, bytes")
    status: Status | None = sent(STATUS_MEANS)
    declined: str | None = sent("why there is no cut; null where there is one")


@output
class FeatureSavingOut(Output):
    """What a network with these features saves of a message: work, and latency in µs.

    Work is `instructions`, `cycles` and `us`, and their shares of all. `old_cut_us` is the latency
    of the cut that is best without them, `best` the best cut with them; the differences to the best
    latency without are `saved_at_old_cut_us` and `saved_us`. All null where nothing was tuned.
    """

    features: tuple[NetworkFeature, ...] = sent("what the network does itself")
    instructions: float = sent("instructions that are saved")
    cycles: float | None = sent("cycles of these; null: the cycles of an instruction are not known")
    us: float | None = sent("processor time of these, µs; null: no clock is given")
    share_of_instructions: float = sent("the share of all instructions of the message")
    share_of_cycles: float | None = sent("the share of all cycles of the message")
    old_cut_us: float | None = sent("latency with these features of the cut best without them, µs")
    best: BestCutOut | None = sent("the best cut with these features")
    saved_at_old_cut_us: float | None = sent("what is saved with the same fragments, µs")
    saved_us: float | None = sent("what is saved with fragments chosen anew, µs")


@output
class MessageCostsOut(Output):
    """One message: its units, its work by service and end, savings, and its best cut.

    `full_packets` is there where its last packet is not full (`partial_packet`).
    """

    message_bytes: int = sent("size of the message, bytes")
    words: int = sent("its words")
    packets: int = sent("its packets")
    acknowledgements: int = sent("acknowledgements of its packets")
    partial_packet: bool = sent("whether its last packet is not full")
    counts: dict[str, float] = sent("instructions at both ends, by class")
    instructions: float = sent("instructions at both ends")
    cycles: float | None = sent("cycles of these; null: the cycles of an instruction are not known")
    us: float | None = sent("processor time of these, µs; null: no clock is given")
    overhead_of_instructions: float = sent("the share of instructions that is not the base service")
    overhead_of_cycles: float | None = sent("the share of cycles that is not the base service")
    services: tuple[ServiceCostOut, ...] = sent(
        "each service at each end: source, then destination"
    )
    full_packets: FullPacketsOut | None = sent("the work if its last packet were full")
    packet_sizes: tuple[PacketSizeOut, ...] = sent("the work in packets of other sizes")
    best: BestCutOut | None = sent("its best cut with the layer as it is; null: nothing was tuned")
    savings: tuple[FeatureSavingOut, ...] = sent("what each set of features saves")


@output
class LayerCostsOut(Output):
    """What a messaging layer costs. `stages` is null without a clock, or where there is no
    pipeline; `profile` is where they were stored.
    """

    layer: LayerOut = sent("the layer that was asked about")
    cycles: dict[str, float] | None = sent("cycles of an instruction, by class, as they were used")
    clock_mhz: float | None = sent("the clock of the processors, MHz")
    mapping: StageMapping = sent("what a fragment is: one packet, or one transfer of several")
    handshake: Handshake = sent(
        "whether the trips before a later transfer's data overlap with earlier ones, or block"
    )
    stages: LayerStagesOut | None = sent(
        "the stages of the layer as it is; null: there is no clock, or no pipeline"
    )
    with_features: tuple[FeatureStagesOut, ...] = sent("the stages with each set of features")
    messages: tuple[MessageCostsOut, ...] = sent("each message, in the order asked")
    assumptions: tuple[str, ...] = sent("what the stages rest on")
    profile: ProfileRevisionOut | None = sent("where the stages were stored")
    warnings: tuple[NoticeOut, ...] = sent("what to beware of")
