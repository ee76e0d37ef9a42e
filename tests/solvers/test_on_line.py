"""Strategies that choose thresholds or pulse sizes: against every threshold, and their limits."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from domain.delivery import Delivery, DeliveryRule, deliver
from domain.errors import StrategyDeclined
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from domain.solution import Status, Strategy
from solvers import solve
from tests.support.counts import count

BOTH = [Strategy.EAGER, Strategy.PULSES]


def _pipeline(noise: Random, grain: int | None = 1) -> Pipeline:
    return Pipeline(
        tuple(
            Stage.of_line(
                str(j),
                overhead_us=noise.uniform(0.1, 5.0),
                ns_per_byte=noise.uniform(5.0, 500.0),
                handoff_bytes=grain,
            )
            for j in range(3)
        ),
        1.0,
    )


@pytest.mark.parametrize("seed", range(count(40)))
@pytest.mark.parametrize("strategy", BOTH)
def test_the_search_is_near_the_best_of_all_sizes(strategy: Strategy, seed: int) -> None:
    """Every pair of sizes of the two later stages, 64 bytes."""
    pipeline, size = _pipeline(Random(seed)), 64
    whole = Delivery(DeliveryRule.STORE_AND_FORWARD)

    def rule(of: int) -> Delivery:
        if strategy is Strategy.EAGER:
            return Delivery(DeliveryRule.EAGER, threshold_bytes=of)
        return Delivery(DeliveryRule.STATIC, pulse_bytes=of)

    best_us = min(
        nested_latency_us(
            pipeline, deliver(pipeline, size, (whole, rule(a), rule(b)), max_pulses=size)
        )
        for a, b in product(range(1, size + 1), repeat=2)
    )
    found = solve(Problem(pipeline, size, FragmentLimits()), strategy)
    assert found.lower_bound_us <= best_us * (1 + 1e-9)
    assert best_us * (1 - 1e-9) <= found.latency_us <= best_us * 1.03  # 1.0204 is the worst of 80
    assert found.status in (Status.PROVEN_GAP, Status.OPTIMAL)


@pytest.mark.parametrize("strategy", BOTH)
def test_what_to_set_is_said_and_gives_the_answer(strategy: Strategy) -> None:
    pipeline, size = _pipeline(Random(3)), 8192
    found = solve(Problem(pipeline, size, FragmentLimits()), strategy)
    said = [one for one in found.notices if one.code == "delivery_rule"]
    assert [one.stage for one in said] == ["0", "1", "2"]
    rules = []
    for one in said:
        threshold, pulse = one.value("threshold_bytes"), one.value("pulse_bytes")
        if threshold is not None:
            rules.append(Delivery(DeliveryRule.EAGER, threshold_bytes=int(threshold)))
        else:
            rules.append(Delivery(DeliveryRule.STATIC, pulse_bytes=int(pulse or 0)))
    again = deliver(pipeline, size, rules, max_pulses=size)
    assert again.stage_bytes == found.levels
    assert nested_latency_us(pipeline, again) == found.latency_us


def test_auto_takes_it_where_bytes_are_handed_on() -> None:
    """And says what to set; where stages may not cut differently it does not."""
    handing = _pipeline(Random(5))
    allowed = Problem(handing, 8192, FragmentLimits(), allow_refragmentation=True)
    answer = solve(allowed, Strategy.AUTO)
    assert answer.strategy in BOTH
    assert "delivery_rule" in [one.code for one in answer.notices]
    shared = solve(Problem(handing, 8192, FragmentLimits()), Strategy.AUTO)
    assert shared.levels is None


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize(
    "limits",
    [
        FragmentLimits(max_fragment_bytes=1000),
        FragmentLimits(min_fragment_bytes=512),
        FragmentLimits(max_fragments=5),
        FragmentLimits(min_fragment_bytes=300, max_fragment_bytes=2000, max_fragments=20),
    ],
)
def test_limits_hold_for_every_stage(strategy: Strategy, limits: FragmentLimits) -> None:
    problem = Problem(_pipeline(Random(7)), 8192, limits)
    try:
        found = solve(problem, strategy)
    except StrategyDeclined:
        pytest.fail("there are pulses that keep these limits")
    assert all(problem.admits(cut) for cut in found.levels or ())
    schedule = NestedSchedule(found.levels or ())
    assert nested_latency_us(problem.pipeline, schedule) == found.latency_us


def test_alignment_is_for_pulses_of_a_size_alone() -> None:
    problem = Problem(_pipeline(Random(9)), 8192, FragmentLimits(alignment_bytes=256))
    with pytest.raises(StrategyDeclined, match="no alignment admits"):
        solve(problem, Strategy.EAGER)
    found = solve(problem, Strategy.PULSES)
    assert all(size % 256 == 0 for cut in found.levels or () for size in cut)


@pytest.mark.parametrize("strategy", BOTH)
def test_one_stage_has_nothing_to_choose(strategy: Strategy) -> None:
    alone = Pipeline((Stage.of_line("a", overhead_us=1.0, ns_per_byte=1.0),))
    with pytest.raises(StrategyDeclined, match="at least two stages"):
        solve(Problem(alone, 64, FragmentLimits()), strategy)


@pytest.mark.parametrize("strategy", BOTH)
def test_free_stages_end_soon(strategy: Strategy) -> None:
    """Without overheads ever finer pulses are better; the cap on fragments ends that."""
    free = Pipeline(
        tuple(
            Stage.of_line(str(j), overhead_us=0.0, ns_per_byte=1.0, handoff_bytes=1)
            for j in range(3)
        )
    )
    problem = Problem(free, 2**20, FragmentLimits(), fragment_cap=1000)
    found = solve(problem, strategy, time_limit_s=5.0)
    assert max(map(len, found.levels or ())) <= 1000


@pytest.mark.parametrize("strategy", [Strategy.PULSES, Strategy.EAGER, Strategy.AUTO])
@pytest.mark.parametrize("per_byte", [5e-324, 1e-300])
def test_a_stage_that_is_all_but_free_is_no_failure(strategy: Strategy, per_byte: float) -> None:
    stages = (
        Stage.of_line("a", overhead_us=1.0, ns_per_byte=per_byte, handoff_bytes=1),
        Stage.of_line("b", overhead_us=0.0, ns_per_byte=1e9),
    )
    problem = Problem(Pipeline(stages), 4096, allow_refragmentation=True)
    answer = solve(problem, strategy, time_limit_s=1.0)
    assert answer.lower_bound_us <= answer.latency_us
