"""Mixes of message sizes: shares, the log-uniform one, and what is no mix."""

from __future__ import annotations

from math import log

import pytest

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.workload import MAX_WORKLOAD_SIZES, Workload, WorkloadSize, default_min_message_bytes


@pytest.mark.parametrize(
    ("max_message_bytes", "known_min_bytes", "min_message_bytes"),
    [
        (2**24, 1, 1024),
        (2**24, 4096, 4096),  # a table for long messages alone
        (1024, 1, 1024),
        (1023, 1, 1),  # nothing but short messages
        (1000, 64, 64),
        (32, 64, 32),
    ],
)
def test_a_range_of_which_only_the_greatest_is_stated(
    max_message_bytes: int, known_min_bytes: int, min_message_bytes: int
) -> None:
    """From 1 KiB, unless all messages are shorter or all known ones longer."""
    found = default_min_message_bytes(max_message_bytes, known_min_bytes=known_min_bytes)
    assert found == min_message_bytes


def test_weights_become_shares_and_equal_sizes_are_added_up() -> None:
    """Any sum above 0; ascending whatever the order."""
    workload = Workload.weighted([(64, 1.0), (8, 2.0), (64, 5.0)], "three")
    assert workload.sizes == (WorkloadSize(8, 0.25), WorkloadSize(64, 0.75))
    assert workload.words == "three"


def test_every_octave_of_the_log_uniform_mix_has_the_same_weight() -> None:
    """14 octaves, 140 points: a tenth of a strip off at most at each end."""
    workload = Workload.log_uniform(2**10, 2**24, points=140)
    for bit in range(10, 24):
        inside = [size for size in workload.sizes if 2**bit <= size.message_bytes < 2 ** (bit + 1)]
        assert sum(size.share for size in inside) == pytest.approx(1 / 14, abs=1.01 / 140)


def test_one_point_lies_in_each_strip_and_their_places_are_spread() -> None:
    """In the log of the size, inside each strip evenly over it."""
    points = 128
    workload = Workload.log_uniform(2**20, 2**40, points=points)
    places = [log(size.message_bytes / 2**20) / log(2**20) * points for size in workload.sizes]
    assert [int(place + 1e-6) for place in places] == list(range(points))
    inside = sorted(place - int(place + 1e-6) for place in places)
    assert max(abs(one - i / points) for i, one in enumerate(inside)) < 0.02


def test_no_power_of_two_is_preferred() -> None:
    """A size that divides the points of a regular grid would look better than it is."""
    workload = Workload.log_uniform(2**10, 2**24)
    powers = [size for size in workload.sizes[1:] if size.message_bytes.bit_count() == 1]
    assert powers == []


@pytest.mark.parametrize(("minimum", "maximum"), [(1, 1), (1, 2), (7, 9), (MAX_MESSAGE_BYTES,) * 2])
def test_a_small_range_merges_its_points(minimum: int, maximum: int) -> None:
    """Inside the range, ascending, with shares that sum to 1."""
    workload = Workload.log_uniform(minimum, maximum)
    sizes = [size.message_bytes for size in workload.sizes]
    assert sizes == sorted(set(sizes))
    assert minimum <= sizes[0] <= sizes[-1] <= maximum
    assert sum(size.share for size in workload.sizes) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("minimum", "maximum", "points"),
    [(0, 4, 8), (-1, 4, 8), (5, 4, 8), (1, MAX_MESSAGE_BYTES + 1, 8), (1, 4, 0)],
)
def test_what_is_no_range_is_refused(minimum: int, maximum: int, points: int) -> None:
    """With the field."""
    with pytest.raises(InvalidInput) as refusal:
        Workload.log_uniform(minimum, maximum, points=points)
    assert refusal.value.field == "workload"


@pytest.mark.parametrize(
    "weights",
    [
        [],
        [(8, 0.0)],
        [(8, -1.0)],
        [(8, float("nan"))],
        [(8, float("inf"))],
        [(8, 1e308), (9, 1e308)],
        [(0, 1.0)],
        [(-3, 1.0)],
        [(MAX_MESSAGE_BYTES + 1, 1.0)],
        [(1.5, 1.0)],
        [(size + 1, 1.0) for size in range(MAX_WORKLOAD_SIZES + 1)],
    ],
)
def test_what_are_no_weights_is_refused(weights: list[tuple[int, float]]) -> None:
    """Nothing that is no number becomes a share."""
    with pytest.raises(InvalidInput) as refusal:
        Workload.weighted(weights, "spoiled")
    assert refusal.value.field == "workload"


@pytest.mark.parametrize(
    "sizes",
    [
        (WorkloadSize(8, 0.5), WorkloadSize(8, 0.5)),
        (WorkloadSize(9, 0.5), WorkloadSize(8, 0.5)),
        (WorkloadSize(8, 0.5),),
        (WorkloadSize(8, 1.5), WorkloadSize(9, -0.5)),
        (WorkloadSize(8, float("nan")),),
    ],
)
def test_sizes_ascend_and_shares_sum_to_one(sizes: tuple[WorkloadSize, ...]) -> None:
    """Also where they are given as they are."""
    with pytest.raises(InvalidInput):
        Workload(sizes, "spoiled")
