"""What a cut takes at most, by hand: equal sizes, unequal ones, costs that fall at a switch."""

import pytest

from domain.aggregate import Aggregate, Fall
from domain.errors import InvalidInput, InvalidStage
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import AggregateProblem, FragmentLimits, Problem, problem_of

TOTAL = Stage.of_line("total", overhead_us=10.0, ns_per_byte=1000.0)
SLOWEST = Stage.of_line("bottleneck", overhead_us=4.0, ns_per_byte=500.0)
PLAIN = Aggregate(TOTAL, SLOWEST, delay_us=2.0)
# 20 µs less from 11 bytes on, of which the bottleneck takes part.
FALLING = Aggregate(
    Stage("total", (FitRange(40.0, 1000.0, 10), FitRange(19.0, 1000.0))),
    Stage("bottleneck", (FitRange(8.0, 500.0, 10), FitRange(4.0, 500.0))),
)


def test_equal_fragments() -> None:
    """S + (k-1) b, and the delay."""
    assert PLAIN.latency_us([4]) == 2.0 + 14.0
    assert PLAIN.latency_us([4, 4, 4]) == 2.0 + 14.0 + 2 * 6.0


def test_unequal_fragments() -> None:
    """The greatest one pays for all stages, the others queue, in whatever order."""
    assert PLAIN.latency_us([4, 6, 2]) == 2.0 + 16.0 + 6.0 + 5.0
    assert PLAIN.latency_us([2, 4, 6]) == PLAIN.latency_us([6, 4, 2])


def test_a_total_below_the_bottleneck_counts_as_equal_to_it() -> None:
    """A noisy fit must not make all stages quicker than one of them."""
    noisy = Aggregate(Stage.of_line("total", overhead_us=1.0, ns_per_byte=1.0), SLOWEST)
    assert noisy.total_us(4) == SLOWEST.time_us(4)
    assert noisy.latency_us([4, 4]) == 12.0


def test_falls_are_found_at_ends_of_ranges() -> None:
    """From one whole byte to the next, or to the limit behind the end."""
    assert FALLING.falls() == (Fall(10, 50.0 - 30.0),)
    assert FALLING.falls(after_bytes=0) == (Fall(10, 50.0 - 29.0),)
    assert PLAIN.falls() == ()
    rising = Stage("total", (FitRange(1.0, 1.0, 10), FitRange(2.0, 1.0)))
    assert Aggregate(rising, SLOWEST).falls() == ()


def test_a_fall_lengthens_what_crosses_it_and_nothing_else() -> None:
    """By the drop, or by sending the runs one after the other, whichever is less."""
    assert FALLING.latency_us([9, 10]) == 50.0 + 12.5
    assert FALLING.latency_us([12, 11]) == 31.0 + 9.5
    # Crossing: 31 + 8 + 0.5 * 9, and 20 more.
    assert FALLING.latency_us([12, 9]) == 31.0 + 12.5 + 20.0
    slow = Aggregate(
        FALLING.total, Stage.of_line("bottleneck", overhead_us=15.0, ns_per_byte=900.0)
    )
    assert slow.latency_us([12, 1]) == min(31.0 + 15.9 + 20.0, 31.0 + 41.0)


def test_the_drop_never_costs_more_than_one_run_after_the_other() -> None:
    """Which needs no assumption on the stages."""
    deep = Aggregate(
        Stage("total", (FitRange(1000.0, 0.0, 10), FitRange(20.0, 0.0))),
        Stage.of_line("bottleneck", overhead_us=10.0, ns_per_byte=0.0),
    )
    assert deep.latency_us([12, 12, 9]) == 20.0 + 10.0 + 10.0 + 980.0
    alone = Aggregate(
        Stage("total", (FitRange(30.0, 0.0, 10), FitRange(20.0, 0.0))),
        Stage("bottleneck", (FitRange(29.0, 0.0, 10), FitRange(10.0, 0.0))),
    )
    assert alone.latency_us([12, 9]) == 20.0 + 30.0


def test_a_negative_delay_is_refused() -> None:
    """As for pipelines."""
    with pytest.raises(InvalidStage, match="delay_us"):
        Aggregate(TOTAL, SLOWEST, -1.0)


def test_a_problem_is_made_of_either_model() -> None:
    """With the same limits, counts and refusals."""
    limits = FragmentLimits(min_fragment_bytes=3, max_fragments=7)
    pipeline = pipeline_of_lines([("only", 1.0, 2.0)])
    here = problem_of(pipeline, 100, limits, fragment_cap=50)
    outside = problem_of(PLAIN, 100, limits, fragment_cap=50, allow_refragmentation=True)
    assert isinstance(here, Problem)
    assert isinstance(outside, AggregateProblem)
    assert isinstance(here.model, Pipeline)
    assert outside.model is PLAIN
    assert here.count_range() == outside.count_range()
    assert outside.admits((50, 50))
    assert not outside.admits((98, 2))
    with pytest.raises(InvalidInput, match="message_bytes"):
        problem_of(PLAIN, 0, limits)


def test_digests_tell_questions_apart() -> None:
    """Equal exactly for identical questions, and never that of a pipeline."""
    base = AggregateProblem(PLAIN, 100)
    others = [
        AggregateProblem(PLAIN, 101),
        AggregateProblem(Aggregate(TOTAL, SLOWEST), 100),
        AggregateProblem(Aggregate(SLOWEST, TOTAL, 2.0), 100),
        AggregateProblem(PLAIN, 100, FragmentLimits(max_fragments=4)),
        AggregateProblem(PLAIN, 100, fragment_cap=4),
        AggregateProblem(PLAIN, 100, allow_refragmentation=True),
        Problem(Pipeline((TOTAL, SLOWEST), 2.0), 100),
    ]
    assert AggregateProblem(Aggregate(TOTAL, SLOWEST, 2.0), 100).digest() == base.digest()
    assert len({problem.digest() for problem in [base, *others]}) == 1 + len(others)
