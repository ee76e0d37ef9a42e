"""What the page of a fit shows beside its charts."""

from __future__ import annotations

from dataclasses import dataclass

from app.text.notices import NoticeItem, notice_items
from app.text.numbers import format_figure
from app.verbs.fit.page.again import AgainForm, again_form
from app.verbs.fit.page.charts import LOGP_SERIES, sample_value
from domain.errors import MeasurementMissing
from domain.fit import ExcludedSample, LineFit, StageFit, TraceFit, Verdict
from domain.loggp import Estimate, LogGPParameters
from domain.measurement import TraceKind
from domain.units import format_bytes
from models.records import FitRecord

WANTED = {
    TraceKind.END_TO_END: "A bandwidth test of the same path: osu_bw, ib_send_bw, ib_write_bw, "
    "ucx_perftest tag_bw, or CSV message_bytes,interarrival_us",
    TraceKind.INDIRECT: "A latency test of the same path: osu_latency, IMB PingPong, ib_send_lat, "
    "ucx_perftest tag_lat, or CSV message_bytes,latency_us",
    TraceKind.LOGP: "What is missing, of the same end point: CSV message_bytes,round_trip_us, or "
    "signatures of further sizes",
}
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
        stages=tuple(_stage(stage) for stage in fit.fitted_stages),
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
