"""Messaging layers: what software does for a message, counted in instructions by class.

A layer is a list of components: instructions of several classes that one end executes for each
transfer, packet, word or acknowledgement, in the name of one service (Karamcheti94 sec. 3 and
Appendix A). Counts are exact fractions, since words may cost half an instruction: a load or store
of two words.

Notation  W words a message, n words a packet, p packets, a packets an acknowledgement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

from domain.errors import InconsistentInput, InvalidInput, MissingClassCost
from domain.pipeline import MAX_MESSAGE_BYTES, MAX_NAME_LENGTH

PUBLISHED_CLASSES = ("reg", "mem", "dev")  # registers, memory, memory-mapped devices
CLASS_RULE = r"[a-z][a-z0-9_]{0,31}"
MAX_CLASSES = 32
MAX_COUNT = 1e9
MAX_COMPONENTS = 1000
MAX_SOURCE_LENGTH = 500
MAX_WORD_BYTES = 2**12
MAX_PACKET_WORDS = 2**20
MAX_PACKETS = 2**40
MAX_CROSSINGS = 1000
MAX_CYCLES = 1e9
MAX_CLOCK_MHZ = 1e6

Terms: TypeAlias = tuple[int, int, int, int]  # for one of each unit, in the order of `Per`
Exact: TypeAlias = int | Fraction  # whole numbers as int, whose arithmetic is many times faster


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
class InstructionCounts:
    """Instructions by class, none of them 0: reg, mem, dev first, then others by name.

    `InstructionCounts.of` makes them of any mapping. Raises InvalidInput.
    """

    by_class: tuple[tuple[str, Exact], ...] = ()

    @classmethod
    def of(cls, counts: Mapping[str, float | Fraction]) -> InstructionCounts:
        """Return these counts, each from 0 to 1e9."""
        if len(counts) > MAX_CLASSES:
            raise InvalidInput(f"expected at most {MAX_CLASSES} classes", field="counts")
        for name, count in counts.items():
            check_class(name, field="counts")
            _check_number(f"counts.{name}", count, MAX_COUNT)
        return cls(_ordered({name: exact(count) for name, count in counts.items()}))

    @property
    def total(self) -> Exact:
        """Instructions of all classes."""
        return sum(count for _, count in self.by_class)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of which there are any."""
        return tuple(name for name, _ in self.by_class)

    def in_class(self, name: str) -> Exact:
        """Return the instructions of one class."""
        return dict(self.by_class).get(name, 0)

    def times(self, factor: Exact) -> InstructionCounts:
        """Return as many times these counts."""
        if not factor:
            return InstructionCounts()
        many = tuple((name, exact(count * factor)) for name, count in self.by_class)
        return InstructionCounts(many)


def exact(value: float | Fraction) -> Exact:
    """Return a finite number without error, a whole one as int."""
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    found = Fraction(value)
    return found.numerator if found.denominator == 1 else found


def sum_of(counts: Iterable[InstructionCounts]) -> InstructionCounts:
    """Return the sum of these counts, class by class."""
    found: dict[str, Exact] = {}
    for one in counts:
        for name, count in one.by_class:
            found[name] = found.get(name, 0) + count
    return InstructionCounts(_ordered(found))


def in_order(classes: Iterable[str]) -> tuple[str, ...]:
    """Return these classes in the order of counts: the published ones, then others by name."""
    given = set(classes)
    published = (name for name in PUBLISHED_CLASSES if name in given)
    return (*published, *sorted(given.difference(PUBLISHED_CLASSES)))


def _ordered(counts: Mapping[str, Exact]) -> tuple[tuple[str, Exact], ...]:
    return tuple((name, counts[name]) for name in in_order(counts) if counts[name])


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


@dataclass(frozen=True, slots=True)
class CycleModel:
    """Cycles of an instruction of each class, and a clock in MHz where there is one.

    Raises InvalidInput.
    """

    cycles: tuple[tuple[str, float], ...]
    clock_mhz: float | None = None

    def __post_init__(self) -> None:
        if len(self.cycles) > MAX_CLASSES:
            raise InconsistentInput(f"expected at most {MAX_CLASSES} classes", field="cycles")
        for name, cycles in self.cycles:
            check_class(name, field="cycles")
            _check_number(f"cycles.{name}", cycles, MAX_CYCLES)
        check_clock(self.clock_mhz)

    def cycles_of(self, counts: InstructionCounts) -> Exact:
        """Return the cycles that these instructions take. Raises MissingClassCost."""
        prices = dict(self.cycles)
        if missing := [name for name, _ in counts.by_class if name not in prices]:
            raise MissingClassCost(
                f"expected the cycles of an instruction of class {', '.join(missing)}",
                field="cycles",
            )
        return sum(exact(prices[name]) * count for name, count in counts.by_class)

    def us_of(self, counts: InstructionCounts) -> Fraction:
        """Return the time of these instructions in µs. Raises MissingClassCost, and InvalidInput
        where no clock is known.
        """
        return self.cycles_of(counts) / self.clock()

    def clock(self) -> Fraction:
        """Return the clock in MHz without error. Raises InvalidInput where none is known."""
        if self.clock_mhz is None:
            raise InvalidInput(
                "expected clock_mhz: without a clock cycles are no time", field="clock_mhz"
            )
        return Fraction(self.clock_mhz)


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
        if len(self.source) > MAX_SOURCE_LENGTH:
            raise InvalidInput(
                f"expected a source of at most {MAX_SOURCE_LENGTH} characters", field="source"
            )
        _check_whole("word_bytes", self.word_bytes, 1, MAX_WORD_BYTES)
        check_packet_words(self.packet_words)
        _check_whole("acknowledge_every", self.acknowledge_every, 1, MAX_PACKETS)
        _check_whole("crossings_before", self.crossings_before, 0, MAX_CROSSINGS)
        if not 1 <= len(self.components) <= MAX_COMPONENTS:
            raise InvalidInput(f"expected 1 to {MAX_COMPONENTS} components", field="components")
        if self.out_of_order is not None:
            _check_number("out_of_order", self.out_of_order, 1.0)
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


# --- rules ----------------------------------------------------------------------------------------


def check_class(name: str, *, field: str) -> None:
    """Raise InvalidInput unless this can be the name of a class of instructions."""
    if not re.fullmatch(CLASS_RULE, name, re.ASCII):
        raise InvalidInput(
            "expected the name of a class of instructions: small letters, digits and _, at most 32 "
            "of them, a letter first",
            field=field,
        )


def check_packet_words(packet_words: int) -> None:
    """Raise InvalidInput unless a packet can have this many words."""
    _check_whole("packet_words", packet_words, 1, MAX_PACKET_WORDS)


def check_clock(clock_mhz: float | None) -> None:
    """Raise InvalidInput unless this is a clock in MHz, or none."""
    if clock_mhz is None:
        return
    _check_number("clock_mhz", clock_mhz, MAX_CLOCK_MHZ)
    if clock_mhz <= 0.0:
        raise InvalidInput("expected clock_mhz > 0", field="clock_mhz")


def _check_text(field: str, text: str, maximum: int) -> None:
    if not 1 <= len(text) <= maximum:
        raise InvalidInput(f"expected a {field} of 1 to {maximum} characters", field=field)


def _check_whole(field: str, value: int, minimum: int, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"expected {field} to be a whole number", field=field)
    if not minimum <= value <= maximum:
        raise InvalidInput(f"expected {minimum} <= {field} <= {maximum}, got {value}", field=field)


def _check_number(field: str, value: float | Fraction, maximum: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidInput(f"expected {field} to be a number", field=field)
    if not (isfinite(value) and 0 <= value <= maximum):
        raise InvalidInput(f"expected 0 <= {field} <= {maximum:g}, got {value!r}", field=field)


# --- documents ------------------------------------------------------------------------------------


def layer_document(layer: MessagingLayer) -> dict[str, Any]:
    """Return the layer as JSON has it; `layer_of_document` reads it again."""
    return {
        "name": layer.name,
        "source": layer.source,
        "word_bytes": layer.word_bytes,
        "packet_words": layer.packet_words,
        "acknowledge_every": layer.acknowledge_every,
        "crossings_before": layer.crossings_before,
        "cycles": dict(layer.cycles),
        "out_of_order": layer.out_of_order,
        "components": [_component_document(component) for component in layer.components],
    }


def layer_of_document(document: Mapping[str, Any]) -> MessagingLayer:
    """Return the layer of a document whose fields have the types of `layer_document`.

    What stands there by default may be missing. Raises InvalidInput naming the field by its path.
    """
    given = dict(document)
    parts: Sequence[Mapping[str, Any]] = given.pop("components")
    components = tuple(_component(part, place) for place, part in enumerate(parts))
    prices: Mapping[str, float] = given.pop("cycles", None) or {}
    cycles = tuple((name, float(price)) for name, price in prices.items())
    return MessagingLayer(components=components, cycles=cycles, **given)


def _component_document(component: Component) -> dict[str, Any]:
    counts = component.counts.by_class
    return {
        "name": component.name,
        "service": component.service.value,
        "end": component.end.value,
        "per": component.per.value,
        "when": component.when.value,
        "counts": {name: _plain(count) for name, count in counts},
    }


def _plain(count: Exact) -> int | float:
    return int(count) if count.denominator == 1 else float(count)


def _component(document: Mapping[str, Any], place: int) -> Component:
    try:
        return Component(
            name=document["name"],
            service=Service(document["service"]),
            end=End(document["end"]),
            per=Per(document["per"]),
            counts=InstructionCounts.of(document["counts"]),
            when=When(document.get("when", When.DURING)),
        )
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field=f"components.{place}.{refusal.field}") from None
