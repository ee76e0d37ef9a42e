"""Bounds without a program: below every cut, and the plain pipeline that no machine beats."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bench.data_movers import data_mover
from domain.machine import Machine, StageRules
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, MachineProblem
from domain.schedule import latency_us
from solvers.machine.bound import count_bounds_us
from solvers.machine.counts import bounds_us, lower_bound_us
from solvers.machine.fast_servers import fast_bounds_us, fast_pipeline, fast_problem
from tests.solvers.outside import all_cuts
from tests.solvers.random_machines import machine_of, small_machine
from tests.support.counts import count

CLOSE = 1.0 + 1e-9


def with_ranges(machine: Machine, rng: random.Random) -> Machine:
    """The same with a second range of sizes for each stage, that may cost more or less."""
    stages = tuple(
        Stage(
            stage.name,
            (
                FitRange(stage.ranges[0].overhead_us, stage.ranges[0].ns_per_byte, 3),
                FitRange(rng.randint(0, 9), stage.ranges[0].ns_per_byte + rng.randint(0, 900)),
            ),
        )
        for stage in machine.stages
    )
    return Machine(Pipeline(stages, machine.delay_us), machine.rules, machine.windows)


def test_every_bound_is_below_every_cut() -> None:
    """All compositions, of stages of lines and with ranges; lanes of any numbers."""
    rng = random.Random(21)
    for index in range(count(600)):
        total = rng.randint(2, 8)
        machine = small_machine(rng, has_bytes=index % 3 == 0, total=total)
        if index % 2:
            machine = with_ranges(machine, rng)
        problem = MachineProblem(machine, total)
        first = problem.count_range().minimum
        every = np.arange(first, problem.count_range().maximum + 1)
        kinds = (
            bounds_us(problem),
            count_bounds_us(problem, every),
            fast_bounds_us(problem, near=int(every[-1])),
        )
        for cut in filter(problem.admits, all_cuts(total)):
            true_us = machine.latency_us(cut)
            assert lower_bound_us(problem) <= true_us * CLOSE
            for of_counts in kinds:
                assert of_counts[len(cut) - first] <= true_us * CLOSE


def test_the_plain_pipeline_takes_no_longer_for_any_cut() -> None:
    """Sizes that rise, fall and jump; each lane's first and last fragments matter."""
    rng = random.Random(22)
    for _ in range(count(4000)):
        machine = small_machine(rng)
        fast = fast_pipeline(machine)
        cut = [rng.choice([0.5, 1.0, rng.uniform(0.1, 9.0)]) for _ in range(rng.randint(1, 9))]
        assert latency_us(fast, cut) <= machine.latency_us(cut) * CLOSE


def test_the_bound_is_the_greater_of_both() -> None:
    rng = random.Random(23)
    for _ in range(count(100)):
        problem = MachineProblem(*data_mover(rng))
        every = np.arange(1, problem.count_range().maximum + 1)
        bounds = bounds_us(problem)
        of_windows = count_bounds_us(problem, every)
        assert (bounds >= np.minimum(of_windows, 1.1 * bounds.min() * (1.0 - 1e-12))).all()
        assert lower_bound_us(problem) == bounds.min()
        assert lower_bound_us(problem) >= fast_bounds_us(problem, near=1).min() * (1.0 - 1e-3)


def test_known_cases() -> None:
    """Sizes 4, 1, 3, 2 take 23 µs with two lanes, and 20.5 with one that is twice as fast."""
    machine = machine_of([2, 3], [1, 1], lanes=[1, 2])
    assert machine.latency_us([4, 1, 3, 2]) == pytest.approx(23.0)
    assert latency_us(fast_pipeline(machine), [4, 1, 3, 2]) == pytest.approx(20.5)


class TestFastPipeline:
    """Which costs count."""

    def test_delays_and_the_shared_part(self) -> None:
        machine = machine_of(
            [1, 4, 1], [1, 3, 2], lanes=[1, 2, 1], delays={1: 5.0, 3: 2.0}, shared={2: 1.0}
        )
        fast = fast_pipeline(machine)
        lines = [stage.ranges[0] for stage in fast.stages]
        assert [line.overhead_us for line in lines] == [1.0, 2.0, 0.0, 1.0]
        assert [line.ns_per_byte for line in lines] == [1000.0, 1000.0, 1000.0, 2000.0]
        assert fast.delay_us == 7.0

    def test_of_neighbours_with_several_numbers_of_lanes_the_slowest_are_kept(self) -> None:
        machine = machine_of([1, 1, 1, 1], [1, 4, 9, 4], lanes=[1, 2, 3, 2])
        assert [stage.name for stage in fast_pipeline(machine).stages] == ["s1", "s2", "s4"]
        shared = machine_of([1, 1, 1], [4, 9, 1], lanes=[2, 3, 1], shared={1: 1.0})
        assert len(fast_pipeline(shared).stages) == 4

    def test_windows_of_bytes_limit_the_sizes(self) -> None:
        machine = machine_of([1, 1], [1, 1])
        problem = MachineProblem(machine, 20, FragmentLimits(max_fragment_bytes=5))
        assert fast_problem(problem).largest_fragment_bytes == 5

    def test_ranges_are_divided_too(self) -> None:
        stage = Stage("a", (FitRange(2.0, 4.0, 8), FitRange(6.0, 2.0)))
        machine = Machine(Pipeline((stage,)), (StageRules(2, 1.0),))
        own, shared = fast_pipeline(machine).stages
        assert [(one.overhead_us, one.ns_per_byte) for one in own.ranges] == [
            (1.0, 1.5),
            (3.0, 0.5),
        ]
        assert shared.ranges[0].ns_per_byte == 1.0
