"""Bounds on cuts of items are below every cut, and where they are meant to be tight they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from domain.items import ItemProblem, ItemSequence
from domain.pipeline import FitRange, Pipeline, Stage
from solvers.contract import Deadline
from solvers.items.arrays import arrays_of, item_kernels
from solvers.items.bounds import any_byte, label_bounds, lower_bound_us
from tests.solvers.items.item_cases import (
    all_cuts,
    best_of_all_us,
    is_admitted,
    pipeline_of,
    shaped_problem,
    some_problem,
)
from tests.support.counts import count
from tests.support.kernels import computed_by

SAME = 1e-9


def test_below_every_cut() -> None:
    random = Random(1)
    for case in range(count(600)):
        problem = some_problem(
            random, random.randint(1, 10), 1 + case % 6, has_ranges=case % 2 == 0
        )
        best_us = best_of_all_us(problem) - problem.pipeline.delay_us
        for known_us in (best_us, 3.0 * best_us):
            bound_us = lower_bound_us(problem, label_bounds(problem, known_us))
            assert bound_us <= best_us * (1.0 + SAME)


def test_what_follows_every_fragment() -> None:
    """Of every cut, after each fragment: what a stage may begin, plus the bound, is not later."""
    random = Random(2)
    for case in range(count(200)):
        problem = some_problem(random, random.randint(2, 7), 1 + case % 4, has_ranges=case % 2 == 0)
        bounds = label_bounds(problem, 1e300)
        for cut in all_cuts(len(problem.sequence)):
            if is_admitted(problem, cut):
                _check_follows(problem, cut, bounds.rest_us, bounds.head_us)


def _check_follows(
    problem: ItemProblem, cut: tuple[int, ...], rest: np.ndarray, head: np.ndarray
) -> None:
    times = problem.simulate(cut)
    delay_us = problem.pipeline.delay_us
    for fragment, (first, _) in enumerate(pairwise((0, *cut))):
        starts, exits = (
            part[fragment] for part in (times.in_stages.start_us, times.in_stages.exit_us)
        )
        for stage, (start_us, exit_us) in enumerate(zip(starts, exits, strict=True)):
            latest_us = (times.latency_us - delay_us) * (1.0 + SAME)
            assert start_us + rest[stage, first] <= latest_us
            assert exit_us - start_us >= head[stage, first + 1] * (1.0 - SAME) - SAME


def test_two_stages_alone_are_exact() -> None:
    """Without ready times the bound of the pair is the optimum of what is left."""
    random = Random(3)
    for _ in range(count(300)):
        problem = some_problem(random, random.randint(2, 9), 2, is_ready=False, has_limits=False)
        arrays = arrays_of(problem)
        parts = np.array([arrays.spent_us[0], np.zeros(arrays.items + 1), arrays.spent_us[1]])
        overheads = float(arrays.overhead_us[0]), 0.0, float(arrays.overhead_us[1])
        rest = item_kernels().pair_rest_us(overheads, parts, arrays.items)
        with computed_by("numpy"):
            assert (
                item_kernels().pair_rest_us(overheads, parts, arrays.items).tolist()
                == rest.tolist()
            )
        for done in range(arrays.items):
            behind = ItemSequence.of(
                problem.sequence.item_bytes[done:],
                stage_us={name: column[done:] for name, column in problem.sequence.stage_us},
            )
            best_us = best_of_all_us(ItemProblem(Pipeline(problem.pipeline.stages), behind))
            assert rest[done] == pytest.approx(best_us, rel=SAME)
        assert rest[-1] == 0.0


def test_any_byte_is_below_every_cut() -> None:
    random = Random(4)
    for case in range(count(120, share=40)):
        problem = some_problem(random, random.randint(1, 9), 1 + case % 4, has_ranges=case % 4 == 0)
        found = any_byte(problem, Deadline.after(20.0))
        assert found.cut is None or problem.admits(found.cut)
        assert found.bound_us <= (best_of_all_us(problem) - problem.pipeline.delay_us) * (
            1.0 + 1e-6
        )


def test_any_byte_is_close_where_items_are_fine() -> None:
    """A thousand equal items behind an even calculation: within 2 % of the best label's cut."""
    problem = shaped_problem(Random(5), 400, 2, "equal")
    own_us = lower_bound_us(problem, label_bounds(problem, 1e300))
    assert any_byte(problem, Deadline.after(20.0)).bound_us >= 0.98 * own_us


def test_limits_raise_the_bound() -> None:
    """Items in fragments of at most two need half as many overheads as items."""
    free = ItemProblem(pipeline_of([(10, 1000), (1, 10)]), ItemSequence.of([1] * 8))
    bound_us = lower_bound_us(free, label_bounds(free, 1e9))
    pairs = replace(free, max_fragment_items=2)
    assert bound_us < 30.0
    assert lower_bound_us(pairs, label_bounds(pairs, 1e9)) >= 48.0


def test_a_cost_that_falls_with_size() -> None:
    """Two items together are cheaper than either: nothing that follows is counted as dearer."""
    stage = Stage("s", (FitRange(10.0, 1000.0, 3), FitRange(1.0, 0.0)))
    problem = ItemProblem(Pipeline((stage, stage)), ItemSequence.of([2, 2, 2]))
    bounds = label_bounds(problem, 1e9)
    assert not bounds.is_rising
    assert best_of_all_us(problem) == 2.0
    assert lower_bound_us(problem, bounds) <= 2.0


def test_no_time_no_bound() -> None:
    problem = shaped_problem(Random(6), 50, 2, "equal")
    assert any_byte(problem, Deadline.after(0.0)).bound_us == 0.0
