"""Cut-through delivery: pulses on line, against byte arrays, theorems and hand-checked cases."""

from __future__ import annotations

from itertools import accumulate
from math import ceil, inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.questions.simulate import simulate_delivery
from domain.delivery import Delivery, DeliveryRule, deliver
from domain.errors import InconsistentInput, Infeasible, InvalidInput, InvalidStage
from domain.nested import NestedSchedule, nested_latency_us, simulate_nested
from domain.pipeline import Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from domain.timeline import nested_timeline_of
from solvers.nested.bound import nested_lower_bound_us
from tests.support.counts import count

WHOLE = Delivery(DeliveryRule.STORE_AND_FORWARD)
CAP = 10_000


def stage(name: str, g: float, per_byte_us: float, grain: int | None = 1) -> Stage:
    """A stage of one line; µs and µs per byte."""
    return Stage.of_line(name, overhead_us=g, ns_per_byte=1000.0 * per_byte_us, handoff_bytes=grain)


def eager(threshold: int = 1, largest: int | None = None) -> Delivery:
    return Delivery(DeliveryRule.EAGER, threshold_bytes=threshold, max_pulse_bytes=largest)


def static(size: int) -> Delivery:
    return Delivery(DeliveryRule.STATIC, pulse_bytes=size)


def delivered(pipeline: Pipeline, size: int, *rules: Delivery) -> NestedSchedule:
    return deliver(pipeline, size, rules, max_pulses=CAP)


# --- byte arrays ----------------------------------------------------------------------------------


def by_bytes(pipeline: Pipeline, size: int, rules: list[Delivery]) -> tuple[list[list[int]], float]:
    """Pulses and latency, by when each single byte is there: slow, and written for itself."""
    there = [0.0] * size
    cuts = list[list[int]]()
    free = 0.0
    for one, rule in zip(pipeline.stages, rules, strict=True):
        sizes, out, free, sent = list[int](), [inf] * size, 0.0, 0
        if rule.rule is DeliveryRule.FLOW:  # byte after byte, the overhead on top
            part, moved = one.range_at(size), 0.0
            for byte, at in enumerate(there):
                moved = max(moved, at) + part.ns_per_byte / 1000.0
                out[byte] = moved + part.overhead_us
            sizes, free, sent = [size], out[-1], size
        while sent < size:
            rest = size - sent
            if rule.rule is DeliveryRule.STORE_AND_FORWARD:
                taken = rest
            elif rule.rule is DeliveryRule.STATIC:
                taken = min(rule.pulse_bytes or 0, rest)
            elif rule.rule is DeliveryRule.SAME:
                taken = cuts[-1][len(sizes)] if cuts else size
            elif rule.rule is DeliveryRule.PLANNED:
                taken = (rule.planned_bytes or ())[len(sizes)]
            else:
                needed = min(rule.threshold, rest)
                start = max(free, there[sent + needed - 1])
                have = sum(at <= start * (1 + 1e-9) for at in there[sent:])
                taken = max(needed, min(rule.max_pulse_bytes or rest, have))
            start = max(free, there[sent + taken - 1])
            part = one.range_at(taken)
            for byte in range(1, taken + 1):
                grain = one.handoff_bytes or taken
                seen = min(taken, -(-byte // grain) * grain)
                out[sent + byte - 1] = start + part.overhead_us + part.ns_per_byte * seen / 1000.0
            free = start + one.time_us(taken)
            sizes.append(taken)
            sent += taken
        cuts.append(sizes)
        there = out
    return cuts, free + pipeline.delay_us


def random_case(noise: Random) -> tuple[Pipeline, int, list[Delivery]]:
    """A few stages with mixed rules and grains."""
    size, stages_count = noise.randint(1, 60), noise.randint(1, 4)
    grains = (None, 1, 1, 2, 7, 64)
    stages = tuple(
        stage(str(j), noise.uniform(0.0, 5.0), noise.choice([0.0, noise.uniform(0.0, 1.0)]), grain)
        for j, grain in enumerate(noise.choices(grains, k=stages_count))
    )
    return Pipeline(stages, noise.uniform(0.0, 3.0)), size, [_rule(noise, size) for _ in stages]


def _rule(noise: Random, size: int) -> Delivery:
    kind = noise.choice([*DeliveryRule, DeliveryRule.EAGER])
    if kind is DeliveryRule.STATIC:
        return static(noise.randint(1, size + 3))
    if kind is DeliveryRule.EAGER:
        threshold = noise.randint(1, size + 3)
        return eager(threshold, noise.choice([None, threshold + noise.randint(0, 9)]))
    if kind is DeliveryRule.PLANNED:
        ends = sorted({size, *(noise.randint(1, size) for _ in range(3))})
        sizes = tuple(b - a for a, b in zip([0, *ends], ends, strict=False))
        return Delivery(kind, planned_bytes=sizes)
    return Delivery(kind)


@pytest.mark.parametrize("seed", range(count(3000)))
def test_pulses_are_those_of_byte_arrays(seed: int) -> None:
    """Every rule and grain; the evaluator has the same latency."""
    pipeline, size, rules = random_case(Random(seed))
    cuts, latency_us = by_bytes(pipeline, size, rules)
    found = delivered(pipeline, size, *rules)
    assert [list(cut) for cut in found.stage_bytes] == cuts
    assert nested_latency_us(pipeline, found) == pytest.approx(latency_us, rel=1e-12)
    assert nested_timeline_of(pipeline, found).latency_us == nested_latency_us(pipeline, found)
    assert simulate_nested(pipeline, found).latency_us == nested_latency_us(pipeline, found)


# --- cases by hand --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "stages", "rules", "pulses", "latency_us"),
    [
        (8, [(1, 1, 1), (2, 1, 1)], [WHOLE, eager(1)], [(2, 1), (5, 3), (10, 4)], 16.0),
        (8, [(1, 1, 1), (2, 1, 1)], [WHOLE, eager(3)], [(4, 3), (9, 5)], 16.0),
        (8, [(1, 1, 1), (2, 1, 1)], [WHOLE, static(2)], [(3, 2), (7, 2), (11, 2), (15, 2)], 19.0),
        (8, [(1, 1, None), (2, 1, 1)], [static(4), eager(1)], [(5, 4), (11, 4)], 17.0),
        (
            12,
            [(1, 1, 1), (1, 0.5, 1), (1, 2, 1)],
            [WHOLE, eager(2), eager(3)],
            [(6.5, 3), (13.5, 7), (28.5, 2)],
            33.5,
        ),
        (10, [(0, 1, 1), (0.5, 0.1, 1)], [WHOLE, eager(4)], [(4, 4), (8, 4), (10, 2)], 10.7),
    ],
)
def test_cases_by_hand(
    size: int,
    stages: list[tuple[float, float, int | None]],
    rules: list[Delivery],
    pulses: list[tuple[float, int]],
    latency_us: float,
) -> None:
    """Start and size of each pulse of the last stage."""
    pipeline = Pipeline(tuple(stage(str(j), *one) for j, one in enumerate(stages)))
    found = delivered(pipeline, size, *rules)
    timeline = simulate_nested(pipeline, found)
    starts = timeline.start_us[-1]
    assert list(starts) == pytest.approx([start for start, _ in pulses])
    assert list(found.stage_bytes[-1]) == [size for _, size in pulses]
    assert nested_latency_us(pipeline, found) == pytest.approx(latency_us)


def test_long_messages_take_as_many_steps_as_pulses() -> None:
    """2^48 bytes: hundreds of pulses, and not a count of bytes."""
    pipeline = Pipeline(
        (stage("read", 4.4, 0.0078), stage("link", 1.0, 0.0097), stage("write", 2.35, 0.0156))
    )
    found = delivered(pipeline, 2**48, WHOLE, eager(512), eager(512))
    assert found.message_bytes == 2**48
    assert [len(cut) < 300 for cut in found.stage_bytes] == [True] * 3


@given(st.integers(0, 2**31))
@settings(max_examples=count(4_000, share=80))
def test_the_bound_holds_with_flows(seed: int) -> None:
    """Of the other stages' cuts; a flow is a stage of fragments of one byte without overhead."""
    pipeline, size, rules = random_case(Random(seed))
    found = simulate_delivery(pipeline, size, tuple(rules))
    assert found.delivered is not None
    assert found.delivered.lower_bound_us <= found.latency_us * (1.0 + 1e-12)
    assert (found.critical_path is None) == any(one.rule is DeliveryRule.FLOW for one in rules)


def test_flows_of_long_messages_are_quick() -> None:
    """A flow behind eager pulses of 2^48 bytes, and eager pulses behind it."""
    stages = [stage(str(j), 1.0 + j, 0.005 * (j + 1), grain) for j, grain in enumerate((64, 1, 7))]
    pipeline = Pipeline((*stages, stage("sink", 2.0, 0.03), stage("last", 0.0, 0.01)))
    flow = Delivery(DeliveryRule.FLOW)
    found = delivered(pipeline, 2**48, WHOLE, eager(512), flow, eager(4096), flow)
    assert found.flows == {2, 4}
    assert simulate_nested(pipeline, found).latency_us > 0.03 * 2**48
    assert sum(map(len, found.stage_bytes)) < 1000


def test_a_flow_that_is_cut_is_none() -> None:
    with pytest.raises(InvalidInput, match="flows"):
        NestedSchedule(((2, 2),), frozenset({0}))


# --- theorems -------------------------------------------------------------------------------------

costs = st.tuples(st.floats(0.0, 9.0), st.floats(0.0, 2.0))


@given(st.lists(costs, min_size=2, max_size=5), st.data())
@settings(max_examples=count(20_000, share=150))
def test_eager_costs_at_most_an_overhead_a_stage_more(
    lines: list[tuple[float, float]], data: st.DataObject
) -> None:
    """Theorem 3: over store and forward, whatever the thresholds and handoffs are."""
    size = data.draw(st.integers(1, 80))
    grains = data.draw(st.lists(st.sampled_from([None, 1, 5]), min_size=5, max_size=5))
    stages = [stage(str(j), *one, grains[j]) for j, one in enumerate(lines)]
    pipeline = Pipeline(tuple(stages))
    thresholds = data.draw(st.lists(st.integers(1, 90), min_size=5, max_size=5))
    rules = [eager(threshold) for threshold in thresholds[: len(stages)]]
    whole_us = nested_latency_us(pipeline, delivered(pipeline, size, *[WHOLE] * len(stages)))
    found_us = nested_latency_us(pipeline, delivered(pipeline, size, *rules))
    more_us = sum(g for g, _ in lines[1:])
    assert found_us <= (whole_us + more_us) * (1 + 1e-9)


@given(costs, costs, st.integers(2, 40), st.integers(1, 40))
@settings(max_examples=count(3000, share=30), deadline=None)
def test_eager_is_within_a_pulse_of_the_best_for_its_arrivals(
    first: tuple[float, float], second: tuple[float, float], size: int, threshold: int
) -> None:
    """Theorem 1, and the factor of two of a threshold of one byte, against every cut."""
    pipeline = Pipeline((stage("a", *first), stage("b", *second)))
    found = delivered(pipeline, size, WHOLE, eager(threshold))
    eager_us = nested_latency_us(pipeline, found)
    best_us = _best_second_cut_us(pipeline, size)
    pulses = found.stage_bytes[1]
    last_but_one_us = pipeline.stages[1].time_us(pulses[-2]) if len(pulses) > 1 else 0.0
    waited_us = (min(threshold, size) - 1) * first[1]
    slack_us = 1e-9 * eager_us
    assert eager_us <= best_us + max(last_but_one_us, waited_us) + slack_us
    if threshold == 1:
        assert eager_us <= 2.0 * best_us + slack_us


def _best_second_cut_us(pipeline: Pipeline, size: int) -> float:
    """Of all cuts of the second stage while the first streams: by the last byte of each pulse."""
    a, b = pipeline.stages
    there = [a.visible_us(size, byte) for byte in range(size + 1)]
    best = [0.0] * (size + 1)
    for end in range(1, size + 1):
        best[end] = min(
            max(best[start] if start else 0.0, there[end]) + b.time_us(end - start)
            for start in range(end)
        )
    return best[size]


@pytest.mark.parametrize("k", [2, 3, 5, 8])
@pytest.mark.parametrize("slower", [1.2, 2.0])
def test_eager_is_the_ramp_of_two_stages(k: int, slower: float) -> None:
    """Theorem 2: with the first pulse of Wang's ramp as threshold the others follow by themselves,
    x_{i+1} = a x_i + b, but for whole bytes.
    """
    per_byte_us, g = 0.01, 2.0
    size, b = 65536, 2.0 / 0.01
    growth = [slower**i for i in range(k)]
    added = [b * sum(growth[:i]) for i in range(k)]
    first = (size - sum(added)) / sum(growth)
    if first < 1.0:
        pytest.fail("the ramp has no first pulse: choose fewer")
    pipeline = Pipeline((stage("a", 0.0, per_byte_us), stage("b", g, slower * per_byte_us)))
    thresholds = range(ceil(first), ceil(first) + 40)
    cuts = [delivered(pipeline, size, WHOLE, eager(threshold)) for threshold in thresholds]
    ramp = [growth[i] * first + added[i] for i in range(k)]
    assert list(cuts[0].stage_bytes[1][: k - 1]) == pytest.approx(ramp[:-1], abs=2.0 * sum(growth))
    latency_us = per_byte_us * first + k * g + slower * per_byte_us * size
    best_us = min(nested_latency_us(pipeline, cut) for cut in cuts)
    assert best_us == pytest.approx(latency_us, rel=2e-4)


@given(st.lists(costs, min_size=2, max_size=4), st.integers(1, 60), st.integers(1, 60))
def test_thresholds_and_pulses_hold_their_sizes(
    lines: list[tuple[float, float]], size: int, threshold: int
) -> None:
    """Pulses sum to the message, and none but the tail is below the threshold."""
    pipeline = Pipeline(tuple(stage(str(j), *one) for j, one in enumerate(lines)))
    largest = threshold + 5
    found = delivered(pipeline, size, *[eager(threshold, largest)] * len(lines))
    for cut in found.stage_bytes:
        assert sum(cut) == size
        assert all(threshold <= one <= largest for one in cut[:-1])


@given(st.lists(costs, min_size=2, max_size=4), st.integers(1, 60))
def test_a_threshold_of_the_message_is_store_and_forward(
    lines: list[tuple[float, float]], size: int
) -> None:
    pipeline = Pipeline(tuple(stage(str(j), *one) for j, one in enumerate(lines)))
    found = delivered(pipeline, size, *[eager(size)] * len(lines))
    assert found == delivered(pipeline, size, *[WHOLE] * len(lines))


# --- evaluator and bound --------------------------------------------------------------------------


@given(st.lists(costs, min_size=1, max_size=4), st.lists(st.integers(1, 30), min_size=1))
def test_a_shared_cut_does_not_know_of_handoffs(
    lines: list[tuple[float, float]], cut: list[int]
) -> None:
    """A fragment's last byte leaves with the fragment."""
    schedule = NestedSchedule((tuple(cut),) * len(lines))
    with_grain, without = (
        Pipeline(tuple(stage(str(j), *one, grain) for j, one in enumerate(lines)))
        for grain in (1, None)
    )
    assert nested_latency_us(with_grain, schedule) == nested_latency_us(without, schedule)


def test_bytes_are_seen_in_grains() -> None:
    one = stage("a", 2.0, 1.0, 4)
    assert [one.visible_us(10, byte) for byte in (0, 1, 4, 5, 8, 9, 10)] == [
        2.0, 6.0, 6.0, 10.0, 10.0, 12.0, 12.0,
    ]  # fmt: skip
    assert stage("a", 2.0, 1.0, None).visible_us(10, 1) == 12.0


def cuts_of(size: int) -> list[tuple[int, ...]]:
    """All cuts of a message."""
    found = []
    for bits in range(2 ** (size - 1)):
        ends = [at + 1 for at in range(size - 1) if bits >> at & 1] + [size]
        found.append(tuple(b - a for a, b in zip([0, *ends], ends, strict=False)))
    return found


@pytest.mark.parametrize("seed", range(count(1000, share=40)))
def test_no_cut_is_below_the_bound(seed: int) -> None:
    """All cuts of all stages of tiny messages, with mixed handoffs."""
    noise = Random(seed)
    length, size = noise.choice([(2, 6), (2, 7), (3, 4), (3, 5)])
    stages = tuple(
        stage(
            str(j), noise.uniform(0.0, 5.0), noise.uniform(0.0, 0.5), noise.choice([1, 1, 2, None])
        )
        for j in range(length)
    )
    pipeline = Pipeline(stages, 1.0)
    bound_us = nested_lower_bound_us(Problem(pipeline, size, FragmentLimits()))
    cuts = cuts_of(size)
    best_us = min(_latencies_us(pipeline, cuts, ()))
    assert bound_us <= best_us * (1 + 1e-12)
    whole_us = nested_latency_us(pipeline, delivered(pipeline, size, *[WHOLE] * length))
    assert bound_us >= 0.5 * best_us or best_us == whole_us


def _latencies_us(
    pipeline: Pipeline, cuts: list[tuple[int, ...]], chosen: tuple[tuple[int, ...], ...]
) -> list[float]:
    if len(chosen) == len(pipeline):
        return [nested_latency_us(pipeline, NestedSchedule(chosen))]
    return [found for cut in cuts for found in [min(_latencies_us(pipeline, cuts, (*chosen, cut)))]]


def test_the_bound_of_complete_blocks_does_not_hold_under_handoffs() -> None:
    """The case that showed it: the bound without handoffs exceeds a schedule with them."""
    g, per_byte = (4.5956, 0.4722, 0.1519), (0.44468, 0.01844, 0.49347)
    lines = list(zip(g, per_byte, strict=True))
    handing, complete = (
        Pipeline(tuple(stage(str(j), *one, grain) for j, one in enumerate(lines)))
        for grain in (1, None)
    )
    eager_us = nested_latency_us(handing, delivered(handing, 64, WHOLE, eager(1), eager(1)))
    bounds_us = [
        nested_lower_bound_us(Problem(pipeline, 64, FragmentLimits()))
        for pipeline in (handing, complete)
    ]
    assert bounds_us[0] <= eager_us < bounds_us[1]


# --- refusals -------------------------------------------------------------------------------------


class TestRefusals:
    """Field and rule."""

    @pytest.mark.parametrize("grain", [0, -1, 1.5, float("nan"), True, "64", 2**48 + 1])
    def test_grains(self, grain: object) -> None:
        with pytest.raises(InvalidStage) as refused:
            Stage.of_line("a", overhead_us=1.0, ns_per_byte=1.0, handoff_bytes=grain)  # type: ignore[arg-type]
        assert refused.value.field == "handoff_bytes"

    @pytest.mark.parametrize(
        ("rule", "sizes", "field"),
        [
            (DeliveryRule.STATIC, {}, "pulse_bytes"),
            (DeliveryRule.EAGER, {"pulse_bytes": 1}, "pulse_bytes"),
            (DeliveryRule.EAGER, {"threshold_bytes": 0}, "threshold_bytes"),
            (DeliveryRule.STATIC, {"pulse_bytes": 1, "threshold_bytes": 1}, "threshold_bytes"),
            (DeliveryRule.PLANNED, {}, "planned_bytes"),
            (DeliveryRule.PLANNED, {"planned_bytes": (1, 0)}, "planned_bytes"),
            (DeliveryRule.SAME, {"max_pulse_bytes": 3}, "max_pulse_bytes"),
        ],
    )
    def test_rules(self, rule: DeliveryRule, sizes: dict[str, int], field: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            Delivery(rule, **sizes)  # type: ignore[arg-type]
        assert refused.value.field == field

    def test_a_threshold_above_the_greatest_pulse(self) -> None:
        with pytest.raises(InconsistentInput):
            eager(8, 7)

    def test_as_many_rules_as_stages(self) -> None:
        with pytest.raises(InvalidInput, match="expected 2 rules"):
            delivered(Pipeline((stage("a", 1, 1), stage("b", 1, 1))), 8, WHOLE)

    def test_planned_sizes_sum_to_the_message(self) -> None:
        rule = Delivery(DeliveryRule.PLANNED, planned_bytes=(3, 4))
        with pytest.raises(InvalidInput, match="sum to 7 bytes"):
            delivered(Pipeline((stage("a", 1, 1),)), 8, rule)

    def test_too_many_pulses_name_a_size_that_fits(self) -> None:
        pipeline = Pipeline((stage("a", 1, 1), stage("b", 0, 0)))
        with pytest.raises(Infeasible, match="pulse_bytes of 10 and more"):
            deliver(pipeline, 100, (WHOLE, static(1)), max_pulses=10)
        found = deliver(pipeline, 100, (WHOLE, static(10)), max_pulses=10)
        assert list(accumulate(found.stage_bytes[1]))[-1] == 100
