"""Labels: exact where none is dropped, a proven bound where some are; C as Python."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from domain.items import ItemProblem
from solvers.contract import Deadline
from solvers.items import labels
from solvers.items.arrays import arrays_of
from solvers.items.bounds import label_bounds
from solvers.items.labels import Labelled, search
from solvers.kernels.items import ItemArrays, LabelBounds, PlainItems
from tests.solvers.items.item_cases import best_of_all_us, shaped_problem, some_problem
from tests.support.counts import count
from tests.support.kernels import computed_by, native_kernels

SAME = 1e-9


def searched(
    problem: ItemProblem, width: int, *, known_us: float = 1e300, seconds: float = 60.0
) -> Labelled:
    bounds = label_bounds(problem, known_us)
    deadline = Deadline.after(seconds)
    return search(problem, bounds, width=width, target_us=known_us, deadline=deadline)


def optimum_us(problem: ItemProblem) -> float:
    """Without the delay."""
    return best_of_all_us(problem) - problem.pipeline.delay_us


def test_every_cut() -> None:
    """1 to 8 stages, limits, ranges, items' own costs; any width bounds, a wide one is exact."""
    random = Random(1)
    for case in range(count(720)):
        problem = some_problem(
            random, random.randint(1, 10), 1 + case % 8, has_ranges=case % 3 == 0
        )
        best_us = optimum_us(problem)
        found = searched(problem, 10_000)
        assert found.cut is not None
        assert problem.admits(found.cut)
        reached_us = problem.latency_us(found.cut) - problem.pipeline.delay_us
        assert reached_us == pytest.approx(best_us, rel=SAME)
        assert found.bound_us == pytest.approx(best_us, rel=SAME)
        for width in (1, 2, 3):
            narrow = searched(problem, width)
            assert narrow.bound_us <= best_us * (1.0 + SAME)
            if narrow.cut is not None:
                assert problem.latency_us(narrow.cut) >= best_of_all_us(problem) * (1.0 - SAME)


def test_nothing_below_the_optimum_is_found() -> None:
    """A target at the optimum proves it: no cut, and the bound is the target."""
    random = Random(2)
    for case in range(count(200)):
        problem = some_problem(random, random.randint(2, 9), 1 + case % 4)
        best_us = optimum_us(problem)
        found = searched(problem, 10_000, known_us=best_us * (1.0 - 1e-12))
        assert found.cut is None
        assert found.bound_us == pytest.approx(best_us, rel=SAME)


def test_c_and_python_search_alike() -> None:
    random = Random(3)
    for case in range(count(200)):
        problem = some_problem(
            random, random.randint(1, 25), 1 + case % 5, has_ranges=case % 2 == 0
        )
        width = random.choice((1, 2, 5, 50))
        with computed_by("numpy"):
            expected = searched(problem, width)
        assert searched(problem, width) == expected


def test_a_bound_wherever_it_is_cut_off() -> None:
    """After each piece of work no cut is below the bound."""
    random = Random(4)
    for case in range(count(100)):
        problem = some_problem(random, 9, 1 + case % 4, has_limits=False)
        arrays, bounds = arrays_of(problem), label_bounds(problem, 1e300)
        best_us = optimum_us(problem)
        for running in _both(arrays, bounds):
            while not running.advance(5):
                assert running.best().bound_us <= best_us * (1.0 + SAME)
            assert running.best().latency_us == pytest.approx(best_us, rel=SAME)


def _both(arrays: ItemArrays, bounds: LabelBounds) -> list[labels.Running]:
    return [
        kernels.labels(arrays, bounds, width=100, target_us=inf)
        for kernels in (native_kernels().items, PlainItems())
    ]


def test_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_WORK", 1_000)
    problem = shaped_problem(Random(5), 300, 4, "layers")
    cut_off = searched(problem, 64, seconds=0.0)
    assert cut_off.cut_off
    whole = searched(problem, 64)
    assert not whole.cut_off
    assert whole.cut is not None
    assert cut_off.bound_us <= problem.latency_us(whole.cut)
