"""What a message takes by the times of a file's own sizes, with no line between them.

A size's time is interpolated between the measured ones beside it, and every cut is priced by the
recurrence that prices draws of the costs: each interval between two measured sizes is a range.

Source    docs/theory.md, "Uncertain costs", the file's own times.
Notation  S sizes of a stage, ascending; y (S, columns) their times in µs. Columns are of medians,
          and after them as many of means. R redraws: times as rows drawn anew would have them.
Traps     a cost a byte that rises between two sizes rises at an unknown one: all between them cost
          what the upper one costs a byte. Below the least size nothing is known but that no
          fragment takes longer than that size, and none less a byte: which of the two is taken
          goes against a gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from analysis.draw_costs import cut_us, repeated_us
from analysis.draws import Draws, normals, uniforms
from domain.aggregate import Aggregate
from domain.measured_times import MeasuredStage, MeasuredTimes
from domain.uncertainty import NamedCut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REDRAWS = 64  # the standard error of a share of 90 % is 4 %
_RISES = 1.05  # of two neighbouring sizes' times a byte: by more the upper one's counts
_MIN = 0.1  # of a time, as a redrawn one, however wide its error
_KEPT_SIZES = 512  # of all stages, whose redrawn times are kept with a fit: 3 MB
_SEED = 0
_TOGETHER = 2**32  # the stream of what all sizes of the first stage are off by


@dataclass(frozen=True, slots=True, eq=False)
class FileCosts:
    """A file's times as draws of costs, for cuts to be priced at most and at least.

    The two differ for fragments below the least measured size alone.
    """

    at_most: Draws
    at_least: Draws


def as_measured(times: MeasuredTimes) -> FileCosts:
    """Return the times as they were measured: a column of medians, and one of means."""
    return times.derived(_as_measured)


def by_own_means(times: MeasuredTimes) -> Draws:
    """Return the means of each size's own times, whatever others have: one column.

    Times that depend on the place of a fragment in its message are in them, and in no median.
    """
    return times.derived(_by_own_means)


def by_dearest(times: MeasuredTimes, share: float) -> Draws:
    """Return what the dearest such share of each size's own times takes in the mean, at most.

    Of times with mean m and standard deviation s that is m + s √((1 - q)/q), whatever they are
    distributed like: so it is where the first fragments of a message cost more, and a shorter one
    has few others. One column.
    """
    more = sqrt((1.0 - share) / share) if share < 1.0 else 0.0
    columns = [
        np.array(
            [
                [(size.own_mean_us or size.mean_us) * (1.0 + more * size.deviation)]
                for size in stage.sizes
            ]
        )
        for stage in times.stages
    ]
    return _costs(times, columns).at_most


def redrawn(times: MeasuredTimes) -> FileCosts:
    """Return them as rows drawn anew may have them: 64 columns of medians, and as many of means.

    Those of very many sizes are made at each call.
    """
    sizes = max(len(stage.sizes) for stage in times.stages)
    if sizes * len(times.stages) > _KEPT_SIZES:
        return _redrawn(times)
    return times.derived(_redrawn)


def cut_by_file_us(costs: Draws, message_bytes: int, cut: NamedCut) -> Floats:
    """Return what a cut takes, in µs: (2, columns), by medians and by means.

    Raises InvalidInput as `cut_us` does.
    """
    return cut_us(costs, message_bytes, cut).reshape(2, -1)


def sizes_by_file_us(costs: Draws, message_bytes: int, sizes: Sequence[int]) -> Floats:
    """Return the same of repeated sizes, in bytes: (sizes, 2, columns)."""
    found = repeated_us(costs, message_bytes, np.array(sizes, dtype=np.int64))
    return found.reshape(len(sizes), 2, -1)


def _as_measured(times: MeasuredTimes) -> FileCosts:
    columns = [
        np.array([(size.median_us, size.mean_us) for size in stage.sizes]) for stage in times.stages
    ]
    return _costs(times, columns)


def _by_own_means(times: MeasuredTimes) -> Draws:
    return by_dearest(times, 1.0)


def _redrawn(times: MeasuredTimes) -> FileCosts:
    return _costs(times, [_redrawn_stage(stage, j) for j, stage in enumerate(times.stages)])


def _redrawn_stage(stage: MeasuredStage, stream: int) -> Floats:
    """Times of one stage, (S, 2 R): sizes by themselves, the pooled ratio as one, and as one what
    all sizes are off by.
    """
    fields = [
        (one.median_us, one.median_error_us, one.mean_us, one.mean_error_us) for one in stage.sizes
    ]
    median_us, error_us, mean_us, mean_error_us = np.array(fields).T[:, :, None]
    count = len(stage.sizes)
    scores = normals(uniforms(_SEED, stream, REDRAWS, 2 * count + 2))
    medians = np.maximum(median_us + error_us * scores[:count], _MIN * median_us)
    ratio = stage.mean_ratio + stage.mean_ratio_error * scores[-1]
    together = np.exp(
        stage.common_error * normals(uniforms(_SEED, _TOGETHER + stream, REDRAWS, 2))[0]
    )
    means = medians * np.maximum(ratio, _MIN * stage.mean_ratio)
    by_itself = np.maximum(mean_us + mean_error_us * scores[count : 2 * count], _MIN * mean_us)
    is_own = np.array([one.is_own for one in stage.sizes])
    means[is_own] = by_itself[is_own]
    found: Floats = np.concatenate([medians, means], axis=1) * np.tile(together, 2)
    return found


def _costs(times: MeasuredTimes, columns: list[Floats]) -> FileCosts:
    sizes = [np.array([one.message_bytes for one in stage.sizes]) for stage in times.stages]
    if times.kind == Aggregate.kind:  # no stage takes longer than all together
        columns[1] = np.minimum(columns[1], _interpolated(sizes[0], columns[0], sizes[1]))
    ranges = max(map(len, sizes)) + 1
    shape = (len(sizes), ranges, columns[0].shape[1])
    overhead_us, ns_per_byte = np.zeros(shape), np.zeros(shape)
    ends_bytes = np.full((shape[0], ranges - 1, shape[2]), np.inf)
    first_us = []
    steepest = np.full((1, shape[2]), np.inf)
    for j, (x, y) in enumerate(zip(sizes, columns, strict=True)):
        lines = _lines_between(x, y, steepest)
        if times.kind == Aggregate.kind and x[-1] == sizes[1][-1]:
            steepest = lines[1][-1:]  # nor beyond the last size, where both were measured
        overhead_us[j, : len(x) + 1], ns_per_byte[j, : len(x) + 1] = lines
        ends_bytes[j, : len(x)] = x[:, None]
        first_us.append(y[0] / x[0])
    names = tuple(stage.name for stage in times.stages)
    at_most = Draws(times.kind, names, overhead_us, ns_per_byte, ends_bytes, times.delay_us)
    low_us, low_ns = overhead_us.copy(), ns_per_byte.copy()
    low_us[:, 0], low_ns[:, 0] = 0.0, 1000.0 * np.stack(first_us)
    at_least = Draws(times.kind, names, low_us, low_ns, ends_bytes, times.delay_us)
    return FileCosts(at_most, at_least)


def _lines_between(x: Ints, y: Floats, steepest: Floats) -> tuple[Floats, Floats]:
    """Overheads in µs and costs in ns per byte, (S + 1, columns): up to each size, and beyond.

    Up to the least size it is that one's time; beyond the greatest the last line goes on, unless it
    falls, or is steeper than so many ns per byte, (1, columns).
    """
    at = x[:, None].astype(float)
    rate = y / at
    slope = np.diff(y, axis=0) / np.diff(at, axis=0)
    overhead = y[:-1] - slope * at[:-1]
    rises = rate[1:] > _RISES * rate[:-1]
    beyond = np.maximum(slope[-1:] if len(slope) else rate, 0.0)
    beyond = np.minimum(beyond, steepest / 1000.0)
    last = y[-1:] - beyond * at[-1:]
    overhead_us = np.concatenate([y[:1], np.where(rises, 0.0, overhead), last])
    per_byte_us = np.concatenate([np.zeros_like(y[:1]), np.where(rises, rate[1:], slope), beyond])
    return overhead_us, 1000.0 * per_byte_us


def _interpolated(x: Ints, y: Floats, wanted: Ints) -> Floats:
    """The times at other sizes, (wanted, columns); outside those known the first or the last."""
    right = np.clip(np.searchsorted(x, wanted), 1, max(1, len(x) - 1))
    left = right - 1
    right = np.minimum(right, len(x) - 1)
    apart = np.maximum(x[right] - x[left], 1)
    share = np.clip((wanted - x[left]) / apart, 0.0, 1.0)[:, None]
    found: Floats = (1.0 - share) * y[left] + share * y[right]
    return found
