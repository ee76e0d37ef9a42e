"""What a fit's own sizes took, no line between them: medians and means, with their errors.

from domain.measured_times import measured_times
times = measured_times(trace_fit)  # None for costs that no measured size stands behind
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from math import hypot, sqrt

from domain.aggregate import Aggregate
from domain.derived import Derived
from domain.fit import SizeFit, StageFit, TraceFit
from domain.pipeline import Pipeline

_OWN = 2.5  # standard errors by which a size's ratio differs from the stage's, to count by itself


@dataclass(frozen=True, slots=True)
class MeasuredSize:
    """One size of one stage: the median and the mean of its times, with standard errors, in µs.

    `is_own`: its mean is its own. Else the mean is the median times the stage's ratio of the two.
    `deviation` is the standard deviation of single times, relative to their mean. `own_mean_us` is
    the mean of the size's own times in any case, None where it is not known.
    """

    message_bytes: int
    median_us: float
    median_error_us: float
    mean_us: float
    mean_error_us: float
    is_own: bool
    deviation: float = 0.0
    own_mean_us: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredStage:
    """The sizes of one stage, ascending; `mean_ratio` is how much its means are above its medians,
    pooled over the sizes, with its standard error; `common_error` the relative one that the times
    of all sizes have in common.
    """

    name: str
    sizes: tuple[MeasuredSize, ...]
    mean_ratio: float
    mean_ratio_error: float
    common_error: float = 0.0


@dataclass(frozen=True)  # no slots: what follows is kept beside the fields
class MeasuredTimes(Derived):
    """The stages of a pipeline, or the total and the bottleneck of an aggregate, as `kind` says.

    `delay_us` is the constant delay of the model that was fitted.
    """

    kind: str
    stages: tuple[MeasuredStage, ...]
    delay_us: float = 0.0

    @cached_property
    def common_bytes(self) -> tuple[int, ...]:
        """The sizes that every stage was measured at, ascending."""
        common = set.intersection(
            *({size.message_bytes for size in stage.sizes} for stage in self.stages)
        )
        return tuple(sorted(common))

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the times, of nine digits each: as seeds, the same on all processors."""
        stages = [
            [
                one.name,
                one.mean_ratio,
                one.mean_ratio_error,
                one.common_error,
                [astuple(replace(size, own_mean_us=None))[:-1] for size in one.sizes],
            ]
            for one in self.stages
        ]
        canonical = json.dumps(rounded([self.kind, stages, self.delay_us]), separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def rounded(value: object) -> object:
    """Return numbers to nine digits, those of lists and tuples too, as lists: processors add up in
    different orders.
    """
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def measured_times(fit: TraceFit) -> MeasuredTimes | None:
    """Return what the sizes of a fit took; None where a stage has no measured size."""
    return fit.derived(_measured_times)


@dataclass(frozen=True, slots=True)
class MeanRatio:
    """By which factor a stage's means are above its medians, pooled over its sizes, with its
    standard error; `deviation` is that of a single time's part in it.
    """

    value: float = 1.0
    error: float = 0.0
    deviation: float = 0.0


def mean_ratio(sizes: Sequence[SizeFit]) -> MeanRatio:
    """Return the ratio of a stage's sizes; 1 without an error for fits of earlier versions.

    Each size counts by its samples. By its own error it would not do: where few times are long, the
    sizes that happen to have none have the least errors, and the pooled ratio would be of these.
    """
    known = [(size.num_samples, *_ratio(size)) for size in sizes if size.median_us > 0.0]
    samples = sum(count for count, _, _ in known)
    if not samples:
        return MeanRatio()
    pooled = sum(count * ratio for count, ratio, _ in known) / samples
    norm = hypot(*(count * error for count, _, error in known))
    return MeanRatio(pooled, norm / samples, norm / sqrt(samples))


def _ratio(size: SizeFit) -> tuple[float, float]:
    """The mean over the median of one size, and its error."""
    mean_us, median_us = size.mean_us, size.median_us
    if mean_us is None or median_us <= 0.0:
        return 1.0, 0.0
    return mean_us / median_us, (size.mean_error_us or 0.0) / median_us


def _measured_times(fit: TraceFit) -> MeasuredTimes | None:
    outside = fit.aggregate
    fitted = (outside.total, outside.bottleneck) if outside else fit.stages
    if not fitted or not all(stage.sizes for stage in fitted):
        return None
    kind = Aggregate.kind if outside else Pipeline.kind
    return MeasuredTimes(kind, tuple(map(_stage, fitted)), fit.delay_us)


def _stage(fit: StageFit) -> MeasuredStage:
    ratio = mean_ratio(fit.sizes)
    sizes = sorted(fit.sizes, key=lambda size: size.message_bytes)
    found = tuple(_size(size, ratio) for size in sizes)
    return MeasuredStage(fit.name, found, ratio.value, ratio.error, fit.common_error)


def _size(size: SizeFit, pooled: MeanRatio) -> MeasuredSize:
    """A size with its own mean where that differs from the pooled one, or is known better than the
    median. Its error is no less than what all sizes' times make of it.
    """
    median_us, samples = size.median_us, max(1, size.num_samples)
    error_us = size.median_error_us
    if error_us is None:
        error_us = size.relative_spread * median_us / sqrt(samples)
    own, own_error = _ratio(size)
    deviation = sqrt(samples) * own_error / own if own > 0.0 else 0.0
    error = max(own_error, pooled.deviation / sqrt(samples))
    is_far = abs(own - pooled.value) > _OWN * error
    is_better = error * median_us < pooled.value * error_us
    if size.mean_us is None or not (is_far or is_better or median_us <= 0.0):
        mean_us, mean_error_us = pooled.value * median_us, pooled.value * error_us
        times_us = (median_us, error_us, mean_us, mean_error_us)
        return MeasuredSize(size.message_bytes, *times_us, False, deviation, size.mean_us)
    mean_error_us = error * median_us if median_us > 0.0 else size.mean_error_us or 0.0
    times_us = (median_us, error_us, size.mean_us, mean_error_us)
    return MeasuredSize(size.message_bytes, *times_us, True, deviation, size.mean_us)
