"""The best cut of items: the optimum by trying all, a status that says what was proven."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from domain.errors import Infeasible
from domain.items import ItemProblem, ItemSequence
from domain.pipeline import Pipeline
from domain.solution import Status
from solvers.contract import SolveOptions
from solvers.items import solve
from solvers.items.solve import solve_items
from solvers.kernels.native import Choice
from tests.solvers.items.item_cases import (
    ORACLES,
    best_of_all_us,
    oracle,
    pipeline_of,
    shaped_problem,
    some_problem,
)
from tests.support.counts import count
from tests.support.kernels import computed_by

SAME = 1e-9
TO_THE_END = SolveOptions(relative_gap=0.0, time_limit_s=60.0)


@pytest.mark.parametrize("number", range(len(ORACLES)))
def test_published_optima(number: int, kernels: Choice) -> None:
    with computed_by(kernels):
        found = solve_items(oracle(number))
    assert found.latency_us == ORACLES[number][4]
    assert found.status is Status.OPTIMAL
    assert sum(found.fragment_items) == len(found.problem.sequence)
    assert sum(found.fragment_bytes) == found.problem.sequence.total_bytes


def test_every_cut() -> None:
    """1 to 8 stages, limits, items' own costs, ranges: the optimum, and a bound as high."""
    random = Random(1)
    for case in range(count(300)):
        problem = some_problem(
            random, random.randint(1, 10), 1 + case % 8, has_ranges=case % 3 == 0
        )
        best_us = best_of_all_us(problem)
        found = solve_items(problem, TO_THE_END)
        assert found.latency_us == pytest.approx(best_us, rel=SAME)
        assert found.lower_bound_us == pytest.approx(best_us, rel=SAME)
        assert found.lower_bound_us <= found.latency_us
        assert found.latency_us == problem.latency_us(found.cut)


def test_a_status_says_no_more_than_the_bound() -> None:
    random = Random(2)
    for case in range(count(60)):
        stages, shape = 2 + case % 5, ("equal", "layers", "random")[case % 3]
        problem = shaped_problem(random, 120, stages, shape)
        found = solve_items(problem)
        is_close = found.latency_us <= found.lower_bound_us * (1.0 + 1e-6)
        assert (found.status is Status.OPTIMAL) == is_close
        assert found.relative_gap < 0.05


def test_the_mirror_takes_as_long() -> None:
    """Stages and items reversed, a last stage that calculates among them."""
    random = Random(3)
    for case in range(count(100)):
        problem = some_problem(random, 9, 2 + case % 3, is_ready=False, has_limits=False)
        mirror = ItemProblem(problem.pipeline.reversed(), problem.sequence.reversed())
        one, other = (solve_items(each, TO_THE_END) for each in (problem, mirror))
        assert one.latency_us == pytest.approx(other.latency_us, rel=SAME)


def test_the_running_maximum_of_ready_times_changes_nothing() -> None:
    random = Random(4)
    for _ in range(count(100)):
        problem = some_problem(random, 9, 2, is_ready=True, has_limits=False)
        mixed = tuple(random.sample(problem.sequence.ready_us or (), 9))
        fallen = replace(problem.sequence, ready_us=mixed)
        risen = replace(fallen, ready_us=fallen.all_ready_us[1:])
        answers = [
            solve_items(replace(problem, sequence=items), TO_THE_END) for items in (fallen, risen)
        ]
        assert answers[0].cut == answers[1].cut
        assert answers[0].latency_us == answers[1].latency_us


def test_a_delay_is_added_once() -> None:
    problem = oracle(3)
    later = replace(problem, pipeline=Pipeline(problem.pipeline.stages, 1000.0))
    found, moved = solve_items(problem), solve_items(later)
    assert moved.latency_us == found.latency_us + 1000.0
    assert moved.lower_bound_us == pytest.approx(found.lower_bound_us + 1000.0)


def test_more_fragments_are_never_worse() -> None:
    problem = shaped_problem(Random(5), 60, 2, "layers")
    known = [
        solve_items(replace(problem, max_fragments=most), TO_THE_END).latency_us
        for most in (1, 2, 4, 8, 60)
    ]
    assert known == sorted(known, reverse=True)


def test_few_fragments_where_the_table_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum of any number is the bound, and labels look for cuts of so few."""
    problem = ItemProblem(
        pipeline_of([(0.5, 1000)]), ItemSequence.of([1] * 12, range(12)), max_fragments=3
    )
    best_us = solve_items(problem, TO_THE_END).latency_us
    monkeypatch.setattr(solve, "one_wire_cut", lambda _: None)
    found = solve_items(problem, TO_THE_END)
    assert found.latency_us == best_us
    assert len(found.cut) <= 3


def test_no_time() -> None:
    """The best so far, with a true bound, and no claim."""
    problem = shaped_problem(Random(6), 400, 4, "layers")
    found = solve_items(problem, SolveOptions(time_limit_s=1e-9))
    assert found.status is Status.TIME_LIMIT
    assert found.cut_off
    whole = solve_items(problem)
    assert found.lower_bound_us <= whole.latency_us <= found.latency_us


def test_limits_that_admit_nothing() -> None:
    problem = ItemProblem(pipeline_of([(1, 1)] * 2), ItemSequence.of([1] * 6), 2, max_fragments=2)
    with pytest.raises(Infeasible, match="needs at least 3 fragments"):
        solve_items(problem)


def test_notices_are_those_of_the_problem() -> None:
    problem = ItemProblem(pipeline_of([(1, 1000)]), ItemSequence.of([5, 1], [3, 2]), 4)
    codes = [notice.code for notice in solve_items(problem).notices]
    assert codes == ["ready_not_in_order", "item_above_cap"]


def test_the_answer_is_the_same_every_time() -> None:
    problem = shaped_problem(Random(7), 80, 3, "random")
    assert solve_items(problem) == solve_items(replace(problem))
