"""Cuts of items in draws: each draw by the evaluator, good caps by trying all, and decisions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis import item_draws
from analysis.draws import Draws, draw, pipeline_of
from analysis.item_draws import ready_factors, solve_in_draws
from analysis.items import ItemsQuestion
from domain.fit import cut_sizes
from domain.items import Fill, FillRule, ItemProblem, ItemSequence, layout
from domain.structure import KnownOverlap
from domain.uncertain_answer import DecisionCode, Reason
from domain.uncertain_items import ItemErrors, SureItems
from domain.uncertainty import KnownErrors, StatedInterval, seed_of, stated_model
from solvers.items.caps import layouts
from solvers.kernels.native import Choice
from tests.solvers.items.item_cases import oracle, rising_stages, some_problem
from tests.solvers.items.item_cases import pipeline_of as stages_of
from tests.support.counts import count
from tests.support.kernels import computed_by

SAME = 1e-9
DRAWS = 60
Floats = NDArray[np.float64]


def errors_of(
    problem: ItemProblem, relative: float, ready: float = 0.0, draws: int = DRAWS
) -> ItemErrors:
    return ItemErrors(KnownErrors(stated_model(problem.pipeline, relative), draws=draws), ready)


def in_draw(problem: ItemProblem, draws: Draws, factors: Floats, at: int) -> ItemProblem:
    """The problem as it is in one draw."""
    ready = problem.sequence.ready_us
    if ready is not None:
        ready = tuple(us * float(factors[at]) for us in ready)
    sequence = replace(problem.sequence, ready_us=ready)
    return replace(problem, pipeline=pipeline_of(draws, at), sequence=sequence)


def drawn(problem: ItemProblem, errors: ItemErrors, fragments: int) -> list[ItemProblem]:
    """The problem in every draw, as the answer has them."""
    known = errors.known
    seed = seed_of(known.model)
    draws = draw(known.model, known.draws, seed, sums_many=fragments >= 8)
    factors = ready_factors(errors.ready_relative, known.draws, seed)
    return [in_draw(problem, draws, factors, at) for at in range(draws.count)]


def assessed(
    problem: ItemProblem, errors: ItemErrors, current: int | None = None, rule: Fill = Fill.UNTIL
) -> SureItems | None:
    question = ItemsQuestion(problem, FillRule(rule), 1e-6, 5.0, current, errors)
    return solve_in_draws(question).sure


def sure(
    problem: ItemProblem, errors: ItemErrors, current: int | None = None, rule: Fill = Fill.UNTIL
) -> SureItems:
    found = assessed(problem, errors, current, rule)
    assert found is not None
    return found


def quantile(values: list[float], share: float) -> float:
    return float(np.quantile(values, share))


@pytest.mark.parametrize("kernels", ["native", "numpy"])
def test_each_draw_is_priced_as_the_evaluator_does(kernels: Choice) -> None:
    """Ranges, limits, own costs, factors of ready times; the interval of the answer's cut."""
    random = Random(1)
    with computed_by(kernels):
        for case in range(count(100)):
            problem = some_problem(
                random, random.randint(1, 20), 1 + case % 4, has_ranges=case % 2 == 0
            )
            errors = errors_of(problem, 0.2, 0.1)
            question = ItemsQuestion(problem, FillRule(), 1e-6, 5.0, None, errors)
            solved = solve_in_draws(question)
            if solved.sure is None:
                continue
            cut = solved.solution.cut
            expected = [one.latency_us(cut) for one in drawn(problem, errors, len(cut))]
            found = solved.sure.uncertainty.latency_us
            for share, us in ((0.05, found.p05), (0.5, found.p50), (0.95, found.p95)):
                assert us == pytest.approx(quantile(expected, share), rel=SAME)


def test_one_after_another_the_times_of_all_stages_are_summed() -> None:
    """As one stage that takes them all."""
    random = Random(2)
    for _ in range(count(60)):
        problem = some_problem(random, random.randint(1, 20), 3, has_costs=False)
        errors = errors_of(problem, 0.2, 0.1)
        asked = item_draws._Assessed(problem, FillRule(), (len(problem.sequence),), None, errors)
        cut = (*tuple(range(2, len(problem.sequence), 2)), len(problem.sequence))
        found = asked._price([cut], asked._draws, is_serial=True)[0]
        for at in range(DRAWS):
            one = in_draw(problem, asked._draws, asked._factors, at)
            lines = [stage.ranges[0] for stage in one.pipeline.stages]
            alone = sum(line.overhead_us for line in lines), sum(line.ns_per_byte for line in lines)
            summed = replace(one, pipeline=stages_of([alone], one.pipeline.delay_us))
            assert found[at] == pytest.approx(summed.latency_us(cut), rel=SAME)


def test_c_and_numpy_price_alike() -> None:
    """The same bits."""
    random = Random(3)
    for case in range(count(60)):
        problem = some_problem(random, random.randint(1, 30), 1 + case % 3, has_ranges=True)
        errors = errors_of(problem, 0.3, 0.2, draws=50 + case % 17)
        current = problem.sequence.total_bytes // 3 or 1
        with computed_by("numpy"):
            expected = assessed(problem, errors, current)
        assert assessed(problem, errors, current) == expected


def expected_good(
    problem: ItemProblem, rule: FillRule, in_draws: list[ItemProblem], within: float
) -> set[int]:
    """Every cap up to all bytes that is good, by pricing the layout of each in each draw."""
    admitted = {
        one.from_bytes: one.cut for one in layouts(problem, rule) if problem.admits(one.cut)
    }
    if not admitted:
        return set()
    costs = {cap: [one.latency_us(cut) for one in in_draws] for cap, cut in admitted.items()}
    best = np.min(list(costs.values()), axis=0)
    good_cuts = {
        admitted[cap]
        for cap, us in costs.items()
        if np.mean(us <= (1.0 + within) * best * (1 + 1e-12)) >= 0.9 - 1e-12
    }
    highest = problem.sequence.total_bytes
    lowest = 1
    if rule.rule is Fill.BEFORE:
        largest, limit = max(problem.sequence.item_bytes), problem.max_fragment_bytes
        lowest = min(largest, limit or largest)
        highest = max(min(highest, limit or highest), lowest)
    return {
        cap
        for cap in range(lowest, highest + 1)
        if layout(problem.sequence, cap, rule) in good_cuts
    }


def test_good_caps_are_those_found_by_trying_every_cap() -> None:
    random = Random(4)
    for case in range(count(100)):
        problem = some_problem(random, random.randint(2, 14), 1 + case % 3)
        rule, errors = FillRule(list(Fill)[case % 2]), errors_of(problem, 0.15, 0.1)
        question = ItemsQuestion(problem, rule, 1e-6, 5.0, None, errors)
        solved = solve_in_draws(question)
        in_draws = drawn(problem, errors, len(solved.solution.cut))
        if solved.sure is None:
            assert expected_good(problem, rule, in_draws, 0.05) == set()
            continue
        assert solved.sure.is_complete
        for good in solved.sure.uncertainty.good_sizes:
            found = {cap for low, high in good.intervals for cap in range(low, high + 1)}
            assert found == expected_good(problem, rule, in_draws, good.within)


def test_too_many_fragments_are_left_out_with_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said is the same as if every layout were priced."""
    random = Random(5)
    left_out = 0
    for case in range(count(60)):
        problem = some_problem(random, random.randint(20, 60), 1 + case % 3, has_limits=False)
        problem = rising_stages(random, problem) if case % 2 else problem
        errors = errors_of(problem, 0.1)
        found = sure(problem, errors)
        with monkeypatch.context() as patched:
            patched.setattr(item_draws._Assessed, "_most_fragments", lambda *_: 10**9)
            every = sure(problem, errors)
        assert found.is_complete
        left_out += every.priced - found.priced
        assert found.uncertainty.good_sizes == every.uncertainty.good_sizes
        assert found.uncertainty.regret == every.uncertainty.regret
        assert found.uncertainty.decision.code == every.uncertainty.decision.code
    assert left_out > 0


def test_more_layouts_than_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of least latency are priced, and it is said."""
    problem = some_problem(Random(6), 60, 2, is_ready=True, has_limits=False)
    monkeypatch.setattr(item_draws, "_CELLS", 10_000)
    monkeypatch.setattr(item_draws, "_PLAIN_CELLS", 10_000)
    found = sure(problem, errors_of(problem, 0.1))
    assert not found.is_complete
    assert 1 <= found.priced < found.layouts


def test_without_errors_the_draws_say_the_answer() -> None:
    """Every draw is the estimate: the latency, the best cap, and what is good."""
    random = Random(7)
    for case in range(count(100)):
        problem = some_problem(random, random.randint(2, 20), 1 + case % 3)
        current = max(1, problem.sequence.total_bytes // 2)
        question = ItemsQuestion(
            problem, FillRule(), 1e-6, 5.0, current, errors_of(problem, 0.0, 0.0)
        )
        solved = solve_in_draws(question)
        if solved.sure is None or solved.best_cap is None:
            assert solved.sure is None
            assert solved.best_cap is None
            continue
        found, us = solved.sure.uncertainty, solved.solution.latency_us
        latency = found.latency_us
        for one in (latency.p05, latency.p50, latency.p95):
            assert one == pytest.approx(us, rel=SAME)
        assert found.evpi_us == pytest.approx(0.0, abs=SAME * us)
        best = [low for good in found.good_sizes[:1] for low, _ in good.intervals]
        assert best, "the best cap is good"
        assert found.regret.mean <= SAME
        assert solved.current is not None
        if found.decision.code is DecisionCode.SET_IT and found.decision.against == "current":
            assert found.decision.gain.p50 > 0.01
            assert found.decision.gain.p05 == pytest.approx(found.decision.gain.p95)


# --- decisions ------------------------------------------------------------------------------------


def test_what_is_certain_to_gain_is_set() -> None:
    """A cap far too small, whatever the costs are."""
    problem = oracle(0)
    found = sure(problem, errors_of(problem, 0.02, draws=400), current=1).uncertainty
    assert found.decision.code is DecisionCode.SET_IT
    assert found.decision.gain.p05 > 0.01


def test_the_best_cap_in_use_is_kept() -> None:
    problem = oracle(0)
    found = sure(problem, errors_of(problem, 0.02, draws=400), current=5).uncertainty
    assert found.decision.code is DecisionCode.KEEP_YOURS
    assert found.decision.reason is Reason.NEAR_BEST


def test_a_gain_that_the_draws_do_not_prove_is_not_set() -> None:
    """Where costs are known to a factor, 5 % at the estimates decide nothing."""
    problem = oracle(0)
    intervals = (StatedInterval("s0", 0, (0.5, 8.0), None),)
    model = stated_model(problem.pipeline, 0.0, intervals)
    found = sure(problem, ItemErrors(KnownErrors(model)), current=4).uncertainty
    assert found.decision.code is not DecisionCode.SET_IT


def test_a_list_is_advised_where_it_gains_over_the_best_cap() -> None:
    """One per cent in 95 % of the draws; else one cap."""
    random, of_lists = Random(8), 0
    for _ in range(count(200, share=10)):
        problem = some_problem(random, 12, 1, is_ready=True, has_limits=False)
        errors = errors_of(problem, 0.001)
        question = ItemsQuestion(problem, FillRule(), 1e-6, 5.0, 1, errors)
        solved = solve_in_draws(question)
        assert solved.sure is not None
        assert solved.best_cap is not None
        decision = solved.sure.uncertainty.decision
        gain = 1.0 - solved.solution.latency_us / solved.best_cap.latency_us
        if decision.code is DecisionCode.SET_IT and abs(gain - 0.01) > 0.003:
            assert (decision.advised.size_bytes is None) == (gain > 0.01)
            of_lists += gain > 0.01
    assert of_lists > 0


def bare(problem: ItemProblem, relative: float, *, several: bool | None) -> ItemErrors:
    errors = errors_of(problem, relative, draws=400)
    overlap = KnownOverlap(is_bare=True, several_at_once=several)
    return replace(errors, known=replace(errors.known, overlap=overlap))


def test_stages_that_may_not_overlap_are_asked_about() -> None:
    """What is set if they overlap is set only where it is faster one after another, too."""
    sequence = ItemSequence.of([100] * 8)
    problem = ItemProblem(stages_of([(10, 1000), (10, 1000)]), sequence)
    found = sure(problem, bare(problem, 0.02, several=None), current=800).uncertainty
    assert found.decision.reason is Reason.IF_OVERLAPPING
    assert found.decision.code is DecisionCode.MEASURE_FIRST
    assert found.both_ways is not None
    assert found.both_ways.serial_gain <= 0.01
    several = sure(problem, bare(problem, 0.02, several=True), current=800).uncertainty
    assert several.decision.reason is Reason.SEVERAL_AT_ONCE


def test_what_is_faster_either_way_is_set() -> None:
    """A cap that makes a hundred overheads, where nothing else costs much."""
    sequence = ItemSequence.of([1] * 100)
    problem = ItemProblem(stages_of([(10, 1000), (10, 1000)]), sequence)
    found = sure(problem, bare(problem, 0.02, several=False), current=1).uncertainty
    assert found.decision.code is DecisionCode.SET_IT
    assert found.decision.reason is Reason.EITHER_WAY
    assert found.both_ways is not None
    assert min(found.both_ways.gain, found.both_ways.serial_gain) > 0.5
    asked = sure(problem, bare(problem, 0.02, several=None), current=1).uncertainty
    assert asked.decision.reason is Reason.ONE_AT_A_TIME


def test_sizes_that_were_not_measured_are_measured_first() -> None:
    problem = oracle(0)
    errors = replace(errors_of(problem, 0.02, draws=400), measured_bytes=(20, 30))
    found = sure(problem, errors, current=1).uncertainty
    assert found.decision.code is DecisionCode.MEASURE_FIRST
    assert found.decision.reason is Reason.NOT_MEASURED
    assert found.decision.measure is not None
    assert found.decision.measure.fragment_bytes == 7


def test_sizes_that_were_measured_are_preferred() -> None:
    """Of the caps those whose fragments, but for a remainder, were measured: against all caps."""
    random, preferred = Random(9), 0
    for case in range(count(100)):
        problem = some_problem(random, random.randint(2, 12), 1 + case % 2, has_limits=False)
        total = problem.sequence.total_bytes
        between = random.randint(1, total // 4 + 1), random.randint(total // 4 + 1, total // 2 + 1)
        errors = replace(errors_of(problem, 0.05), measured_bytes=between)
        found = sure(problem, errors).uncertainty
        known = set()
        for one in layouts(problem, FillRule()):
            sizes = cut_sizes(problem.sequence.fragment_bytes(one.cut))
            if all(between[0] <= size <= between[1] for size in sizes):
                known.add(one.from_bytes)
        good = [low for good in found.good_sizes for low, _ in good.intervals]
        if known and good:
            cuts = {layout(problem.sequence, cap, FillRule()) for cap in known}
            assert all(layout(problem.sequence, cap, FillRule()) in cuts for cap in good)
            preferred += len(known) < sum(1 for _ in layouts(problem, FillRule()))
    assert preferred > 0


def test_a_cap_that_the_limits_forbid_is_no_baseline() -> None:
    problem = replace(oracle(0), max_fragment_bytes=6)
    found = sure(problem, errors_of(problem, 0.02), current=12).uncertainty
    assert found.decision.against != "current"


def test_no_cap_within_the_limits() -> None:
    """Then there is nothing to compare a cut with."""
    sequence = ItemSequence.of([1, 1, 9, 9])
    problem = ItemProblem(stages_of([(1, 1000)]), sequence, None, 2, 2)
    assert not any(problem.admits(one.cut) for one in layouts(problem, FillRule()))
    assert assessed(problem, errors_of(problem, 0.1)) is None


def test_ready_times_are_scaled_as_a_whole() -> None:
    """Of two items behind a wire that takes no time the last one decides."""
    problem = ItemProblem(stages_of([(0, 0)]), ItemSequence.of([1, 1], [100, 1000]))
    errors = errors_of(problem, 0.0, 0.05, draws=400)
    found = sure(problem, errors).uncertainty
    factors = ready_factors(0.05, 400, seed_of(errors.known.model))
    assert factors[0] == 1.0
    assert found.latency_us.p95 == pytest.approx(1000.0 * np.quantile(factors, 0.95))
    assert np.std(np.log(factors)) == pytest.approx(0.05, rel=0.15)
