"""Whether one size is faster than another, from pairs of runs that were made one after the other.

Where it is not faster, the sign of a pair's log ratio is a coin, given its amount and the past: the
runs of a pair stand in random order, so that noise of equal distribution makes the ratio symmetric
under any drift. Two ways to win stand on that: a bet whose wealth may be looked at after every pair
(a non-negative supermartingale exceeds c with probability 1/c at most: Ville), and one exact test
over all signs, at the end.

Source    docs/decisions/0029-own-transfers-decide.md; Ville, Étude critique de la notion de
          collectif, 1939; Waudby-Smith and Ramdas, Estimating means of bounded random variables by
          betting, 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import median

import numpy as np

ALPHA = 0.05  # of a size that is not faster: half for the bet, half for the look at the end
MIN_PAIRS = 4
PAIR_SPREADS = 1.5  # the spread that is supposed of a pair's log ratio, in spreads of one run
_STAKES = (0.5, 1.0, 2.5)  # gains that are bet on, in spreads of a pair
_MAX_STAKE = 0.95
_FIRST_SHARE = 0.8  # of ALPHA/2, for the first size that is compared
_MAX_SIGNS = 14  # more pairs are added up in as many sums, which are symmetric too
_CLIPPED = 3.0  # medians: what a pair beyond it says is cut to it
_FAR_RUNS, _FAR_SPREADS = 3, 3.0  # 3 spreads of a pair are 4.5 of a run


@dataclass(frozen=True, slots=True)
class Pair:
    """The log of a size's time over the current one's, and the spread supposed before it."""

    log_ratio: float
    spread: float


def share_of_challenge(number: int) -> float:
    """Return the share of ALPHA/2 that the n-th compared size has; all shares together are 1."""
    return _FIRST_SHARE if number == 1 else (1.0 - _FIRST_SHARE) / (number * (number - 1))


def most_wealth(pairs: Sequence[Pair]) -> float:
    """Return the most that a bet on "faster" had after any of the pairs, beginning with 1.

    Three bettors stake a share that grows with the pair's amount, which a coin knows nothing of.
    """
    ratios = np.array([pair.log_ratio for pair in pairs])[:, None]
    spreads = np.array([pair.spread for pair in pairs])[:, None]
    stakes = _MAX_STAKE * np.tanh(np.array(_STAKES) * np.abs(ratios) / spreads)
    wealth = np.cumprod(1.0 - np.sign(ratios) * stakes, axis=0).mean(axis=1)
    return float(wealth[MIN_PAIRS - 1 :].max(initial=1.0))


def sign_chance(log_ratios: Sequence[float]) -> float:
    """Return the probability that random signs make the sum of these ratios as low, exactly.

    Amounts are cut to three times their median; more than 14 are added up in 14 sums before.
    """
    amounts = [abs(ratio) for ratio in log_ratios]
    most = _CLIPPED * median(amounts) if amounts else 0.0
    clipped = np.clip(log_ratios, -most, most) if most > 0.0 else np.asarray(log_ratios)
    if len(clipped) > _MAX_SIGNS:
        clipped = np.array([part.sum() for part in np.array_split(clipped, _MAX_SIGNS)])
    count = len(clipped)
    signs = 1 - 2 * ((np.arange(1 << count)[:, None] >> np.arange(count)) & 1)
    slack = 1e-9 * float(np.abs(clipped).sum())
    return float((signs @ np.abs(clipped) <= clipped.sum() + slack).mean())


def wins_bet(pairs: Sequence[Pair], number: int) -> bool:
    """Return whether the n-th compared size's bet was ever worth 1 over its share of ALPHA/2."""
    return most_wealth(pairs) >= 1.0 / (ALPHA / 2 * share_of_challenge(number))


def wins_last_look(pairs: Sequence[Pair], number: int) -> bool:
    """Return whether the exact test is below the n-th compared size's share of ALPHA/2."""
    if len(pairs) < MIN_PAIRS:
        return False
    chance = sign_chance([pair.log_ratio for pair in pairs])
    return chance <= ALPHA / 2 * share_of_challenge(number)


def are_far_apart(times_us: Sequence[float], current_us: Sequence[float], noise: float) -> bool:
    """Return whether three runs are below all, at least three, of the current size's, and medians
    4.5 spreads of a run apart. No theorem stands behind it.
    """
    if min(len(times_us), len(current_us)) < _FAR_RUNS:
        return False
    fastest_us = min(current_us)
    below = sum(time_us < fastest_us for time_us in times_us)
    lead = log(median(current_us) / median(times_us))
    return below >= _FAR_RUNS and lead > _FAR_SPREADS * PAIR_SPREADS * noise
