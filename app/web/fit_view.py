"""What the page of a fit shows: words and numbers of its stages, and the data of their charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from domain.errors import MeasurementMissing
from domain.fit import ExcludedSample, LineFit, StageFit, TraceFit, Verdict
from domain.fit_plot import FitPlot, PlotPoints, PlotRole, StagePlot
from domain.loggp import Estimate, LogGPParameters
from domain.measurement import TraceKind
from domain.units import format_bytes
from models.records import FitRecord

MOST_OUTLIERS = 60  # listed a stage
_DECADES = 20.0  # a column that spans more is drawn on a log axis
_RESIDUAL_ROOM = 1.25
_LEAST_RESIDUAL = 0.02
TITLES = {
    TraceKind.DIRECT: "Times of every stage",
    TraceKind.END_TO_END: "Latencies of whole messages",
    TraceKind.INDIRECT: "A pipeline seen from outside",
    TraceKind.LOGP: "LogP signatures of an end point",
}
_VERDICTS = {
    Verdict.SUPPORTED: ("good", "supported"),
    Verdict.WEAK: ("warn", "weak"),
    Verdict.UNSUPPORTED: ("bad", "not determined"),
}


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One line of a stage: its range and two costs, with intervals and how far to trust them."""

    reach: str
    overhead: str
    overhead_interval: str
    overhead_badge: tuple[str, str]
    cost: str
    cost_interval: str
    cost_badge: tuple[str, str]
    samples: int


@dataclass(frozen=True, slots=True)
class StageView:
    """One fitted stage."""

    name: str
    rows: tuple[ParameterRow, ...]
    samples: int
    outliers: int
    spread: float
    r_squared: float

    @property
    def words(self) -> str:
        """The stage in a sentence, for those who do not see the chart."""
        ranges = "one line" if len(self.rows) == 1 else f"{len(self.rows)} fit ranges"
        return f"{self.name}: {self.samples} samples, {ranges}, {self.outliers} outliers"


@dataclass(frozen=True, slots=True)
class LogPRow:
    """LogP parameters at one size, as texts."""

    size: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FitView:
    """The page of a fit, but what its charts show.

    `warnings` concern all of it, `remarks` one stage each; `missing` says why it gives no model.
    """

    id: str
    title: str
    method: str
    understood: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    remarks: tuple[tuple[str, tuple[str, ...]], ...]
    stages: tuple[StageView, ...]
    logp: tuple[LogPRow, ...]
    excluded: tuple[ExcludedSample, ...]
    digests: tuple[str, ...]
    missing: str


@dataclass(frozen=True, slots=True)
class Outlier:
    """A sample that can be left out: `value` is how a form names it."""

    value: str
    size: str
    time_us: float
    residual: float | None


@dataclass(frozen=True, slots=True)
class ChartView:
    """One stage's chart, and the outliers that are seen in it."""

    number: int
    name: str
    words: str
    remark: str
    data: dict[str, Any]
    outliers: tuple[Outlier, ...]
    more_outliers: int


def fit_view(record: FitRecord) -> FitView:
    """The page of a stored fit."""
    fit = record.fit
    options = record.request.options if record.request else None
    return FitView(
        id=record.id,
        title=TITLES[fit.kind],
        method=str(fit.method),
        understood=fit.understood,
        warnings=tuple(one.detail for one in fit.notices if not _stage_of(one.detail)),
        remarks=tuple(_remarks(fit)),
        stages=tuple(_stage(stage) for stage in _stages(fit)),
        logp=tuple(map(_logp, fit.loggp.sizes)) if fit.loggp else (),
        excluded=options.excluded if options else (),
        digests=record.trace_digests,
        missing=_missing(fit),
    )


def chart_views(plot: FitPlot) -> tuple[ChartView, ...]:
    """The charts of a fit's stages; a stage without a line has none."""
    shown = (stage for stage in plot.stages if stage.fit.lines)
    return tuple(_chart(number, stage) for number, stage in enumerate(shown))


def sample_value(sample: ExcludedSample) -> str:
    """How a form names a sample."""
    return f"{sample.message_bytes}|{sample.time_us!r}|{sample.stage}"


# --- parameters -----------------------------------------------------------------------------------


def _stages(fit: TraceFit) -> Iterable[StageFit]:
    if fit.aggregate is not None:
        return (fit.aggregate.total, fit.aggregate.bottleneck)
    return fit.stages


def _missing(fit: TraceFit) -> str:
    try:
        fit.to_model()
    except MeasurementMissing as refusal:
        return refusal.detail
    return ""


def _stage_of(detail: str) -> str:
    """The stage that a notice speaks of; "" where it speaks of all."""
    head, colon, _ = detail.partition(": ")
    return head.removeprefix("stage ") if colon and head.startswith("stage ") else ""


def _remarks(fit: TraceFit) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What concerns one stage, stage by stage."""
    found: dict[str, list[str]] = {}
    for notice in fit.notices:
        if name := _stage_of(notice.detail):
            found.setdefault(name, []).append(notice.detail.partition(": ")[2])
    yield from ((name, tuple(words)) for name, words in found.items())


def _stage(stage: StageFit) -> StageView:
    return StageView(
        name=stage.name,
        rows=tuple(_row(line) for line in stage.lines),
        samples=stage.num_samples,
        outliers=stage.outliers,
        spread=stage.relative_residual_std,
        r_squared=stage.r_squared,
    )


def _row(line: LineFit) -> ParameterRow:
    end = line.up_to_bytes
    reach = f"up to {format_bytes(end)}" if end else f"from {format_bytes(line.from_bytes)}"
    return ParameterRow(
        reach=reach,
        overhead=_digits(line.overhead_us),
        overhead_interval=_interval(line.overhead_us_interval),
        overhead_badge=_VERDICTS[line.overhead_verdict],
        cost=_digits(line.ns_per_byte),
        cost_interval=_interval(line.ns_per_byte_interval),
        cost_badge=_VERDICTS[line.ns_per_byte_verdict],
        samples=line.num_samples,
    )


def _logp(size: LogGPParameters) -> LogPRow:
    values = (
        size.send_overhead_us,
        size.receive_overhead_us,
        size.message_gap_us,
        size.wire_latency_us,
        size.round_trip_us,
    )
    return LogPRow(format_bytes(size.message_bytes), tuple(map(_estimate, values)))


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return f"{_digits(estimate.value)} ({_interval(estimate.interval)})"


def _digits(value: float) -> str:
    return f"{value:.4g}"


def _interval(ends: tuple[float, float]) -> str:
    return f"{_digits(ends[0])} to {_digits(ends[1])}"


# --- charts ---------------------------------------------------------------------------------------


def _chart(number: int, stage: StagePlot) -> ChartView:
    outliers = sorted(_outliers(stage), key=lambda one: -abs(one.residual or 0.0))
    return ChartView(
        number=number,
        name=stage.name,
        words=_words(stage),
        remark=_remark(stage),
        data=_data(stage),
        outliers=tuple(outliers[:MOST_OUTLIERS]),
        more_outliers=max(0, stage.fit.outliers - min(len(outliers), MOST_OUTLIERS)),
    )


def _words(stage: StagePlot) -> str:
    points = stage.points
    sizes, times = points.message_bytes, points.time_us
    return (
        f"{stage.name}: time against message size, {len(points)} samples from "
        f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))} and from {min(times):.4g} to "
        f"{max(times):.4g} µs, {len(stage.pieces)} fitted lines with their 95 % band; below, "
        f"relative residuals"
    )


def _remark(stage: StagePlot) -> str:
    if stage.shows_medians:
        return "Medians of sizes: the single samples are not at hand."
    if len(stage.points) < stage.num_samples:
        return (
            f"{len(stage.points)} of {stage.num_samples} samples are drawn, the extreme ones among "
            f"them; the fit uses all."
        )
    return ""


def _data(stage: StagePlot) -> dict[str, Any]:
    points = stage.points
    return {
        "stage": _key(stage),
        "logSize": _is_wide(points.message_bytes),
        "logTime": _is_wide(points.time_us),
        "residualEnd": _residual_end(points),
        "canExclude": not stage.shows_medians,
        "points": [
            [size, time_us, residual, _state(outlier, used)]
            for size, time_us, residual, outlier, used in zip(
                points.message_bytes,
                points.time_us,
                points.relative_residual,
                points.is_outlier,
                points.is_used,
                strict=True,
            )
        ],
        "pieces": [
            {
                "size": piece.message_bytes,
                "time": piece.time_us,
                "low": piece.low_us,
                "high": piece.high_us,
                "upTo": piece.up_to_bytes,
            }
            for piece in stage.pieces
        ],
    }


def _state(is_outlier: bool, is_used: bool) -> int:
    """0 used, 1 an outlier, 2 outside the sizes that were fitted to."""
    return 1 if is_outlier else 0 if is_used else 2


def _is_wide(values: Iterable[float]) -> bool:
    positive = [value for value in values if value > 0.0]
    return bool(positive) and max(positive) > _DECADES * min(positive)


def _residual_end(points: PlotPoints) -> float:
    """How far the axis of residuals reaches: what lies beyond is drawn at its edge."""
    usual = [
        abs(residual)
        for residual, is_outlier in zip(points.relative_residual, points.is_outlier, strict=True)
        if residual is not None and not is_outlier
    ]
    return float(f"{max(_RESIDUAL_ROOM * max(usual, default=0.0), _LEAST_RESIDUAL):.2g}")


def _outliers(stage: StagePlot) -> Iterator[Outlier]:
    if stage.shows_medians:
        return
    points = stage.points
    for place, is_outlier in enumerate(points.is_outlier):
        if is_outlier:
            size, time_us = points.message_bytes[place], points.time_us[place]
            value = sample_value(ExcludedSample(_key(stage), size, time_us))
            residual = points.relative_residual[place]
            yield Outlier(value, format_bytes(size), time_us, residual)


def _key(stage: StagePlot) -> str:
    """How samples name the stage that they are of."""
    return stage.name if stage.role is PlotRole.STAGE else str(stage.role)
