"""Measurement plans: followed step by step, they find every transition of the bottleneck."""

from __future__ import annotations

import numpy as np
import pytest

from domain.errors import InvalidInput
from domain.measurement import MessageTrace, Samples
from domain.plan import MeasurementPlan, PlanLimits, Quantity
from fitting import plan
from tests.support.counts import count

LIMITS = PlanLimits(64, 2**20)
Lines = list[tuple[float, float]]


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
    slowest = np.argmax([[a + b * x / 1000.0 for a, b in lines] for x in sizes], axis=1)
    return [float(sizes[i]) for i in range(1, len(sizes)) if slowest[i] != slowest[i - 1]]


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
        assert sizes == 5
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
        """Without noise nearly all are found, and with fewer sizes than by halving."""
        there = got = 0
        sizes, halving = [], []
        for seed in range(count(1000)):
            lines = random_lines(seed)
            found, number = followed(lines, seed=seed)
            sizes.append(number)
            inner = [at for at in transitions(lines) if 128 < at < 2**19]
            halving.append(2 + 8 * len(inner))  # each to 5 %: log2(ln(2^14) / ln 1.05) sizes
            places = [one.at_bytes for one in found.transitions if one.at_bytes is not None]
            there += len(inner)
            got += sum(any(abs(place / at - 1) < 0.03 for place in places) for at in inner)
        assert got >= 0.97 * there
        assert np.mean(sizes) < np.mean(halving)
        assert max(sizes) <= 14

    def test_it_ends_under_noise(self) -> None:
        for seed in range(count(200)):
            found, sizes = followed(random_lines(seed), noise=0.02, seed=seed)
            assert found.decided
            assert sizes <= 60

    def test_a_protocol_switch_is_bracketed_and_said(self) -> None:
        found, _ = followed([(5.0, 20.0), (300.0, 25.0)], jump=8192)
        assert len(found.transitions) == 1
        low, high = found.transitions[0].between_bytes
        assert low <= 8192 < high <= 1.06 * low

    def test_repetitions_follow_the_noise(self) -> None:
        quiet = plan(_ends(0.001), LIMITS).measure[0].repetitions
        loud = plan(_ends(0.1), LIMITS).measure[0].repetitions
        assert quiet < loud <= 1000


def _ends(noise: float) -> MessageTrace:
    rng = np.random.default_rng(1)
    sizes = [64] * 20 + [128] * 20
    times = np.array([1.0 + size / 100 for size in sizes]) * (1 + noise * rng.standard_normal(40))
    return MessageTrace(interarrival=Samples(sizes, times.tolist()))


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ((0, 100, 0.03), "least_bytes"),
        ((64, 100, 0.03), "greatest_bytes"),
        ((64, 2**50, 0.03), "greatest_bytes"),
        ((64, 1024, 0.9), "tolerance"),
    ],
)
def test_rules_of_limits(limits: tuple[int, int, float], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        PlanLimits(*limits)
    assert refused.value.field == field
