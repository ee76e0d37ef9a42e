"""The line of queued messages."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from fitting.queued import queued_line

SIZES = tuple(4096 * 3**power for power in range(6))


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e5))
def test_a_line_is_found(overhead_us: float, ns_per_byte: float) -> None:
    found = queued_line({size: overhead_us + ns_per_byte * size / 1000.0 for size in SIZES})
    for size in SIZES:
        expected = overhead_us + ns_per_byte * size / 1000.0
        assert found.stage.time_us(size) == pytest.approx(expected, rel=1e-6)
    assert found.misfit < 1e-6


def test_the_order_of_sizes_does_not_matter() -> None:
    times = {
        size: 7000.0 + 0.04 * size * (1.0 + 0.01 * (-1) ** place)
        for place, size in enumerate(SIZES)
    }
    backwards = dict(reversed(times.items()))
    assert queued_line(times) == queued_line(backwards)


def test_the_misfit_is_that_of_the_worst_size() -> None:
    times = {size: 7000.0 + 0.04 * size for size in SIZES}
    times[SIZES[2]] *= 0.5  # as one that slips through a shaper's burst
    found = queued_line(times)
    shares = [abs(found.stage.time_us(size) / times[size] - 1.0) for size in SIZES]
    assert found.misfit == pytest.approx(max(shares), rel=1e-9)
    assert found.misfit > 0.3


def test_times_that_fall_have_no_cost_a_byte() -> None:
    found = queued_line({1000: 30.0, 2000: 20.0, 4000: 10.0})
    assert found.stage.ranges[0].ns_per_byte == 0.0
    assert found.stage.ranges[0].overhead_us > 0.0


@pytest.mark.parametrize(
    ("times", "field"),
    [
        ({}, "times_us"),
        ({1: 1.0, 2: 2.0}, "times_us"),
        ({0: 1.0, 1: 1.0, 2: 2.0}, "times_us.0"),
        ({1: 1.0, 2: 0.0, 3: 1.0}, "times_us.2"),
        ({1: 1.0, 2: math.nan, 3: 1.0}, "times_us.2"),
        ({1: 1.0, 2: math.inf, 3: 1.0}, "times_us.2"),
    ],
)
def test_what_is_no_times_is_refused(times: dict[int, float], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        queued_line(times)
    assert refusal.value.field == field
