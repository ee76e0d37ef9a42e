"""A line by an M-estimate on relative residuals, both parameters >= 0.

Source    Tukey's biweight by iteratively reweighted least squares (Huber & Ronchetti 2009, ch. 7).
          Started from a least absolute line (iteratively reweighted too) through all samples, and
          from one through the fast quarter of every size; the narrower of the two ends wins:
          outliers of times are slow ones. Where even that one is wide, a third start is the line
          through two sizes whose median residual is least (Rousseeuw 1984): some sizes that lie far
          below the others pull relative residuals after them.
Notation  as in fitting/line.py; c weights (N,), how many samples an entry stands for; r = (y - f) /
          f; s the scale of r; u = r / (4.685 s); w Tukey's weight; J the objective.
Cost      O(N) an iteration, some tens of iterations.
Exact     each step is (fitting/line.py). The objective is not convex: what is found is the best
          of two or three fixed points.
Traps     the scale is a MAD over all samples: it is too large where a quarter of them are outliers,
          by less than half, and outliers of twice the time still lie far outside. Two residuals a
          line can always make 0: the MAD leaves them out, or few samples look exact. With a clock
          that ticks coarsely most residuals may be equal: the scale never falls below its step.
"""

from __future__ import annotations

import numpy as np

from fitting.line import MIN_SCALE, TINY, Floats, Line, first_line, is_settled, solve
from fitting.samples import SortedSamples

TUKEY = 4.685
_L1_STEPS, _STEPS = 30, 60
_L1_SETTLED, _SETTLED = 1e-6, 1e-9
_MIN_OFF = 1e-4  # a residual below this counts as this one in the least absolute line
_WIDE = 0.2  # relative noise beyond which a line may be that of a few sizes alone
_NEARER = 0.5  # times as far as that one is the line of most sizes off their middles, to be tried
_NARROWER = 0.9  # times the noise of that line has the one of most sizes, to be taken instead
_LOOK = 40  # sizes, for the line of most of them
_TICK = 0.5  # of a clock's step is noise that any sample may have


def tukey_weights(u: Floats) -> Floats:
    """Return Tukey's biweight of u = r / (4.685 s)."""
    out: Floats = np.maximum(1.0 - np.minimum(u * u, 1.0), 0.0) ** 2
    return out


def tukey_loss(u: Floats) -> Floats:
    """Return Tukey's loss, scaled so that a small residual costs (r / s)^2 / 2."""
    out: Floats = (1.0 - (1.0 - np.minimum(u * u, 1.0)) ** 3) * (TUKEY**2 / 6.0)
    return out


def robust_line(
    samples: SortedSamples, x: Floats, y: Floats, scales: Floats | None, tick: float
) -> tuple[Line, Floats, Floats]:
    """Return the line, the scale of every sample and Tukey's weights; (N,).

    `scales` (N,) are those of the relative noise, where the caller knows them; `tick` is the step
    of the clock, as a share of the greatest time.
    """
    c, quick = samples.c, samples.places(0.25)
    starts = (
        _least_absolute(x, y, c),
        _least_absolute(x[quick], y[quick], np.ones(len(quick))),
    )
    ends = [_biweight(x, y, c, start, scales, tick) for start in starts]
    if scales is None:  # the narrower scale describes more of the samples
        best = min(ends, key=_noise)
        if _noise(best) <= _WIDE:
            return best
        middle = samples.places(0.5)
        most = _of_most(x[middle], y[middle])
        if _off(most, x[middle], y[middle]) > _NEARER * _off(best[0], x[middle], y[middle]):
            return best
        other = _biweight(x, y, c, most, None, tick)
        return other if _noise(other) < _NARROWER * _noise(best) else best
    return min(ends, key=lambda end: float(c @ tukey_loss(scaled(x, y, end[0], scales))))


def _off(line: Line, x: Floats, y: Floats) -> float:
    """The median relative residual of these times."""
    f = line.at(x)
    return float(np.median(np.abs(y - f) / f))


def _noise(end: tuple[Line, Floats, Floats]) -> float:
    return float(np.median(end[1]))


def scaled(x: Floats, y: Floats, line: Line, scale: Floats) -> Floats:
    """Return u of every sample."""
    f = line.at(x)
    out: Floats = np.clip((y - f) / (f * scale * TUKEY), -1e9, 1e9)
    return out


def _least_absolute(x: Floats, y: Floats, c: Floats) -> Line:
    line = first_line(x, y, c)
    for _ in range(_L1_STEPS):
        f = line.at(x)
        off = np.maximum(np.abs((y - f) / f), _MIN_OFF)
        line = solve(x, y, c / (f**2 * off))
        if is_settled(line, f, x, _L1_SETTLED):
            break
    return line


def _of_most(x: Floats, y: Floats) -> Line:
    """The line through two sizes, or through one and parallel to an axis, whose median relative
    residual is least: no half of the sizes can pull it away from the others.
    """
    looked = np.linspace(0, len(x) - 1, min(len(x), _LOOK)).astype(np.int64)
    x, y = x[looked], y[looked]
    i, j = np.triu_indices(len(x), 1)
    b = np.maximum((y[j] - y[i]) / (x[j] - x[i]), 0.0)
    a = y[i] - b * x[i]
    b = np.where(a < 0.0, y[i] / x[i], b)
    a = np.maximum(a, 0.0)
    f = np.maximum(a[:, None] + b[:, None] * x[None, :], TINY)
    best = int(np.argmin(np.median(np.abs(y[None, :] - f) / f, axis=1)))
    return Line(float(a[best]), float(b[best]))


def _biweight(
    x: Floats, y: Floats, c: Floats, line: Line, scales: Floats | None, tick: float
) -> tuple[Line, Floats, Floats]:
    scale, weights = _scale(x, y, c, line, tick) if scales is None else scales, np.ones(len(x))
    for _ in range(_STEPS):
        f = line.at(x)
        weights = tukey_weights(scaled(x, y, line, scale))
        if not _spans(x, c * weights):
            return line, scale, np.ones(len(x))
        line = solve(x, y, c * weights / (f * scale) ** 2)
        if is_settled(line, f, x, _SETTLED):
            break
        scale = _scale(x, y, c, line, tick) if scales is None else scales
    return line, scale, weights


def _scale(x: Floats, y: Floats, c: Floats, line: Line, tick: float) -> Floats:
    f = line.at(x)
    out: Floats = np.hypot(max(MIN_SCALE, mad((y - f) / f, c)), _TICK * tick / f)
    return out


def _spans(x: Floats, w: Floats) -> bool:
    """Whether samples of two sizes, and one sample more than a line needs, are left."""
    kept = x[w > 0.0]
    return bool(w.sum() >= 2.0 and len(kept) >= 3 and kept[0] < kept[-1])


def mad(r: Floats, c: Floats) -> float:
    """Return the normalised median of |r|, weighted, of those that a line is not free to make 0."""
    size = np.abs(r)
    order = np.argsort(size, kind="stable")
    reached = np.cumsum(c[order])
    place = int(np.searchsorted(reached, (reached[-1] + 2.0) / 2.0))
    return 1.4826 * float(size[order[min(place, len(r) - 1)]])
