"""Messaging layers as documents: as they are given, as they were published, and as counted here."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, by_type, documented, one_of, output, rule, sent
from .limits import (
    CLASS_RULE,
    MAX_CLASS_COUNT,
    MAX_CLASSES,
    MAX_COMPONENTS,
    MAX_CROSSINGS,
    MAX_CYCLES,
    MAX_LAYER_SOURCE,
    MAX_NAME_LENGTH,
    MAX_PACKET_WORDS,
    MAX_PACKETS,
    MAX_WORD_BYTES,
)
from .notices import NoticeOut
from .rules import Name, Share

Service: TypeAlias = Literal["base", "buffering", "ordering", "reliability", "other"]
NetworkFeature: TypeAlias = Literal["in_order", "flow_control", "reliable_delivery"]
End: TypeAlias = Literal["source", "destination"]
Per: TypeAlias = Literal["transfer", "packet", "word", "acknowledgement"]
When: TypeAlias = Literal["before", "during", "after"]

# The names of those that are shipped, sorted.
PUBLISHED_LAYERS = ("cmam-finite", "cmam-indefinite", "cmam-single")
_NO_OTHER = documented(additionalProperties=False)  # names of another form
ClassName = Annotated[str, rule(pattern=f"^{CLASS_RULE}$")]
Instructions = Annotated[
    float, rule(ge=0.0, le=MAX_CLASS_COUNT), documented(description="instructions")
]
Counts = Annotated[dict[ClassName, Instructions], rule(max_length=MAX_CLASSES), _NO_OTHER]
Cycles = Annotated[
    dict[ClassName, Annotated[float, rule(ge=0.0, le=MAX_CYCLES)]],
    rule(max_length=MAX_CLASSES),
    documented(description="cycles of an instruction, by class"),
    _NO_OTHER,
]
PacketWords = Annotated[
    int, rule(ge=1, le=MAX_PACKET_WORDS, is_whole=True), documented(description="words")
]


# --- a layer, in ----------------------------------------------------------------------------------


class ComponentIn(Input):
    """Instructions that one end executes for each of something, in the name of one service."""

    name: Name = asked("what this part of the software is called")
    service: Service = asked("what it gives users beyond what the network delivers")
    end: End = asked("where it is executed")
    per: Per = asked("what its counts are for one of")
    when: When = asked("when it is executed, seen from the data of its transfer", default="during")
    counts: Counts = asked("instructions for one of `per`, by class of instruction")


class LayerIn(Input):
    """A messaging layer's software, as counted. `cycles` and `out_of_order` are its own figures."""

    name: Name = asked("what the layer is called")
    source: Annotated[str, rule(max_length=MAX_LAYER_SOURCE, pattern=r"^[^\u0000]*$")] = asked(
        "where the counts are from", default=""
    )
    word_bytes: Annotated[int, rule(ge=1, le=MAX_WORD_BYTES, is_whole=True)] = asked(
        "size of a word, bytes"
    )
    packet_words: PacketWords = asked("words of data in a packet")
    acknowledge_every: Annotated[int, rule(ge=1, le=MAX_PACKETS, is_whole=True)] = asked(
        "packets that share an acknowledgement", default=1
    )
    crossings_before: Annotated[int, rule(ge=0, le=MAX_CROSSINGS, is_whole=True)] = asked(
        "one-way trips before data may leave", default=0
    )
    cycles: Cycles = asked(
        "cycles of an instruction, by class, as its publication has them", default_factory=dict
    )
    out_of_order: Share | None = asked(
        "the share of packets out of order at which ordering was counted; null: it does not "
        "depend on it, or nobody says",
        default=None,
    )
    components: Annotated[
        list[ComponentIn], rule(min_length=1, max_length=MAX_COMPONENTS, fail_fast=True)
    ] = asked("the parts of the software, each with its counts")


LayerGiven = Annotated[
    str | LayerIn,
    one_of(
        by_type(str, "named", "given"),
        named=Annotated[str, rule(max_length=MAX_NAME_LENGTH)],
        given=LayerIn,
    ),
]


# --- layers, out ----------------------------------------------------------------------------------


@output
class ComponentOut(Output):
    """Instructions that one end executes for each of something, in the name of one service."""

    name: str = sent("what this part of the software is called")
    service: Service = sent("what it gives users beyond what the network delivers")
    end: End = sent("where it is executed")
    per: Per = sent("what its counts are for one of")
    when: When = sent("when it is executed, seen from the data of its transfer")
    counts: dict[str, float] = sent("instructions for one of `per`, by class of instruction")


@output
class LayerOut(Output):
    """A messaging layer in the form that requests have."""

    name: str = sent("what the layer is called")
    source: str = sent("where the counts are from")
    word_bytes: int = sent("size of a word, bytes")
    packet_words: int = sent("words of data in a packet")
    acknowledge_every: int = sent("packets that share an acknowledgement")
    crossings_before: int = sent("one-way trips before data may leave")
    cycles: dict[str, float] = sent(
        "cycles of an instruction, by class, as its publication has them"
    )
    out_of_order: float | None = sent(
        "the share of packets out of order at which ordering was counted; null: it does not "
        "depend on it, or nobody says"
    )
    components: tuple[ComponentOut, ...] = sent("the parts of the software, each with its counts")


@output
class DisagreementOut(Output):
    """Where a publication's text and its own tables differ: what is stated, and what they give."""

    section: str = sent("the section of the publication")
    says: str = sent("what its text says")
    stated: tuple[float, ...] = sent("the numbers that the text states")
    computed: tuple[float, ...] = sent("the numbers that its tables give, in the same order")
    how: str = sent("how they are computed of the tables")


@output
class PublishedLayerOut(Output):
    """A published layer, and where the text of its publication differs from its own tables."""

    layer: LayerOut = sent("the layer")
    disagreements: tuple[DisagreementOut, ...] = sent(
        "where the publication's text differs from its tables"
    )


@output
class LayerSummaryOut(Output):
    """A published layer in a list: the services that it provides, the features that remove some."""

    name: str = sent("what the layer is called")
    source: str = sent("where the counts are from")
    word_bytes: int = sent("size of a word, bytes")
    packet_words: int = sent("words of data in a packet")
    services: tuple[Service, ...] = sent("what its software provides")
    features: tuple[NetworkFeature, ...] = sent(
        "what a network may do itself, so that a service of these is not needed"
    )
    classes: tuple[str, ...] = sent("the classes of its instructions")


@output
class LayersOut(Output):
    """The published layers by name."""

    items: tuple[LayerSummaryOut, ...] = sent("the layers, in the order of their names")


# --- counts of an installed library ---------------------------------------------------------------


@output
class CountedCallOut(Output):
    """One send or receive: the least of its repetitions, and how many are identical to it.

    It is not `countable` where the middle of them is more than 1 % above the least: the call
    waited. `services` are instructions, by the names of functions alone.
    """

    end: End = sent("source: the send; destination: the receive")
    message_bytes: int = sent("size of the message, bytes")
    instructions: int = sent("instructions of the repetition with the fewest")
    data: int = sent("loads and stores of that repetition")
    identical: int = sent("repetitions with just as many instructions")
    repetitions: int = sent("repetitions that were counted")
    middle: float = sent("median of the instructions of all repetitions")
    countable: bool = sent(
        "whether the median is at most 1 % above the least: the call never waited"
    )
    services: dict[str, int] = sent("instructions by service, by the names of functions alone")


@output
class CountedLayerOut(Output):
    """The file that `layer count` writes: the layer, and the counts that it is made of."""

    layer: LayerOut = sent("the layer that the counts make")
    mpicc: str = sent("the compiler wrapper")
    launcher: str = sent("the program that starts the processes")
    version: str = sent("the library and its version, as it says itself")
    compiler: str = sent("the compiler and its version")
    valgrind: str = sent("the version of the program that counts")
    tunables: str = sent("settings of the C library while it was counted")
    calls: tuple[CountedCallOut, ...] = sent("sends and receives, by size")
    warnings: tuple[NoticeOut, ...] = sent("what to beware of")


@output
class CountChangeOut(Output):
    """A call that was counted before, and now; `now` is null where it waited."""

    end: End = sent("source: the send; destination: the receive")
    message_bytes: int = sent("size of the message, bytes")
    before: int = sent("instructions in the baseline")
    now: int | None = sent("instructions now; null: the call waited, and cannot be counted")
    share: float | None = sent("how many more there are now, as a share of those before")


@output
class CountChecksOut(Output):
    """Counts beside those of a baseline. `is_kept`: none takes more than `max_more` above it, and
    each can be counted.
    """

    version: str = sent("the library and its version, as it says itself")
    max_more: float = sent("the share above the baseline that is let pass")
    is_kept: bool = sent("whether each call can be counted, and none takes more than `max_more`")
    calls: tuple[CountChangeOut, ...] = sent("each call of the baseline")
