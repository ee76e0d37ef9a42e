"""Bets on pairs: no more is won by chance than the theorem says, over every pattern of signs."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.pair_bets import (
    ALPHA,
    Pair,
    are_far_apart,
    most_wealth,
    share_of_challenge,
    sign_chance,
    wins_bet,
    wins_last_look,
)

amounts = st.lists(st.floats(0.001, 1.0), min_size=4, max_size=8)


@given(amounts, st.floats(1.5, 20.0))
def test_random_signs_win_no_more_often_than_ville_allows(found: list[float], limit: float) -> None:
    """Of all patterns of signs, a share of 1/c at most ever has a wealth of c."""
    patterns = list(product((1.0, -1.0), repeat=len(found)))
    won = sum(
        most_wealth([Pair(sign * amount, 0.05) for sign, amount in zip(signs, found, strict=True)])
        >= limit
        for signs in patterns
    )
    assert won <= len(patterns) / limit


@given(amounts)
def test_the_look_at_the_end_is_exact(found: list[float]) -> None:
    """A share p of all patterns of signs has a probability of p or less, for every p that is."""
    patterns = product((1.0, -1.0), repeat=len(found))
    chances = sorted(
        sign_chance([sign * amount for sign, amount in zip(signs, found, strict=True)])
        for signs in patterns
    )
    assert all(chance >= (rank + 1) / len(chances) - 1e-12 for rank, chance in enumerate(chances))


def test_chances_by_hand() -> None:
    """All of six pairs below 0: one pattern of 64; an outlier among them changes nothing."""
    assert sign_chance([-0.1] * 6) == 1 / 64
    assert sign_chance([-0.1] * 5 + [-9.0]) == 1 / 64
    assert sign_chance([-0.1] * 5 + [0.1]) == 7 / 64
    assert sign_chance([0.0] * 4) == 1.0
    assert sign_chance([-0.1] * 100) == 2.0**-14


def test_wealth_by_hand() -> None:
    """It starts at 1, is kept at its highest, and is not looked at before four pairs."""
    assert most_wealth([]) == 1.0
    assert most_wealth([Pair(-1.0, 0.01)] * 3) == 1.0
    assert most_wealth([Pair(-1.0, 0.01)] * 4) == pytest.approx(1.95**4)
    assert most_wealth([Pair(-1.0, 0.01)] * 4 + [Pair(1.0, 0.01)]) == pytest.approx(1.95**4)
    assert most_wealth([Pair(1.0, 0.01)] * 9) == 1.0


def test_all_challenges_share_what_may_go_wrong() -> None:
    """The shares of any number of sizes add up to 1 at most, and the first has most."""
    assert share_of_challenge(1) == 0.8
    assert sum(share_of_challenge(number) for number in range(1, 1000)) == pytest.approx(
        1.0, abs=1e-3
    )
    pairs = [Pair(-1.0, 0.01)] * 6
    assert 1 / most_wealth(pairs) <= ALPHA / 2 * 0.8
    assert wins_bet(pairs, 1)
    assert not wins_bet(pairs, 3)
    assert wins_last_look(pairs, 1)
    assert not wins_last_look(pairs, 2)
    assert not wins_last_look(pairs[:3], 1)


@pytest.mark.parametrize(
    ("times", "current", "expected"),
    [
        ([80.0, 81.0, 82.0], [100.0, 101.0, 102.0], True),
        ([80.0, 81.0], [100.0, 101.0, 102.0], False),
        ([80.0, 81.0, 82.0], [100.0, 101.0], False),
        ([80.0, 81.0, 103.0], [100.0, 101.0, 102.0], False),
        ([95.0, 95.5, 96.0], [100.0, 101.0, 102.0], False),
    ],
)
def test_far_apart(times: list[float], current: list[float], expected: bool) -> None:
    """Three runs below all of three, and medians 4.5 spreads of 3 % apart."""
    assert are_far_apart(times, current, 0.03) is expected
