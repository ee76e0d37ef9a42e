"""Where a signature changes its regime: found in the data of one message size, not assumed.

Source    Culler96 sec. 3 (the signature's regions); theory.md sec. 7.
Notation  M: messages in a burst; D: computation between two of them in µs; c(M, D): mean cost of a
          message in µs; C = M c: time of the burst. In a burst so short that no reply comes back
          c = o_s + D; in a long one C grows by max(g, o_s + o_r + D) a message.
Cost      O(N log N) for N rows.
Exact     a plateau is the longest run of burst lengths, from the short end, whose costs agree
          within the noise; the rate of long bursts is the least-squares slope of C over the
          lengths, from the long end, over which slopes from one length to the next agree. Where
          none of them settles, one outlier or drift being enough, it is the median slope between
          any two lengths of the far half (Theil 1950, Sen 1968), if those of its two halves agree.
          A timer that is in every burst once makes c(M) fall as t/M: o_s is then the slope of C.
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
_LINE = 1e-3  # relative deviation of the time of a burst from a line that counts as none
_MIN_FAR = 4  # lengths: fewer have no outlier that could be told
_MAX_SCATTER = 0.1  # relative; more, and no line is seen
_MAX_BEND = (
    0.25  # by which the slopes of both halves of the far half may differ: outliers are there
)
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

    def part(self, start: int, end: int) -> Bursts:
        """Return the bursts of these lengths alone."""
        here = slice(start, end)
        return Bursts(self.lengths[here], self.cost_us[here], self.spread[here], self.count[here])

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


def without_timer(bursts: Bursts) -> tuple[Measured, int]:
    """Return the cost of short bursts and how many lengths agree on it, where each burst has the
    time of the timer in it once: c(M) = o_s + t/M.

    Where C is a line over three lengths and more that begins above 0, its slope; where only the
    shortest burst is dearer than the next, that one's cost; else the plateau as it is.
    """
    plateau = short_plateau(bursts)
    total, noise = bursts.cost_us * bursts.lengths, bursts.errors_us * bursts.lengths
    upto = 2
    while upto < len(total):
        line = np.polyfit(bursts.lengths[:upto], total[:upto], 1)
        off = abs(total[upto] - np.polyval(line, bursts.lengths[upto]))
        if off > max(_SPREADS * float(noise[: upto + 1].max()), _LINE * float(total[upto])):
            break
        upto += 1
    if upto >= 3:
        slope = _slope(bursts.part(0, upto), 0)
        timer_us = float(np.median(total[:upto] - slope.value * bursts.lengths[:upto]))
        error_us = max(slope.error * float(bursts.lengths[:upto].mean()), float(noise[0]))
        if upto >= plateau[1] and timer_us > max(_SPREADS * error_us, _LINE * slope.value):
            return slope, upto
    is_dearer = len(total) > 1 and plateau[1] == 1 and bursts.cost_us[1] < bursts.cost_us[0]
    if is_dearer:
        longer, agreeing = short_plateau(bursts.part(1, len(total)))
        return longer, agreeing + 1
    return plateau


def send_overhead(bursts: Bursts, *, timer_subtracted: bool) -> tuple[Measured, int]:
    """Return the cost of short bursts, and how many lengths agree on it.

    A single burst of one length does not say how certain it is: it is taken to scatter as long
    bursts do about their line.
    """
    found, agreeing = short_plateau(bursts) if timer_subtracted else without_timer(bursts)
    if found.error > 0.0:
        return found, agreeing
    error = found.value * max(_scatter(bursts), _LINE)
    return Measured(found.value, error, found.freedom), agreeing


def long_rate(bursts: Bursts) -> tuple[Measured, int] | None:
    """Return the time that each message more adds to a long burst, and the shortest burst that is
    one; a median slope where slopes between neighbours do not settle.

    None where there are no two lengths, or where bursts take less time for more messages.
    """
    found = neighbours_rate(bursts)
    if found is not None and is_settled(bursts, found[1]):
        return found
    return _median_rate(bursts) or found


def neighbours_rate(bursts: Bursts) -> tuple[Measured, int] | None:
    """Return the same, from slopes between neighbours that agree, from the longest burst on."""
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


def _median_rate(bursts: Bursts) -> tuple[Measured, int] | None:
    """Return the median slope of C over the far half of the lengths, and where its line begins.

    None where there are too few lengths, or C bends there: that is no regime.
    """
    start = len(bursts.lengths) // 2
    far = bursts.part(start, len(bursts.lengths))
    if len(far.lengths) < _MIN_FAR:
        return None
    rate, scatter = _median_slope(far), _scatter(bursts)
    middle = len(far.lengths) // 2
    near, farther = (
        _median_slope(far.part(*ends)) for ends in ((0, middle + 1), (middle, len(far.lengths)))
    )
    if rate <= 0.0 or scatter > _MAX_SCATTER or abs(near - farther) > _MAX_BEND * rate:
        return None
    total = bursts.cost_us * bursts.lengths
    begins = float(np.median((total - rate * bursts.lengths)[start:]))
    off = np.abs(total - begins - rate * bursts.lengths) / total
    while start > 0 and off[start - 1] <= max(_SPREADS * scatter, AGREE):
        start -= 1
    M = bursts.lengths[start:].astype(float)
    wide = float(np.sqrt(((M - M.mean()) ** 2).sum()))
    error = 1.2533 * scatter * float(np.median(total[start:])) / wide
    return Measured(rate, error, len(M) - 2.0), int(bursts.lengths[start])


def loaded_rate(bursts: Bursts) -> Measured | None:
    """Return the time that each message more adds to a long burst with computation.

    The first messages find no replies to handle, so that C = M r - k with k >= 0, and no mean cost
    c = C/M is above the slope r: where the slope comes out below the middle cost, or does not
    settle, noise has bent it, and the middle cost is nearer to r.
    """
    found = neighbours_rate(bursts)
    if len(bursts.lengths) < _MIN_FAR:
        alone = len(bursts.lengths) == 1
        return short_plateau(bursts)[0] if alone else None if found is None else found[0]
    middle = float(np.median(bursts.cost_us))
    if found is not None and is_settled(bursts, found[1]) and found[0].value >= middle:
        return found[0]
    spread = 1.4826 * float(np.median(np.abs(bursts.cost_us - middle)))
    count = len(bursts.lengths)
    return Measured(middle, 1.2533 * spread / float(np.sqrt(count)), count - 1.0)


def is_settled(bursts: Bursts, long_from: int) -> bool:
    """Whether at least three lengths are long: one step alone may still be the transition."""
    return len(bursts.lengths) >= 3 and long_from <= bursts.lengths[-3]


def _median_slope(bursts: Bursts) -> float:
    M, total = bursts.lengths.astype(float), bursts.cost_us * bursts.lengths
    first, second = np.triu_indices(len(M), 1)
    return float(np.median((total[second] - total[first]) / (M[second] - M[first])))


def _scatter(bursts: Bursts) -> float:
    """How much costs of long bursts deviate, relative to them: robust, of their line."""
    far = bursts.part(len(bursts.lengths) // 2, len(bursts.lengths))
    if len(far.lengths) < 3:
        return AGREE
    rest = far.cost_us * far.lengths - _median_slope(far) * far.lengths
    off = np.abs(rest - np.median(rest)) / np.maximum(far.cost_us * far.lengths, _MIN_US)
    return 1.4826 * float(np.median(off))


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
