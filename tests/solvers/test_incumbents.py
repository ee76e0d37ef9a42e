"""What a solve reports on the way is a complete answer each time, and each is better."""

import pytest

from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Solution, Status, Strategy
from solvers import solve
from tests.contracts.test_doors import question
from tests.support.counts import count

FIVE = pipeline_of_lines(
    [
        ("a", 36.0, 36.0),
        ("b", 26.0, 124.5),
        ("c", 37.5, 124.5),
        ("d", 37.0, 39.5),
        ("disk", 4e3, 200),
    ]
)
SWITCH = Stage("wire", (FitRange(10.0, 24.3, 4096), FitRange(60.0, 12.0)))
RANGED = Pipeline((*FIVE.stages[:2], SWITCH, FIVE.stages[3]))
FREE = pipeline_of_lines([("a", 0.0, 2.0), ("b", 0.0, 1.0)])


@pytest.mark.parametrize("refragment", [False, True])
def test_incumbents_are_complete_answers_that_improve(refragment: bool) -> None:
    """Judged latency, a bound below it, ever better, and the last one is the answer."""
    seen: list[Solution] = []
    problem = Problem(FIVE, 65_536, allow_refragmentation=refragment)
    answer = solve(problem, on_incumbent=seen.append)
    assert seen
    for one in seen:
        assert 0.0 < one.lower_bound_us <= one.latency_us
        if one.levels is None:
            assert one.latency_us == latency_us(FIVE, one.schedule.fragment_bytes)
        else:
            assert one.latency_us == nested_latency_us(FIVE, NestedSchedule(one.levels))
    latencies = [one.latency_us for one in seen]
    assert latencies == sorted(latencies, reverse=True)
    assert answer.schedule == seen[-1].schedule
    assert answer.lower_bound_us >= seen[-1].lower_bound_us


def test_incumbents_on_ranges_are_complete_answers_that_improve() -> None:
    """The bound never falls on the way, and every report is an answer on the true costs."""
    seen: list[Solution] = []
    answer = solve(Problem(RANGED, 65_536), on_incumbent=seen.append)
    assert len(seen) >= 2
    for one in seen:
        assert 0.0 < one.lower_bound_us <= one.latency_us
        assert one.latency_us == latency_us(RANGED, one.schedule.fragment_bytes)
    assert [one.latency_us for one in seen] == sorted((o.latency_us for o in seen), reverse=True)
    bounds = [one.lower_bound_us for one in [*seen, answer]]
    assert bounds == sorted(bounds)
    assert answer.schedule == seen[-1].schedule


def test_an_incumbent_keeps_the_bound_of_its_class() -> None:
    """With refragmentation allowed the bound covers nested cuts from the first report on."""
    seen: list[Solution] = []
    solve(Problem(FIVE, 65_536, allow_refragmentation=True), on_incumbent=seen.append)
    assert len({one.lower_bound_us for one in seen}) == 1


@pytest.mark.parametrize(
    ("strategy", "most"), [("fixed", 37), ("repeat", 37), ("exact", 9), ("auto", 9)]
)
def test_the_cap_that_stopped_an_answer_is_named(strategy: str, most: int) -> None:
    """Splitting is free here, so so many fragments are the most allowed and not enough."""
    problem = Problem(FREE, 10_000, FragmentLimits(max_fragments=most))
    solution = solve(problem, strategy)
    assert solution.schedule.fragments == most
    assert solution.limited_by == "max_fragments"


def test_no_cap_is_named_where_whole_bytes_need_no_more() -> None:
    """A ramp of 14 fragments down to one byte: 2 ns for each of 10 000 and one byte's 1 ns."""
    problem = Problem(FREE, 10_000, FragmentLimits(max_fragments=37))
    for strategy in ("exact", "auto"):
        solution = solve(problem, strategy)
        assert (solution.schedule.fragments, solution.limited_by) == (14, None)
        assert solution.latency_us == pytest.approx(20.001, rel=1e-12)


def test_no_cap_is_named_where_fewer_fragments_are_best() -> None:
    """One fragment of one byte: nothing stopped it."""
    assert solve(Problem(FIVE, 1)).limited_by is None
    assert solve(Problem(FIVE, 65_536)).limited_by is None


@pytest.mark.parametrize("number", range(0, 2 * count(100), 2))
def test_every_strategy_knows_the_bound_of_auto(number: int) -> None:
    """Over ranges the gap of a repeated size is that of its cut, and not of a weaker search."""
    problem = question(number)
    best = solve(problem, time_limit_s=30.0)
    for strategy in (Strategy.REPEAT, Strategy.FIXED, Strategy.SINGLE):
        own = solve(problem, strategy, time_limit_s=30.0)
        assert own.lower_bound_us <= best.latency_us * (1.0 + 1e-9)
        if Status.TIME_LIMIT not in (best.status, own.status):
            assert own.lower_bound_us >= best.lower_bound_us * (1.0 - 1e-6)
