"""Total time, mean and worst regret of settings: sums over messages, and what bounds leave open."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.best_known import left_open
from analysis.setting_price import averages_of, price
from domain.fragment_setting import FragmentSetting
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.regret import BestKnown, Objective, Regret, default_objective
from domain.workload import Workload
from solvers import solve

PIPELINE = pipeline_of_lines([("a", 7.0, 7.0), ("b", 5.0, 24.0), ("c", 3.0, 8.0)])
_us = st.floats(0.01, 1e6)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Workload, list[Regret]]:
    """Up to eight messages, each with a proven bound, a best found and what a setting takes."""
    rows = draw(st.lists(st.tuples(_us, _us, _us, st.floats(0.001, 1e3)), min_size=1, max_size=8))
    sizes, regrets = [], []
    for at, (*us, weight) in enumerate(rows):
        bound_us, best_us, taken_us = sorted(us)
        sizes.append((at + 1, weight))
        best = BestKnown(at + 1, best_us, bound_us, None, None)
        regrets.append(Regret(best, 1, taken_us))
    return Workload.weighted(sizes, "drawn"), regrets


@given(workloads())
def test_the_total_time_is_that_of_all_messages(case: tuple[Workload, list[Regret]]) -> None:
    """Sum over sum, over the best found and over the bounds; between the least and the worst."""
    workload, regrets = case
    found = averages_of(regrets, workload)
    shares = [size.share for size in workload.sizes]
    rows = list(zip(shares, regrets, strict=True))
    taken_us = sum(share * one.latency_us for share, one in rows)
    best_us = sum(share * one.best.latency_us for share, one in rows)
    bound_us = sum(share * one.best.lower_bound_us for share, one in rows)
    assert found.time.at_least == pytest.approx(taken_us / best_us - 1.0, abs=1e-9)
    assert found.time.at_most == pytest.approx(taken_us / bound_us - 1.0, abs=1e-9)
    over_best, at_most = ([getattr(one, of) for one in regrets] for of in ("over_best", "at_most"))
    assert min(over_best) - 1e-9 <= found.time.at_least <= max(over_best) * (1 + 1e-9) + 1e-9
    assert found.time.at_least <= found.time.at_most <= max(at_most) * (1 + 1e-9) + 1e-9
    weighted = sum(share * one.best.latency_us * one.over_best for share, one in rows) / best_us
    assert found.time.at_least == pytest.approx(weighted, rel=1e-9, abs=1e-9)


@given(workloads(), st.data())
def test_whatever_is_best_between_the_bound_and_the_found_is_inside(
    case: tuple[Workload, list[Regret]], data: st.DataObject
) -> None:
    """The true best of each message, wherever it lies: the regret over them is in the interval."""
    workload, regrets = case
    found = averages_of(regrets, workload).time
    true_us = [
        data.draw(st.floats(one.best.lower_bound_us, one.best.latency_us)) for one in regrets
    ]
    shares = [size.share for size in workload.sizes]
    taken_us = sum(share * one.latency_us for share, one in zip(shares, regrets, strict=True))
    regret = taken_us / sum(share * us for share, us in zip(shares, true_us, strict=True)) - 1.0
    assert found.at_least - 1e-9 <= regret <= found.at_most * (1 + 1e-9) + 1e-9


def test_it_is_the_evaluators_over_the_solvers_best() -> None:
    """Two messages of a setting, by hand; one without a weight counts for nothing."""
    workload = Workload.weighted([(5000, 3.0), (30_000, 1.0), (2**15, 0.0)], "two")
    best = []
    for size in (5000, 30_000, 2**15):
        solved = solve(Problem(PIPELINE, size, FragmentLimits()))
        best.append(BestKnown(size, solved.latency_us, solved.lower_bound_us, None, None))
    found = price(PIPELINE, FragmentSetting.always(None), best, workload)
    whole_us = [sum(stage.time_us(size) for stage in PIPELINE.stages) for size in (5000, 30_000)]
    taken_us = 3.0 * whole_us[0] + whole_us[1]
    best_us = 3.0 * best[0].latency_us + best[1].latency_us
    assert found.time.at_least == pytest.approx(taken_us / best_us - 1.0)
    assert found.value(Objective.TIME) == found.time
    assert found.value(Objective.MEAN) == found.mean
    assert found.value(Objective.WORST) == found.worst_span


def test_messages_that_take_no_time_have_no_share_of_it() -> None:
    """No infinite regret, where the others take some; where none does it is 0 or infinite."""
    workload = Workload.weighted([(1, 1.0), (2, 1.0)], "two")
    free, costly = BestKnown(1, 0.0, 0.0, None, None), BestKnown(2, 10.0, 8.0, None, None)
    found = averages_of([Regret(free, 1, 5.0), Regret(costly, 1, 10.0)], workload)
    assert (found.time.at_least, found.mean.at_least) == (0.5, inf)
    both_free = [Regret(free, 1, 0.0), Regret(BestKnown(2, 0.0, 0.0, None, None), 1, 0.0)]
    assert averages_of(both_free, workload).time.at_most == 0.0
    slow = [Regret(free, 1, 1.0), both_free[1]]
    assert averages_of(slow, workload).time.at_least == inf


def test_what_time_left_open_of_rare_long_messages_counts_by_their_time() -> None:
    """One in a thousand, which takes half of the time, is 20 % open."""
    workload = Workload.weighted([(1, 999.0), (2, 1.0)], "two")
    best = (BestKnown(1, 1.0, 1.0, None, None), BestKnown(2, 999.0, 799.0, None, None, True))
    assert left_open(best, workload, Objective.MEAN) == 0
    assert left_open(best, workload, Objective.TIME) == 1
    often = Workload.weighted([(1, 9.0), (2, 1.0)], "two")
    assert [left_open(best, often, one) for one in Objective] == [1, 1, 1]


def test_without_a_word_a_workload_counts_by_its_time() -> None:
    """Of a range nobody says how often its messages are sent."""
    assert default_objective(Workload.weighted([(1, 1.0)], "one")) is Objective.TIME
    assert default_objective(None) is Objective.MEAN
