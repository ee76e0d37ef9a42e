"""Two stages with overheads and no ready times: O(m K) against every cut and labels."""

from __future__ import annotations

from random import Random

import pytest

from domain.items import ItemProblem
from solvers.items import two_stage
from solvers.items.two_stage import is_two_stage, two_stage_cut
from tests.solvers.items.item_cases import best_of_all_us, some_problem
from tests.support.counts import count
from tests.support.kernels import computed_by


def some_pair(random: Random, items: int) -> ItemProblem:
    return some_problem(random, items, 2, is_ready=False)


def test_every_cut() -> None:
    random = Random(1)
    for _ in range(count(600)):
        problem = some_pair(random, random.randint(1, 10))
        best_us = best_of_all_us(problem)
        cut = two_stage_cut(problem, best_us * random.choice((1.0, 1.5, 100.0)))
        assert cut is not None
        assert problem.admits(cut)
        assert problem.latency_us(cut) == pytest.approx(best_us, rel=1e-9)


def test_c_and_python_cut_alike() -> None:
    random = Random(2)
    for _ in range(count(200)):
        problem = some_pair(random, random.randint(1, 40))
        with computed_by("numpy"):
            expected = two_stage_cut(problem, 1e12)
        assert two_stage_cut(problem, 1e12) == expected


def test_a_table_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = some_problem(Random(3), 10, 2, is_ready=False, has_limits=False)
    monkeypatch.setattr(two_stage, "MAX_CELLS", 9)
    assert two_stage_cut(problem, 1e12) is None


def test_what_it_is_for() -> None:
    random = Random(4)
    assert is_two_stage(some_pair(random, 5))
    assert not is_two_stage(some_problem(random, 5, 2, is_ready=True))
    assert not is_two_stage(some_problem(random, 5, 3, is_ready=False))
