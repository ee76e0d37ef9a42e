"""A ramp, one repeated size, a ramp down: the shape, the limits, and how near the optimum it is."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.data_movers import data_mover
from domain.errors import Infeasible, StrategyDeclined
from domain.problem import FragmentLimits, MachineProblem
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.machine import ramp_repeat
from solvers.machine.exact import exact_cut
from solvers.machine.fixed import fixed_cut
from solvers.machine.ramp_repeat import Shape, ramp_repeat_cut, sizes_of
from tests.solvers.random_machines import machine_of, small_machine
from tests.support.counts import count

LATER = Deadline(float("inf"))
COPIES = machine_of([2, 8, 3], [0.0001, 0.0004, 0.00012], lanes=[1, 4, 1])
LIMITS = (
    FragmentLimits(),
    FragmentLimits(min_fragment_bytes=4096),
    FragmentLimits(max_fragment_bytes=50_000),
    FragmentLimits(alignment_bytes=4096),
    FragmentLimits(min_fragment_bytes=10_000, max_fragment_bytes=99_000, alignment_bytes=512),
    FragmentLimits(max_fragments=3),
)


def test_the_shape_is_a_ramp_the_repeated_size_and_a_ramp_down() -> None:
    shape = Shape(6, up=2, up_ratio=2.0, down=1, down_ratio=4.0)
    assert shape.weights().tolist() == [0.25, 0.5, 1.0, 1.0, 1.0, 0.25]
    sizes = sizes_of(MachineProblem(COPIES, 4000), shape)
    assert sizes.tolist() == pytest.approx([250.0, 500.0, 1000.0, 1000.0, 1000.0, 250.0])


def test_shapes_that_leave_nothing_to_repeat_are_not_possible() -> None:
    assert Shape(1).is_possible
    assert not Shape(2, up=1, down=1).is_possible
    assert not Shape(3, up=-1).is_possible
    assert Shape(4, up_ratio=3.0, down=1, down_ratio=1.5).normal() == Shape(
        4, down=1, down_ratio=1.5
    )


@given(
    k=st.integers(1, 30),
    up=st.integers(0, 8),
    down=st.integers(0, 8),
    ratios=st.tuples(st.floats(1.01, 8.0), st.floats(1.01, 8.0)),
    least=st.integers(1, 2000),
    most=st.integers(2000, 60_000),
)
def test_real_sizes_are_within_the_limits_and_sum_to_the_message(
    k: int, up: int, down: int, ratios: tuple[float, float], least: int, most: int
) -> None:
    shape = Shape(k, up, ratios[0], down, ratios[1])
    total = (k * least + k * most) // 2
    problem = MachineProblem(COPIES, total, FragmentLimits(least, most))
    if not shape.is_possible:
        return
    sizes = sizes_of(problem, shape)
    assert sizes.sum() == pytest.approx(total, rel=1e-9)
    assert sizes.min() >= problem.smallest_fragment_bytes * (1.0 - 1e-12)
    assert sizes.max() <= problem.largest_fragment_bytes * (1.0 + 1e-12)
    weights = shape.weights()
    order = np.argsort(weights, kind="stable")
    assert all(before <= after * (1.0 + 1e-12) for before, after in pairwise(sizes[order].tolist()))


@pytest.mark.parametrize("limits", LIMITS)
def test_limits_hold_in_whole_bytes(limits: FragmentLimits) -> None:
    problem = MachineProblem(COPIES, 1_000_003 if limits.max_fragments is None else 90_001, limits)
    found = ramp_repeat_cut(problem, LATER)
    assert problem.admits(found.fragment_bytes)
    assert found.real_sizes is not None
    assert len(found.real_sizes) == len(found.fragment_bytes)
    assert not found.cut_off


def test_sizes_rise_to_the_repeated_one_and_fall_behind_it() -> None:
    found = ramp_repeat_cut(MachineProblem(COPIES, 2**20), LATER).fragment_bytes
    repeated = [at for at, size in enumerate(found) if size >= max(found) - 1]
    first, last = repeated[0], repeated[-1]
    assert repeated == list(range(first, last + 1))
    assert list(found[:first]) == sorted(found[:first])
    assert list(found[last + 1 :]) == sorted(found[last + 1 :], reverse=True)
    assert 1 < len(repeated) < len(found)


def test_messages_of_few_bytes_with_any_limits() -> None:
    """An admitted cut, or a refusal; never better than the evaluator says."""
    rng = random.Random(9)
    for _ in range(count(600)):
        total = rng.randint(1, 60)
        limits = FragmentLimits(
            rng.choice([1, 1, 2, 5]), rng.choice([None, 7, 20]), rng.choice([1, 1, 2, 4])
        )
        machine = small_machine(rng, has_bytes=rng.random() < 0.4, total=max(4, total))
        problem = MachineProblem(machine, total, limits)
        try:
            problem.count_range()
            found = ramp_repeat_cut(problem, LATER)
        except (Infeasible, StrategyDeclined):
            continue
        assert problem.admits(found.fragment_bytes)


def test_equal_sizes_are_among_the_shapes() -> None:
    rng = random.Random(10)
    for _ in range(count(100)):
        machine, total = data_mover(rng)
        problem = MachineProblem(machine, total)
        shaped_us = machine.latency_us(ramp_repeat_cut(problem, LATER).fragment_bytes)
        equal_us = machine.latency_us(fixed_cut(problem).fragment_bytes)
        assert shaped_us <= equal_us * (1.0 + 1e-4)


def test_near_the_optimum() -> None:
    """1.5 % above it at most in the median, 4 % at the ninth decile."""
    rng, above = random.Random(11), list[float]()
    for _ in range(count(120)):
        machine, total = data_mover(rng)
        problem = MachineProblem(machine, total)
        cut = ramp_repeat_cut(problem, LATER).fragment_bytes
        best = exact_cut(problem, Candidate(cut), SolveOptions(relative_gap=1e-3), LATER)
        assert best.unrounded_us is not None
        above.append(machine.latency_us(cut) / best.unrounded_us - 1.0)
    assert float(np.median(above)) <= 0.015
    assert float(np.quantile(above, 0.9)) <= 0.04


def test_twice_the_same() -> None:
    problem = MachineProblem(*data_mover(random.Random(12)))
    assert ramp_repeat_cut(problem, LATER) == ramp_repeat_cut(problem, LATER)


def test_work_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """With work for one shape alone equal sizes are left; time that is up is said."""
    problem = MachineProblem(COPIES, 2**20)
    monkeypatch.setattr(ramp_repeat, "EVALUATED_CELLS", 0)
    found = ramp_repeat_cut(problem, LATER)
    assert len(set(found.fragment_bytes)) <= 2
    assert not found.cut_off
    assert ramp_repeat_cut(problem, Deadline(0.0)).cut_off


def test_a_shape_without_whole_sizes_is_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = MachineProblem(COPIES, 2**20)
    monkeypatch.setattr(ramp_repeat, "nearest_cut", lambda *_: None)
    monkeypatch.setattr(MachineProblem, "admits", lambda *_: False)
    with pytest.raises(StrategyDeclined, match=r"no ramp with 1\d fragments satisfies"):
        ramp_repeat_cut(problem, LATER)
