"""A fit and the traces it came from, as what a plot of it shows.

Notation  x sizes in bytes, y times in µs, (N,) each; f fitted times; r = (y - f) / f.
Cost      one sort of N samples a stage; what comes out is bounded whatever N is.
Traps     a line may be 0 at every size: r is then undefined, and None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.fit import END_TO_END_STAGE, FitOptions, LineFit, StageFit, StepGroup, TraceFit
from domain.fit_plot import FitPlot, PlotPoints, PlotRole, StagePlot
from domain.measurement import DirectTrace, MessageTrace, Reading, SignatureTrace, Trace
from fitting.combine import joined
from fitting.direct import abstract_stages
from fitting.plotted_lines import plotted_pieces
from fitting.plotted_samples import outliers_of, thinned
from fitting.plotted_signatures import signature_plots

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_POINTS = 2_000  # a stage
MAX_POINTS_IN_ALL = 20_000
MIN_POINTS = 300


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
    signatures = signature_plots(trace) if isinstance(trace, SignatureTrace) else ()
    return FitPlot(stages, signatures)


def _parts(fit: TraceFit) -> Iterator[tuple[StageFit, PlotRole]]:
    if fit.aggregate is not None:
        yield fit.aggregate.total, PlotRole.TOTAL
        yield fit.aggregate.bottleneck, PlotRole.BOTTLENECK
        return
    for stage in fit.stages:
        yield stage, PlotRole.STAGE


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
    outlier = np.zeros(len(x), bool) if shows_medians else outliers_of(fit, x, r, used)
    kept = thinned(x, y, r, max_points)
    points = PlotPoints(
        message_bytes=tuple(x[kept].tolist()),
        time_us=tuple(y[kept].tolist()),
        relative_residual=tuple(None if one != one else one for one in r[kept].tolist()),
        is_outlier=tuple(outlier[kept].tolist()),
        is_used=tuple(used[kept].tolist()),
    )
    count = fit.num_samples if shows_medians else len(x)
    return StagePlot(fit, role, points, plotted_pieces(fit, minimum, maximum), count, shows_medians)


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
