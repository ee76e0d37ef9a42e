"""What is enough, uneven rounds and the knee; and places in use against counting them."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.in_flight import InUse, StageLanes
from domain.machine import Machine, NodeTimes
from tests.support.uncertain_machines import machines


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


def counted(times: NodeTimes, machine: Machine) -> list[int]:
    """At each start, how many fragments have started and are not back."""
    found = []
    for one in machine.network.windows:
        spans = [
            (start[one.first], end[one.last] + one.return_us)
            for start, end in zip(times.start_us, times.end_us, strict=True)
        ]
        found.append(max(sum(start <= at < back for start, back in spans) for at, _ in spans))
    return found


@given(machines(), st.lists(st.integers(1, 9000), min_size=1, max_size=12))
def test_places_in_use_are_counted_and_never_more_than_there_are(
    machine: Machine, cut: list[int]
) -> None:
    """A place is in use until it has come back; uneven cuts too."""
    times = machine.node_times(cut)
    found = machine.in_use(times)
    places = machine.places(max(cut))
    for used, most, count in zip(found, places, counted(times, machine), strict=True):
        assert used == max(1, count)  # fragments of no time are in use for none
        assert used <= most


@given(machines(), st.integers(1, 9000), st.integers(1, 12))
def test_as_many_places_as_are_in_use_change_nothing(
    machine: Machine, size: int, count: int
) -> None:
    """For equal fragments; processors could go in another order."""
    cut = (size,) * count
    times = machine.node_times(cut)
    used = machine.in_use(times)
    of_windows = {
        one.window: used[at]
        for at, one in enumerate(machine.network.windows)
        if one.window is not None
    }
    same = machine.with_rules(places=of_windows)
    if not machine.processors:
        assert same.latency_us(cut) == pytest.approx(machine.latency_us(cut), rel=1e-12)
