"""Work of messaging layers against an end that executes one thing after another."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.layer_cost import (
    LayerSums,
    check_out_of_order,
    costs_of_each,
    feature_sets,
    overhead_share,
    packet_curve,
    share_of,
    work_of,
)
from analysis.published_layers import shipped_layers
from domain.errors import InvalidInput, NotPublished
from domain.instruction_counts import CycleModel, InstructionCounts, sum_of
from domain.messaging_layer import (
    Component,
    End,
    MessageUnits,
    MessagingLayer,
    NetworkFeature,
    Per,
    Service,
)

FINITE, INDEFINITE = (shipped_layers()[f"cmam-{name}"] for name in ("finite", "indefinite"))
COSTS = CycleModel((("reg", 1.0), ("mem", 2.0), ("dev", 5.0)), clock_mhz=2.0)

counts = st.fixed_dictionaries(
    {name: st.integers(0, 40).map(lambda half: half / 2) for name in ("reg", "mem", "dev")}
).map(InstructionCounts.of)
components = st.builds(
    Component,
    st.just("part"),
    st.sampled_from(Service),
    st.sampled_from(End),
    st.sampled_from(Per),
    counts,
)
layers = st.builds(
    MessagingLayer,
    name=st.just("any"),
    source=st.just(""),
    word_bytes=st.integers(1, 8),
    packet_words=st.integers(1, 9),
    components=st.lists(components, min_size=1, max_size=8).map(tuple),
    acknowledge_every=st.integers(1, 5),
)


def executed(layer: MessagingLayer, message_bytes: int, end: End) -> InstructionCounts:
    """What an end executes that is given a message byte by byte: it begins a word, a packet and a
    group of packets as they come.
    """
    done = []

    def execute(per: Per) -> None:
        done.extend(one.counts for one in layer.components if one.end is end and one.per is per)

    execute(Per.TRANSFER)
    for byte in range(message_bytes):
        word, in_word = divmod(byte, layer.word_bytes)
        packet, in_packet = divmod(word, layer.packet_words)
        if in_word:
            continue
        execute(Per.WORD)
        if in_packet == 0:
            execute(Per.PACKET)
            if packet % layer.acknowledge_every == 0:
                execute(Per.ACKNOWLEDGEMENT)
    return sum_of(done)


@given(layers, st.integers(1, 200))
def test_work_is_what_an_end_executes(layer: MessagingLayer, message_bytes: int) -> None:
    """Counted one by one, at either end."""
    work = work_of(layer, message_bytes)
    for end in End:
        assert work.of(end=end) == executed(layer, message_bytes, end)
    assert work.counts == sum_of(work.of(service=service) for service in Service)


@given(layers, st.integers(1, 200), st.lists(st.sampled_from(NetworkFeature), unique=True))
def test_savings_are_the_work_that_is_gone(
    layer: MessagingLayer, message_bytes: int, features: list[NetworkFeature]
) -> None:
    """On a network with these features; and they add up."""
    work = work_of(layer, message_bytes)
    saved = work.removed_by(features)
    assert saved == sum_of(work.removed_by([feature]) for feature in features)
    try:
        left = layer.with_features(features)
    except InvalidInput:
        assert saved == work.counts
    else:
        assert sum_of([work_of(left, message_bytes).counts, saved]) == work.counts


@given(layers, st.integers(1, 200), st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_the_curve_is_the_work_at_each_packet_size(
    layer: MessagingLayer, message_bytes: int, sizes: list[int]
) -> None:
    """As it is in packets of that size."""
    points = packet_curve(LayerSums.of(layer), message_bytes, sizes)
    for point, words in zip(points, sizes, strict=True):
        assert point == work_of(layer, message_bytes, packet_words=words)


prices = st.fixed_dictionaries(
    {name: st.floats(0.0, 1e9, allow_subnormal=False) for name in ("reg", "mem", "dev")}
)


@given(
    layers,
    st.integers(1, 2**40),
    prices,
    st.none() | st.floats(1e-6, 1e6),
)
def test_costs_are_those_of_the_counts_rounded_once(
    layer: MessagingLayer, message_bytes: int, cycles: dict[str, float], clock_mhz: float | None
) -> None:
    """In instructions, cycles and µs, and as shares: against fractions of the counts themselves."""
    costs = CycleModel(tuple(cycles.items()), clock_mhz)
    work = LayerSums.of(layer, costs).work(MessageUnits.of(layer, message_bytes, 3))
    all_cycles = costs.cycles_of(work.counts)
    for _, _, part in work.sums.services:
        counts = work.counts_of(part)
        (found,) = work.cost_of([part])
        as_sent = {name: float(count) for name, count in counts.by_class}
        assert work.class_counts([part]) == (as_sent,)
        assert found.instructions == float(counts.total)
        assert found.share_of_instructions == float(share_of(counts.total, work.counts.total))
        assert found.cycles == float(costs.cycles_of(counts))
        assert found.share_of_cycles == float(share_of(costs.cycles_of(counts), all_cycles))
        assert found.us == (None if clock_mhz is None else float(costs.us_of(counts)))
    (overhead,) = work.cost_of([work.sums.overhead])
    assert overhead.share_of_instructions == float(overhead_share(work))
    assert overhead.share_of_cycles == float(overhead_share(work, costs))
    assert work.is_whole == all(
        count.denominator == 1 for cell in work.cells for _, count in cell.counts.by_class
    )


def test_few_packet_sizes() -> None:
    """200 at most."""
    assert len(packet_curve(LayerSums.of(FINITE), 64, range(1, 201))) == 200
    with pytest.raises(InvalidInput, match="200"):
        packet_curve(LayerSums.of(FINITE), 64, range(1, 202))


def test_each_feature_alone_then_all() -> None:
    """One alone is not said twice."""
    assert feature_sets(()) == ()
    assert feature_sets([NetworkFeature.IN_ORDER]) == ((NetworkFeature.IN_ORDER,),)
    assert feature_sets(tuple(NetworkFeature))[3:] == (tuple(NetworkFeature),)


def test_shares_of_nothing() -> None:
    """Are none."""
    assert share_of(Fraction(), Fraction()) == 0


def test_other_shares_out_of_order_are_not_published() -> None:
    """Both costs together are: 35 reg and 23 mem."""
    check_out_of_order(INDEFINITE, None)
    check_out_of_order(INDEFINITE, 0.5)
    with pytest.raises(NotPublished, match="35 reg, 23 mem") as refusal:
        check_out_of_order(INDEFINITE, 0.25)
    assert refusal.value.field == "out_of_order"
    with pytest.raises(NotPublished, match="do not tell"):
        check_out_of_order(FINITE, 0.5)
    never = replace(INDEFINITE, out_of_order=0.0)
    with pytest.raises(NotPublished, match="at no other share"):
        check_out_of_order(never, 0.5)


@given(
    layers,
    st.lists(st.integers(1, 2**40), min_size=1, max_size=6),
    st.sampled_from(
        [
            None,
            COSTS,
            CycleModel(COSTS.cycles),
            CycleModel(COSTS.cycles, 33.3),
            CycleModel((("reg", 0.0), ("mem", 0.0), ("dev", 0.0)), 5e-324),
        ]
    ),
)
def test_costs_of_many_messages_are_those_of_each(
    layer: MessagingLayer, message_bytes: list[int], costs: CycleModel | None
) -> None:
    """To the bit, whether or not doubles hold the numbers."""
    sums = LayerSums.of(layer, costs)
    units = [MessageUnits.of(layer, size, 2**20) for size in message_bytes]
    works = [sums.work(one) for one in units]
    parts = [sums.every, sums.overhead, *(one for _, _, one in sums.services)]
    assert costs_of_each(works, parts) == [work.cost_of(parts) for work in works]
