"""What POST /fit answers, and the `fit` of an optimisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.flows.fit_trace import FittedTrace, SavedFit
from app.schemas.base import Output
from app.schemas.fit_plots import FitPlotOut, fit_plot_document
from domain.fit import AggregateFit, FitMethod, LineFit, SizeFit, StageFit, TraceFit, Verdict
from domain.loggp import Estimate, LogGPFit, LogGPParameters
from domain.measurement import TraceKind
from domain.solution import Notice
from models.records import FitRecord, FitRequest


class NoticeOut(Output):
    """Something a user must see: a stable code, a sentence, the one stage it is about if it is."""

    code: str
    detail: str
    stage: str | None
    values: dict[str, float | str]


class ProfileRevisionOut(Output):
    """A hardware profile's revision by name and number."""

    name: str
    revision: int


class LineFitOut(Output):
    """A fitted line over one range of fragment sizes; intervals are 95 %, [low, high]."""

    up_to_bytes: int | None
    from_bytes: int
    to_bytes: int
    overhead_us: float
    ns_per_byte: float
    overhead_us_interval: tuple[float, float]
    ns_per_byte_interval: tuple[float, float]
    overhead_std_error_us: float
    ns_per_byte_std_error: float
    correlation: float
    overhead_verdict: Verdict
    ns_per_byte_verdict: Verdict
    num_samples: int
    clipped: list[str]


class SizeFitOut(Output):
    """How well the fit holds at one measured size."""

    message_bytes: int
    num_samples: int
    median_us: float
    fitted_us: float
    relative_residual: float
    relative_spread: float
    outliers: int


class StageFitOut(Output):
    """One stage's fit. What is said of a line is null where there are several `ranges`."""

    name: str
    method: FitMethod
    overhead_us: float | None
    ns_per_byte: float | None
    overhead_us_interval: tuple[float, float] | None
    ns_per_byte_interval: tuple[float, float] | None
    ranges: list[LineFitOut]
    num_samples: int
    outliers: int
    outlier_influence: float
    relative_residual_std: float
    residual_std_us: float
    r_squared: float
    sizes: list[SizeFitOut]


class FittedPipelineOut(Output):
    """The fitted stages, in order, and the constant delay."""

    stages: list[StageFitOut]
    delay_us: float


class AggregateFitOut(Output):
    """All stages together and the slowest of them; the sums are null where there are ranges."""

    sum_overhead_us: float | None
    sum_ns_per_byte: float | None
    sum_overhead_us_interval: tuple[float, float] | None
    sum_ns_per_byte_interval: tuple[float, float] | None
    total: StageFitOut
    bottleneck: StageFitOut


class EstimateOut(Output):
    """A value with its 95 % interval, [low, high]."""

    value: float
    interval: tuple[float, float]


class LogGPParametersOut(Output):
    """The parameters at one message size; null where the measurements do not give one."""

    message_bytes: int
    send_overhead_us: EstimateOut | None
    receive_overhead_us: EstimateOut | None
    message_gap_us: EstimateOut | None
    wire_latency_us: EstimateOut | None
    round_trip_us: EstimateOut | None


class LogGPFitOut(Output):
    """LogP parameters by message size, and what the pipeline that follows assumes."""

    sizes: list[LogGPParametersOut]
    byte_gap_ns: EstimateOut | None
    assumptions: list[str]


class ExcludedSampleOut(Output):
    """A sample that was left out by hand."""

    stage: str
    message_bytes: int
    time_us: float


class FitOut(Output):
    """A fit: what was understood, the stages, and what to beware of.

    `aggregate` is for traces that do not tell the stages apart, `loggp` for signatures of an end
    point; each is null elsewhere. `trace_digests` are the SHA-256 of the files, in their
    order. `excluded` are the samples that were to be left out by hand. `profile` is what the fit
    was saved as with this request; `plot` is what a plot of it shows, where that was asked for.
    """

    kind: TraceKind
    method: FitMethod
    understood: dict[str, str]
    pipeline: FittedPipelineOut
    aggregate: AggregateFitOut | None
    loggp: LogGPFitOut | None
    warnings: list[NoticeOut]
    excluded: list[ExcludedSampleOut]
    trace_digests: list[str]
    fit_id: str | None
    profile: ProfileRevisionOut | None
    plot: FitPlotOut | None


def fit_document(fitted: FittedTrace, saved: SavedFit | None) -> dict[str, Any]:
    """FitOut of a fit that was just made."""
    return {
        **_fit_document(fitted.fit),
        "excluded": excluded_document(fitted.request),
        "trace_digests": fitted.trace_digests,
        "fit_id": saved.fit_id if saved else None,
        "profile": (
            {"name": saved.profile.name, "revision": saved.profile.current.number}
            if saved
            else None
        ),
        "plot": fit_plot_document(fitted.plot) if fitted.plot else None,
    }


def stored_fit_document(record: FitRecord) -> dict[str, Any]:
    """FitOut of a stored fit."""
    return {
        **_fit_document(record.fit),
        "excluded": excluded_document(record.request),
        "trace_digests": record.trace_digests,
        "fit_id": record.id,
        "profile": None,
        "plot": None,
    }


def excluded_document(request: FitRequest | None) -> list[dict[str, Any]]:
    """What was left out by hand; nothing for a fit of a version that did not keep its request."""
    samples = request.options.excluded if request else ()
    return [
        {name: getattr(one, name) for name in ExcludedSampleOut.model_fields} for one in samples
    ]


def _fit_document(fit: TraceFit) -> dict[str, Any]:
    return {
        "kind": fit.kind,
        "method": fit.method,
        "understood": dict(fit.understood),
        "pipeline": {
            "stages": [stage_fit_document(stage) for stage in fit.stages],
            "delay_us": fit.delay_us,
        },
        "aggregate": aggregate_fit_document(fit.aggregate) if fit.aggregate else None,
        "loggp": _loggp_document(fit.loggp) if fit.loggp else None,
        "warnings": [notice_document(notice) for notice in fit.notices],
    }


def notice_document(notice: Notice) -> dict[str, Any]:
    """NoticeOut."""
    return {
        "code": notice.code,
        "detail": notice.detail,
        "stage": notice.stage,
        "values": dict(notice.values),
    }


def notice_of(document: Mapping[str, Any]) -> Notice:
    """Return the notice of a NoticeOut."""
    values = tuple(document["values"].items())
    return Notice(document["code"], document["detail"], document["stage"], values)


def stage_fit_document(stage: StageFit) -> dict[str, Any]:
    """StageFitOut."""
    line = stage.lines[0] if len(stage.lines) == 1 else None
    return {
        "name": stage.name,
        "method": stage.method,
        "overhead_us": line and line.overhead_us,
        "ns_per_byte": line and line.ns_per_byte,
        "overhead_us_interval": line and line.overhead_us_interval,
        "ns_per_byte_interval": line and line.ns_per_byte_interval,
        "ranges": [_document_of(LineFitOut, line) for line in stage.lines],
        "num_samples": stage.num_samples,
        "outliers": stage.outliers,
        "outlier_influence": stage.outlier_influence,
        "relative_residual_std": stage.relative_residual_std,
        "residual_std_us": stage.residual_std_us,
        "r_squared": stage.r_squared,
        "sizes": [_document_of(SizeFitOut, size) for size in stage.sizes],
    }


def aggregate_fit_document(fit: AggregateFit) -> dict[str, Any]:
    """AggregateFitOut."""
    total = stage_fit_document(fit.total)
    return {
        "sum_overhead_us": total["overhead_us"],
        "sum_ns_per_byte": total["ns_per_byte"],
        "sum_overhead_us_interval": total["overhead_us_interval"],
        "sum_ns_per_byte_interval": total["ns_per_byte_interval"],
        "total": total,
        "bottleneck": stage_fit_document(fit.bottleneck),
    }


def _loggp_document(fit: LogGPFit) -> dict[str, Any]:
    return {
        "sizes": [_parameters_document(size) for size in fit.sizes],
        "byte_gap_ns": _estimate_document(fit.byte_gap_ns),
        "assumptions": list(fit.assumptions),
    }


def _parameters_document(parameters: LogGPParameters) -> dict[str, Any]:
    names = [name for name in LogGPParametersOut.model_fields if name != "message_bytes"]
    return {
        "message_bytes": parameters.message_bytes,
        **{name: _estimate_document(getattr(parameters, name)) for name in names},
    }


def _estimate_document(estimate: Estimate | None) -> dict[str, Any] | None:
    return {"value": estimate.value, "interval": estimate.interval} if estimate else None


def _document_of(model: type[Output], value: LineFit | SizeFit) -> dict[str, Any]:
    return {name: getattr(value, name) for name in model.model_fields}
