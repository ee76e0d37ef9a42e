"""What is enough, uneven rounds and the knee."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.in_flight import InUse, StageLanes


@given(st.integers(1, 1000), st.data())
def test_enough_are_a_quarter_more_and_never_more_than_given(
    given_: int, data: st.DataObject
) -> None:
    """Rounded up."""
    fewest = data.draw(st.integers(1, given_))
    enough = InUse(given_, None, fewest).enough
    assert enough == min(given_, ceil(1.25 * fewest))
    assert fewest <= enough <= given_


def test_where_no_size_can_be_repeated_nothing_is_enough() -> None:
    """It is not known."""
    assert InUse(8, 3, None).enough is None


def lanes(given_: int, *, alone_us: float, shared_us: float, last_round: int) -> StageLanes:
    """Lanes of stage 0."""
    return StageLanes(0, InUse(given_, None, None), alone_us, shared_us, last_round, alone_us)


@pytest.mark.parametrize(
    ("count", "is_near"), [(5, False), (6, True), (10, True), (14, True), (15, False)]
)
def test_the_knee_is_within_two_fifths_of_the_shared_rate(count: int, *, is_near: bool) -> None:
    """Ten lanes of 100 µs do what a part of 10 µs lets through."""
    found = lanes(count, alone_us=100.0, shared_us=10.0, last_round=count)
    assert found.rate_ratio == pytest.approx(count / 10)
    assert found.is_near_knee is is_near


def test_lanes_that_share_nothing_have_no_knee() -> None:
    """However many."""
    assert not lanes(8, alone_us=100.0, shared_us=0.0, last_round=8).is_near_knee


@pytest.mark.parametrize(("last_round", "uneven_us"), [(4, 0.0), (3, 25.0), (1, 75.0)])
def test_idle_lanes_of_the_last_round_cost_their_share(last_round: int, uneven_us: float) -> None:
    """Of what its fragment takes on a lane."""
    assert lanes(4, alone_us=100.0, shared_us=0.0, last_round=last_round).uneven_us == uneven_us
