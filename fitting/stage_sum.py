"""The stage that does the work of several stages of one processor, one after the other.

Source    their times add up, t(x) = sum of t_j(x), and as they were measured independently, so do
          variances, between any two ends of their ranges.
Exact     on every size the sum is the sum of the fitted times, but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import hypot, sqrt

from domain.errors import InvalidInput
from domain.fit import LineFit, SizeFit, StageFit, Verdict

_FIELD = "stages"
_WORST = (Verdict.SUPPORTED, Verdict.WEAK, Verdict.UNSUPPORTED)


def sum_of(fits: Sequence[StageFit]) -> StageFit:
    """Return the stage that does the work of all of these one after the other.

    Raises InvalidInput where no size was measured within the sizes of all.
    """
    low = max(fit.lines[0].from_bytes for fit in fits)
    high = min(fit.lines[-1].to_bytes for fit in fits)
    names = [fit.name for fit in fits]
    if low > high:
        raise InvalidInput(
            f"{' and '.join(names)} share a processor and no measured sizes: their sum is not "
            "known anywhere",
            field=_FIELD,
        )
    ends = sorted({line.up_to_bytes for fit in fits for line in fit.lines if line.up_to_bytes})
    ends = [end for end in ends if low <= end < high]
    between = {
        left.up_to_bytes: (left.to_bytes, right.from_bytes)
        for fit in fits
        for left, right in pairwise(fit.lines)
    }
    lines, first = list[LineFit](), low
    reach = [*ends[1:], high, 0][-len(ends) - 1 :]  # where the next piece ends
    for before, end, following in zip([0, *ends], [*ends, None], reach, strict=True):
        last, after = (high, 0) if end is None else between[end]
        # Where ends are closer than the sizes measured around them, they count as known.
        last = last if first <= last else end or high
        own = [_line_at(fit, before + 1) for fit in fits]
        lines.append(_sum_of_lines(own, first, last, end))
        first = after if after <= following else (end or 0) + 1
    sizes = tuple(_sizes(fits, low, high))
    residuals = sorted(abs(size.relative_residual) for size in sizes)
    fitted_us = sum(size.fitted_us for size in sizes)
    return StageFit(
        name=" + ".join(names)[:100],
        method=fits[0].method,
        lines=tuple(lines),
        sizes=sizes,
        num_samples=sum(fit.num_samples for fit in fits),
        outliers=sum(fit.outliers for fit in fits),
        relative_residual_std=(
            sqrt(sum((size.relative_spread * size.fitted_us) ** 2 for size in sizes) * len(sizes))
            / fitted_us
            if fitted_us > 0.0
            else 0.0
        ),
        residual_std_us=hypot(*(fit.residual_std_us for fit in fits)),
        r_squared=min(fit.r_squared for fit in fits),
        outlier_influence=max(fit.outlier_influence for fit in fits),
        size_deviation=_worst([fit.size_deviation for fit in fits]),
        misfit=residuals[min(len(residuals) - 1, int(0.95 * len(residuals)))],
        common_error=max(fit.common_error for fit in fits),
    )


def _worst(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def _line_at(fit: StageFit, size: int) -> LineFit:
    return next(line for line in fit.lines if not line.up_to_bytes or size <= line.up_to_bytes)


def _sum_of_lines(lines: Sequence[LineFit], low: int, high: int, end: int | None) -> LineFit:
    overhead_us = sum(line.overhead_us for line in lines)
    ns_per_byte = sum(line.ns_per_byte for line in lines)
    errors = (
        hypot(*(line.overhead_std_error_us for line in lines)),
        hypot(*(line.ns_per_byte_std_error for line in lines)),
    )
    both = sum(
        line.correlation * line.overhead_std_error_us * line.ns_per_byte_std_error for line in lines
    )
    last = [line for line in lines if line.up_to_bytes == end]
    degrees = [line.degrees_of_freedom for line in lines if line.degrees_of_freedom is not None]
    return LineFit(
        overhead_us=overhead_us,
        ns_per_byte=ns_per_byte,
        overhead_std_error_us=errors[0],
        ns_per_byte_std_error=errors[1],
        correlation=both / (errors[0] * errors[1]) if errors[0] * errors[1] > 0.0 else 0.0,
        overhead_us_interval=_interval(
            overhead_us, [(line.overhead_us, line.overhead_us_interval) for line in lines]
        ),
        ns_per_byte_interval=_interval(
            ns_per_byte, [(line.ns_per_byte, line.ns_per_byte_interval) for line in lines]
        ),
        overhead_verdict=_worst_of([line.overhead_verdict for line in lines]),
        ns_per_byte_verdict=_worst_of([line.ns_per_byte_verdict for line in lines]),
        from_bytes=low,
        to_bytes=high,
        up_to_bytes=end,
        num_samples=sum(line.num_samples for line in lines),
        clipped=tuple(dict.fromkeys(name for line in lines for name in line.clipped)),
        up_to_bytes_interval=None if end is None else last[0].up_to_bytes_interval,
        free_overhead_us=_sum([line.free_overhead_us for line in lines]),
        free_ns_per_byte=_sum([line.free_ns_per_byte for line in lines]),
        covariance=_covariance(lines),
        degrees_of_freedom=min(degrees) if len(degrees) == len(lines) else None,
    )


def _interval(
    total: float, parts: Sequence[tuple[float, tuple[float, float]]]
) -> tuple[float, float]:
    """Of a sum of independent estimates: their distances to the ends add up as deviations do."""
    below = hypot(*(value - low for value, (low, _) in parts))
    above = hypot(*(high - value for value, (_, high) in parts))
    return max(0.0, total - below), total + above


def _worst_of(verdicts: Sequence[Verdict]) -> Verdict:
    return max(verdicts, key=_WORST.index)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _covariance(lines: Sequence[LineFit]) -> tuple[float, float, float] | None:
    known = [line.covariance for line in lines if line.covariance is not None]
    if len(known) < len(lines):
        return None
    overhead, both, per_byte = (sum(column) for column in zip(*known, strict=True))
    return overhead, both, per_byte


def _sizes(fits: Sequence[StageFit], low: int, high: int) -> Iterator[SizeFit]:
    """Every size that one of them was measured at, where the others were within their sizes."""
    measured = [{size.message_bytes: size for size in fit.sizes} for fit in fits]
    stages = [fit.to_stage() for fit in fits]
    for at in sorted(set[int]().union(*measured)):
        if not low <= at <= high:
            continue
        own = [sizes.get(at) for sizes in measured]
        fitted = [stage.time_us(at) for stage in stages]
        median_us = sum(
            size.median_us if size else time_us for size, time_us in zip(own, fitted, strict=True)
        )
        spread_us = hypot(*(size.relative_spread * size.median_us for size in own if size))
        fitted_us = sum(fitted)
        yield SizeFit(
            message_bytes=at,
            num_samples=min(size.num_samples for size in own if size),
            median_us=median_us,
            fitted_us=fitted_us,
            relative_residual=(median_us - fitted_us) / fitted_us if fitted_us > 0.0 else 0.0,
            relative_spread=spread_us / median_us if median_us > 0.0 else 0.0,
            outliers=sum(size.outliers for size in own if size),
            **_sums_of_times(fits, at, own),
        )


def _sums_of_times(
    fits: Sequence[StageFit], at: int, own: Sequence[SizeFit | None]
) -> dict[str, float | None]:
    """Means and errors of sums: of a size that was measured its own, else those of the line."""
    stages = zip(fits, own, strict=True)
    terms = [_terms(size) if size else _of_line(fit, at) for fit, size in stages]
    means, median_errors, mean_errors = zip(*terms, strict=True)
    return {
        "mean_us": _sum(means),
        "median_error_us": _root_of_squares(median_errors),
        "mean_error_us": _root_of_squares(mean_errors),
    }


def _terms(size: SizeFit) -> tuple[float | None, float | None, float | None]:
    return size.mean_us, size.median_error_us, size.mean_error_us


def _of_line(fit: StageFit, at: int) -> tuple[float, float | None, float | None]:
    """The line's time, and what it may be off by."""
    line = next(line for line in fit.lines if line.up_to_bytes is None or at <= line.up_to_bytes)
    time_us = line.overhead_us + line.ns_per_byte * at / 1000.0
    if line.covariance is None:
        return time_us, None, None
    x = at / 1000.0
    overhead, both, per_byte = line.covariance
    error_us = max(0.0, overhead + 2.0 * x * both + x * x * per_byte) ** 0.5
    return time_us, error_us, error_us


def _root_of_squares(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return hypot(*known) if len(known) == len(values) else None
