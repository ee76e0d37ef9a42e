"""Equal fragments of machines: every count, or those that may be priced."""

from __future__ import annotations

import random

import numpy as np
import pytest

from domain.machine import Machine
from domain.problem import FragmentLimits, MachineProblem
from solvers.machine import fixed
from solvers.machine.costs import Costs
from solvers.machine.fixed import best_count, fixed_cut
from tests.solvers.random_machines import machine_of, small_machine
from tests.support.counts import count

ONE_CORE = machine_of([1.0, 3.0, 1.0], [0.1, 0.2, 0.1], processors=[(1, 3)])


def test_the_best_count_is_the_best_of_all() -> None:
    """Against the price of every count."""
    rng = random.Random(3)
    for _ in range(count(300, share=40)):
        machine, total = small_machine(rng), rng.randint(1, 60)
        k = np.arange(1, total + 1)
        equal_us = Costs(machine).equal_us(total / k, k)
        found = best_count(MachineProblem(machine, total, FragmentLimits()))
        assert equal_us[found - 1] == pytest.approx(equal_us.min(), rel=1e-9)


@pytest.mark.parametrize("machine", [ONE_CORE, machine_of([1.0], [0.1], lanes=[2])])
def test_orders_of_processors_are_priced_for_so_many_counts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluator goes through every order of every count; the formula of others is short."""
    every = fixed_cut(MachineProblem(machine, 5000, FragmentLimits()))
    assert not every.cut_off
    monkeypatch.setattr(fixed, "PRICED_CELLS", 1)
    some = fixed_cut(MachineProblem(machine, 5000, FragmentLimits()))
    assert some.cut_off == (machine is ONE_CORE)
    assert sum(some.fragment_bytes) == 5000
    costs = Costs(machine)
    assert costs.cut_us(every.fragment_bytes) <= costs.cut_us(some.fragment_bytes)
