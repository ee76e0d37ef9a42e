"""Traces without the samples that a user leaves out by hand.

Source: no paper; a measured message that something else disturbed says nothing about the pipeline.
Cost: one pass over each column for every sample that is left out.
Exact: selects, never computes.
Traps: a direct trace has one time of every stage a row, so leaving out a stage's sample leaves out
the whole measured message, in every stage; a stage may be a group of columns, and its steps keep
their names. A sample may be in one of several files: only what no file has counts as not found.
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
from domain.solution import Notice
from fitting.direct import abstract_stages
from fitting.narrow import direct_rows, sample_rows

if TYPE_CHECKING:
    from fitting.narrow import Mask

LEFT_OUT = "left out by hand"
_LATENCIES = (PlotRole.TOTAL, END_TO_END_STAGE)
_INTERARRIVALS = (PlotRole.BOTTLENECK,)


def without_excluded(readings: Sequence[Reading], options: FitOptions) -> Sequence[Reading]:
    """Return the readings without what the options leave out. Raises PoorFit where nothing would
    stay.

    A notice of the first one says what is in none of them.
    """
    if not options.excluded or not readings:
        return readings
    found = set[ExcludedSample]()
    left = [_left(reading, options, found) for reading in readings]
    missed = [one for one in options.excluded if one not in found]
    if missed:
        notice = _not_found(missed, len(options.excluded))
        left[0] = replace(left[0], notices=(*left[0].notices, notice))
    return left


def _not_found(missed: Sequence[ExcludedSample], of: int) -> Notice:
    first = missed[0]
    more = f" and {len(missed) - 1} more" if len(missed) > 1 else ""
    return Notice(
        "excluded_not_found",
        f"{len(missed)} of {of} samples to leave out are not in the measurements: "
        f"{first.message_bytes} bytes in {first.time_us!r} µs of {first.stage}{more}",
    )


def _left(reading: Reading, options: FitOptions, found: set[ExcludedSample]) -> Reading:
    trace = _trace_left(reading.trace, options, found)
    excluded = len(reading.trace) - len(trace)
    if not excluded:
        return reading
    stated = (LEFT_OUT, f"{excluded} of {len(reading.trace)} measured messages")
    return replace(reading, trace=trace, understood=(*reading.understood, stated))


def _trace_left(trace: Trace, options: FitOptions, found: set[ExcludedSample]) -> Trace:
    if isinstance(trace, DirectTrace):
        keep = _direct_mask(trace, options, found)
        if not keep.any():
            raise _nothing_left()
        return direct_rows(trace, keep)
    if isinstance(trace, MessageTrace):
        latency = _samples_left(trace.latency, _of(options, _LATENCIES), found)
        interarrival = _samples_left(trace.interarrival, _of(options, _INTERARRIVALS), found)
        if latency is None and interarrival is None:
            raise _nothing_left()
        return MessageTrace(latency, interarrival)
    return trace


def _of(options: FitOptions, names: Sequence[str]) -> list[ExcludedSample]:
    return [one for one in options.excluded if one.stage in names]


def _direct_mask(trace: DirectTrace, options: FitOptions, found: set[ExcludedSample]) -> Mask:
    sizes = np.asarray(trace.message_bytes, dtype=np.int64)
    keep = np.ones(len(sizes), dtype=np.bool_)
    steps = dict(zip(trace.stage_names, trace.stage_us, strict=True))
    for name, times in (steps | dict(abstract_stages(trace, options.groups))).items():
        column = np.asarray(times, dtype=np.float64)
        keep &= _mask(sizes, column, _of(options, (name,)), found)
    return keep


def _samples_left(
    samples: Samples | None, excluded: Iterable[ExcludedSample], found: set[ExcludedSample]
) -> Samples | None:
    if samples is None:
        return None
    sizes = np.asarray(samples.message_bytes, dtype=np.int64)
    times = np.asarray(samples.times_us, dtype=np.float64)
    return sample_rows(samples, _mask(sizes, times, excluded, found))


def _mask(
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]],
    times: np.ndarray[tuple[int], np.dtype[np.float64]],
    excluded: Iterable[ExcludedSample],
    found: set[ExcludedSample],
) -> Mask:
    """True for what stays; adds to `found` what is there."""
    keep = np.ones(len(sizes), dtype=np.bool_)
    for one in excluded:
        stays = (sizes != one.message_bytes) | (times != one.time_us)
        if not stays.all():
            found.add(one)
            keep &= stays
    return keep


def _nothing_left() -> PoorFit:
    return PoorFit("every sample was left out by hand, and nothing is left to fit")
