"""Where a signature changes its regime: found in the data of one message size, not assumed.

Source    Culler96 sec. 3 (the signature's regions); theory.md sec. 7.
Notation  M: messages in a burst; D: computation between two of them in µs; c(M, D): mean cost of a
          message in µs; C = M c: time of the burst. In a burst so short that no reply comes back
          c = o_s + D; in a long one C grows by max(g, o_s + o_r + D) a message.
Cost      O(N log N) for N rows.
Exact     a plateau is the longest run of burst lengths, from the short end, whose costs agree
          within the noise; the rate of long bursts is the least-squares slope of C over the
          lengths, from the long end, over which slopes from one length to the next agree.
Traps     c of a long burst is below its limit by a constant over M (the first messages were cheap),
          so its slope is taken and not its mean. Where all costs agree there may be one regime or
          two that happen to cost the same: only the round trip tells, M o_s against it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from domain.fit import CONFIDENCE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AGREE = 0.02  # relative difference that counts as none, whatever the noise
_SPREADS = 3.0
_MIN_FREEDOM = 1.0
_MIN_US = 1e-12  # a cost below this is 0: it has no spread relative to itself
_MAX_SPREAD = 1e6
_ROUNDING = 1e-12  # relative, of the time of a burst
_NEXT_TO_NOTHING = 1e-15  # of the time of the longest burst: no weight may have no bound


@dataclass(frozen=True, slots=True)
class Measured:
    """A value in µs and its standard error with the degrees of freedom behind it."""

    value: float
    error: float
    freedom: float

    @property
    def half_width(self) -> float:
        """Half of the 95 % interval."""
        return float(stdtrit(max(self.freedom, _MIN_FREEDOM), 0.5 + CONFIDENCE / 2)) * self.error

    def less(self, *others: Measured) -> Measured:
        """Return this value less the others, which were measured independently."""
        value = self.value - sum(other.value for other in others)
        error = float(np.sqrt(self.error**2 + sum(other.error**2 for other in others)))
        freedom = min(self.freedom, *(other.freedom for other in others))
        return Measured(value, error, freedom)

    def halved(self) -> Measured:
        """Return half of it."""
        return Measured(self.value / 2.0, self.error / 2.0, self.freedom)


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bursts of one size and one computation by length, ascending: (m,) each."""

    lengths: Ints
    cost_us: Floats  # medians
    spread: Floats  # robust standard deviations of single costs, relative
    count: Ints

    @classmethod
    def of(cls, lengths: Ints, cost_us: Floats) -> Bursts:
        """Return the bursts grouped by length."""
        distinct, group = np.unique(lengths, return_inverse=True)
        parts = [cost_us[group == place] for place in range(len(distinct))]
        medians = np.array([np.median(part) for part in parts])
        pooled = [
            1.4826 * np.median(np.minimum(np.abs(part - middle) / middle, _MAX_SPREAD))
            for part, middle in zip(parts, medians, strict=True)
            if len(part) >= 3 and middle >= _MIN_US
        ]
        typical = float(np.median(pooled)) if pooled else 0.0
        return cls(
            distinct.astype(np.int64),
            medians,
            np.full(len(distinct), typical),
            np.array([len(part) for part in parts], dtype=np.int64),
        )

    @property
    def errors_us(self) -> Floats:
        """Standard errors of the medians (1.25 times that of a mean)."""
        out: Floats = 1.2533 * self.cost_us * self.spread / np.sqrt(self.count)
        return out


def short_plateau(bursts: Bursts) -> tuple[Measured, int]:
    """Return the cost of short bursts, and how many burst lengths agree on it."""
    upto = 1
    while upto < len(bursts.lengths):
        middle = float(np.median(bursts.cost_us[:upto]))
        noise = _SPREADS * float(np.hypot(bursts.errors_us[upto], bursts.errors_us[:upto].mean()))
        if abs(bursts.cost_us[upto] - middle) > max(noise, AGREE * middle):
            break
        upto += 1
    weights = bursts.count[:upto].astype(float)
    value = float(np.average(bursts.cost_us[:upto], weights=weights))
    within = value * float(bursts.spread[0]) / float(np.sqrt(weights.sum()))
    between = float(bursts.cost_us[:upto].std(ddof=1) / np.sqrt(upto)) if upto > 1 else 0.0
    freedom = float(weights.sum()) - 1.0
    return Measured(value, max(1.2533 * within, between), max(freedom, _MIN_FREEDOM)), upto


def long_rate(bursts: Bursts) -> tuple[Measured, int] | None:
    """Return the time that each message more adds to a long burst, and the shortest burst that is
    one.

    None where there are no two lengths, or where bursts take less time for more messages.
    """
    total = bursts.cost_us * bursts.lengths
    if len(total) < 2:
        return None
    steps = np.diff(total) / np.diff(bursts.lengths)
    errors = np.hypot(*_step_errors(bursts))
    first = len(steps) - 1
    while first > 0:
        middle = float(np.median(steps[first:]))
        noise = _SPREADS * float(np.hypot(errors[first - 1], errors[first:].min()))
        if abs(steps[first - 1] - middle) > max(noise, AGREE * middle):
            break
        first -= 1
    slope = _slope(bursts, first)
    return (slope, int(bursts.lengths[first])) if slope.value >= 0.0 else None


def _step_errors(bursts: Bursts) -> tuple[Floats, Floats]:
    error = bursts.errors_us * bursts.lengths
    width = np.diff(bursts.lengths)
    return error[:-1] / width, error[1:] / width


def _slope(bursts: Bursts, first: int) -> Measured:
    """Weighted least-squares slope of C over M from this length on."""
    M = bursts.lengths[first:].astype(float)
    total = bursts.cost_us[first:] * M
    minimum = max(float(total.max()) * _NEXT_TO_NOTHING, _MIN_US)
    is_known = bool((bursts.errors_us[first:] > 0.0).all())
    error = np.maximum(bursts.errors_us[first:] * M, _ROUNDING * total)
    w = 1.0 / np.maximum(error if is_known else total, minimum) ** 2
    centre = float(w @ M / w.sum())
    sxx = float(w @ (M - centre) ** 2)
    slope = float(w @ ((M - centre) * total)) / sxx
    rest = total - (float(w @ total / w.sum()) + slope * (M - centre))
    freedom = len(M) - 2.0
    scatter = float(w @ rest**2) / max(freedom, 1.0)
    known = 1.0 if is_known else 0.0
    if freedom < 1.0:
        return Measured(slope, float(np.sqrt(known / sxx)), float(bursts.count[first:].sum()) - 2.0)
    return Measured(slope, float(np.sqrt(max(scatter, known) / sxx)), freedom)
