"""One stage behind ready times: O(m) a range against O(m^2), every cut, and the Python code."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from domain.errors import Infeasible
from domain.items import ItemProblem, ItemSequence
from domain.pipeline import FitRange, Pipeline, Stage
from solvers.contract import SolveOptions
from solvers.items import one_wire
from solvers.items.one_wire import is_one_wire, one_wire_cut, unlimited_cut
from solvers.items.solve import solve_items
from solvers.kernels.native import Choice
from tests.solvers.items.item_cases import (
    ORACLES,
    best_of_all_us,
    oracle,
    pipeline_of,
    quadratic_us,
    rising_stages,
    some_problem,
)
from tests.support.counts import count
from tests.support.kernels import computed_by

SAME = 1e-9


def exact_us(problem: ItemProblem) -> float:
    cut = one_wire_cut(problem)
    assert cut is not None
    assert problem.admits(cut)
    return problem.latency_us(cut)


@pytest.mark.parametrize("number", [0, 1, 4])
def test_published_optima(number: int, kernels: Choice) -> None:
    with computed_by(kernels):
        assert exact_us(oracle(number)) == ORACLES[number][4]


def test_every_cut() -> None:
    """Limits on bytes and items, items' own costs, and at most K fragments."""
    random = Random(1)
    for _ in range(count(2000)):
        problem = some_problem(random, random.randint(1, 10), 1)
        assert exact_us(problem) == pytest.approx(best_of_all_us(problem), rel=SAME)


def test_the_best_fragment_before_each_item() -> None:
    """500 to 1,000 items, where only O(m^2) can be tried."""
    random = Random(2)
    for _ in range(count(200, share=100)):
        problem = replace(some_problem(random, random.randint(500, 1000), 1), max_fragments=None)
        assert exact_us(problem) == pytest.approx(quadratic_us(problem), rel=SAME)


def test_c_and_python_cut_alike() -> None:
    random = Random(3)
    for _ in range(count(400)):
        problem = some_problem(random, random.randint(1, 60), 1)
        with computed_by("numpy"):
            expected = one_wire_cut(problem)
        assert one_wire_cut(problem) == expected


def test_a_queue_for_each_range() -> None:
    """Costs that jump up: against every cut, and against O(m^2); limits and own costs too."""
    random, ranges = Random(6), set[int]()
    for case in range(count(2000)):
        items = random.randint(1, 10) if case % 2 else random.randint(20, 150)
        problem = rising_stages(random, some_problem(random, items, 1))
        if case % 2 == 0:
            problem = replace(problem, max_fragments=None)
        assert is_one_wire(problem)
        expected = best_of_all_us(problem) if case % 2 else quadratic_us(problem)
        assert exact_us(problem) == pytest.approx(expected, rel=SAME)
        ranges.add(len(problem.pipeline.stages[0].ranges))
    assert ranges == {1, 2, 3, 4}


def test_ranges_in_c_and_python_cut_alike() -> None:
    random = Random(7)
    for _ in range(count(400)):
        problem = rising_stages(random, some_problem(random, random.randint(1, 60), 1))
        with computed_by("numpy"):
            expected = one_wire_cut(problem)
        assert one_wire_cut(problem) == expected


def test_ranges_whose_cost_falls_are_left_to_labels() -> None:
    """Beyond a size another way is taken that is cheaper: exact too."""
    random = Random(8)
    for case in range(count(400)):
        problem = some_problem(random, random.randint(1, 10), 1, has_ranges=True)
        if case % 2:
            problem = replace(problem, max_fragments=None)
        solution = solve_items(problem, SolveOptions(relative_gap=0.0))
        assert solution.latency_us == pytest.approx(best_of_all_us(problem), rel=SAME)
        assert solution.lower_bound_us == pytest.approx(solution.latency_us, rel=SAME)


def test_fewer_fragments_cost_no_less() -> None:
    random = Random(4)
    for _ in range(count(100)):
        free = some_problem(random, 40, 1, is_ready=True, has_limits=False)
        best = unlimited_cut(free)
        known = [exact_us(replace(free, max_fragments=most)) for most in range(1, len(best) + 2)]
        assert known == sorted(known, reverse=True)
        assert known[-1] == pytest.approx(free.latency_us(best), rel=SAME)


def test_too_few_fragments() -> None:
    problem = ItemProblem(pipeline_of([(1, 1)]), ItemSequence.of([1] * 6), 2, max_fragments=2)
    with pytest.raises(Infeasible, match="needs at least 3 fragments"):
        one_wire_cut(problem)


def test_a_table_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    free = ItemProblem(pipeline_of([(0, 1000)]), ItemSequence.of([1] * 6, range(6)))
    monkeypatch.setattr(one_wire, "MAX_CELLS", 6 * 2 - 1)
    assert one_wire_cut(free) is not None
    assert one_wire_cut(replace(free, max_fragments=2)) is None


def test_one_line() -> None:
    random = Random(5)
    assert is_one_wire(oracle(0))
    assert not is_one_wire(oracle(3))
    falling = Stage("s0", (FitRange(9.0, 0.0, 5), FitRange(1.0, 0.0)))
    assert not is_one_wire(replace(oracle(0), pipeline=Pipeline((falling,))))
    met = Stage("s0", (FitRange(1.0, 0.1, 10), FitRange(1.0 - 1e-9, 0.1001)))
    assert is_one_wire(replace(oracle(0), pipeline=Pipeline((met,))))
    ranged = (some_problem(random, 4, 1, has_ranges=True) for _ in range(20))
    assert any(not is_one_wire(problem) for problem in ranged)
