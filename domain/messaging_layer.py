"""Messaging layers: what software does for a message, counted in instructions by class.

A layer is a list of components: instructions of several classes that one end executes for each
transfer, packet, word or acknowledgement, in the name of one service (Karamcheti94 sec. 3 and
Appendix A).

Notation  W words a message, n words a packet, p packets, a packets an acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from contract.limits import (
    MAX_COMPONENTS,
    MAX_CROSSINGS,
    MAX_LAYER_SOURCE,
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_PACKET_WORDS,
    MAX_PACKETS,
    MAX_WORD_BYTES,
)
from domain.errors import InconsistentInput, InvalidInput
from domain.instruction_counts import CycleModel, InstructionCounts, check_number, sum_of

Terms: TypeAlias = tuple[int, int, int, int]  # for one of each unit, in the order of `Per`


class Service(StrEnum):
    """What users of a layer get, beyond which a network delivers (Karamcheti94 sec. 2.1)."""

    BASE = "base"
    BUFFERING = "buffering"
    ORDERING = "ordering"
    RELIABILITY = "reliability"
    OTHER = "other"


class NetworkFeature(StrEnum):
    """What a network may do itself, so that no software has to (Karamcheti94 sec. 2.2, Fig. 1)."""

    IN_ORDER = "in_order"
    FLOW_CONTROL = "flow_control"
    RELIABLE_DELIVERY = "reliable_delivery"

    @property
    def removes(self) -> Service:
        """The service that this feature makes needless, wholly."""
        return {
            NetworkFeature.IN_ORDER: Service.ORDERING,
            NetworkFeature.FLOW_CONTROL: Service.BUFFERING,
            NetworkFeature.RELIABLE_DELIVERY: Service.RELIABILITY,
        }[self]


class End(StrEnum):
    """Where instructions are executed."""

    SOURCE = "source"
    DESTINATION = "destination"


class Per(StrEnum):
    """What a component's counts are for one of."""

    TRANSFER = "transfer"
    PACKET = "packet"
    WORD = "word"
    ACKNOWLEDGEMENT = "acknowledgement"


class When(StrEnum):
    """When a component is executed, seen from the data of its transfer."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Component:
    """Instructions that one end executes for each of something, in the name of one service."""

    name: str
    service: Service
    end: End
    per: Per
    counts: InstructionCounts
    when: When = When.DURING

    def __post_init__(self) -> None:
        _check_text("name", self.name, MAX_NAME_LENGTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagingLayer:
    """A messaging layer's software, as counted. Raises InvalidInput naming the field.

    `source` says where the counts are from. `acknowledge_every` packets share an acknowledgement.
    `crossings_before` are one-way trips before data may leave. `cycles` are what its instructions
    are said to take, empty where nobody says so. `out_of_order` is the share of packets out of
    order at which the counts of ordering hold, None where they do not depend on it or nobody says.
    """

    name: str
    source: str
    word_bytes: int
    packet_words: int
    components: tuple[Component, ...]
    acknowledge_every: int = 1
    crossings_before: int = 0
    cycles: tuple[tuple[str, float], ...] = ()
    out_of_order: float | None = None

    def __post_init__(self) -> None:
        _check_text("name", self.name, MAX_NAME_LENGTH)
        if len(self.source) > MAX_LAYER_SOURCE:
            raise InvalidInput(
                f"expected a source of at most {MAX_LAYER_SOURCE} characters", field="source"
            )
        _check_whole("word_bytes", self.word_bytes, 1, MAX_WORD_BYTES)
        check_packet_words(self.packet_words)
        _check_whole("acknowledge_every", self.acknowledge_every, 1, MAX_PACKETS)
        _check_whole("crossings_before", self.crossings_before, 0, MAX_CROSSINGS)
        if not 1 <= len(self.components) <= MAX_COMPONENTS:
            raise InvalidInput(f"expected 1 to {MAX_COMPONENTS} components", field="components")
        if self.out_of_order is not None:
            check_number("out_of_order", self.out_of_order, 1.0)
        CycleModel(self.cycles)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of instructions that it executes."""
        return sum_of(component.counts for component in self.components).classes

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that it provides in software."""
        own = {component.service for component in self.components}
        return tuple(service for service in Service if service in own)

    @property
    def features(self) -> tuple[NetworkFeature, ...]:
        """The features of a network that would remove something of it."""
        return tuple(one for one in NetworkFeature if one.removes in self.services)

    def with_features(self, features: Iterable[NetworkFeature]) -> MessagingLayer:
        """Return the layer on a network that has these features.

        Each removes its service wholly (Karamcheti94 sec. 4); flow control also the trips before
        the data, since nothing has to be allocated first. InvalidInput where nothing is left.
        """
        wanted = set(features)
        removed = {feature.removes for feature in wanted}
        left = tuple(one for one in self.components if one.service not in removed)
        if not left:
            raise InconsistentInput("expected a layer of which something is left", field="features")
        crossings = 0 if NetworkFeature.FLOW_CONTROL in wanted else self.crossings_before
        return MessagingLayer(
            name=self.name,
            source=self.source,
            word_bytes=self.word_bytes,
            packet_words=self.packet_words,
            components=left,
            acknowledge_every=self.acknowledge_every,
            crossings_before=crossings,
            cycles=self.cycles,
            out_of_order=self.out_of_order,
        )


@dataclass(frozen=True, slots=True)
class MessageUnits:
    """How many of each thing one message has: words W = ⌈bytes / word⌉, packets p = ⌈W / n⌉,
    acknowledgements ⌈p / a⌉.

    `is_partial`: its last word or packet is not full.
    """

    message_bytes: int
    packet_words: int
    words: int
    packets: int
    acknowledgements: int
    is_partial: bool

    @classmethod
    def of(cls, layer: MessagingLayer, message_bytes: int, packet_words: int) -> MessageUnits:
        """Return the units of a message in packets of `packet_words`. Raises InvalidInput."""
        _check_whole("message_bytes", message_bytes, 1, MAX_MESSAGE_BYTES)
        check_packet_words(packet_words)
        words = -(-message_bytes // layer.word_bytes)
        packets = -(-words // packet_words)
        if packets > MAX_PACKETS:
            raise InconsistentInput(
                f"expected a message of at most {MAX_PACKETS} packets, got {packets}",
                field="message_bytes",
            )
        return cls(
            message_bytes,
            packet_words,
            words,
            packets,
            -(-packets // layer.acknowledge_every),
            message_bytes != packets * packet_words * layer.word_bytes,
        )

    @property
    def filled(self) -> MessageUnits:
        """The same with every packet full, as the formulas of Karamcheti94 Fig. 8 count."""
        words = self.packets * self.packet_words
        return MessageUnits(
            self.message_bytes, self.packet_words, words, self.packets, self.acknowledgements, False
        )

    def values(self, many: Sequence[Terms]) -> list[int]:
        """Return what each of these comes to: Σ of the terms, times how many units there are."""
        packets, words, acknowledgements = self.packets, self.words, self.acknowledgements
        return [
            transfer + packet * packets + word * words + ack * acknowledgements
            for transfer, packet, word, ack in many
        ]


def check_packet_words(packet_words: int) -> None:
    """Raise InvalidInput unless a packet can have this many words."""
    _check_whole("packet_words", packet_words, 1, MAX_PACKET_WORDS)


def _check_text(field: str, text: str, maximum: int) -> None:
    if not 1 <= len(text) <= maximum:
        raise InvalidInput(f"expected a {field} of 1 to {maximum} characters", field=field)


def _check_whole(field: str, value: int, minimum: int, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"expected {field} to be a whole number", field=field)
    if not minimum <= value <= maximum:
        raise InvalidInput(f"expected {minimum} <= {field} <= {maximum}, got {value}", field=field)
