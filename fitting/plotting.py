"""A fit and the traces it came from, as what a plot of it shows.

Source    the band is the textbook interval of a line's mean: var f(x) = var a + 2 x cov(a, b) +
          x^2 var b, times the quantile that the fit's own intervals were made with.
Notation  x sizes in bytes, y times in µs, (N,) each; a = Wang's g in µs; b in µs per byte,
          1/1000 of Wang's G in ns per byte; f = a + b x; r = (y - f) / f; q the quantile.
Cost      one sort of N samples a stage; what comes out is bounded whatever N is.
Exact     points are samples as they were measured, never averages. Of many, every bin of sizes
          keeps as many as the others, spread evenly over the ranks of r, its least and its greatest
          r among them; the least and the greatest size and time stay too.
Traps     a fit says how many outliers each size has and not which: they are the samples farthest
          from the line, because weights fall with that distance. A line may be 0 at every size: r
          is then undefined, and None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil, isfinite, log10
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from domain.fit import (
    END_TO_END_STAGE,
    FitOptions,
    LineFit,
    StageFit,
    StepGroup,
    TraceFit,
)
from domain.fit_plot import (
    CurvePiece,
    FitPlot,
    PlotPoints,
    PlotRole,
    SignatureCurve,
    SignaturePlot,
    StagePlot,
)
from domain.measurement import DirectTrace, MessageTrace, Reading, SignatureTrace, Trace
from fitting.combine import joined
from fitting.direct import abstract_stages

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_Key = TypeVar("_Key", int, float)

MAX_POINTS = 2_000  # a stage
MAX_POINTS_IN_ALL = 20_000
MIN_POINTS = 300
MAX_BINS = 400
MAX_SIGNATURES, MAX_CURVES, MAX_BURSTS = 6, 12, 200
_PER_DECADE = 16  # of a curve: its chords are then within 1/1000 of it
_MIN_QUANTILE, _MAX_QUANTILE = 1.959964, 12.7063  # Student's t, for 1 to any degrees of freedom


def plot_fit(fit: TraceFit, readings: Sequence[Reading], options: FitOptions) -> FitPlot:
    """Return what a plot of this fit of these readings shows; `options` are those it was made
    with.
    """
    trace = joined([reading.trace for reading in readings]) if readings else None
    found = _columns(trace, options.groups)
    parts = list(_parts(fit))
    maximum = max(MIN_POINTS, min(MAX_POINTS, MAX_POINTS_IN_ALL // max(1, len(parts))))
    stages = tuple(
        _stage_plot(stage, role, _samples_of(stage, role, found), max_points=maximum)
        for stage, role in parts
    )
    signatures = _signatures(trace) if isinstance(trace, SignatureTrace) else ()
    return FitPlot(stages, signatures)


def _parts(fit: TraceFit) -> Iterator[tuple[StageFit, PlotRole]]:
    if fit.aggregate is not None:
        yield fit.aggregate.total, PlotRole.TOTAL
        yield fit.aggregate.bottleneck, PlotRole.BOTTLENECK
        return
    for stage in fit.stages:
        yield stage, PlotRole.STAGE


# --- samples --------------------------------------------------------------------------------------

Columns = tuple[Ints, Floats]


def _columns(trace: Trace | None, groups: Sequence[StepGroup]) -> dict[str, Columns]:
    """Samples by the name of the stage, those of whole messages by their role too."""
    if isinstance(trace, DirectTrace):
        x = np.asarray(trace.message_bytes, np.int64)
        return {
            name: (x, np.asarray(times, np.float64))
            for name, times in abstract_stages(trace, groups)
        }
    if isinstance(trace, MessageTrace):
        parts = (
            (PlotRole.TOTAL, trace.latency),
            (END_TO_END_STAGE, trace.latency),
            (PlotRole.BOTTLENECK, trace.interarrival),
        )
        return {
            name: (
                np.asarray(part.message_bytes, np.int64),
                np.asarray(part.times_us, np.float64),
            )
            for name, part in parts
            if part is not None
        }
    return {}


def _samples_of(stage: StageFit, role: PlotRole, found: Mapping[str, Columns]) -> Columns | None:
    """What this stage was fitted to, where the traces still tell."""
    return found.get(stage.name if role is PlotRole.STAGE else role)


# --- one stage ------------------------------------------------------------------------------------


def _stage_plot(
    fit: StageFit, role: PlotRole, samples: Columns | None, *, max_points: int
) -> StagePlot:
    shows_medians = samples is None
    x, y = _medians(fit) if samples is None else samples
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    fitted = _fitted(fit.lines, x)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r = np.where(fitted > 0.0, (y - fitted) / fitted, np.nan)
    r[~np.isfinite(r)] = np.nan
    minimum, maximum = _span(fit, x)
    used = (x >= minimum) & (x <= maximum)
    outlier = np.zeros(len(x), bool) if shows_medians else _outliers(fit, x, r, used)
    kept = _thinned(x, y, r, max_points)
    points = PlotPoints(
        message_bytes=tuple(x[kept].tolist()),
        time_us=tuple(y[kept].tolist()),
        relative_residual=tuple(None if one != one else one for one in r[kept].tolist()),
        is_outlier=tuple(outlier[kept].tolist()),
        is_used=tuple(used[kept].tolist()),
    )
    count = fit.num_samples if shows_medians else len(x)
    return StagePlot(fit, role, points, _pieces(fit, minimum, maximum), count, shows_medians)


def _medians(fit: StageFit) -> Columns:
    """What is left of the samples where the traces do not hold this stage's times."""
    sizes = np.array([size.message_bytes for size in fit.sizes], np.int64)
    return sizes, np.array([size.median_us for size in fit.sizes], np.float64)


def _span(fit: StageFit, x: Ints) -> tuple[int, int]:
    """The sizes fitted to; those measured where an old fit does not say, empty where none are."""
    minimum, maximum = fit.lines[0].from_bytes, fit.lines[-1].to_bytes
    if 1 <= minimum <= maximum:
        return minimum, maximum
    return (int(x[0]), int(x[-1])) if len(x) else (1, 0)


def _fitted(lines: Sequence[LineFit], x: Ints) -> Floats:
    """Fitted times; ends of ranges are inclusive."""
    ends = [line.up_to_bytes for line in lines[:-1] if line.up_to_bytes is not None]
    at = np.searchsorted(np.array(ends, np.int64), x, side="left")
    a = np.array([line.overhead_us for line in lines])[at]
    b = np.array([line.ns_per_byte / 1000.0 for line in lines])[at]
    out: Floats = a + b * x
    return out


def _outliers(fit: StageFit, x: Ints, r: Floats, used: Flags) -> Flags:
    """As many of each size, or bin of sizes, as the fit counted: those farthest from the line."""
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


def _thinned(x: Ints, y: Floats, r: Floats, maximum: int) -> Ints:
    """Indices of at most so many samples, ascending; all where they are no more."""
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


# --- lines ----------------------------------------------------------------------------------------


def _pieces(fit: StageFit, minimum: int, maximum: int) -> tuple[CurvePiece, ...]:
    """Each line between the ends of its range, as far as sizes were measured."""
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


# --- signatures -----------------------------------------------------------------------------------


def _signatures(trace: SignatureTrace) -> tuple[SignaturePlot, ...]:
    """Mean costs by size, computation and burst; the median where there are several rows."""
    costs: dict[int, dict[float, dict[int, list[float]]]] = {}
    rows = zip(trace.message_bytes, trace.computation_us, trace.bursts, trace.cost_us, strict=True)
    for size, computation, burst, cost in rows:
        by_burst = costs.setdefault(int(size), {}).setdefault(float(computation), {})
        by_burst.setdefault(int(burst), []).append(float(cost))
    return tuple(
        SignaturePlot(
            size,
            tuple(_curve(value, costs[size][value]) for value in _spread(costs[size], MAX_CURVES)),
        )
        for size in _spread(costs, MAX_SIGNATURES)
    )


def _curve(computation_us: float, costs: Mapping[int, Sequence[float]]) -> SignatureCurve:
    bursts = _spread(costs, MAX_BURSTS)
    medians = tuple(float(np.median(costs[burst])) for burst in bursts)
    return SignatureCurve(computation_us, tuple(bursts), medians)


def _spread(keys: Mapping[_Key, object], maximum: int) -> list[_Key]:
    """At most so many of the keys, ascending, the least and the greatest among them."""
    ordered = sorted(keys)
    if len(ordered) <= maximum:
        return ordered
    return [ordered[place * (len(ordered) - 1) // (maximum - 1)] for place in range(maximum)]
