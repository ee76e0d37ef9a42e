"""Measurement plans: followed step by step, they find every transition of the bottleneck."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.measurement import MessageTrace, Samples
from domain.plan import MeasurementPlan, PlanLimits, Quantity
from measuring import plan
from tests.support.counts import count

LIMITS = PlanLimits(64, 2**20)
Lines = list[tuple[float, float]]
TIMES = st.one_of(st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 1e9]), st.floats(0.0, 1e9))


def envelope_us(lines: Lines, size: float) -> float:
    return max(overhead + cost * size / 1000.0 for overhead, cost in lines)


def followed(
    lines: Lines, *, noise: float = 0.0, seed: int = 0, jump: int | None = None
) -> tuple[MeasurementPlan, int]:
    """The plan once it is decided, and how many sizes were measured; inter-arrival times are the
    upper envelope of the lines, or with a jump the first of two lines up to there.
    """
    rng = np.random.default_rng(seed)
    inter: tuple[list[int], list[float]] = ([], [])
    latency: tuple[list[int], list[float]] = ([], [])
    for _ in range(40):
        parts = [Samples(*columns) if columns[0] else None for columns in (latency, inter)]
        found = plan(MessageTrace(*parts) if any(parts) else None, LIMITS)
        if found.decided:
            return found, len(set(inter[0]))
        for one in found.measure:
            size = one.message_bytes
            if one.quantity is Quantity.LATENCY:
                truth, into = 100.0 + 0.05 * size, latency
            elif jump is None:
                truth, into = envelope_us(lines, size), inter
            else:
                truth, into = envelope_us([lines[size > jump]], size), inter
            into[0].extend([size] * one.repetitions)
            into[1].extend(truth * (1.0 + noise * rng.standard_normal(one.repetitions)))
    raise AssertionError("the plan never ended")


def random_lines(seed: int) -> Lines:
    rng = np.random.default_rng(seed)
    return [
        (10 ** rng.uniform(-1, 2.5), 10 ** rng.uniform(-1, 2)) for _ in range(rng.integers(2, 6))
    ]


def transitions(lines: Lines) -> list[float]:
    sizes = np.exp(np.linspace(np.log(64), np.log(2**20), 20_001))
    slowest = np.argmax([a + b * sizes / 1000.0 for a, b in lines], axis=0)
    return sizes[1:][slowest[1:] != slowest[:-1]].tolist()


def halved(lines: Lines) -> set[int]:
    """The sizes that the paper's halving measures, each transition to 5 % (Wang98 sec. 5.3.2).

    The bottleneck at a size is known from a pair of sizes there; where those at both ends differ,
    the middle is next.
    """
    measured: set[int] = set()

    def line_at(size: int) -> int:
        measured.update((size, size + max(4, size // 50)))
        return int(np.argmax([a + b * size / 1000.0 for a, b in lines]))

    def search(low: int, high: int) -> None:
        if line_at(low) != line_at(high) and high > 1.05 * low:
            middle = int(np.sqrt(low * high))
            search(low, middle)
            search(middle, high)

    search(64, 2**20)
    return measured


class TestFollowed:
    """What is asked for is measured, until the plan is decided."""

    def test_nothing_measured_yet(self) -> None:
        first = plan(None, LIMITS)
        assert not first.decided
        asked = [(one.message_bytes, one.quantity) for one in first.measure]
        ends = [64, 128, 2**19, 2**20]
        assert asked[:4] == [(size, Quantity.INTERARRIVAL) for size in ends]
        assert {quantity for _, quantity in asked[4:]} == {Quantity.LATENCY}
        assert "two sizes" in first.reason

    def test_one_line(self) -> None:
        found, sizes = followed([(8.0, 11.0)])
        assert found.transitions == ()
        assert len(found.bottlenecks) == 1
        assert found.bottlenecks[0].line.overhead_us == pytest.approx(8.0)
        assert sizes == 4
        assert "one line holds" in found.reason

    def test_one_transition_is_located_exactly(self) -> None:
        """30 + 10 x and 1 + 20 x meet at 2 900 bytes, and one measurement there settles it."""
        found, sizes = followed([(1.0, 20.0), (30.0, 10.0), (5.0, 18.0)])
        assert [one.at_bytes for one in found.transitions] == [2900]
        assert sizes == 5

    def test_a_third_line_between_is_found(self) -> None:
        found, _ = followed([(100.0, 0.1), (60.0, 10.0), (1.0, 20.0)])
        assert [one.at_bytes for one in found.transitions] == pytest.approx([4040, 5900], rel=0.01)

    def test_every_transition_of_random_pipelines(self) -> None:
        """Without noise all are found, to the byte or two, and with fewer sizes than by halving."""
        sizes, halving = [], []
        for seed in range(count(1000)):
            lines = random_lines(seed)
            found, number = followed(lines, seed=seed)
            sizes.append(number)
            halving.append(len(halved(lines)))
            places = [one.at_bytes for one in found.transitions if one.at_bytes is not None]
            inner = [at for at in transitions(lines) if 128 < at < 2**19]
            for at in inner:
                assert any(abs(place - at) <= 1 + 0.001 * at for place in places), (seed, at)
        assert np.mean(sizes) < 0.4 * np.mean(halving)
        assert max(sizes) <= 10

    def test_transitions_under_noise(self) -> None:
        """With 2 % on every time nine of ten are found, few are invented, and it always ends."""
        there = found = invented = 0
        sizes = []
        for seed in range(count(500)):
            lines = random_lines(seed)
            plan_made, number = followed(lines, noise=0.02, seed=seed)
            sizes.append(number)
            places = [one.at_bytes or one.between_bytes[0] for one in plan_made.transitions]
            truth = transitions(lines)
            inner = [at for at in truth if 128 < at < 2**19]
            there += len(inner)
            found += sum(any(abs(place / at - 1) < 0.3 for place in places) for at in inner)
            invented += sum(not any(abs(place / at - 1) < 0.5 for at in truth) for place in places)
        assert found >= 0.9 * there
        assert invented <= 0.1 * there
        assert np.mean(sizes) < 12
        assert max(sizes) <= 60

    def test_a_protocol_switch_is_bracketed_and_said(self) -> None:
        found, _ = followed([(5.0, 20.0), (300.0, 25.0)], jump=8192)
        assert len(found.transitions) == 1
        low, high = found.transitions[0].between_bytes
        assert low <= 8192 < high <= 1.06 * low

    def test_repetitions_follow_the_noise(self) -> None:
        quiet = plan(_ends(0.001), LIMITS).measure[0].repetitions
        loud = plan(_ends(0.1), LIMITS).measure[0].repetitions
        assert quiet < loud <= 1000


class TestTraces:
    """Measurements that were not made after a plan."""

    def test_a_size_each_time(self) -> None:
        """As many sizes as samples: looked at a part of them, both ends included."""
        sizes = list(range(64, 60_064))
        times = [envelope_us([(30.0, 10.0), (1.0, 20.0)], size) for size in sizes]
        found = plan(MessageTrace(None, Samples(sizes, times)), PlanLimits(64, 60_063))
        assert [one.at_bytes for one in found.transitions] == pytest.approx([2900], rel=0.1)
        assert {one.quantity for one in found.measure} == {Quantity.LATENCY}

    def test_one_time_a_size_of_few_digits(self) -> None:
        """Half a unit of the last digit is no transition."""
        sizes = [2**n for n in range(6, 21)]
        times = [round(8.0 + 0.0113 * size, 2) for size in sizes]
        found = plan(MessageTrace(Samples(sizes, times), Samples(sizes, times)), LIMITS)
        assert found.decided
        assert len(found.bottlenecks) == 1

    def test_too_few_repetitions_for_the_noise(self) -> None:
        found = plan(_ends(0.3), PlanLimits(64, 1024))
        asked = [one for one in found.measure if one.quantity is Quantity.INTERARRIVAL]
        assert [one.message_bytes for one in asked] == [512, 1024]  # first the other end
        found = plan(_ends(0.3, also=(512, 1024)), PlanLimits(64, 1024))
        assert {one.message_bytes for one in found.measure[:4]} == {64, 128, 512, 1024}
        assert "vary" in found.reason

    @pytest.mark.parametrize("time_us", [0.0, 1e-300, 1e9])
    def test_the_same_time_everywhere(self, time_us: float) -> None:
        """Times of 0 tell so little that more sizes are asked for, until there are enough."""
        sizes = [2**n for n in range(6, 21)] * 3
        samples = Samples(sizes, [time_us] * len(sizes))
        found = plan(MessageTrace(samples, samples), LIMITS)
        assert found.decided
        assert found.transitions == ()
        assert found.bottlenecks[0].line.overhead_us == pytest.approx(time_us)

    @given(st.lists(st.tuples(st.integers(1, 2**40), TIMES), min_size=1, max_size=25))
    def test_whatever_was_measured(self, rows: list[tuple[int, float]]) -> None:
        """The sizes asked for can be measured, and every number is finite."""
        sizes, times = zip(*rows, strict=True)
        found = plan(MessageTrace(None, Samples(sizes, times)), PlanLimits(1, 2**40))
        assert not found.decided
        for one in found.measure:
            assert 1 <= one.message_bytes <= 2**40
            assert 5 <= one.repetitions <= 1000
        for known in found.bottlenecks:
            assert isfinite(known.line.overhead_us)
            assert isfinite(known.line.ns_per_byte)

    def test_sizes_outside_the_range_do_not_count(self) -> None:
        sizes = [1, 2, 4, 2**30]
        found = plan(MessageTrace(None, Samples(sizes, [1.0] * 4)), LIMITS)
        assert [one.message_bytes for one in found.measure[:4]] == [64, 128, 2**19, 2**20]


def _ends(noise: float, also: tuple[int, ...] = ()) -> MessageTrace:
    rng = np.random.default_rng(1)
    sizes = [size for size in (64, 128, *also) for _ in range(20)]
    wobble = 1 + np.clip(noise * rng.standard_normal(len(sizes)), -0.9, None)
    times = np.array([1.0 + size / 100 for size in sizes]) * wobble
    return MessageTrace(interarrival=Samples(sizes, times.tolist()))


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ((0, 100, 0.03), "min_message_bytes"),
        ((64, 100, 0.03), "max_message_bytes"),
        ((64, 2**50, 0.03), "max_message_bytes"),
        ((64, 1024, 0.9), "tolerance"),
    ],
)
def test_rules_of_limits(limits: tuple[int, int, float], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        PlanLimits(*limits)
    assert refused.value.field == field
