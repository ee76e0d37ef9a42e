"""Which samples of a stage a plot shows, out of many, and which of them are outliers.

Notation  x sizes in bytes, y times in µs, (N,) each; f fitted times; r = (y - f) / f.
Cost      one sort of N samples; what comes out is bounded whatever N is.
Exact     points are samples as they were measured, never averages. Of many, every bin of sizes
          keeps as many as the others, spread evenly over the ranks of r, its least and its greatest
          r among them; the least and the greatest size and time stay too.
Traps     a fit says how many outliers each size has and not which: they are the samples farthest
          from the line, because weights fall with that distance.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from domain.fit import StageFit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MAX_BINS = 400


def outliers_of(fit: StageFit, x: Ints, r: Floats, used: Flags) -> Flags:
    """Return as many of each size, or bin, as the fit counted: those farthest from the line."""
    out = np.zeros(len(x), bool)
    if fit.outliers == 0 or not fit.sizes:
        return out
    centres = np.log([size.message_bytes for size in fit.sizes])
    middles = np.exp((centres[1:] + centres[:-1]) / 2.0)
    starts = [0, *np.searchsorted(x, middles).tolist(), len(x)]
    distance = np.where(used & ~np.isnan(r), np.abs(r), -1.0)
    for size, (start, end) in zip(fit.sizes, pairwise(starts), strict=True):
        if size.outliers:
            farthest = np.argsort(-distance[start:end], kind="stable")[: size.outliers]
            out[start + farthest] = distance[start + farthest] >= 0.0
    return out


def thinned(x: Ints, y: Floats, r: Floats, maximum: int) -> Ints:
    """Return indices of at most so many samples, ascending; all where they are no more."""
    if len(x) <= maximum:
        return np.arange(len(x))
    bins, are_sizes = _bins(x, min(MAX_BINS, maximum // 4))
    # At one size residuals rise with times, by which the samples are sorted already.
    in_order = np.arange(len(x))
    order = in_order if are_sizes else np.lexsort((np.where(np.isnan(r), 0.0, r), bins))
    count = np.bincount(bins)
    ends = {0, len(x) - 1, int(np.argmin(y)), int(np.argmax(y))}
    kept = np.minimum(count, _equal_share(count, maximum - len(ends)))
    start, new_start = np.cumsum(count) - count, np.cumsum(kept) - kept
    place = np.arange(int(kept.sum())) - np.repeat(new_start, kept)
    last = np.repeat(np.maximum(kept - 1, 1), kept)
    rank = (place * np.repeat(count - 1, kept)) // last
    chosen = order[np.repeat(start, kept) + rank]
    return np.unique(np.concatenate([chosen, np.array(sorted(ends), np.int64)]))


def _bins(x: Ints, maximum: int) -> tuple[Ints, bool]:
    """A bin for each sample, from 0 without holes: its size, or its neighbourhood on a log axis.

    And whether every bin is one size.
    """
    bins = _steps(x)
    if int(bins[-1]) < maximum:
        return bins, True
    place = np.log(x / x[0]) / np.log(x[-1] / x[0])
    return _steps(np.minimum((place * maximum).astype(np.int64), maximum - 1)), False


def _steps(ascending: Ints) -> Ints:
    """How many times the value has changed so far."""
    out: Ints = np.cumsum(np.diff(ascending, prepend=ascending[0]) != 0)
    return out


def _equal_share(count: Ints, maximum: int) -> int:
    """The greatest share s with sum(min(count, s)) <= most, at least 1."""
    low, high = 1, maximum
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if np.minimum(count, middle).sum() <= maximum else (low, middle - 1)
        )
    return low
