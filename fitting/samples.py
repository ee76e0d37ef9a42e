"""The samples of one stage, sorted and, where there are very many, represented by fewer.

Notation  x sizes in bytes, y times in µs, c how many samples an entry stands for, (N,) each;
          m distinct sizes; `start` (m,) is where each size's entries begin, `count` (m,) how many
          samples it had, `first` (m,) the time that was measured first, `mean` (m,) the mean of
          its times, each clipped at CLIPPED medians; `repetitions` how alike those are which follow
          each other in the file, `drift` how its level moved.
Cost      one stable sort of the sizes, one sort of the times of each size.
Traps     a size with many repetitions is represented by QUANTILES of its sorted times, each with
          the same weight: outliers keep their share, and the sums over a size keep their values but
          for one part in some thousand. Sizes beyond what that can hold are thinned regularly; the
          samples left out then count for nothing, so no interval is narrower than what was used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fitting.drift import UNMOVED, Drift, drift_of
from fitting.repetitions import INDEPENDENT, Repetitions, repetitions_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUANTILES = 64
CLIPPED = 4.0  # medians of a size that a time counts with in its mean, at most
_COMPRESS_FROM = 5_000  # samples; below, every one is used as it is
_MAX_ENTRIES = 20_000
_MIN_PAIRS, _MAX_APART, _OFF_TICK = 10, 0.8, 0.01  # what tells a clock's step
_MIN_DISTINCT = 2  # times, one of them 0, that tell one
_MAX_TICKS = 1e9  # in a time; more cannot be told from rounding


@dataclass(frozen=True, slots=True)
class SortedSamples:
    """Entries by size, then by time; see the notation above."""

    x: Floats
    y: Floats
    c: Floats
    sizes: Ints
    start: Ints
    count: Ints
    first: Floats
    mean: Floats
    repetitions: Repetitions = INDEPENDENT
    drift: Drift = UNMOVED

    @property
    def entries(self) -> Ints:
        """How many entries each size has, (m,)."""
        return np.diff(np.append(self.start, len(self.x)))

    @property
    def group(self) -> Ints:
        """For each entry the index of its size, (N,)."""
        return np.repeat(np.arange(len(self.sizes)), self.entries)

    def between(self, first: int, last: int) -> SortedSamples:
        """Return the samples of sizes first..last, both included, by index."""
        low = int(self.start[first])
        high = int(self.start[last + 1]) if last + 1 < len(self.start) else len(self.x)
        sizes = slice(first, last + 1)
        return SortedSamples(
            self.x[low:high],
            self.y[low:high],
            self.c[low:high],
            self.sizes[sizes],
            self.start[sizes] - low,
            self.count[sizes],
            self.first[sizes],
            self.mean[sizes],
            self.repetitions,
            self.drift,
        )

    def places(self, share: float) -> Ints:
        """Return the entry of each size at this share of its sorted times, (m,)."""
        return self.start + ((self.entries - 1) * share).astype(np.int64)

    def medians(self) -> Floats:
        """Return the median time of each size, (m,)."""
        return _medians(self.y, self.start)


def _medians(y: Floats, start: Ints) -> Floats:
    last = np.diff(np.append(start, len(y))) - 1
    out: Floats = (y[start + last // 2] + y[start + (last + 1) // 2]) / 2.0
    return out


def clipped_means(y: Floats, c: Floats, start: Ints) -> Floats:
    """Return the mean of each size's times (N,), which are sorted, each clipped at CLIPPED medians;
    where the median is 0, as they are.
    """
    median = _medians(y, start)
    limit = np.where(median > 0.0, CLIPPED * median, np.inf)
    clipped = np.minimum(y, np.repeat(limit, np.diff(np.append(start, len(y)))))
    out: Floats = np.add.reduceat(c * clipped, start) / np.add.reduceat(c, start)
    return out


def sort_samples(message_bytes: Sequence[int], times_us: Sequence[float]) -> SortedSamples:
    """Sort, and represent very many samples by fewer."""
    sizes = np.asarray(message_bytes, dtype=np.int64)
    times = np.asarray(times_us, dtype=np.float64)
    order = np.argsort(sizes, kind="stable")
    x, y = sizes[order], times[order]
    distinct, start, count = np.unique(x, return_index=True, return_counts=True)
    first = y[start]
    if len(distinct) * 8 > len(x):
        y = times[np.lexsort((times, sizes))]
    else:
        y = np.concatenate([np.sort(part) for part in np.split(y, start[1:])])
    rows = (order, times[order], y, start.astype(np.int64))
    every = SortedSamples(
        x=x.astype(np.float64),
        y=y,
        c=np.ones(len(x)),
        sizes=distinct,
        start=start.astype(np.int64),
        count=count,
        first=first,
        mean=clipped_means(y, np.ones(len(y)), start),
        repetitions=repetitions_of(*rows),
        drift=drift_of(*rows),
    )
    return every if len(x) <= _COMPRESS_FROM else _thinned(_compressed(every))


def clock_step(samples: SortedSamples) -> float:
    """Return the step of the clock in µs, where equal times and whole multiples show one; 0
    otherwise.

    Where some times are 0, whole multiples alone show one: no clock without a step reads 0.
    """
    inside = np.ones(len(samples.x), dtype=bool)
    inside[samples.start] = False
    apart = np.diff(samples.y, prepend=samples.y[:1])[inside]
    rounding = 1e-9 * samples.y[inside]
    steps = apart[apart > rounding]
    if len(apart) < _MIN_PAIRS or len(steps) == 0 or len(steps) > _MAX_APART * len(apart):
        return _step_of_zeros(samples.y)
    return _step_of_multiples(samples.y, steps)


def _step_of_zeros(y: Floats) -> float:
    """The step of which all times are multiples, where 0 is one and there are enough others."""
    if bool((y > 0.0).all()):
        return 0.0
    distinct = np.unique(y)
    if len(distinct) < _MIN_DISTINCT:
        return 0.0
    return _step_of_multiples(y, np.diff(distinct))


def _step_of_multiples(y: Floats, steps: Floats) -> float:
    step = float(steps.min())
    if step * _MAX_TICKS < float(y.max()):
        return 0.0
    step = float(steps.sum() / np.round(steps / step).sum())
    ticks = y / step
    whole = np.abs(ticks - np.round(ticks)) <= _OFF_TICK + 1e-9 * ticks
    return step if bool(whole.all()) else 0.0


def _compressed(samples: SortedSamples) -> SortedSamples:
    """At most QUANTILES entries a size."""
    count = samples.count
    kept = np.minimum(count, QUANTILES)
    start = np.cumsum(kept) - kept
    place = np.arange(int(kept.sum())) - np.repeat(start, kept)
    many = np.repeat(count / kept, kept)
    index = np.repeat(samples.start, kept) + ((place + 0.5) * many).astype(np.int64)
    x = np.repeat(samples.sizes.astype(np.float64), kept)
    return replace(samples, x=x, y=samples.y[index], c=many, start=start)


def _thinned(samples: SortedSamples) -> SortedSamples:
    """Every so many-th size, where even the compressed entries are too many."""
    step = -(-len(samples.x) // _MAX_ENTRIES)
    if step == 1:
        return samples
    kept = np.zeros(len(samples.sizes), dtype=bool)
    kept[::step] = True
    kept[-1] = True
    entries = np.repeat(kept, samples.entries)
    widths = samples.entries[kept]
    return SortedSamples(
        samples.x[entries],
        samples.y[entries],
        samples.c[entries],
        samples.sizes[kept],
        np.cumsum(widths) - widths,
        samples.count[kept],
        samples.first[kept],
        samples.mean[kept],
        samples.repetitions,
        samples.drift,
    )
