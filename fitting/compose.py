"""A pipeline of stages that were measured each by itself, in files of their own.

Source    Wang98 sec. 5.3 measures the parts of a pipeline directly; here each part has its own
          sizes and repetitions, so that each gets the fit that it would get alone. Stages of one
          processor work one after the other: their times add up, t(x) = sum of t_j(x), and as they
          were measured independently, so do variances, between any two ends of their ranges.
Exact     on every size the sum is the sum of the fitted times, but for rounding.
Traps     nobody has timed the stages side by side: that they do not slow each other down is an
          assumption, and is said. Stages of one processor that are no neighbours cannot be one
          stage: the model lets them overlap, and that is said too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import hypot, sqrt

from domain.errors import InvalidInput, SluiceError
from domain.fit import ComposedStage, FitOptions, LineFit, SizeFit, StageFit, TraceFit, Verdict
from domain.fit_plot import FitPlot, StagePlot
from domain.measurement import DirectTrace, MessageTrace, Reading, TraceKind
from domain.solution import Notice
from fitting.as_stage import as_stage
from fitting.combine import fit_readings
from fitting.exclusion import without_excluded
from fitting.plotting import plot_fit

_FIELD = "stages"
_WORST = (Verdict.SUPPORTED, Verdict.WEAK, Verdict.UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class _Part:
    """One stage, its readings as direct ones of this stage alone, and how to fit them."""

    stage: ComposedStage
    readings: Sequence[Reading]
    options: FitOptions


def fit_composed(readings: Sequence[Reading], options: FitOptions) -> TraceFit:
    """Fit each stage of `options.composed` to its own files, and return the pipeline of all.

    Raises InvalidInput where files and stages do not go together, UnreadableTrace and PoorFit,
    which name the stage.
    """
    parts = list(_parts(readings, options))
    fits = list[TraceFit]()
    for part in parts:
        with _naming(part.stage):
            fits.append(fit_readings(part.readings, part.options))
    stages = [stage for _, stage in _joined(parts, [fit.stages[0] for fit in fits])]
    understood = (
        (f"{part.stage.name}_{name}", value)
        for part, fit in zip(parts, fits, strict=True)
        for name, value in fit.understood
    )
    notices = (notice for fit in fits for notice in fit.notices)
    return TraceFit(
        kind=TraceKind.DIRECT,
        method=options.method,
        understood=tuple(understood),
        stages=tuple(stages),
        notices=(*_assumed(parts), *notices),
    )


def plot_composed(found: TraceFit, readings: Sequence[Reading], options: FitOptions) -> FitPlot:
    """Return what a plot of this fit shows; a stage of several files' sums shows medians."""
    parts = list(_parts(readings, options))
    shown = list[StagePlot]()
    stages = iter(found.stages)
    for run in _runs(parts):
        alone = replace(found, stages=(next(stages),))
        of_one = run[0].readings if len(run) == 1 else ()
        shown += plot_fit(alone, of_one, replace(options, composed=())).stages
    return FitPlot(tuple(shown))


def _parts(readings: Sequence[Reading], options: FitOptions) -> Iterator[_Part]:
    expected = sum(stage.files for stage in options.composed)
    if expected != len(readings):
        raise InvalidInput(f"expected {expected} files, got {len(readings)}", field=_FIELD)
    names = [stage.name for stage in options.composed]
    place = 0
    for stage in options.composed:
        own = readings[place : place + stage.files]
        # What names no stage is not found in the first one's, which says so.
        excluded = tuple(
            one
            for one in options.excluded
            if one.stage == stage.name or (not place and one.stage not in names)
        )
        alone = replace(options, composed=(), excluded=excluded)
        with _naming(stage):
            kept = without_excluded(_of_stage(own, stage), alone)
        yield _Part(stage, kept, replace(alone, excluded=()))
        place += stage.files


def _of_stage(readings: Sequence[Reading], stage: ComposedStage) -> Sequence[Reading]:
    """The readings as direct ones of this stage. Raises InvalidInput."""
    direct = [one for one in readings if isinstance(one.trace, DirectTrace)]
    others = [one for one in readings if not isinstance(one.trace, DirectTrace)]
    if others and stage.step is not None:
        raise InvalidInput("only a file of steps has a step of this name", field=_FIELD)
    if any(not isinstance(one.trace, MessageTrace) for one in others):
        raise InvalidInput("signatures are of end points, and are no stage", field=_FIELD)
    try:
        renamed = as_stage(others, FitOptions(as_stage=stage.name))
    except InvalidInput:
        raise InvalidInput(
            "latencies and inter-arrival times are of a whole path with several stages; give "
            "either as the times of this one",
            field=_FIELD,
        ) from None
    return [*(_step_of(one, stage) for one in direct), *renamed]


def _step_of(reading: Reading, stage: ComposedStage) -> Reading:
    trace = reading.trace
    assert isinstance(trace, DirectTrace)
    names = trace.stage_names
    step = stage.step or (names[0] if len(names) == 1 else None)
    if step not in names:
        asked = f"has no step {step}" if step else "has several steps"
        raise InvalidInput(f"the file {asked}: name one of {', '.join(names[:8])}", field=_FIELD)
    column = trace.stage_us[names.index(step)]
    own = DirectTrace((stage.name,), trace.message_bytes, trace.repetitions, (column,))
    return replace(reading, trace=own)


@contextmanager
def _naming(stage: ComposedStage) -> Iterator[None]:
    """Have a refusal of its files name the stage."""
    try:
        yield
    except SluiceError as refusal:
        refusal.detail = f"stage {stage.name}: {refusal.detail}"
        refusal.field = _FIELD
        raise


# --- stages of one processor ----------------------------------------------------------------------


def _runs(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    """Neighbours of one processor together, others alone."""
    numbered = enumerate(parts)
    for _, run in groupby(numbered, lambda one: one[1].stage.processor or one[0]):
        yield [part for _, part in run]


def _joined(
    parts: Sequence[_Part], fits: Sequence[StageFit]
) -> Iterator[tuple[list[_Part], StageFit]]:
    left = iter(fits)
    for run in _runs(parts):
        own = [next(left) for _ in run]
        yield run, own[0] if len(own) == 1 else sum_of(own)


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


# --- what is assumed ------------------------------------------------------------------------------


def _assumed(parts: Sequence[_Part]) -> Iterator[Notice]:
    """What nobody has measured: that the stages do not slow each other down."""
    runs = list(_runs(parts))
    if len(runs) > 1:
        yield Notice(
            "stages_measured_apart",
            "the stages were measured each by itself: that they are as fast side by side is an "
            "assumption. Time whole messages, cut and uncut, before you rely on it",
        )
    seen = dict[str, list[str]]()
    for run in runs:
        if run[0].stage.processor is not None:
            name = " + ".join(part.stage.name for part in run)
            seen.setdefault(run[0].stage.processor, []).append(name)
    for processor, names in seen.items():
        if len(names) > 1:
            yield Notice(
                "processor_shared",
                f"{', '.join(names)} work on {processor} and are no neighbours: the model lets "
                "them overlap, which one processor cannot, so that cuts gain less than it says",
            )
