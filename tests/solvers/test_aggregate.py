"""From outside: no pipeline exceeds the latency, none falls below the bound, searches are exact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from domain.aggregate import Aggregate
from domain.errors import Infeasible, InvalidInput, StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import AggregateProblem, FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Solution, Status, Strategy
from solvers import baselines, compile_table, is_quick, solve
from solvers.aggregate.bound import is_convex, lower_bound_us, lower_bounds_us
from solvers.aggregate.costs import Costs
from solvers.aggregate.fixed import NEIGHBOURS, best_count
from solvers.heuristics import fixed
from solvers.heuristics.constant import repeated_cut
from tests.solvers.outside import (
    all_cuts,
    line_pipelines,
    noisy_aggregates,
    seen_from_outside,
    switching_pipelines,
)
from tests.solvers.pipelines import random_cases
from tests.support.counts import count

MYRINET = pipeline_of_lines(  # Wang98 Table 1
    [("a", 7.2, 7.03125), ("b", 5.2, 24.31640625), ("c", 7.5, 24.31640625), ("d", 7.4, 7.71484375)]
)
OUTSIDE = seen_from_outside(MYRINET, 4096)
PLAIN = Aggregate(
    Stage.of_line("total", overhead_us=40.0, ns_per_byte=40.0),
    Stage.of_line("bottleneck", overhead_us=10.0, ns_per_byte=15.0),
)
SHAPES = (
    FragmentLimits(),
    FragmentLimits(min_fragment_bytes=2),
    FragmentLimits(max_fragment_bytes=4),
    FragmentLimits(alignment_bytes=2, max_fragments=4),
)
CLOSE = 1.0 + 1e-9


def codes(solution: Solution) -> set[str]:
    """The codes of an answer's notices."""
    return {notice.code for notice in solution.notices}


def bounds_by_count(problem: AggregateProblem) -> dict[int, float]:
    """The bound for every admitted number of fragments."""
    counts = problem.count_range()
    every = np.arange(counts.minimum, counts.maximum + 1)
    return dict(zip(every.tolist(), lower_bounds_us(problem, every).tolist(), strict=True))


def check_against_the_truth(pipeline: Pipeline, size: int, limits: FragmentLimits) -> int:
    """Every admitted cut: bound <= true latency <= latency from outside, equal for equal sizes."""
    outside = seen_from_outside(pipeline, size)
    problem = AggregateProblem(outside, size, limits)
    bounds, checked = bounds_by_count(problem), 0
    for cut in filter(problem.admits, all_cuts(size)):
        true_us, max_us = latency_us(pipeline, cut), outside.latency_us(cut)
        assert true_us <= max_us * CLOSE
        assert bounds[len(cut)] <= true_us * (1.0 + 1e-12)
        if len(set(cut)) == 1:
            assert max_us == pytest.approx(true_us, rel=1e-9)
        checked += 1
    return checked


class TestTruth:
    """Aggregates of real pipelines, against every cut of every message."""

    def test_stages_of_one_line(self) -> None:
        """The bottleneck is the envelope of several stages."""
        checked = 0
        for number, (pipeline, size) in enumerate(line_pipelines(count(2000), seed=1)):
            checked += check_against_the_truth(pipeline, size, SHAPES[number % len(SHAPES)])
        assert checked > count(2000)

    @pytest.mark.parametrize("may_fall", [False, True], ids=["rising", "falling"])
    def test_stages_with_ranges_and_one_bottleneck(self, may_fall: bool) -> None:
        """Protocol switches at which all stages jump up, or down."""
        cases = switching_pipelines(count(1500), seed=2, may_fall=may_fall)
        fallen = 0
        for number, (pipeline, size) in enumerate(cases):
            check_against_the_truth(pipeline, size, SHAPES[number % len(SHAPES)])
            fallen += bool(seen_from_outside(pipeline, size).falls())
        assert (fallen > count(1500) // 5) is may_fall

    def test_rising_stages_of_any_shape_never_exceed_the_latency(self) -> None:
        """The upper side needs no bottleneck that stays the same, only times that do not fall."""
        rng = np.random.default_rng(3)
        for _ in range(count(1000)):
            stages = tuple(rising_stage(rng, f"s{j}") for j in range(rng.integers(1, 5)))
            pipeline, size = Pipeline(stages), int(rng.integers(1, 11))
            outside = seen_from_outside(pipeline, size)
            assert not outside.falls()
            for cut in all_cuts(size):
                assert latency_us(pipeline, cut) <= outside.latency_us(cut) * CLOSE

    def test_real_sizes_are_not_below_the_bound_either(self) -> None:
        """The class of an answer is cuts in real sizes."""
        rng = np.random.default_rng(4)
        for case in random_cases(count(1000, share=30), seed=4):
            size = min(case.message_bytes, 3000)
            bounds = lower_bounds_us(
                AggregateProblem(seen_from_outside(case.pipeline, size), size),
                np.arange(1, 31),
            )
            for k in rng.integers(1, 30, 10):
                shares = 1.0 + (size - k) * rng.dirichlet(np.full(k, rng.choice([0.3, 5.0])))
                assert bounds[k - 1] <= latency_us(case.pipeline, shares.tolist()) * CLOSE

    def test_nested_cuts_are_not_below_their_bound(self) -> None:
        """With refragmentation the bound covers what hierarchical strategies find."""
        for case in random_cases(count(200), seed=5):
            size = min(case.message_bytes, 2000)
            outside = AggregateProblem(
                seen_from_outside(case.pipeline, size), size, allow_refragmentation=True
            )
            nested = solve(Problem(case.pipeline, size), Strategy.HIERARCHICAL)
            assert lower_bound_us(outside) <= nested.latency_us * CLOSE


def rising_stage(rng: np.random.Generator, name: str) -> Stage:
    """Up to three ranges anywhere, each starting no lower than the one before it ended."""
    ends = sorted({int(end) for end in rng.integers(1, 9, rng.integers(0, 3))})
    parts: list[FitRange] = []
    for start, end in pairwise([0, *ends, None]):
        ns_per_byte = float(rng.uniform(0.0, 1000.0))
        min_us = 0.0
        if parts:
            reached_us = parts[-1].line.time_us(start or 0)
            min_us = max(0.0, reached_us - ns_per_byte * (start or 0) / 1000.0)
        parts.append(FitRange(min_us + float(rng.uniform(0.0, 3.0)), ns_per_byte, end))
    return Stage(name, tuple(parts))


class TestSameAsTheTruth:
    """Strategies that need no more than an aggregate give what they give on the stages."""

    def test_fixed_and_single(self) -> None:
        """The same number of equal fragments; the same bytes where they are equal."""
        equal = 0
        for case in random_cases(count(1000, share=30), seed=6):
            size = min(case.message_bytes, 4000)
            problem = Problem(case.pipeline, size)
            outside = AggregateProblem(seen_from_outside(case.pipeline, size), size)
            near, there = best_count(outside), solve(problem, Strategy.FIXED)
            if outside.aggregate.bottleneck.is_line:  # else known at whole bytes alone
                assert near == fixed.best_count(problem)
            if abs(there.schedule.fragments - near) <= NEIGHBOURS:
                at_most_us = outside.aggregate.latency_us(there.schedule.fragment_bytes)
                assert solve(outside, Strategy.FIXED).latency_us <= at_most_us * CLOSE
            for strategy in (Strategy.FIXED, Strategy.SINGLE):
                here, there = solve(outside, strategy), solve(problem, strategy)
                cut = here.schedule.fragment_bytes
                assert here.latency_us >= latency_us(case.pipeline, cut) * (1.0 - 1e-12)
                if len(set(cut)) == len(set(there.schedule.fragment_bytes)) == 1:
                    assert cut == there.schedule.fragment_bytes
                    assert here.latency_us == pytest.approx(there.latency_us, rel=1e-12)
                    equal += 1
        assert equal > count(1000, share=30)

    def test_myrinet(self) -> None:
        """Published numbers: the best of equal fragments, from the total and the bottleneck."""
        found = solve(AggregateProblem(OUTSIDE, 4096), Strategy.FIXED)
        there = solve(Problem(MYRINET, 4096), Strategy.FIXED)
        assert found.schedule.fragments == there.schedule.fragments == 5
        assert found.unrounded_latency_us == pytest.approx(188.9, abs=0.01)
        assert found.lower_bound_us <= there.lower_bound_us


class TestSearches:
    """The searches find the least latency that the evaluator says, on aggregates of any shape."""

    def test_the_evaluator_and_the_vectors_agree(self) -> None:
        """On repeated sizes, with falls between size and remainder."""
        rng = np.random.default_rng(7)
        for aggregate in noisy_aggregates(count(1000), seed=7):
            costs = Costs(aggregate)
            for _ in range(5):
                q, s = int(rng.integers(1, 6)), int(rng.integers(1, 70))
                rest = int(rng.integers(0, s))
                cut = (s,) * q + ((rest,) if rest else ())
                found = costs.repeated_us(np.array([q]), np.array([s]), np.array([rest]))
                assert found[0] + aggregate.delay_us == pytest.approx(
                    aggregate.latency_us(cut), rel=1e-12
                )

    def test_no_repeated_size_is_better(self) -> None:
        """Brute force over every size, with and without limits."""
        for problem in noisy_problems(count(1500), seed=8):
            size = problem.message_bytes
            cuts = filter(problem.admits, (repeated(size, s) for s in range(1, size + 1)))
            times = [problem.aggregate.latency_us(cut) for cut in cuts]
            if not times:
                with pytest.raises(StrategyDeclined):
                    solve(problem, Strategy.REPEAT)
                continue
            found = solve(problem, Strategy.REPEAT)
            assert found.latency_us == pytest.approx(min(times), rel=1e-12)

    def test_no_number_of_equal_fragments_is_better(self) -> None:
        """Brute force over every number, in real sizes; whole bytes are evaluated as they are."""
        for problem in noisy_problems(count(1500), seed=9):
            counts = problem.count_range()
            every = np.arange(counts.minimum, counts.maximum + 1)
            times = Costs(problem.aggregate).equal_us(problem.message_bytes, every)
            assert times[best_count(problem) - counts.minimum] <= times.min() * (1.0 + 1e-12)

    def test_no_bound_is_above_any_cut(self) -> None:
        """Whatever the two fits say, no answer has a negative gap; auto is the best of all."""
        for problem in noisy_problems(count(1000), seed=10, max_bytes=10):
            bounds = bounds_by_count(problem)
            for cut in filter(problem.admits, all_cuts(problem.message_bytes)):
                assert bounds[len(cut)] <= problem.aggregate.latency_us(cut) * (1.0 + 1e-12)
            answers = list(solutions(problem))
            if answers:
                best = solve(problem)
                assert best.latency_us == min(one.latency_us for one in answers)
                assert best.lower_bound_us <= best.latency_us

    def test_a_hundred_thousand_fragments(self) -> None:
        """The greatest message, and per-fragment overheads of nothing."""
        free = Aggregate(
            Stage.of_line("total", overhead_us=0.0, ns_per_byte=4.0),
            Stage.of_line("bottleneck", overhead_us=0.0, ns_per_byte=1.0),
        )
        found = solve(AggregateProblem(free, 2**48))
        assert found.schedule.fragments == 100_000
        assert found.limited_by == "SLUICE_MAX_FRAGMENTS"
        assert found.relative_gap < 1e-4

    def test_extremes(self) -> None:
        """Costs of nothing and of almost nothing, the greatest ones, sizes of any scale."""
        rng = np.random.default_rng(13)
        answered = 0
        for _ in range(count(1500)):
            limits = FragmentLimits(
                int(rng.choice([1, 64])), alignment_bytes=int(rng.choice([1, 8]))
            )
            outside = Aggregate(extreme_stage(rng, "total"), extreme_stage(rng, "bottleneck"))
            (size,), cap = scales(rng, 1), int(rng.choice([1, 7, 2000]))
            try:
                found = solve(AggregateProblem(outside, size, limits, cap))
            except (Infeasible, StrategyDeclined):
                continue
            assert 0.0 <= found.lower_bound_us <= found.latency_us < np.inf
            answered += 1
        assert answered > count(1500) // 2


def extreme_stage(rng: np.random.Generator, name: str) -> Stage:
    """Up to four ranges of costs at the ends of what is accepted."""
    overheads, per_byte = [0.0, 5e-324, 1e-9, 1.0, 1e12], [0.0, 5e-324, 1e-300, 1.0, 1e9]
    ends = sorted(set(scales(rng, int(rng.integers(0, 4)))))
    ranges = (
        FitRange(float(rng.choice(overheads)), float(rng.choice(per_byte)), end)
        for end in [*ends, None]
    )
    return Stage(name, tuple(ranges))


def scales(rng: np.random.Generator, number: int) -> list[int]:
    """Sizes of which no scale is likelier than another."""
    return [int(10.0 ** rng.uniform(0.0, 14.4)) for _ in range(number)]


def noisy_problems(number: int, *, seed: int, max_bytes: int = 80) -> Iterator[AggregateProblem]:
    """Problems over aggregates of any shape; limits that admit nothing are left out."""
    rng = np.random.default_rng(seed)
    for index, aggregate in enumerate(noisy_aggregates(number, seed=seed)):
        size, limits = int(rng.integers(1, max_bytes + 1)), SHAPES[index % len(SHAPES)]
        problem = AggregateProblem(aggregate, size, limits)
        try:
            problem.count_range()
        except Infeasible:
            continue
        yield problem


def repeated(total: int, size: int) -> tuple[int, ...]:
    """floor(B/s) fragments of s, then the remainder."""
    full, rest = divmod(total, size)
    return (size,) * full + ((rest,) if rest else ())


def solutions(problem: AggregateProblem) -> Iterator[Solution]:
    """The answer of every strategy that runs."""
    for strategy in (Strategy.SINGLE, Strategy.REPEAT, Strategy.FIXED):
        try:
            yield solve(problem, strategy)
        except StrategyDeclined:
            continue


class TestAnswers:
    """What an answer says beside its numbers."""

    def test_a_latency_that_is_a_bound_says_so(self) -> None:
        """Exactly where the fragments are not all of one size."""
        equal = solve(AggregateProblem(PLAIN, 4096), Strategy.STATIC, static_bytes=1024)
        assert equal.schedule.fragment_bytes == (1024,) * 4
        assert codes(equal) == set()
        unequal = solve(AggregateProblem(PLAIN, 4097), Strategy.STATIC, static_bytes=1024)
        assert codes(unequal) == {"latency_is_upper_bound"}
        for problem in noisy_problems(count(500), seed=11):
            for answer in solutions(problem):
                is_equal = len(set(answer.schedule.fragment_bytes)) == 1
                assert ("latency_is_upper_bound" in codes(answer)) is not is_equal

    def test_a_bound_that_assumes_one_bottleneck_says_so(self) -> None:
        """Where the bottleneck's time is not convex; the envelope of lines is."""
        jump = Stage("bottleneck", (FitRange(10.0, 15.0, 1000), FitRange(30.0, 15.0)))
        jumping = AggregateProblem(Aggregate(PLAIN.total, jump), 4096)
        assert "bound_assumes_one_bottleneck" in codes(solve(jumping))
        small = AggregateProblem(Aggregate(PLAIN.total, jump), 900)
        assert "bound_assumes_one_bottleneck" not in codes(solve(small))
        for case in random_cases(count(500), seed=12):
            size = min(case.message_bytes, 3000)
            assert is_convex(AggregateProblem(seen_from_outside(case.pipeline, size), size))

    @pytest.mark.parametrize(
        "strategy", ["exact", "ramp", "ramp_up_down", "hierarchical", "hierarchical_ramp"]
    )
    def test_strategies_that_need_the_stages_say_what_is_missing(self, strategy: str) -> None:
        """And which ones do not."""
        with pytest.raises(StrategyDeclined, match=r"time of every stage.*measurement") as refused:
            solve(AggregateProblem(PLAIN, 4096), strategy)
        assert refused.value.field == "strategy"
        assert "single, static, repeat, fixed, auto" in refused.value.detail

    def test_one_fragment_can_be_proven_optimal(self) -> None:
        """Where no second overhead is ever repaid."""
        dear = Stage.of_line("bottleneck", overhead_us=500.0, ns_per_byte=1.0)
        total = Stage.of_line("total", overhead_us=501.0, ns_per_byte=1.0)
        found = solve(AggregateProblem(Aggregate(total, dear, 7.0), 4096))
        assert found.schedule.fragment_bytes == (4096,)
        assert found.status is Status.OPTIMAL
        assert found.latency_us == 501.0 + 4.096 + 7.0

    def test_a_total_below_the_bottleneck_is_taken_as_equal_to_it(self) -> None:
        """A noisy fit: every fragment then costs what the bottleneck takes."""
        low = Stage.of_line("total", overhead_us=1.0, ns_per_byte=1.0)
        found = solve(AggregateProblem(Aggregate(low, PLAIN.bottleneck), 4096))
        assert found.schedule.fragments == 1
        assert found.latency_us == PLAIN.bottleneck.time_us(4096)

    def test_baselines(self) -> None:
        """The default settings, by the same judge."""
        problem = AggregateProblem(PLAIN, 100_000, FragmentLimits(max_fragment_bytes=50_000))
        found = baselines(problem)
        by_name = {(one.strategy, one.static_bytes): one for one in found.entries}
        assert "max_fragment_bytes" in (by_name[Strategy.SINGLE, None].declined or "")
        static = by_name[Strategy.STATIC, 4096]
        assert static.latency_us == PLAIN.latency_us(repeated(100_000, 4096))
        assert found.best_repeat is not None
        repeat = solve(problem, Strategy.REPEAT)
        assert found.best_repeat.latency_us == repeat.latency_us

    def test_incumbents_are_valid_and_never_get_worse(self) -> None:
        """Who has to stop the solve keeps the best so far."""
        seen: list[Solution] = []
        found = solve(AggregateProblem(PLAIN, 65536), on_incumbent=seen.append)
        assert seen[-1] == found
        assert all(b.latency_us < a.latency_us for a, b in pairwise(seen))
        assert all(one.lower_bound_us <= one.latency_us for one in seen)

    def test_limits_that_admit_nothing(self) -> None:
        """Infeasible as for pipelines; a size is checked as there."""
        limits = FragmentLimits(min_fragment_bytes=60, max_fragment_bytes=70)
        with pytest.raises(Infeasible, match="min_fragment_bytes"):
            solve(AggregateProblem(PLAIN, 100, limits))
        with pytest.raises(InvalidInput, match="message_bytes"):
            AggregateProblem(PLAIN, 0)

    def test_small_questions_are_quick(self) -> None:
        """By the work that they are, not by the clock."""
        assert is_quick(AggregateProblem(PLAIN, 4096), Strategy.AUTO)
        assert not is_quick(AggregateProblem(PLAIN, 2**40), Strategy.AUTO)

    def test_a_search_that_is_cut_off_says_so(self) -> None:
        """Whichever strategy wins in the end; what is left has a true gap."""
        ends = [16 * 2**i for i in range(30)]
        ranges = [FitRange(10.0 + i, 15.0 - i / 4, end) for i, end in enumerate([*ends, None])]
        total = tuple(FitRange(4 * r.overhead_us, 4 * r.ns_per_byte, r.up_to_bytes) for r in ranges)
        outside = Aggregate(Stage("total", total), Stage("bottleneck", tuple(ranges)))
        found = solve(AggregateProblem(outside, 2**40), time_limit_s=0.02)
        assert found.cut_off
        assert found.status is Status.TIME_LIMIT
        assert found.lower_bound_us <= found.latency_us


class TestTable:
    """A table of repeated sizes, for every pipeline with this total and bottleneck."""

    SWITCHING = Aggregate(
        Stage("total", (FitRange(2.0, 1.2, 369), FitRange(2.3, 0.63))),
        Stage.of_line("slow", overhead_us=0.7, ns_per_byte=0.22),
        0.5,
    )

    def test_every_answer_repeats_a_size_within_its_gap(self) -> None:
        """Against a search over every size, and against the bound over every cut."""
        limits = FragmentLimits(max_fragment_bytes=2000)
        table = compile_table(self.SWITCHING, limits, min_message_bytes=1, max_message_bytes=9000)
        for message in (1, 2, 3, 370, 1999, 2000, 2001, 4000, 6007, 8999, 9000):
            problem = AggregateProblem(self.SWITCHING, message, limits)
            every = [
                self.SWITCHING.latency_us(repeated_cut(problem, size))
                for size in range(1, min(message, 2000) + 1)
            ]
            size = table.repeated_size_at(message)
            taken_us = self.SWITCHING.latency_us(repeated_cut(problem, size))
            assert taken_us <= min(every) * (1.0 + table.repeat_gap_at(message))
            cut = table.cut_at(message)
            assert sum(cut) == message
            assert max(cut) - min(cut[:-1] or cut) <= 1
            bound_us = lower_bound_us(problem) * (1.0 + table.relative_gap_at(message))
            assert self.SWITCHING.latency_us(cut) <= bound_us

    def test_no_pipeline_with_these_costs_is_slower(self) -> None:
        """Its costs are those, and repeated sizes take what the evaluator says."""
        pipeline = self.SWITCHING.slowest_pipeline()
        for size in (1, 369, 370, 5000, 10**6):
            times = [stage.time_us(size) for stage in pipeline.stages]
            assert sum(times) == pytest.approx(self.SWITCHING.total.time_us(size))
            assert max(times) == times[-1] == self.SWITCHING.bottleneck.time_us(size)
        for cut in ((5000,), (700, 700, 700), (700, 700, 1), (400, 400, 369)):
            assert latency_us(pipeline, cut) == pytest.approx(self.SWITCHING.latency_us(cut))

    @pytest.mark.parametrize(
        ("total", "slow", "words"),
        [
            ((1.0, 1.0), (2.0, 0.5), "above the bottleneck"),
            ((5.0, 1.0), (2.0, 1.5), "grows by more"),
            ((500.0, 1.0), (2.0, 0.5), "63rd"),
        ],
    )
    def test_costs_of_no_such_pipeline_are_declined(
        self, total: tuple[float, float], slow: tuple[float, float], words: str
    ) -> None:
        """With what they would have to be."""
        costs = (Stage("one", (FitRange(*pair),)) for pair in (total, slow))
        with pytest.raises(StrategyDeclined, match=words):
            Aggregate(*costs).slowest_pipeline()

    def test_falling_costs_are_declined(self) -> None:
        """A switch to a quicker protocol: stages would take less for more bytes."""
        total = Stage("total", (FitRange(9.0, 1.0, 100), FitRange(5.0, 1.0)))
        slow = Stage.of_line("slow", overhead_us=1.0, ns_per_byte=0.5)
        with pytest.raises(StrategyDeclined, match="behind 100 bytes"):
            Aggregate(total, slow).slowest_pipeline()

    @pytest.mark.parametrize(
        "limits", [FragmentLimits(alignment_bytes=64), FragmentLimits(min_fragment_bytes=2)]
    )
    def test_limits_that_it_does_not_keep_are_declined(self, limits: FragmentLimits) -> None:
        """Naming those that it does."""
        with pytest.raises(StrategyDeclined, match="max_fragment_bytes"):
            compile_table(self.SWITCHING, limits, min_message_bytes=1, max_message_bytes=9)
