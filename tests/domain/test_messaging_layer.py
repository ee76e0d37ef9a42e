"""Messaging layers: counts, units, cycles, documents, and every rule."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.limits import MAX_PACKETS
from domain.errors import InvalidInput, MissingClassCost
from domain.instruction_counts import CycleModel, InstructionCounts, sum_of
from domain.layer_document import layer_document, layer_of_document
from domain.messaging_layer import (
    Component,
    End,
    MessageUnits,
    MessagingLayer,
    NetworkFeature,
    Per,
    Service,
)

NAMES = st.sampled_from(("reg", "mem", "dev", "atomic", "system_call"))
COUNTS = st.dictionaries(NAMES, st.fractions(0, 1000, max_denominator=8)).map(InstructionCounts.of)


def component(**changed: Any) -> Component:
    """One that sends."""
    counts = InstructionCounts.of({"reg": 2, "dev": 0.5})
    return replace(Component("send", Service.BASE, End.SOURCE, Per.PACKET, counts), **changed)


def layer(**changed: Any) -> MessagingLayer:
    """A layer of one component."""
    one = MessagingLayer(
        name="one", source="", word_bytes=4, packet_words=4, components=(component(),)
    )
    return replace(one, **changed)


@given(COUNTS, COUNTS, st.integers(0, 100))
def test_counts_add_and_scale(one: InstructionCounts, other: InstructionCounts, by: int) -> None:
    """Exactly, class by class."""
    both = sum_of([one, other])
    for name in ("reg", "mem", "dev", "atomic", "system_call"):
        assert both.in_class(name) == one.in_class(name) + other.in_class(name)
    assert both.total == one.total + other.total
    assert sum_of([one] * by) == one.times(by)


def test_published_classes_come_first() -> None:
    """Then others by name; those of which there are none are left out."""
    counts = InstructionCounts.of({"system_call": 1, "dev": 2, "atomic": 3, "reg": 4, "mem": 0})
    assert counts.classes == ("reg", "dev", "atomic", "system_call")


@given(st.integers(1, 10**6), st.integers(1, 64), st.integers(1, 9), st.integers(1, 9))
def test_units_are_the_least_that_hold_the_message(
    size: int, word: int, words: int, every: int
) -> None:
    """Words, packets and acknowledgements: one less of each would not do."""
    units = MessageUnits.of(layer(word_bytes=word, acknowledge_every=every), size, words)
    assert (units.words - 1) * word < size <= units.words * word
    assert (units.packets - 1) * words < units.words <= units.packets * words
    assert (units.acknowledgements - 1) * every < units.packets <= units.acknowledgements * every
    assert units.is_partial == (units.packets * words * word != size)
    assert units.filled.words == units.packets * words


def test_cycles_and_times() -> None:
    """By class, and by the clock where there is one."""
    counts = InstructionCounts.of({"reg": 2, "dev": 0.5})
    assert CycleModel((("reg", 1.0), ("dev", 5.0))).cycles_of(counts) == Fraction(9, 2)
    assert CycleModel((("reg", 1.0), ("dev", 5.0)), 33.0).us_of(counts) == Fraction(9, 66)
    with pytest.raises(InvalidInput, match="clock") as refusal:
        CycleModel((("reg", 1.0), ("dev", 5.0))).us_of(counts)
    assert refusal.value.field == "clock_mhz"


def test_a_class_without_a_price_is_named() -> None:
    """With its own code."""
    with pytest.raises(MissingClassCost, match="dev") as refusal:
        CycleModel((("reg", 1.0),)).cycles_of(InstructionCounts.of({"reg": 1, "dev": 1}))
    assert (refusal.value.code, refusal.value.field) == ("missing_class_cost", "cycles")


def test_features_remove_services() -> None:
    """Each its own, flow control also the trips before the data; not all that there is."""
    of = [component(service=service) for service in Service]
    whole = layer(components=tuple(of), crossings_before=2)
    assert whole.features == tuple(NetworkFeature)
    without = whole.with_features([NetworkFeature.FLOW_CONTROL])
    assert Service.BUFFERING not in without.services
    assert without.crossings_before == 0
    assert whole.with_features([NetworkFeature.IN_ORDER]).crossings_before == 2
    with pytest.raises(InvalidInput, match="left"):
        layer(components=(of[1],)).with_features([NetworkFeature.FLOW_CONTROL])


@given(st.lists(COUNTS, min_size=1, max_size=4), st.sampled_from(Service), st.sampled_from(Per))
def test_documents_are_read_again(
    counts: list[InstructionCounts], service: Service, per: Per
) -> None:
    """To an equal layer, where counts are numbers that JSON has."""
    exact = [
        InstructionCounts.of({name: float(count) for name, count in one.by_class}) for one in counts
    ]
    parts = tuple(component(counts=one, service=service, per=per) for one in exact)
    whole = layer(components=parts, cycles=(("reg", 1.0),), out_of_order=0.5)
    assert layer_of_document(layer_document(whole)) == whole


@pytest.mark.parametrize("count", [nan, inf, -inf, -1, 1.1e9, True, "2"])
def test_bad_counts(count: Any) -> None:
    """Are refused by the path of their field."""
    document = layer_document(layer())
    document["components"][0]["counts"] = {"reg": count}
    with pytest.raises(InvalidInput) as refusal:
        layer_of_document(document)
    assert refusal.value.field == "components.0.counts.reg"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 101),
        ("source", "x" * 501),
        ("word_bytes", 0),
        ("word_bytes", 2**12 + 1),
        ("packet_words", 0),
        ("packet_words", 2**20 + 1),
        ("packet_words", 1.5),
        ("packet_words", True),
        ("acknowledge_every", 0),
        ("crossings_before", -1),
        ("crossings_before", 1001),
        ("components", ()),
        ("components", (component(),) * 1001),
        ("cycles", (("reg", nan),)),
        ("cycles", (("reg", -1.0),)),
        ("cycles", (("Reg", 1.0),)),
        ("cycles", tuple((f"c{i}", 1.0) for i in range(33))),
        ("out_of_order", 1.5),
        ("out_of_order", nan),
    ],
)
def test_bad_layers(field: str, value: Any) -> None:
    """Are refused by their field."""
    with pytest.raises(InvalidInput) as refusal:
        layer(**{field: value})
    assert str(refusal.value.field).partition(".")[0] == field


@pytest.mark.parametrize("clock", [0.0, -1.0, 1.1e6, nan, inf])
def test_bad_clocks(clock: float) -> None:
    """Zero, too fast, no number."""
    with pytest.raises(InvalidInput) as refusal:
        CycleModel((("reg", 1.0),), clock)
    assert refusal.value.field == "clock_mhz"


def test_names_of_classes() -> None:
    """Are small letters, digits and _; and there are few of them."""
    for name in ("", "1a", "Reg", "a b", "a" * 33):
        with pytest.raises(InvalidInput):
            InstructionCounts.of({name: 1})
    with pytest.raises(InvalidInput, match="32"):
        InstructionCounts.of({f"c{i}": 1 for i in range(33)})


def test_bad_components_and_messages() -> None:
    """A component has a name; a message has some bytes, and not too many packets."""
    with pytest.raises(InvalidInput):
        component(name="")
    with pytest.raises(InvalidInput, match="message_bytes"):
        MessageUnits.of(layer(), 0, 4)
    tiny = layer(word_bytes=1)
    assert MessageUnits.of(tiny, MAX_PACKETS, 1).packets == MAX_PACKETS
    with pytest.raises(InvalidInput, match="packets") as refusal:
        MessageUnits.of(tiny, MAX_PACKETS + 1, 1)
    assert refusal.value.field == "message_bytes"
