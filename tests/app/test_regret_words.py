"""Regrets in words."""

from __future__ import annotations

import pytest

from app.console.regret_words import proven_regret_text


@pytest.mark.parametrize(
    ("at_most", "at_least", "text"),
    [
        (0.05, 0.05, "5.00 %"),
        (0.0500001, 0.05, "5.01 %"),
        (0.05 + 1e-16, 0.05, "5.00 %"),
        (1.2301, 1.2, "124 %"),
        (None, None, "unbounded"),
        (None, 0.1, "unbounded"),
        (0.0, 0.0, "0.00 %"),
    ],
)
def test_what_a_regret_is_at_most_is_rounded_up(
    at_most: float | None, at_least: float | None, text: str
) -> None:
    """It is proven; unless it is the very figure that was found."""
    assert proven_regret_text(at_most, at_least) == text
