"""The lines of a fit as curves with their bands.

Source    the band is the textbook interval of a line's mean: var f(x) = var a + 2 x cov(a, b) +
          x^2 var b, times the quantile that the fit's own intervals were made with.
Notation  x sizes in bytes; a = Wang's g in µs; b in µs per byte, 1/1000 of Wang's G in ns per byte;
          f = a + b x; q the quantile.
Cost      some points a decade of sizes for each line.
"""

from __future__ import annotations

from math import ceil, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from domain.fit import LineFit, StageFit
from domain.fit_plot import CurvePiece

Floats = NDArray[np.float64]

_PER_DECADE = 16  # of a curve: its chords are then within 1/1000 of it
_MIN_QUANTILE, _MAX_QUANTILE = 1.959964, 12.7063  # Student's t, for 1 to any degrees of freedom


def plotted_pieces(fit: StageFit, minimum: int, maximum: int) -> tuple[CurvePiece, ...]:
    """Return each line between the ends of its range, as far as sizes were measured."""
    pieces = []
    start = minimum
    for line in fit.lines:
        end = maximum if line.up_to_bytes is None else min(line.up_to_bytes, maximum)
        if start <= end:
            pieces.append(_piece(line, float(start), float(end)))
        start = max(start, end + 1)
    return tuple(pieces)


def _piece(line: LineFit, start: float, end: float) -> CurvePiece:
    x = _log_grid(start, end)
    a, b = line.overhead_us, line.ns_per_byte / 1000.0
    f = a + b * x
    half = _half_band(line, x)
    return CurvePiece(
        message_bytes=tuple(x.tolist()),
        time_us=tuple(f.tolist()),
        low_us=tuple(np.maximum(0.0, f - half).tolist()),
        high_us=tuple((f + half).tolist()),
        up_to_bytes=line.up_to_bytes,
    )


def _log_grid(start: float, end: float) -> Floats:
    if start == end:
        return np.array([start])
    x = np.geomspace(start, end, 2 + ceil(_PER_DECADE * log10(end / start)))
    x[0], x[-1] = start, end
    return x


def _half_band(line: LineFit, x: Floats) -> Floats:
    """q times the standard error of the line at x; 0 where the fit gives no finite one."""
    a_error, b_error = line.overhead_std_error_us, line.ns_per_byte_std_error / 1000.0
    if not isfinite(a_error + b_error * float(x[-1])):
        return np.zeros(len(x))
    crossed = 2.0 * line.correlation * a_error * (b_error * x)
    variance = np.maximum(0.0, a_error**2 + crossed + (b_error * x) ** 2)
    half: Floats = _quantile(line) * np.sqrt(variance)
    return half


def _quantile(line: LineFit) -> float:
    """The quantile behind the line's intervals, by their upper halves."""
    halves = (
        (line.overhead_us_interval[1] - line.overhead_us, line.overhead_std_error_us),
        (line.ns_per_byte_interval[1] - line.ns_per_byte, line.ns_per_byte_std_error),
    )
    ratios = [half / error for half, error in halves if error > 0.0]
    return min(_MAX_QUANTILE, max([_MIN_QUANTILE, *ratios]))
