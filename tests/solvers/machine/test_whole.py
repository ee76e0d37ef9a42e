"""Real sizes of machines in whole, aligned bytes."""

from __future__ import annotations

import numpy as np

from domain.problem import FragmentLimits, MachineProblem
from solvers.contract import Deadline
from solvers.machine.whole import whole_cut
from tests.solvers.random_machines import machine_of


def test_real_sizes_below_the_alignment() -> None:
    """Three of 3 bytes, where all but the last are multiples of 4: 4, 4, 1 is the only cut."""
    machine = machine_of([1.0, 0.0], [1.0, 1.0], lanes=[2, 1])
    problem = MachineProblem(machine, 9, FragmentLimits(alignment_bytes=4))
    later = Deadline(float("inf"))
    assert whole_cut(problem, np.full(3, 3.0), enough_us=0.0, deadline=later) == (4, 4, 1)
