"""How well a fit of a stage describes its samples.

Notation  x sizes in bytes, y times in µs, c how many samples an entry stands for, (N,); f fitted
          times; w the weights of the fit.
Cost      O(N).
"""

from __future__ import annotations

import numpy as np

from domain.fit import SizeFit
from fitting.evidence import Evidence
from fitting.line import TINY, Line, solve
from fitting.pieces import Piece
from fitting.robust import mad
from fitting.size_times import SizeTimes

_OUTLIER = 0.01  # a weight below this
_MISFIT = 0.95  # of sizes lie nearer to the fit than what is told


def sizes_of(evidence: Evidence, times: SizeTimes) -> tuple[SizeFit, ...]:
    """Return what each size was measured to take, and what the fit says of it."""
    centres, f = evidence.centres, evidence.fitted_centres()
    far = evidence.samples.c * (evidence.weights() < _OUTLIER)
    outliers = np.round(np.add.reduceat(far, centres.start)).astype(np.int64)
    minimum = max(float(evidence.samples.y.max()) * TINY, 5e-324)
    off = (centres.median - f) / np.maximum(f, minimum)
    columns = zip(
        np.round(centres.x).astype(np.int64).tolist(),
        centres.count.astype(np.int64).tolist(),
        centres.median.tolist(),
        f.tolist(),
        off.tolist(),
        centres.s.tolist(),
        outliers.tolist(),
        times.mean_us.tolist(),
        times.median_error_us.tolist(),
        times.mean_error_us.tolist(),
        strict=True,
    )
    return tuple(SizeFit(*row) for row in columns)


def misfit_of(sizes: tuple[SizeFit, ...]) -> float:
    """Return how far medians of sizes lie off the fit, relative to it: the 95th percentile."""
    off = [abs(size.relative_residual) for size in sizes]
    return min(1e18, float(np.quantile(off, _MISFIT)))


def goodness_of(evidence: Evidence) -> tuple[float, float, float]:
    """Return robust std of relative residuals, std in µs, share of variance explained."""
    samples, f = evidence.samples, evidence.fitted()
    unit = float(samples.y.max()) or 1.0
    y, f = samples.y / unit, f / unit
    w = samples.c * evidence.weights()
    squares = float(w @ (y - f) ** 2)
    mean = float(w @ y) / float(w.sum())
    total = float(w @ (y - mean) ** 2)
    free = sum(2 if piece.estimate.clipped is None else 1 for piece in evidence.pieces)
    relative = np.where(f > 0.0, (y - f) / np.maximum(f, 1e-18), np.sign(y))
    explained = 1.0 if total <= 1e-18 * float(w.sum()) else max(0.0, 1.0 - squares / total)
    std = (squares / max(1.0, float(w.sum()) - free)) ** 0.5
    return min(mad(relative, samples.c), 1e18), std * unit, explained


def influence_of(piece: Piece) -> float:
    """Return by how much of themselves fitted times would move if no sample were weighted down."""
    samples, found = piece.samples, piece.estimate
    if bool((found.weights >= _OUTLIER).all()):
        return 0.0
    x_unit, y_unit = float(samples.x.max()), float(samples.y.max())
    x, y = samples.x / x_unit, samples.y / y_unit
    f = Line(found.a / y_unit, found.b * x_unit / y_unit).at(x)
    every = solve(x, y, samples.c / f**2)
    return float(np.max(np.abs(every.at(x) - f) / f))
