"""What is said of a machine's answer by its solver."""

from __future__ import annotations

import pytest

from domain.errors import StrategyDeclined
from domain.machine import Machine, StageRules
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, MachineProblem
from domain.solution import Strategy
from solvers import solve


def lanes_alone(lanes: int) -> Machine:
    """One stage of 1 µs a byte."""
    return Machine(pipeline_of_lines([("lanes", 0.0, 1000.0)]), (StageRules(lanes),))


def codes_of(problem: MachineProblem, size: int) -> set[str]:
    """The notices of a repeated size."""
    found = solve(problem, Strategy.STATIC, static_bytes=size)
    return {notice.code for notice in found.notices}


def test_a_smaller_rest_that_leaves_first_is_said() -> None:
    """In two lanes 4, 4, 1: the rest takes the first lane that is free. In 4, 1 it passes the 4."""
    limits = FragmentLimits()
    assert codes_of(MachineProblem(lanes_alone(2), 5, limits), 4) == {"rest_may_overtake"}
    assert codes_of(MachineProblem(lanes_alone(2), 9, limits), 4) == set()
    assert codes_of(MachineProblem(lanes_alone(2), 8, limits), 4) == set()


@pytest.mark.parametrize(
    "strategy",
    [
        *(Strategy.RAMP, Strategy.RAMP_UP_DOWN, Strategy.HIERARCHICAL),
        *(Strategy.HIERARCHICAL_RAMP, Strategy.EAGER, Strategy.PULSES),
    ],
)
def test_strategies_for_plain_stages_are_declined(strategy: Strategy) -> None:
    """With those that there are."""
    with pytest.raises(StrategyDeclined, match=r"plain stages.*ramp_repeat") as refusal:
        solve(MachineProblem(lanes_alone(2), 64), strategy)
    assert refusal.value.field == "strategy"
