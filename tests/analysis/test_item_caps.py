"""The curve over caps: all of a few layouts, of many the best and the worst of each place."""

from __future__ import annotations

from random import Random

import pytest

from analysis.item_caps import MAX_STEPS, cap_curve, thinned
from domain.items import Fill, FillRule, ItemProblem, ItemSequence
from domain.pipeline import pipeline_of_lines
from solvers.contract import Deadline
from solvers.items.caps import PricedLayout, best_cap, priced_layouts

LONG = 60.0


def problem_of(items: int, **limits: int) -> ItemProblem:
    random = Random(items)
    sizes = [random.randint(1, 2**20) for _ in range(items)]
    sequence = ItemSequence.of(sizes, [300.0 * item for item in range(items)])
    return ItemProblem(pipeline_of_lines([("wire", 200.0, 0.5)]), sequence, **limits)


@pytest.mark.parametrize("rule", Fill)
def test_a_few_are_all_drawn(rule: Fill) -> None:
    problem = problem_of(40)
    curve = cap_curve(problem, FillRule(rule), time_limit_s=LONG)
    assert curve.is_complete
    assert not curve.is_thinned
    assert list(curve.steps) == priced_layouts(problem, FillRule(rule), Deadline.after(LONG))[0]


def test_of_many_the_best_is_drawn_and_the_picture_is_small() -> None:
    problem = problem_of(1000)
    curve = cap_curve(problem, FillRule(), time_limit_s=LONG)
    best = best_cap(problem, FillRule(), Deadline.after(LONG))
    assert best is not None
    assert curve.is_thinned
    assert curve.layouts == best.layouts > MAX_STEPS
    assert len(curve.steps) <= 3 * 257
    drawn = [one.latency_us for one in curve.steps if one.latency_us is not None]
    assert min(drawn) == pytest.approx(best.latency_us, rel=1e-12)
    caps = [one.from_bytes for one in curve.steps]
    assert caps == sorted(set(caps))


def test_no_latency_between_drawn_ones_is_left_out() -> None:
    """In each place the drawn ones reach from the least to the greatest."""
    random = Random(1)
    found = [
        PricedLayout(1, None if random.random() < 0.1 else random.random(), cap, cap)
        for cap in range(1, 5000)
    ]
    shown = list(thinned(found))
    known = [one.latency_us for one in found if one.latency_us is not None]
    drawn = [one.latency_us for one in shown if one.latency_us is not None]
    assert (min(drawn), max(drawn)) == (min(known), max(known))
    assert any(one.latency_us is None for one in shown)


def test_time_that_ends_the_walk_leaves_some_caps_to_be_tried() -> None:
    """Above those that were walked over, up to one that holds all."""
    problem = problem_of(300)
    curve = cap_curve(problem, FillRule(), time_limit_s=0.0)
    assert not curve.is_complete
    assert curve.layouts == len(curve.steps) == 1
    caps = [one.from_bytes for one in curve.tried]
    assert caps == sorted(set(caps))
    assert caps[0] > curve.walked_bytes
    assert curve.tried[-1].fragments == 1


def test_layouts_that_limits_refuse_have_no_latency() -> None:
    curve = cap_curve(problem_of(60, max_fragment_bytes=2**22), FillRule(), time_limit_s=LONG)
    assert curve.steps[-1].latency_us is None
    assert curve.steps[0].latency_us is not None
