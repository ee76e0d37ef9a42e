"""The time of one message over fragment sizes where one stage is the slowest throughout.

With B message bytes, b fragment bytes and ceil(B/b) fragments,

    T(b) = c0 + c1 b/B + c2 ceil(B/b),   all c >= 0, in µs:

the path of the first fragment, and the slowest stage's time of all others. Non-negative least
squares tries all seven sets of constants above 0, which is exact.

Source    docs/decisions/0029-own-transfers-decide.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from analysis.size_centres import Centres

Floats = NDArray[np.float64]

MAX_MISFIT = 0.02  # a size that the curve misses by no more does not speak against it
MIN_SIZES = 5
_WINDOW = 1.25  # the curve is fitted to the sizes that take less than this times the best
_ADDED_ERROR = 0.005  # no centre is held for better known than this
_MIN_MISSED = 0.012  # where stages take turns as the slowest, sizes between are off by so much
_SETS = tuple(found for count in (3, 2, 1) for found in combinations(range(3), count))


def terms_of(sizes: Sequence[int] | Floats, message_bytes: int) -> Floats:
    """Return what the three constants are multiplied with, (m, 3)."""
    fragment_bytes = np.asarray(sizes, dtype=np.float64)
    count = np.ceil(message_bytes / fragment_bytes)
    return np.stack([np.ones_like(count), fragment_bytes / message_bytes, count], axis=1)


def fit_constants(terms: Floats, times: Floats, weights: Floats) -> Floats:
    """Return the constants >= 0 of the least weighted squares, (draws, 3).

    `terms` are (m, 3), `times` (draws, m), `weights` (m,); times in any unit, near 1.
    """
    weighted_terms, weighted = terms * weights[:, None], (times * weights).T
    best, found = np.full(len(times), np.inf), np.zeros((len(times), 3))
    for used in _SETS:
        if len(used) > len(terms):
            continue
        columns = weighted_terms[:, used]
        constants = np.linalg.lstsq(columns, weighted, rcond=None)[0]
        squares = ((weighted - columns @ constants) ** 2).sum(axis=0)
        # A larger set is tried first, and stays where a smaller one is as good but for rounding.
        better = (constants >= 0.0).all(axis=0) & (squares < best * (1.0 - 1e-9))
        best[better] = squares[better]
        filled = np.zeros((int(better.sum()), 3))
        filled[:, used] = constants[:, better].T
        found[better] = filled
    return found


@dataclass(frozen=True, slots=True, eq=False)
class CutCurve:
    """The curve through the centres around the best, fitted at their estimates.

    `places` are those centres' indices, neighbours of each other; `constants` (3,) in units of
    `unit_us`; `off` by how much the log centres lie above the curve, (m,).
    """

    message_bytes: int
    sizes: tuple[int, ...]
    places: tuple[int, ...]
    constants: Floats
    unit_us: float
    weights: Floats
    off: Floats
    holds: bool
    missed: float

    @property
    def constants_us(self) -> tuple[float, float, float]:
        """c0, c1, c2 in µs."""
        start, per_byte, per_fragment = (self.constants * self.unit_us).tolist()
        return start, per_byte, per_fragment

    def log_us(self, log_times: Floats, sizes: Sequence[int]) -> Floats:
        """Return the curve's log times of any sizes, (draws, sizes), for draws of the centres that
        it was fitted to, (draws, m).
        """
        times = np.exp(log_times - log(self.unit_us))
        constants = fit_constants(terms_of(self.sizes, self.message_bytes), times, self.weights)
        fitted = constants @ terms_of(sizes, self.message_bytes).T
        found: Floats = np.log(np.maximum(fitted, 1e-300)) + log(self.unit_us)
        return found


def curve_around_best(
    centres: Centres, message_bytes: int, *, is_everywhere: bool = False
) -> CutCurve:
    """Return the curve over the stretch around the best centre that takes less than 1.25 times its
    time, the best one's neighbours always among it; or over all sizes.

    It holds with five sizes, a degree of freedom left, and misfits that the errors explain or that
    are small. `missed` is what it misses sizes by beyond their errors: it may miss others so too.
    """
    places = _all_places(centres) if is_everywhere else _stretch(centres)
    chosen = list(places)
    log_us, errors = centres.log_us[chosen], centres.errors[chosen]
    unit_us = float(np.exp(centres.log_us.min()))
    times = np.exp(log_us - log(unit_us))
    spread = np.sqrt(errors**2 + _ADDED_ERROR**2)
    sizes = tuple(centres.sizes[place] for place in places)
    terms, weights = terms_of(sizes, message_bytes), 1.0 / (times * spread)
    constants = fit_constants(terms, times[None, :], weights)[0]
    off = np.log(times / np.maximum(terms @ constants, 1e-300))
    freedom = len(sizes) - int((constants > 0.0).sum())
    is_explained = freedom >= 1 and float(((off / spread) ** 2).sum()) <= _chi_square_95(freedom)
    is_small = bool((np.abs(off) <= MAX_MISFIT).all())
    is_near = bool((np.abs(off) <= np.maximum(3.0 * errors, MAX_MISFIT)).all())
    holds = len(sizes) >= MIN_SIZES and freedom >= 1 and (is_explained or is_small) and is_near
    missed = max(_MIN_MISSED, sqrt(max(0.0, float((off**2 - errors**2).mean()))))
    return CutCurve(message_bytes, sizes, places, constants, unit_us, weights, off, holds, missed)


def _all_places(centres: Centres) -> tuple[int, ...]:
    return tuple(range(len(centres.sizes)))


def _stretch(centres: Centres) -> tuple[int, ...]:
    """The places around the best one; what lies behind a slower size is another range."""
    best = int(centres.log_us.argmin())
    last = len(centres.sizes) - 1
    is_near = centres.log_us <= centres.log_us[best] + log(_WINDOW)
    is_near[max(0, best - 1) : best + 2] = True
    low = high = best
    while low > 0 and is_near[low - 1]:
        low -= 1
    while high < last and is_near[high + 1]:
        high += 1
    return tuple(range(low, high + 1))


def _chi_square_95(freedom: int) -> float:
    """The 95 % point of chi squared, by Wilson and Hilferty: within 1 % of it."""
    part = 2.0 / (9.0 * freedom)
    return float(freedom * (1.0 - part + 1.645 * sqrt(part)) ** 3)
