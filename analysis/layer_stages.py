"""Messaging layers as stages.

Two mappings. `packet`: a fragment is a packet, and its size is being chosen. `transfer`: a message
is cut into fragments, each a transfer of packets of one size. Either end is one stage; whatever
lies between them is given.

Notation  c(...)  time in µs of the counts for one of something, at one end
          w, n, a bytes a word, words a packet, packets an acknowledgement
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from contract.limits import MAX_MESSAGE_BYTES, MAX_OVERHEAD_US
from domain.errors import InconsistentInput, InvalidStage
from domain.instruction_counts import CycleModel, Exact
from domain.messaging_layer import Component, End, MessagingLayer, Per, When, check_packet_words
from domain.pipeline import Pipeline, Stage, check_cost, unique_names
from domain.problem import FragmentLimits

SENDER, RECEIVER = "sender software", "receiver software"


class StageMapping(StrEnum):
    """What a fragment is: one packet, or one transfer of several."""

    PACKET = "packet"
    TRANSFER = "transfer"


class Handshake(StrEnum):
    """Whether the trips before a later transfer's data overlap with earlier ones, or block."""

    OVERLAPPED = "overlapped"
    BLOCKING = "blocking"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageQuestion:
    """How a layer becomes stages.

    `between` are the stages between both ends, in order; `wire_us` is a one-way trip in µs.
    `max_packet_words` bounds the packets that are chosen; those of a transfer are the layer's.
    Raises InvalidInput.
    """

    mapping: StageMapping = StageMapping.PACKET
    handshake: Handshake = Handshake.OVERLAPPED
    between: tuple[Stage, ...] = ()
    wire_us: float = 0.0
    max_packet_words: int | None = None

    def __post_init__(self) -> None:
        check_cost("wire_us", self.wire_us, MAX_OVERHEAD_US)
        if self.max_packet_words is not None:
            check_packet_words(self.max_packet_words)


@dataclass(frozen=True, slots=True)
class LayerStages:
    """A pipeline, the limits that every cut of it must respect, and what was taken for granted.

    `last_fragment_us_at_most` bounds by how much the last fragment's software, at both ends
    together, may take longer than the stages say, µs: its last packet or word may not be full.
    """

    pipeline: Pipeline
    limits: FragmentLimits
    last_fragment_us_at_most: float
    assumptions: tuple[str, ...]


def is_pipeline(layer: MessagingLayer, asked: StageQuestion) -> bool:
    """Return whether fragments overlap: not where each waits for trips before its own data."""
    waits = asked.mapping is StageMapping.TRANSFER and layer.crossings_before > 0
    return not (waits and asked.handshake is Handshake.BLOCKING)


def layer_stages(
    layer: MessagingLayer, costs: CycleModel, asked: StageQuestion
) -> LayerStages | None:
    """Return the layer as stages, None where transfers wait for each other, which is no pipeline.

    packet:   overhead c(packet) + c(acknowledgement) / a, per byte c(word) / w, delay all that is
              once before or during the data, at both ends.
    transfer: overhead all that is once, per byte c(packet) / (n w) + c(word) / w +
              c(acknowledgement) / (a n w), no work in the delay. Multiples of a n w bytes are
              priced exactly: ⌈x / nw⌉ and ⌈x / anw⌉ are then what the line says.
    Both have the trips before the first data in the delay. Raises InvalidInput and
    MissingClassCost.
    """
    if not is_pipeline(layer, asked):
        return None
    ends = {end: _EndCosts.of(layer, costs, end) for end in End}
    clock_mhz = costs.clock()
    is_packet = asked.mapping is StageMapping.PACKET
    stages = [
        ends[End.SOURCE].stage(layer, clock_mhz, SENDER, asked.mapping),
        *asked.between,
        ends[End.DESTINATION].stage(layer, clock_mhz, RECEIVER, asked.mapping),
    ]
    names = unique_names([stage.name for stage in stages])
    delay = layer.crossings_before * Fraction(asked.wire_us)
    if is_packet:
        delay += sum(one.before for one in ends.values()) / clock_mhz
    short = sum(
        one.word if is_packet else one.word + one.packet + one.acknowledgement
        for one in ends.values()
    )
    with_names = tuple(Stage(name, stage.ranges) for name, stage in zip(names, stages, strict=True))
    return LayerStages(
        Pipeline(with_names, _within_limits(delay, "the delay")),
        _limits(layer, asked),
        float(short / clock_mhz),
        tuple(_assumptions(layer, asked)),
    )


@dataclass(frozen=True, slots=True)
class _EndCosts:
    """Cycles of one end: once before or during the data, once in all, and for one of each."""

    before: Exact
    once: Exact
    packet: Exact
    word: Exact
    acknowledgement: Exact

    @classmethod
    def of(cls, layer: MessagingLayer, costs: CycleModel, end: End) -> _EndCosts:
        cycles: dict[Per, Exact] = dict.fromkeys(Per, 0)
        after: Exact = 0
        for one in layer.components:
            if one.end is end:
                own = costs.cycles_of(one.counts)
                cycles[one.per] += own
                after += own if one.per is Per.TRANSFER and one.when is When.AFTER else 0
        return cls(cycles[Per.TRANSFER] - after, *(cycles[per] for per in Per))

    def stage(
        self, layer: MessagingLayer, clock_mhz: Fraction, name: str, mapping: StageMapping
    ) -> Stage:
        a_packet = self.packet + Fraction(self.acknowledgement, layer.acknowledge_every)
        a_byte = Fraction(self.word, layer.word_bytes)
        overhead: Exact = a_packet
        if mapping is StageMapping.TRANSFER:
            overhead = self.once
            a_byte += a_packet / (layer.packet_words * layer.word_bytes)
        try:
            return Stage.of_line(
                name,
                overhead_us=_within_limits(overhead / clock_mhz, "a fragment"),
                ns_per_byte=_within_limits(1000 * a_byte / clock_mhz, "a byte"),
            )
        except InvalidStage as refusal:
            raise InconsistentInput(f"{name}: {refusal.detail}", field="cycles") from None


def _within_limits(value: Fraction, what: str) -> float:
    if value > _MAX_COST:
        raise InconsistentInput(
            f"the cycles of {what} come to more than {_MAX_COST:g}", field="cycles"
        )
    return float(value)


_MAX_COST = 10**12


def _limits(layer: MessagingLayer, asked: StageQuestion) -> FragmentLimits:
    word = layer.word_bytes
    if asked.mapping is StageMapping.TRANSFER:
        counts = any(one.per is Per.ACKNOWLEDGEMENT for one in layer.components)
        packets = layer.acknowledge_every if counts else 1
        aligned = min(word * layer.packet_words * packets, MAX_MESSAGE_BYTES)
        return FragmentLimits(alignment_bytes=aligned)
    most = asked.max_packet_words
    if most is None:
        return FragmentLimits(alignment_bytes=2 * word)
    return FragmentLimits(
        max_fragment_bytes=min(most * word, MAX_MESSAGE_BYTES), alignment_bytes=min(most, 2) * word
    )


def _assumptions(layer: MessagingLayer, asked: StageQuestion) -> Iterator[str]:
    """What stages of this layer take for granted."""
    yield "one processor an end: what it does for a message is one stage, one fragment at a time"
    has_acknowledgements = any(one.per is Per.ACKNOWLEDGEMENT for one in layer.components)
    if asked.mapping is StageMapping.PACKET:
        yield "a fragment is one packet, and packets may have any size within the limits"
        if layer.acknowledge_every > 1 and has_acknowledgements:
            yield "an acknowledgement's cost is spread evenly over the packets that share it"
        if _any_after(layer.components):
            yield "what follows the data is left out: it ends after the last packet is delivered"
    else:
        yield f"a fragment is one transfer, in packets of {layer.packet_words} words"
        if layer.crossings_before:
            yield "later transfers are prepared while earlier ones are under way; the first waits"
        if _any_after(layer.components):
            yield (
                "what follows the data occupies its end, and the last fragment is delivered before "
                "it: the latency is above the truth by that much at most"
            )
    if has_acknowledgements:
        yield "acknowledgements of the other direction are work of the end that handles them"
    if layer.crossings_before:
        yield (
            f"data leave after {layer.crossings_before} one-way trips of {asked.wire_us:g} µs; the "
            "trip of the data themselves is a stage between the ends, or is not in the latency"
        )


def _any_after(components: Sequence[Component]) -> bool:
    return any(one.when is When.AFTER and one.per is Per.TRANSFER for one in components)
