"""Moving ends never makes a cut worse, and keeps the limits."""

from __future__ import annotations

from math import inf
from random import Random

from domain.items import ItemProblem, ItemSequence
from solvers.contract import Deadline
from solvers.items.moves import improved
from tests.solvers.items.item_cases import (
    all_cuts,
    best_of_all_us,
    is_admitted,
    pipeline_of,
    some_problem,
)
from tests.support.counts import count


def test_never_worse_and_admitted() -> None:
    random = Random(1)
    for case in range(count(200)):
        problem = some_problem(random, random.randint(1, 9), 1 + case % 4)
        cuts = [one for one in all_cuts(len(problem.sequence)) if is_admitted(problem, one)]
        cut = random.choice(cuts)
        better = improved(problem, cut, Deadline.after(20.0))
        assert problem.admits(better)
        assert best_of_all_us(problem) * (1.0 - 1e-9) <= problem.latency_us(better)
        assert problem.latency_us(better) <= problem.latency_us(cut)


def test_an_end_in_the_wrong_place_is_moved() -> None:
    problem = ItemProblem(pipeline_of([(1, 1000), (1, 1000)]), ItemSequence.of([1] * 8))
    assert improved(problem, (1, 8), Deadline.after(20.0)) != (1, 8)


def test_a_long_cut_is_left_when_time_is_up() -> None:
    """The clock is looked at for each end, and not for each round over all of them."""
    problem = ItemProblem(pipeline_of([(9, 1), (9, 1)]), ItemSequence.of([1] * 400))
    looks = iter(range(400))
    ended = Deadline(inf, lambda: next(looks) >= 5)
    left = improved(problem, tuple(range(1, 401)), ended)
    assert 390 <= len(left) < 400
