"""Traces without the samples that a user leaves out by hand.

Source: no paper; a measured message that something else disturbed says nothing about the pipeline.
Cost: one pass over each column for every sample that is left out.
Exact: selects, never computes.
Traps: a direct trace has one time of every stage a row, so leaving out a stage's sample leaves out
the whole measured message, in every stage; a stage may be a group of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from domain.errors import PoorFit
from domain.fit import END_TO_END_STAGE, ExcludedSample, FitOptions
from domain.fit_plot import PlotRole
from domain.measurement import DirectTrace, MessageTrace, Reading, Samples, Trace
from fitting.direct import abstract_stages
from fitting.narrow import direct_rows, sample_rows

if TYPE_CHECKING:
    from fitting.narrow import Mask

LEFT_OUT = "left out by hand"
_LATENCIES = (PlotRole.TOTAL, END_TO_END_STAGE)
_INTERARRIVALS = (PlotRole.BOTTLENECK,)


def without_excluded(readings: Sequence[Reading], options: FitOptions) -> Sequence[Reading]:
    """The readings without what the options leave out. Raises PoorFit where nothing would stay."""
    if not options.excluded:
        return readings
    return [_left(reading, options) for reading in readings]


def _left(reading: Reading, options: FitOptions) -> Reading:
    trace = _trace_left(reading.trace, options)
    gone = len(reading.trace) - len(trace)
    told = dict(reading.understood)
    if not gone or LEFT_OUT in told:
        return reading if not gone else replace(reading, trace=trace)
    said = (LEFT_OUT, f"{gone} of {len(reading.trace)} measured messages")
    return replace(reading, trace=trace, understood=(*reading.understood, said))


def _trace_left(trace: Trace, options: FitOptions) -> Trace:
    if isinstance(trace, DirectTrace):
        keep = _direct_mask(trace, options)
        if not keep.any():
            raise _nothing_left()
        return direct_rows(trace, keep)
    if isinstance(trace, MessageTrace):
        latency = _samples_left(trace.latency, options.excluded, _LATENCIES)
        interarrival = _samples_left(trace.interarrival, options.excluded, _INTERARRIVALS)
        if latency is None and interarrival is None:
            raise _nothing_left()
        return MessageTrace(latency, interarrival)
    return trace


def _direct_mask(trace: DirectTrace, options: FitOptions) -> Mask:
    sizes = np.asarray(trace.message_bytes, dtype=np.int64)
    keep = np.ones(len(sizes), dtype=np.bool_)
    for name, times in abstract_stages(trace, options.groups):
        column = np.asarray(times, dtype=np.float64)
        keep &= _mask(sizes, column, (one for one in options.excluded if one.stage == name))
    return keep


def _samples_left(
    samples: Samples | None, excluded: Iterable[ExcludedSample], names: Sequence[str]
) -> Samples | None:
    if samples is None:
        return None
    sizes = np.asarray(samples.message_bytes, dtype=np.int64)
    times = np.asarray(samples.times_us, dtype=np.float64)
    return sample_rows(
        samples, _mask(sizes, times, (one for one in excluded if one.stage in names))
    )


def _mask(
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]],
    times: np.ndarray[tuple[int], np.dtype[np.float64]],
    excluded: Iterable[ExcludedSample],
) -> Mask:
    """True for what stays."""
    keep = np.ones(len(sizes), dtype=np.bool_)
    for one in excluded:
        keep &= (sizes != one.message_bytes) | (times != one.time_us)
    return keep


def _nothing_left() -> PoorFit:
    return PoorFit("every sample was left out by hand, and nothing is left to fit")
