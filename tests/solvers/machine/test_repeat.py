"""The best repeated and the best equal sizes of a machine are the best of all that are admitted."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Infeasible, StrategyDeclined
from domain.machine import Machine, StageRules, Window
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, MachineProblem
from solvers.contract import Deadline
from solvers.kernels.native import Choice
from solvers.machine.bound import count_bounds_us
from solvers.machine.costs import Costs
from solvers.machine.counts import counts_below, sample_counts
from solvers.machine.fixed import best_count, fixed_cut
from solvers.machine.repeat import best_size, repeat_cut, size_within
from tests.support.counts import count
from tests.support.kernels import computed_by
from tests.support.machines import machine_of, machines, some_machine

ENDLESS = Deadline(inf)
limits = st.builds(
    FragmentLimits,
    st.sampled_from([1, 1, 5, 40]),
    st.sampled_from([None, None, 30, 100]),
    st.sampled_from([1, 1, 4, 7]),
    st.sampled_from([None, 3, 12]),
)
any_machine = machines(ranges=True, bytes_too=True)


def admitted(problem: MachineProblem) -> list[tuple[int, ...]]:
    """Every repeated size's cut that the limits admit."""
    total = problem.message_bytes
    cuts = [(s,) * (total // s) + ((total % s,) if total % s else ()) for s in range(1, total + 1)]
    return [cut for cut in cuts if problem.admits(cut)]


def hold(problem: MachineProblem) -> None:
    """The search against all sizes, one by one."""
    try:
        problem.count_range()
    except Infeasible:
        return
    cuts, costs = admitted(problem), Costs(problem.machine)
    if not cuts:
        with pytest.raises(StrategyDeclined, match="no repeated size satisfies the limits"):
            repeat_cut(problem, ENDLESS)
        return
    found = repeat_cut(problem, ENDLESS).fragment_bytes
    assert problem.admits(found)
    min_us = min(map(costs.cut_us, cuts))
    assert costs.cut_us(found) == pytest.approx(min_us, rel=1e-12)


def some_problem(rng: np.random.Generator, most: int) -> MachineProblem:
    machine = some_machine(rng, ranges=bool(rng.integers(2)), bytes_too=True)
    given = FragmentLimits(
        int(rng.choice([1, 1, 1, 5, 40])),
        [None, None, 30, 100][rng.integers(4)],
        int(rng.choice([1, 1, 4, 7])),
        [None, None, 3, 12][rng.integers(4)],
    )
    return MachineProblem(machine, int(rng.integers(1, most)), given)


class TestRepeat:
    def test_no_size_is_better(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(count(1000, share=10)):
            hold(some_problem(rng, 1500))

    @given(any_machine, st.integers(1, 300), limits)
    def test_any(self, machine: Machine, total: int, given: FragmentLimits) -> None:
        hold(MachineProblem(machine, total, given))

    def test_both_implementations(self, kernels: Choice) -> None:
        rng = np.random.default_rng(2)
        with computed_by(kernels):
            for _ in range(count(200, share=50)):
                hold(some_problem(rng, 60))

    def test_many_fragments(self) -> None:
        """Thousands of them, where short paths leave few sizes to evaluate."""
        machine = Machine(
            pipeline_of_lines([("read", 80, 500), ("write", 20, 900)]),
            (StageRules(16, 150.0), StageRules(16, 350.0)),
            (Window(0, 1, 16),),
        )
        problem = MachineProblem(machine, 20_000, FragmentLimits())
        found = repeat_cut(problem, ENDLESS).fragment_bytes
        size = np.arange(1, 20_001)
        full = 20_000 // size
        every = Costs(machine).repeated_us(full, size, 20_000 - full * size)
        assert machine.latency_us(found) == pytest.approx(every.min(), rel=1e-12)

    @pytest.mark.parametrize(
        ("machine", "message", "least", "size", "latency_us"),
        [
            pytest.param(
                Machine(
                    pipeline_of_lines([("read", 200, 0.667), ("connection", 60000, 11.1)]),
                    (StageRules(), StageRules(10, 0.8)),
                    (Window(0, 1, None, 2**28),),
                ),
                *(2**30, 5 * 2**20, 20.3e6 * 1.048576, 1.657e6),
                id="connections",
            ),
            pytest.param(
                machine_of(
                    [(0.3, 0.08e-3), (1.2, 0.05e-3), (0.3, 0.08e-3)],
                    [(1, 3, 4, 0.0)],
                    together=(1, 3),
                ),
                *(2**22, 1, 2**21, 672.3),
                id="one core",
            ),
            pytest.param(
                Machine(
                    pipeline_of_lines([("send", 20, 0.1), ("rail", 2, 0.32), ("receive", 30, 0.1)]),
                    (StageRules(), StageRules(4, 0.0, 25000.0), StageRules()),
                    (Window(1, 2, 64, None, 25000.0),),
                ),
                *(2**30, 1, 8.33 * 2**20, 139.75e3),
                id="rails",
            ),
        ],
    )
    def test_worked_examples(
        self, machine: Machine, message: int, least: int, size: float, latency_us: float
    ) -> None:
        found = repeat_cut(MachineProblem(machine, message, FragmentLimits(least)), ENDLESS)
        assert found.fragment_bytes[0] == pytest.approx(size, rel=1e-2)
        assert machine.latency_us(found.fragment_bytes) == pytest.approx(latency_us, rel=1e-3)

    def test_a_deadline(self) -> None:
        """What was found by then is the answer, and says that it was cut off."""
        machine = machine_of([(1, 1), (2, 2), (1, 1)], [(1, 3, 4, 0)], together=(1, 3))
        candidate = repeat_cut(MachineProblem(machine, 10**6), Deadline(0.0))
        assert candidate.cut_off
        assert sum(candidate.fragment_bytes) == 10**6


class TestSizes:
    @given(any_machine, st.integers(2, 200), st.integers(1, 200))
    def test_known_sizes_change_nothing(self, machine: Machine, total: int, known: int) -> None:
        problem = MachineProblem(machine, total)
        size = min(known, total, problem.largest_fragment_bytes)
        found = best_size(problem, [size], ENDLESS)
        assert found is not None
        cut = (found,) * (total // found) + ((total % found,) if total % found else ())
        best = repeat_cut(problem, ENDLESS).fragment_bytes
        assert machine.latency_us(cut) == pytest.approx(machine.latency_us(best), rel=1e-12)

    @given(any_machine, st.integers(2, 200), st.floats(0.8, 1.2))
    def test_a_size_within_a_limit(self, machine: Machine, total: int, share: float) -> None:
        """There is one exactly where the best one is within it."""
        problem = MachineProblem(machine, total)
        best_us = machine.latency_us(repeat_cut(problem, ENDLESS).fragment_bytes)
        counts = np.arange(1, total + 1)
        found = size_within(problem, best_us * share, counts, [], ENDLESS)
        if not 1 - 1e-9 < share < 1 + 1e-9 and best_us > 0.0:
            assert (found is not None) == (share > 1.0)
        if found is not None:
            cut = (found,) * (total // found) + ((total % found,) if total % found else ())
            assert machine.latency_us(cut) <= best_us * share * (1 + 1e-12)


class TestCounts:
    def test_none_is_left_out(self) -> None:
        """Against the bounds of every count, for any limit."""
        rng = np.random.default_rng(3)
        for _ in range(count(2000)):
            problem = some_problem(rng, 4000)
            try:
                counts = problem.count_range()
            except Infeasible:
                continue
            every = np.arange(counts.minimum, counts.maximum + 1)
            bounds_us = count_bounds_us(problem, every)
            limit_us = float(rng.choice(bounds_us)) * float(rng.choice([1.0, 1.01, 2.0]))
            k, below_us = counts_below(problem, limit_us)
            assert (np.diff(below_us) >= 0.0).all()
            assert sorted(k.tolist()) == every[bounds_us <= limit_us].tolist()
            near, near_us = sample_counts(problem)
            assert (np.diff(near_us) >= 0.0).all()
            assert set(near.tolist()) <= set(every.tolist())


class TestFixed:
    def test_no_count_is_better(self) -> None:
        """In real sizes."""
        rng = np.random.default_rng(4)
        for _ in range(count(500)):
            problem = some_problem(rng, 400)
            try:
                counts = problem.count_range()
            except Infeasible:
                continue
            every = np.arange(counts.minimum, counts.maximum + 1)
            every_us = Costs(problem.machine).equal_us(problem.message_bytes / every, every)
            found = best_count(problem)
            assert every_us[found - counts.minimum] <= every_us.min() * (1 + 1e-12)

    def test_whole_bytes_are_admitted(self) -> None:
        rng = np.random.default_rng(5)
        for _ in range(count(1000)):
            problem = some_problem(rng, 400)
            try:
                cut = fixed_cut(problem).fragment_bytes
            except (Infeasible, StrategyDeclined):
                continue
            assert problem.admits(cut)
            unit = problem.limits.alignment_bytes
            assert max(cut[:-1], default=0) - min(cut[:-1], default=0) in (0, unit)
