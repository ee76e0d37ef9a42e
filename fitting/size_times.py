"""What the times of a size say by themselves: their mean, and how far mean and median may be off.

Source    the variance of a median of rows drawn anew (Maritz & Jarrett 1978): that of Q(U), where Q
          are the sorted times and U has a beta distribution around 1/2; that of a mean is s^2 / n.
Notation  by cell of fitting/centres.py, (m,): n how many samples it has; K places of U, each as
          likely as the others; y times clipped at CLIPPED medians.
Cost      O(N + m K).
Exact     means are, of all samples that were measured.
Traps     few repetitions may be equal by chance: with fewer than _OWN no error is less than what
          the scatter of neighbouring sizes makes of it, or that of sizes around chords where each
          has one time. A clock's step errs the same way in all samples of a size. Where many
          samples are represented by few, the mean of those is carried to that of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, ndtri

from fitting.centres import FREEDOM, Cells, Centres, cells_of, windows
from fitting.samples import CLIPPED, Floats, SortedSamples, clipped_means

_OWN = 8  # repetitions that tell their scatter by themselves
_NORMAL = 50  # repetitions from which a beta distribution is as good as a normal one
_PLACES: Floats = (np.arange(64, dtype=np.float64) + 0.5) / np.float64(64.0)
_OF_MEDIAN = 1.2533  # times the error of a mean is that of a median, where times scatter normally


@dataclass(frozen=True, slots=True)
class SizeTimes:
    """By cell, (m,), µs: means, and the standard errors of medians and of means."""

    mean_us: Floats
    median_error_us: Floats
    mean_error_us: Floats


def size_times(
    samples: SortedSamples, centres: Centres, ends: tuple[int, ...], *, resolution_us: float
) -> SizeTimes:
    """Return what the samples say of each of these centres.

    `ends` are the sizes, by index, that no bin reaches over; `resolution_us` is the clock's step.
    """
    cells, count, median = cells_of(samples, ends), centres.count, centres.median
    limit = np.where(median > 0.0, CLIPPED * median, np.inf)
    clipped = np.minimum(cells.y, limit[cells.group])
    every = cells.total(np.ones(len(clipped)))
    mean = cells.total(clipped * _carried(samples)[cells.of_size]) / every
    squares = cells.total((clipped - (cells.total(clipped) / every)[cells.group]) ** 2)
    own = np.sqrt(squares / np.maximum(count - 1.0, 1.0))
    some = cells.y[cells.y > 0.0]  # a time of 0 is less than these, and nobody knows by how much
    at = np.where(median > 0.0, median, float(some.min()) / 2.0 if len(some) else 0.0)
    few = bool((count < _OWN).any())
    scatter = _neighbours_scatter(centres, squares) if few else centres.s
    others = np.where(count < _OWN, scatter, 0.0) * at
    of_median = np.where(count < _OWN, centres.s, 0.0) * at / np.sqrt(count)
    of_median = np.where(count > 2.0, _OF_MEDIAN, 1.0) * of_median
    wide, step = np.sqrt(centres.wide), resolution_us / 12.0**0.5
    return SizeTimes(
        mean,
        np.hypot(wide * np.maximum(_median_errors(cells, count), of_median), step),
        np.hypot(wide * np.maximum(own, others) / np.sqrt(count), step),
    )


def _neighbours_scatter(centres: Centres, squares: Floats) -> Floats:
    """The relative standard deviation of single times of neighbouring cells, outliers included, and
    no less than the robust one, (m,). `squares` are the sums of each cell.
    """
    freedom = np.where(centres.median > 0.0, centres.count - 1.0, 0.0)
    relative = np.divide(
        squares, centres.median**2, out=np.zeros_like(squares), where=centres.median**2 > 0.0
    )
    out = centres.s.copy()
    for place, (low, high) in enumerate(windows(freedom, FREEDOM)):
        if freedom[low:high].sum() > 0.0:
            pooled = float(relative[low:high].sum() / freedom[low:high].sum()) ** 0.5
            out[place] = max(float(out[place]), pooled)
    return out


def _carried(samples: SortedSamples) -> Floats:
    """The mean of each size beside that of the entries which represent it, (sizes,)."""
    entries = clipped_means(samples.y, samples.c, samples.start)
    out: Floats = np.divide(samples.mean, entries, out=np.ones_like(entries), where=entries > 0.0)
    return out


def _median_errors(cells: Cells, count: Floats) -> Floats:
    """The standard deviation of Q(U) of each cell, (m,), Q between the middles of entries."""
    share = np.cumsum(cells.c)
    share = (share - cells.c / 2.0) - (share[cells.start] - cells.c[cells.start])[cells.group]
    share = share / cells.total(np.ones(len(share)))[cells.group]
    last = np.append(cells.start[1:], len(share)) - 1
    distinct, kind = np.unique(np.maximum(count, 1.0), return_inverse=True)
    places = np.array([_places(n) for n in distinct.tolist()])[kind]
    places = np.clip(places, share[cells.start][:, None], share[last][:, None])
    at = places + np.arange(len(count))[:, None]
    drawn = np.interp(at.ravel(), share + cells.group, cells.y).reshape(at.shape)
    out: Floats = drawn.std(axis=1)
    return out


@lru_cache(maxsize=256)
def _places(n: float) -> Floats:
    """K places, of the same probability each, of the middle of n uniform numbers."""
    if n < _NORMAL:
        found: Floats = betaincinv((n + 1.0) / 2.0, (n + 1.0) / 2.0, _PLACES)
        return found
    out: Floats = 0.5 + ndtri(_PLACES) * 0.5 / (n + 2.0) ** 0.5
    return out
