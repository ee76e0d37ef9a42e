"""Ramps: what they decline, and the traps of their recurrences."""

import pytest

from domain.errors import StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers import solve
from solvers.contract import Deadline, SolveOptions
from solvers.heuristics.ramp import run as run_ramp
from solvers.heuristics.ramp_up_down import run as run_up_down

TWO = pipeline_of_lines([("a", 3.0, 2.0), ("b", 5.0, 4.0)])
THREE = pipeline_of_lines([("a", 3.0, 2.0), ("b", 5.0, 4.0), ("c", 1.0, 3.0)])


def real_sizes(problem: Problem) -> tuple[float, ...]:
    """The real cut behind a ramp's answer."""
    run = run_ramp if len(problem.pipeline) == 2 else run_up_down
    sizes = run(problem, SolveOptions(), Deadline.after(10.0)).real_sizes
    assert sizes is not None
    return sizes


@pytest.mark.parametrize(
    ("strategy", "pipeline", "words"),
    [
        ("ramp", THREE, "exactly two stages"),
        ("ramp_up_down", TWO, "exactly three stages"),
        ("ramp", pipeline_of_lines([("a", 1.0, 0.0), ("b", 2.0, 0.0)]), "per-byte cost"),
        ("ramp_up_down", pipeline_of_lines([("a", 1.0, 1.0), ("b", 2.0, 0.0), ("c", 1.0, 1.0)]),
         "per-byte cost"),
        ("ramp", Pipeline((TWO.stages[0], Stage("w", (FitRange(1, 2, 500), FitRange(9, 1))))),
         "one line"),
    ],
)  # fmt: skip
def test_what_a_strategy_needs_is_said(strategy: str, pipeline: Pipeline, words: str) -> None:
    """A strategy that cannot run at all says what it needs."""
    with pytest.raises(StrategyDeclined, match=words):
        solve(Problem(pipeline, 20_000), strategy)


@pytest.mark.parametrize("first_cost", [1.0, 3.999999999, 4.0, 4.000000001, 9.0, 1e6, 1e-6])
@pytest.mark.parametrize("first_overhead", [0.0, 5.0, 400.0])
def test_sums_and_recurrence_hold_for_every_ratio(first_cost: float, first_overhead: float) -> None:
    """Ratios below, near and above 1 and far from it: sizes add up, and stage b never waits."""
    pipeline = pipeline_of_lines([("a", first_overhead, first_cost), ("b", 5.0, 4.0)])
    sizes = real_sizes(Problem(pipeline, 1 << 20))
    assert sum(sizes) == pytest.approx(1 << 20, rel=1e-9)
    a, b = pipeline.stages
    expected = a.time_us(sizes[0]) + sum(b.time_us(size) for size in sizes)
    assert latency_us(pipeline, sizes) == pytest.approx(expected, rel=1e-9)


def test_a_stage_without_per_byte_cost_still_has_a_ramp() -> None:
    """G_0 = 0: the recurrence is run from the other end, where it contracts."""
    pipeline = pipeline_of_lines([("a", 8.0, 0.0), ("b", 1.0, 4.0)])
    exact = solve(Problem(pipeline, 10_000), "exact")
    ramp = solve(Problem(pipeline, 10_000), "ramp")
    assert ramp.unrounded_latency_us == pytest.approx(exact.unrounded_latency_us, rel=1e-6)


def test_a_ramp_up_and_down_rises_and_falls() -> None:
    """The middle stage is busy from the first exit of stage a to its own last."""
    sizes = real_sizes(Problem(THREE, 100_000))
    peak = sizes.index(max(sizes))
    assert list(sizes[: peak + 1]) == sorted(sizes[: peak + 1])
    assert list(sizes[peak:]) == sorted(sizes[peak:], reverse=True)
    a, b, c = THREE.stages
    busy = a.time_us(sizes[0]) + sum(b.time_us(size) for size in sizes) + c.time_us(sizes[-1])
    assert latency_us(THREE, sizes) == pytest.approx(busy, rel=1e-9)


def test_outside_its_conditions_a_ramp_says_that_it_is_a_heuristic() -> None:
    """A least size that binds, or a middle stage that is not the slowest."""
    limited = solve(Problem(TWO, 20_000, FragmentLimits(min_fragment_bytes=2500)), "ramp")
    assert [notice.code for notice in limited.notices] == ["not_proven_optimal"]
    crooked = pipeline_of_lines([("a", 3.0, 5.0), ("b", 5.0, 4.0), ("c", 1.0, 3.0)])
    answer = solve(Problem(crooked, 20_000), "ramp_up_down")
    assert [notice.code for notice in answer.notices] == ["not_proven_optimal"]
    assert solve(Problem(THREE, 20_000), "ramp_up_down").notices == ()
