"""The page of a fit: stages in words and numbers, charts, tables, and a further file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request

from app.questions.question import LoadedTrace
from app.text.notices import NoticeItem, notice_items
from app.text.numbers import format_count, format_figure, format_signed_percent
from app.text.units import format_given_time, format_time
from app.web.fits.refits import AgainForm, again_form, fitted_stages, stored_traces
from app.web.fitted import fit_and_store
from domain.errors import MeasurementMissing
from domain.fit import ExcludedSample, FitOptions, LineFit, StageFit, TraceFit, Verdict
from domain.fit_plot import FitPlot, PlotPoints, PlotRole, SignaturePlot, StagePlot
from domain.loggp import Estimate, LogGPFit, LogGPParameters
from domain.measurement import TraceKind
from domain.units import format_bytes
from models.records import FitRecord, FitRequest

WANTED = {
    TraceKind.END_TO_END: "A bandwidth test of the same path: osu_bw, ib_send_bw, ib_write_bw, "
    "ucx_perftest tag_bw, or CSV message_bytes,interarrival_us",
    TraceKind.INDIRECT: "A latency test of the same path: osu_latency, IMB PingPong, ib_send_lat, "
    "ucx_perftest tag_lat, or CSV message_bytes,latency_us",
    TraceKind.LOGP: "What is missing, of the same end point: CSV message_bytes,round_trip_us, or "
    "signatures of further sizes",
}


async def fit_beside(
    request: Request, record: FitRecord, more: Sequence[LoadedTrace], added: FitRequest
) -> str:
    """Fit the stored measurements and these together; return the new fit's address.

    `added` has the kinds and exclusions that came with them. Raises what `Service.fit` does.
    """
    before = record.request or FitRequest(FitOptions())
    stored = await stored_traces(request, record)
    options = before.options
    asked = replace(
        before,
        options=replace(options, excluded=(*options.excluded, *added.options.excluded)),
        kinds=(*_kinds(before.kinds, len(stored)), *_kinds(added.kinds, len(more))),
    )
    return await fit_and_store(request, (*stored, *more), asked)


def _kinds(kinds: Sequence[TraceKind | None], count: int) -> Sequence[TraceKind | None]:
    return kinds or (None,) * count


# --- charts, and the same samples as rows of a table ----------------------------------------------


ROWS_A_PAGE = 50
_DECADES = 20.0  # a column that spans more is drawn on a log axis
_RESIDUAL_ROOM = 1.25
_MIN_RESIDUAL = 0.02
LOGP_SERIES = (
    ("send_overhead_us", "Send overhead"),
    ("receive_overhead_us", "Receive overhead"),
    ("message_gap_us", "Between messages"),
    ("wire_latency_us", "Wire latency"),
    ("round_trip_us", "Round trip"),
)


@dataclass(frozen=True, slots=True)
class SampleRow:
    """Equal samples, `count` of them: `value` is how a form names them, `state` what they are."""

    value: str
    size: str
    time_us: float
    residual: float | None
    state: str
    count: int

    @property
    def time_text(self) -> str:
        """The time in µs; all of a column in one unit, so that they compare."""
        return format_figure(self.time_us)


@dataclass(frozen=True, slots=True)
class ChartView:
    """One stage's chart; `rows` are the first of `num_rows` of its table, farthest off first.

    `caption` says how many rows there are, and of how many samples.
    """

    number: int
    name: str
    words: str
    remark: str
    beyond: str
    caption: str
    num_outliers: int
    can_exclude: bool
    data: dict[str, Any]
    rows: tuple[SampleRow, ...]
    num_rows: int


@dataclass(frozen=True, slots=True)
class SignatureView:
    """A signature's chart, and its table: a row a burst, a column for each computation."""

    number: int
    size: str
    words: str
    data: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[float | None, ...]], ...]


def chart_views(plot: FitPlot) -> tuple[ChartView, ...]:
    """Return the charts of a fit's stages; a stage without a line has none."""
    shown = (stage for stage in plot.stages if stage.fit.lines)
    return tuple(_chart(number, stage) for number, stage in enumerate(shown))


def sample_value(sample: ExcludedSample) -> str:
    """Return how a form names a sample."""
    return f"{sample.message_bytes}|{sample.time_us!r}|{sample.stage}"


def _chart(number: int, stage: StagePlot) -> ChartView:
    rows = sorted(_rows(stage), key=lambda one: -abs(one.residual or 0.0))
    return ChartView(
        number=number,
        name=stage.name,
        words=_words(stage),
        remark=_remark(stage),
        beyond=_beyond(stage.points),
        caption=_caption(len(rows), len(stage.points)),
        num_outliers=stage.fit.outliers,
        can_exclude=not stage.shows_medians,
        data=_data(stage),
        rows=tuple(rows[:ROWS_A_PAGE]),
        num_rows=len(rows),
    )


def _words(stage: StagePlot) -> str:
    points = stage.points
    sizes, times = points.message_bytes, points.time_us
    return (
        f"{stage.name}: time against message size, {len(points)} samples from "
        f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))} and from "
        f"{format_time(min(times))} to {format_time(max(times))}, {len(stage.pieces)} fitted "
        "lines with their 95 % band; below, relative residuals. The table below has the samples"
    )


def _remark(stage: StagePlot) -> str:
    if stage.shows_medians:
        return "Medians of sizes: the single samples are not at hand."
    if len(stage.points) < stage.num_samples:
        return (
            f"{format_count(len(stage.points))} of {format_count(stage.num_samples)} samples are "
            "drawn and listed, the extreme ones among them; the fit uses all."
        )
    return ""


def _beyond(points: PlotPoints) -> str:
    """Return which samples the axis of residuals has no place for; "" for none."""
    end = _residual_end(points)
    off = [one for one in points.relative_residual if one is not None and abs(one) > end]
    if not off:
        return ""
    farthest = format_signed_percent(max(off, key=abs))
    which = (
        f"1 sample lies farther off its line, by {farthest}: an arrow marks it"
        if len(off) == 1
        else f"{format_count(len(off))} samples lie farther off their line, the farthest by "
        f"{farthest}: arrows mark them"
    )
    return f"The axis of residuals ends at ±{100.0 * end:g} %; {which}."


def _caption(num_rows: int, num_samples: int) -> str:
    if num_rows == num_samples:
        return f"{format_count(num_rows)}"
    return (
        f"{format_count(num_rows)} different samples ({format_count(num_samples)} with equal ones)"
    )


def _data(stage: StagePlot) -> dict[str, Any]:
    points = stage.points
    return {
        "stage": _key(stage),
        "logSize": _is_wide(points.message_bytes),
        "logTime": _is_wide(points.time_us),
        "residualEnd": _residual_end(points),
        "canExclude": not stage.shows_medians,
        "points": [
            [size, time_us, residual, state] for size, time_us, residual, state in _samples(points)
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


def _samples(points: PlotPoints) -> Iterator[tuple[int, float, float | None, int]]:
    """Yield size, time, residual, and 0 used, 1 an outlier, 2 outside the fitted sizes."""
    states = zip(points.is_outlier, points.is_used, strict=True)
    for size, time_us, residual, (is_outlier, is_used) in zip(
        points.message_bytes, points.time_us, points.relative_residual, states, strict=True
    ):
        yield size, time_us, residual, 1 if is_outlier else 0 if is_used else 2


_STATES = ("", "outlier", "not fitted to")


def _rows(stage: StagePlot) -> Iterator[SampleRow]:
    """Yield each size and time once."""
    counts: dict[tuple[int, float], int] = {}
    last: dict[tuple[int, float], tuple[float | None, int]] = {}
    for size, time_us, residual, state in _samples(stage.points):
        counts[size, time_us] = counts.get((size, time_us), 0) + 1
        last[size, time_us] = (residual, state)
    for (size, time_us), (residual, state) in last.items():
        value = sample_value(ExcludedSample(_key(stage), size, time_us))
        count = counts[size, time_us]
        yield SampleRow(value, format_bytes(size), time_us, residual, _STATES[state], count)


def _is_wide(values: Iterable[float]) -> bool:
    positive = [value for value in values if value > 0.0]
    return bool(positive) and max(positive) > _DECADES * min(positive)


def _residual_end(points: PlotPoints) -> float:
    """Return how far the axis of residuals extends: what lies beyond is drawn at its edge."""
    default = [
        abs(residual)
        for residual, is_outlier in zip(points.relative_residual, points.is_outlier, strict=True)
        if residual is not None and not is_outlier
    ]
    return float(f"{max(_RESIDUAL_ROOM * max(default, default=0.0), _MIN_RESIDUAL):.2g}")


def _key(stage: StagePlot) -> str:
    """Return how samples name the stage that they are of."""
    return stage.name if stage.role is PlotRole.STAGE else str(stage.role)


# --- LogP -----------------------------------------------------------------------------------------


def signature_views(plot: FitPlot, fit: LogGPFit | None) -> tuple[SignatureView, ...]:
    """Return the charts of an end point's signatures, with the levels that were found in them."""
    found = {size.message_bytes: size for size in fit.sizes} if fit else {}
    shown = [signature for signature in plot.signatures if signature.curves]
    return tuple(
        _signature(number, one, found.get(one.message_bytes)) for number, one in enumerate(shown)
    )


def parameters_data(fit: LogGPFit) -> list[dict[str, Any]]:
    """Return the series of LogP parameters over message size: [bytes, µs, low, high] each."""
    return [
        {
            "name": words,
            "points": [
                [size.message_bytes, estimate.value, *estimate.interval]
                for size in fit.sizes
                if (estimate := getattr(size, name)) is not None
            ],
        }
        for name, words in LOGP_SERIES
    ]


def _signature(number: int, plot: SignaturePlot, found: object) -> SignatureView:
    size = format_bytes(plot.message_bytes)
    costs: list[Mapping[int, float]] = [
        dict(zip(curve.bursts, curve.cost_us, strict=True)) for curve in plot.curves
    ]
    bursts = sorted(set().union(*costs))
    return SignatureView(
        number=number,
        size=size,
        words=f"Signature of {size} messages: mean cost of a message against the messages in a "
        f"burst, {len(plot.curves)} curves by computation between two of them, both axes "
        "logarithmic. The table below has the numbers",
        data={
            "curves": [
                {
                    "name": _between(curve.computation_us),
                    "points": list(zip(curve.bursts, curve.cost_us, strict=True)),
                }
                for curve in plot.curves
            ],
            "levels": _levels(found),
        },
        columns=tuple(_between(curve.computation_us) for curve in plot.curves),
        rows=tuple((burst, tuple(cost.get(burst) for cost in costs)) for burst in bursts),
    )


def _between(computation_us: float) -> str:
    return f"{format_given_time(computation_us)} between" if computation_us else "no computation"


def _levels(found: object) -> list[tuple[str, float]]:
    """Send overhead and the time between messages, as lines across the signature."""
    levels = []
    for name, words in LOGP_SERIES[:3:2]:
        estimate: Estimate | None = getattr(found, name, None)
        if estimate is not None and estimate.value > 0.0:
            levels.append((words, estimate.value))
    return levels


# --- the page of a fit ----------------------------------------------------------------------------


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
    misfit: float | None
    r_squared: float

    @property
    def words(self) -> str:
        """The stage in a sentence, for those who do not see the chart."""
        ranges = "one line" if len(self.rows) == 1 else f"{len(self.rows)} fit ranges"
        outliers = "1 outlier" if self.outliers == 1 else f"{self.outliers} outliers"
        return f"{self.name}: {self.samples} samples, {ranges}, {outliers}"


@dataclass(frozen=True, slots=True)
class LogPRow:
    """LogP parameters at one size, as texts."""

    size: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FitView:
    """The page of a fit, but what its charts show. `excluded` are as a form names them, and whole.

    `notices` begin with what matters most; `missing` says why it gives no model, and `wanted` which
    measurements would.
    """

    id: str
    title: str
    method: str
    understood: tuple[tuple[str, str], ...]
    notices: tuple[NoticeItem, ...]
    stages: tuple[StageView, ...]
    logp: tuple[LogPRow, ...]
    excluded: tuple[tuple[str, ExcludedSample], ...]
    again: AgainForm | None
    digests: tuple[str, ...]
    missing: str
    wanted: str


def fit_view(record: FitRecord) -> FitView:
    """Return the page of a stored fit."""
    fit = record.fit
    options = record.request.options if record.request else None
    is_document = record.request is not None and record.request.is_document
    return FitView(
        id=record.id,
        title=TITLES[fit.kind],
        method=str(fit.method),
        understood=fit.understood,
        notices=notice_items(fit.notices),
        stages=tuple(_stage(stage) for stage in fitted_stages(fit)),
        logp=tuple(map(_logp, fit.loggp.sizes)) if fit.loggp else (),
        excluded=tuple((sample_value(one), one) for one in options.excluded) if options else (),
        again=None if is_document else again_form(record),
        digests=record.trace_digests,
        missing=_missing(fit),
        wanted=WANTED.get(fit.kind, ""),
    )


# --- parameters -----------------------------------------------------------------------------------


def _missing(fit: TraceFit) -> str:
    try:
        fit.to_model()
    except MeasurementMissing as refusal:
        return refusal.detail
    return ""


def _stage(stage: StageFit) -> StageView:
    return StageView(
        name=stage.name,
        rows=tuple(_row(line) for line in stage.lines),
        samples=stage.num_samples,
        outliers=stage.outliers,
        spread=stage.relative_residual_std,
        misfit=stage.misfit,
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
    values = (getattr(size, name) for name, _ in LOGP_SERIES)
    return LogPRow(format_bytes(size.message_bytes), tuple(map(_estimate, values)))


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    value, ends = _digits(estimate.value), {_digits(end) for end in estimate.interval}
    return value if ends == {value} else f"{value} ({_interval(estimate.interval)})"


def _digits(value: float) -> str:
    return format_figure(value)


def _interval(ends: tuple[float, float]) -> str:
    return f"{_digits(ends[0])} to {_digits(ends[1])}"
