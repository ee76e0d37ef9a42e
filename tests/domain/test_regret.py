"""Regrets: over the best found, over the bound and over the best repeated size."""

from __future__ import annotations

import pytest

from domain.errors import InvalidInput
from domain.regret import BestKnown, Regret, SizeRule


def test_two_references() -> None:
    """110 µs against 100 found and 88 proven."""
    regret = Regret(BestKnown(4096, 100.0, 88.0, 512, 105.0), 1024, 110.0)
    assert regret.message_bytes == 4096
    assert regret.over_best == pytest.approx(0.1)
    assert regret.over_bound == pytest.approx(0.25)


@pytest.mark.parametrize(("latency_us", "expected"), [(0.0, 0.0), (1e-300, float("inf"))])
def test_what_can_be_done_in_no_time(latency_us: float, expected: float) -> None:
    """Nothing is divided by 0."""
    regret = Regret(BestKnown(8, 0.0, 0.0, 8, 0.0), 8, latency_us)
    assert (regret.over_best, regret.over_bound) == (expected,) * 2


def test_a_setting_that_is_better_than_what_was_known() -> None:
    """Below 0, as it is."""
    assert Regret(BestKnown(8, 10.0, 8.0, 8, 10.0), 4, 9.0).over_best == pytest.approx(-0.1)


@pytest.mark.parametrize("multiple_of", [0, -4])
def test_a_rule_needs_a_unit(multiple_of: int) -> None:
    """Multiples of nothing are no sizes."""
    with pytest.raises(InvalidInput) as refusal:
        SizeRule(multiple_of=multiple_of)
    assert refusal.value.field == "sizes"
