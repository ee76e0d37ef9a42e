"""Yocum et al. 1997 (Trapeze): what the paper prints beside what the model gives.

The set-ups and the link's rate are fitted to the seven printed latencies; the bus rates and the
27 µs of control are the paper's. "Printed" tolerances are to the paper, the model's own figures
are held to six digits, so that nothing moves unseen.
"""

from __future__ import annotations

from itertools import product
from math import isclose

import pytest

from domain.delivery import Delivery, DeliveryRule, deliver
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.solution import Strategy
from solvers import solve
from solvers.nested.bound import nested_lower_bound_us

SIZE = 8192
WHOLE = Delivery(DeliveryRule.STORE_AND_FORWARD)


def _pipeline(
    lines: list[tuple[str, float, float]], delay_us: float, grain: int | None
) -> Pipeline:
    stages = tuple(
        Stage.of_line(name, overhead_us=g, ns_per_byte=ns, handoff_bytes=grain)
        for name, g, ns in lines
    )
    return Pipeline(stages, delay_us)


MEASURED = [("bus read", 4.4, 7.8125), ("link", 1.0, 9.7), ("bus write", 2.35, 15.625)]
TRAPEZE = _pipeline(MEASURED, 27.0, 1)
RATES = _pipeline([("read", 0.0, 7.8125), ("link", 0.0, 7.8125), ("write", 0.0, 15.625)], 0.0, 1)


def _eager(threshold: int) -> Delivery:
    return Delivery(DeliveryRule.EAGER, threshold_bytes=threshold)


def _static(size: int) -> Delivery:
    return Delivery(DeliveryRule.STATIC, pulse_bytes=size)


def latency_us(*rules: Delivery, size: int = SIZE, pipeline: Pipeline = TRAPEZE) -> float:
    """Of a message whose first stage is one transfer."""
    cut = deliver(pipeline, size, (WHOLE, *rules), max_pulses=100_000)
    return nested_latency_us(pipeline, cut)


def static_us(link: int, write: int) -> float:
    return latency_us(_static(link), _static(write))


def eager_us(link: int, write: int) -> float:
    return latency_us(_eager(link), _eager(write))


class TestRates:
    """Rows 1 to 4: the published rates alone, without set-ups."""

    def test_store_and_forward_takes_256_us_three_quarters_of_it_on_the_buses(self) -> None:
        whole_us = latency_us(WHOLE, WHOLE, pipeline=RATES)
        assert whole_us == 256.0
        buses_us = sum(RATES.stages[at].time_us(SIZE) for at in (0, 2))
        assert buses_us / whole_us == 0.75

    @pytest.mark.parametrize(
        ("ratio", "speedup"), [(1.0, 3.0), (2.0, 2.0), (4.0, 1.5), (0.5, 2.5), (8.0, 1.25)]
    )
    def test_figure_8(self, ratio: float, speedup: float) -> None:
        """Ideal cut-through over store and forward, by the bus's bandwidth over the network's."""
        network = 8.0
        lines = [
            ("in", 0.0, network / ratio),
            ("link", 0.0, network),
            ("out", 0.0, network / ratio),
        ]
        pipeline = _pipeline(lines, 0.0, 1)
        ideal_us = SIZE * max(ns for _, _, ns in lines) / 1000.0
        assert latency_us(WHOLE, WHOLE, pipeline=pipeline) / ideal_us == pytest.approx(speedup)
        finest_us = latency_us(_static(1), _static(1), pipeline=pipeline)
        assert finest_us == pytest.approx(ideal_us, rel=1e-3)


class TestMeasured:
    """Rows 5 to 16: what was measured, within the tolerance stated for each."""

    @pytest.mark.parametrize(
        ("link", "write", "model_us"),
        [
            (8192, 8192, 306.2124),
            (1280, 1280, 199.2660),
            (256, 1024, 194.1328),
            (128, 128, 313.04),
            (512, 512, 206.97),
            (1024, 1024, 197.13),
            (2048, 2048, 205.67),
            (4096, 4096, 236.83),
            (128, 8192, 306.21),
            (8192, 128, 376.04),
        ],
    )
    def test_static_pulses(self, link: int, write: int, model_us: float) -> None:
        assert static_us(link, write) == pytest.approx(model_us, abs=0.01)

    @pytest.mark.parametrize(
        ("link", "write", "model_us"),
        [
            (384, 512, 181.1164),
            (512, 512, 181.1164),
            (512, 384, 182.2248),
            (64, 32, 177.6604),
            (128, 128, 179.09),
            (1280, 1280, 192.22),
            (4096, 4096, 236.83),
            (8192, 512, 241.12),
        ],
    )
    def test_eager_pulses(self, link: int, write: int, model_us: float) -> None:
        assert eager_us(link, write) == pytest.approx(model_us, abs=0.01)

    def test_the_printed_latencies_are_met(self) -> None:
        """308, 195 and 177 µs at three pairs of thresholds, within 3 %; these within 2 µs."""
        assert static_us(8192, 8192) == pytest.approx(308.0, rel=0.03)
        assert static_us(256, 1024) == pytest.approx(195.0, rel=0.03)
        eager = [eager_us(*pair) for pair in ((384, 512), (512, 512), (512, 384))]
        assert eager == pytest.approx([177.0] * 3, rel=0.03)
        assert max(eager) - min(eager) <= 2.0

    def test_the_best_of_a_grid(self) -> None:
        """Static multiples of 128 up to 3072; eager ones of 32 up to 1024, every second here."""
        static = {pair: static_us(*pair) for pair in product(range(256, 3073, 256), repeat=2)}
        assert min(static, key=lambda pair: static[pair]) == (256, 1024)
        assert static_us(1280, 1280) <= 1.03 * min(static.values())
        eager = [eager_us(*pair) for pair in product(range(64, 1025, 192), repeat=2)]
        assert min(eager) >= 177.66
        assert min(eager) == pytest.approx(177.0, rel=0.03)

    def test_the_printed_savings(self) -> None:
        """37, 9 and 43 %, within 3 points of the model, and from the printed µs themselves."""
        whole, static, eager = static_us(8192, 8192), static_us(256, 1024), eager_us(64, 32)
        model = [1 - static / whole, 1 - eager / static, 1 - eager_us(512, 512) / whole]
        assert model == pytest.approx([0.37, 0.09, 0.43], abs=0.03)
        printed = [1 - 195 / 308, 1 - 177 / 195, 1 - 177 / 308, 1 - 201 / 310]
        assert [round(100 * one) for one in printed] == [37, 9, 43, 35]

    @pytest.mark.parametrize(
        ("size", "whole_us", "found_us"),
        [
            (512, 51.72, 51.72),
            (1024, 68.6828, 62.0664),
            (2048, 102.62, 80.42),
            (4096, 170.48, 114.77),
        ],
    )
    def test_payloads(self, size: int, whole_us: float, found_us: float) -> None:
        """Figure 7; 68 and 63 µs are printed for 1 KB."""
        assert latency_us(WHOLE, WHOLE, size=size) == pytest.approx(whole_us, abs=0.01)
        assert latency_us(_eager(512), _eager(512), size=size) == pytest.approx(found_us, abs=0.01)
        if size == 1024:
            assert (whole_us, found_us) == pytest.approx((68.0, 63.0), rel=0.03)

    def test_the_benefit_starts_below_a_kilobyte(self) -> None:
        rules = (_eager(512), _eager(512))
        gains = [
            size
            for size in range(16, 2049, 16)
            if latency_us(*rules, size=size) < latency_us(WHOLE, WHOLE, size=size) * (1 - 1e-9)
        ]
        assert gains == list(range(656, 2049, 16))

    def test_the_bus_moves_what_figure_5_says(self) -> None:
        read, write = (SIZE / TRAPEZE.stages[at].time_us(SIZE) for at in (0, 2))
        assert read == pytest.approx(119.8, abs=0.1)
        assert read == pytest.approx(128.0, rel=0.1)
        assert write / read == pytest.approx(0.524, abs=0.001)

    def test_a_demand_fetch(self) -> None:
        """201 µs measured and 205 expected; of store and forward the paper prints 310, which its
        own 308 one way and 27 contradict: nothing is tuned to it.
        """
        assert 27.0 + eager_us(512, 512) == pytest.approx(205.0, rel=0.04)
        assert 27.0 + static_us(8192, 8192) == pytest.approx(333.2, abs=0.1)

    @pytest.mark.parametrize(
        ("grain", "model_us"),
        [(1, 181.116), (64, 181.116), (256, 181.116), (1024, 190.083), (None, 306.212)],
    )
    def test_grains(self, grain: int | None, model_us: float) -> None:
        pipeline = _pipeline(MEASURED, 27.0, grain)
        found_us = latency_us(_eager(512), _eager(512), pipeline=pipeline)
        assert found_us == pytest.approx(model_us, abs=1e-3)


class TestClosedForms:
    """What follows for this pipeline, against the solvers."""

    @pytest.mark.parametrize("size", [512, 1000, 1280, 3000])
    def test_one_static_size_is_a_repeated_size(self, size: int) -> None:
        """Exactly that of the pipeline whose first stage's overhead is in the delay."""
        (_, g, ns), *rest = MEASURED
        streamed = pipeline_of_lines([("bus read", 0.0, ns), *rest], delay_us=27.0 + g)
        fragments = (size,) * (SIZE // size) + ((SIZE % size,) if SIZE % size else ())
        shared = NestedSchedule((fragments,) * 3)
        expected = nested_latency_us(streamed, shared)
        assert static_us(size, size) == pytest.approx(expected, rel=1e-9)

    def test_the_best_shared_cut_and_the_bound_of_all_cuts(self) -> None:
        """178.17 µs, 185.45 where fragments are complete at each stage, and at least 174.43."""
        (_, g, ns), *rest = MEASURED
        streamed = pipeline_of_lines([("bus read", 0.0, ns), *rest], delay_us=27.0 + g)
        best = solve(Problem(streamed, SIZE, FragmentLimits()), Strategy.EXACT)
        assert best.latency_us == pytest.approx(178.17, abs=0.01)
        complete = _pipeline(MEASURED, 27.0, None)
        shared = solve(Problem(complete, SIZE, FragmentLimits()), Strategy.EXACT)
        assert shared.latency_us == pytest.approx(185.45, abs=0.01)
        bound_us = nested_lower_bound_us(Problem(TRAPEZE, SIZE, FragmentLimits()))
        assert 174.42 <= bound_us <= eager_us(64, 32)
        assert isclose(eager_us(64, 32), 177.6604, abs_tol=1e-4)

    def test_a_proxy(self) -> None:
        """1 MiB in by segments, a worker of 6 µs a call, out: buffered, static and eager."""
        stages = (
            Stage.of_line("in", overhead_us=0.0, ns_per_byte=0.8, handoff_bytes=1448),
            Stage.of_line("worker", overhead_us=6.0, ns_per_byte=0.9, handoff_bytes=None),
            Stage.of_line("out", overhead_us=2.0, ns_per_byte=0.32),
        )
        proxy, same = Pipeline(stages, 10.0), Delivery(DeliveryRule.SAME)
        size = 2**20
        buffered = latency_us(WHOLE, WHOLE, size=size, pipeline=proxy)
        static = latency_us(_static(65536), same, size=size, pipeline=proxy)
        eager = latency_us(_eager(1), same, size=size, pipeline=proxy)
        assert [buffered, static, eager] == pytest.approx([2136.1, 1126.0, 1061.8], abs=0.1)
        bound_us = nested_lower_bound_us(Problem(proxy, size, FragmentLimits()))
        assert bound_us <= eager


@pytest.mark.parametrize(("threshold", "took_us"), [(512, 160.01), (2048, 189.45), (8192, 328.75)])
def test_a_relay_with_buses_of_its_own(threshold: int, took_us: float) -> None:
    """A link in, one host's bus twice, a link out; the bus that both transfers share is no rule."""
    lines = [
        ("link in", 1.0, 7.8125),
        ("bus write", 2.35, 15.625),
        ("bus read", 4.4, 7.8125),
        ("link out", 1.0, 7.8125),
    ]
    relay = _pipeline(lines, 0.0, 1)
    rules = (_eager(threshold),) * 3
    assert latency_us(*rules, pipeline=relay) == pytest.approx(took_us, abs=5e-3)
