"""The costs of a fit with their errors, as draws take them.

from domain.uncertain_fit import uncertain_model
model = uncertain_model(trace_fit)  # None for a fit that an earlier version stored
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from domain.aggregate import Aggregate
from domain.fit import AggregateFit, LineFit, StageFit, TraceFit, Verdict
from domain.measured_times import mean_ratio
from domain.pipeline import FitRange, Stage
from domain.uncertainty import (
    Parameter,
    UncertainAggregate,
    UncertainLine,
    UncertainModel,
    UncertainPipeline,
    UncertainStage,
)

_MAX_MISFIT = 0.99
_MAX_ERROR = 50.0  # standard errors in times as measured: an interval of a hundred says nothing


def uncertain_model(fit: TraceFit) -> UncertainModel | None:
    """Return the costs of `fit.to_whole_model()` with the errors of their estimates.

    None where a line has no covariance: fits of earlier versions. Raises MeasurementMissing as
    `to_whole_model` does.
    """
    return fit.derived(_uncertain)


def _uncertain(fit: TraceFit) -> UncertainModel | None:
    fitted = fit.fitted_stages
    if not all(has_errors(stage) for stage in fitted):
        return None
    model = fit.to_whole_model()
    if isinstance(model, Aggregate):
        assert fit.aggregate is not None
        return UncertainAggregate(
            uncertain_stage(fit.aggregate.total),
            _bottleneck(fit.aggregate, model),
            model.delay_us,
            model.total_is_uncut,
        )
    return UncertainPipeline(tuple(map(uncertain_stage, fit.stages)), fit.delay_us)


def misfit_at(fit: TraceFit, min_message_bytes: int, max_message_bytes: int) -> float:
    """Return the share by which whole messages of these sizes were measured beside the model.

    Over a range the mean; of one size the larger of those at the measured sizes on both sides. 0
    where no whole messages were timed.
    """
    whole = fit.whole_messages
    off = [
        one.misfit for one in whole if min_message_bytes <= one.message_bytes <= max_message_bytes
    ]
    if off and min_message_bytes < max_message_bytes:
        return min(sum(off) / len(off), _MAX_MISFIT)
    below = [one for one in whole if one.message_bytes <= min_message_bytes][-1:]
    above = [one for one in whole if one.message_bytes >= max_message_bytes][:1]
    return min(max((one.misfit for one in (*below, *above)), default=0.0), _MAX_MISFIT)


def measured_whole_us(fit: TraceFit, message_bytes: int) -> float | None:
    """Return the median time in µs of messages of this size in one piece, None if not timed."""
    found = (one.measured_us for one in fit.whole_messages if one.message_bytes == message_bytes)
    return next(found, None)


def has_errors(stage: StageFit) -> bool:
    """Return whether the errors of a stage's costs are known, as of fits of this version."""
    return stage.size_deviation is not None and all(
        line.covariance is not None
        and line.free_overhead_us is not None
        and line.free_ns_per_byte is not None
        and line.degrees_of_freedom is not None
        for line in stage.lines
    )


def uncertain_stage(fit: StageFit) -> UncertainStage:
    """Return a stage's costs with their errors, which are known. Raises InvalidInput for errors
    that cannot be.
    """
    max_us = _max_us(fit)
    lines = [_line(line, line.to_range(), end, max_us) for line, end in _with_ends(fit)]
    return _of_lines(fit, fit.name, fit.lines, lines)


def _bottleneck(fit: AggregateFit, model: Aggregate) -> UncertainStage:
    """The lines of the bottleneck where they are the lower ones, else those of the total.

    Where the two cross is no measured end: it is taken as it is.
    """
    if model.bottleneck.ranges == fit.bottleneck.to_stage().ranges:
        return uncertain_stage(fit.bottleneck)
    used, lines, first = list[LineFit](), list[UncertainLine](), 1
    max_us = max(_max_us(fit.total), _max_us(fit.bottleneck))
    for part in model.bottleneck.ranges:
        line = _line_of(fit, model.bottleneck, first)
        used.append(line)
        lines.append(_line(line, part, None, max_us))
        first = (part.up_to_bytes or 0) + 1
    return _of_lines(fit.bottleneck, fit.bottleneck.name, used, lines)


def _line_of(fit: AggregateFit, lower: Stage, size: int) -> LineFit:
    """The fitted line that gives the lower of both stages at this size."""
    wanted = lower.range_at(size).line
    found = [
        next(line for line in one.lines if line.up_to_bytes is None or size <= line.up_to_bytes)
        for one in (fit.bottleneck, fit.total)
    ]
    return next((line for line in found if line.to_range().line == wanted), found[0])


def _with_ends(fit: StageFit) -> list[tuple[LineFit, tuple[int, int] | None]]:
    """Each line with the measured sizes between which it ends, where they can be told apart."""
    ends = [
        (low, high) if low <= (line.up_to_bytes or 0) < high else None
        for line, (low, high) in zip(fit.lines, fit.ends_between(), strict=False)
    ]
    return list(zip(fit.lines, [*ends, None], strict=True))


def _max_us(fit: StageFit) -> float:
    """The largest median of a size."""
    return max((size.median_us for size in fit.sizes), default=0.0)


def _line(
    fit: LineFit, estimate: FitRange, end: tuple[int, int] | None, max_us: float
) -> UncertainLine:
    assert fit.free_overhead_us is not None
    assert fit.free_ns_per_byte is not None
    assert fit.covariance is not None
    verdicts = {
        Parameter.OVERHEAD: fit.overhead_verdict,
        Parameter.PER_BYTE: fit.ns_per_byte_verdict,
    }
    undecided = (name for name, said in verdicts.items() if said is Verdict.UNSUPPORTED)
    free = (fit.free_overhead_us, fit.free_ns_per_byte)
    covariance = _bounded(fit.covariance, fit.to_bytes, max_us)
    return UncertainLine(estimate, *free, covariance, end, tuple(undecided))


def _bounded(
    covariance: tuple[float, float, float], to_bytes: int, max_us: float
) -> tuple[float, float, float]:
    """The covariance, or one in proportion to it whose standard errors, of the overhead and of what
    the bytes of a measured size cost, are _MAX_ERROR times the max time measured.
    """
    overhead, both, per_byte = covariance
    error_us = max(overhead**0.5, per_byte**0.5 * to_bytes / 1000.0)
    if error_us <= _MAX_ERROR * max_us or max_us <= 0.0:
        return covariance
    share = (_MAX_ERROR * max_us / error_us) ** 2
    return overhead * share, both * share, per_byte * share


def _of_lines(
    fit: StageFit, name: str, used: Sequence[LineFit], lines: Sequence[UncertainLine]
) -> UncertainStage:
    assert fit.size_deviation is not None
    spreads = [one.relative_spread for one in fit.sizes if one.num_samples > 1]
    measured = sorted({one.message_bytes for one in fit.sizes})
    ratio = mean_ratio(fit.sizes)
    return UncertainStage(
        name,
        tuple(lines),
        max(1, round(min(line.degrees_of_freedom or 1.0 for line in used))),
        fit.size_deviation,
        median(spreads) if spreads else fit.relative_residual_std,
        tuple(measured),
        ratio.value,
        ratio.error,
    )
