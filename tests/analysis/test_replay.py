"""analysis/replay.py: rules that are known in closed form, and what every rule keeps to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analysis.replay import Floats, Rules, Window, replayed_us

WORK = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 9), st.integers(1, 4)),
    elements=st.floats(0.01, 100.0),
)


def chain_us(work_us: Floats, hand_us: float = 0.0) -> float:
    """The recurrence: a fragment begins where it is there and its stage is free."""
    ends = np.zeros(work_us.shape[1])
    for row in work_us:
        there_us = 0.0
        for stage, lasts_us in enumerate(row):
            ends[stage] = max(ends[stage], there_us + (hand_us if stage else 0.0)) + lasts_us
            there_us = ends[stage]
    return float(ends[-1])


@given(WORK, st.floats(0.0, 5.0))
def test_without_further_rules_it_is_the_chain(work_us: Floats, hand_us: float) -> None:
    stages = work_us.shape[1]
    rules = Rules((1,) * stages, hand_us=(hand_us,) * stages)
    assert replayed_us(rules, work_us) == pytest.approx(chain_us(work_us, hand_us), abs=1e-4)


@given(WORK)
def test_one_at_a_time_takes_the_sum_with_its_returns(work_us: Floats) -> None:
    fragments, stages = work_us.shape
    rules = Rules((1,) * stages, windows=(Window(0, stages - 1, 1, 7.0),))
    expected = work_us.sum() + 7.0 * (fragments - 1)
    assert replayed_us(rules, work_us) == pytest.approx(expected, abs=1e-4)


@given(WORK)
def test_all_stages_by_turns_or_behind_barriers_take_the_sum(work_us: Floats) -> None:
    stages = work_us.shape[1]
    by_turns = Rules((1,) * stages, turns=(tuple(range(stages)),))
    barrier = Rules((1,) * stages, is_barrier=True)
    assert replayed_us(by_turns, work_us) == pytest.approx(work_us.sum(), abs=1e-4)
    assert replayed_us(barrier, work_us) == pytest.approx(work_us.sum(), abs=1e-4)


@given(WORK)
def test_one_shared_processor_takes_the_sum_and_enough_are_a_chain(work_us: Floats) -> None:
    stages = work_us.shape[1]
    one = Rules((1,) * stages, shares=((tuple(range(stages)), 1.0),))
    enough = Rules((1,) * stages, shares=((tuple(range(stages)), float(stages)),))
    assert replayed_us(one, work_us) == pytest.approx(work_us.sum(), abs=1e-4)
    assert replayed_us(enough, work_us) == pytest.approx(chain_us(work_us), abs=1e-4)


def test_lanes_take_equal_fragments_in_rounds() -> None:
    work_us = np.tile([[4.0, 5.0]], (6, 1))
    assert replayed_us(Rules((2, 3)), work_us) == pytest.approx(18.0)


def test_rules_by_which_none_may_begin_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="no fragment may begin"):
        replayed_us(Rules((1, 1), windows=(Window(0, 1, 0, 0.0),)), np.ones((2, 2)))
