"""What POST /fit answers, the `fit` of an optimisation, and the plot of a fit as data."""

from __future__ import annotations

from dataclasses import replace

from app.questions.fits import FittedTrace, GivenFit, SavedFit
from app.schemas.base import notices_out, same_named
from app.schemas.overlap import overlap_out
from contract.fit import (
    AggregateFitOut,
    CurvePieceOut,
    EstimateOut,
    ExcludedSampleOut,
    FitOut,
    FitPlotOut,
    FittedPipelineOut,
    LineFitOut,
    LogGPFitOut,
    LogGPParametersOut,
    PlotPointsOut,
    SignatureCurveOut,
    SignaturePlotOut,
    SizeFitOut,
    StageFitOut,
    StagePlotOut,
    WholeMessagesOut,
)
from contract.profile import ProfileRevisionOut
from domain.fit import AggregateFit, StageFit, TraceFit
from domain.fit_plot import FitPlot, SignaturePlot, StagePlot
from domain.loggp import Estimate, LogGPFit, LogGPParameters
from models.records import FitRecord, FitRequest


def stage_plot_out(stage: StagePlot) -> StagePlotOut:
    """Return the plot of a stage as it is sent."""
    return StagePlotOut(
        stage.name,
        stage.role.value,
        stage.num_samples,
        stage.shows_medians,
        same_named(PlotPointsOut, stage.points),
        tuple(same_named(CurvePieceOut, piece) for piece in stage.pieces),
    )


def signature_plot_out(signature: SignaturePlot) -> SignaturePlotOut:
    """Return a signature as it is sent."""
    curves = tuple(same_named(SignatureCurveOut, curve) for curve in signature.curves)
    return SignaturePlotOut(signature.message_bytes, curves)


def fit_plot_out(plot: FitPlot) -> FitPlotOut:
    """Return the plot of a fit as it is sent."""
    return FitPlotOut(
        tuple(map(stage_plot_out, plot.stages)),
        tuple(map(signature_plot_out, plot.signatures)),
    )


def stage_fit_out(stage: StageFit) -> StageFitOut:
    """Return a stage's fit as it is sent."""
    line = stage.lines[0] if len(stage.lines) == 1 else None
    return StageFitOut(
        name=stage.name,
        method=stage.method.value,
        overhead_us=line.overhead_us if line else None,
        ns_per_byte=line.ns_per_byte if line else None,
        overhead_us_interval=line.overhead_us_interval if line else None,
        ns_per_byte_interval=line.ns_per_byte_interval if line else None,
        ranges=tuple(same_named(LineFitOut, line) for line in stage.lines),
        num_samples=stage.num_samples,
        outliers=stage.outliers,
        outlier_influence=stage.outlier_influence,
        relative_residual_std=stage.relative_residual_std,
        residual_std_us=stage.residual_std_us,
        r_squared=stage.r_squared,
        sizes=tuple(same_named(SizeFitOut, size) for size in stage.sizes),
        size_deviation=stage.size_deviation,
        misfit=stage.misfit,
        common_error=stage.common_error,
    )


def fitted_pipeline_out(fit: TraceFit) -> FittedPipelineOut:
    """Return the stages of a fit as they are sent."""
    return FittedPipelineOut(tuple(map(stage_fit_out, fit.stages)), fit.delay_us)


def aggregate_fit_out(fit: AggregateFit) -> AggregateFitOut:
    """Return what was fitted from outside as it is sent."""
    total = stage_fit_out(fit.total)
    return AggregateFitOut(
        total.overhead_us,
        total.ns_per_byte,
        total.overhead_us_interval,
        total.ns_per_byte_interval,
        total,
        stage_fit_out(fit.bottleneck),
        fit.total_is_uncut,
    )


def estimate_out(estimate: Estimate | None) -> EstimateOut | None:
    """Return an estimate as it is sent, None where there is none."""
    return EstimateOut(estimate.value, estimate.interval) if estimate else None


def loggp_parameters_out(parameters: LogGPParameters) -> LogGPParametersOut:
    """Return the parameters of one message size as they are sent."""
    return LogGPParametersOut(
        parameters.message_bytes,
        estimate_out(parameters.send_overhead_us),
        estimate_out(parameters.receive_overhead_us),
        estimate_out(parameters.message_gap_us),
        estimate_out(parameters.wire_latency_us),
        estimate_out(parameters.round_trip_us),
    )


def loggp_fit_out(fit: LogGPFit) -> LogGPFitOut:
    """Return the parameters of a fit as they are sent."""
    sizes = tuple(map(loggp_parameters_out, fit.sizes))
    return LogGPFitOut(sizes, estimate_out(fit.byte_gap_ns), fit.assumptions)


def fit_out(fitted: FittedTrace, saved: SavedFit | None) -> FitOut:
    """Return a fit that was just made; first what it contradicts, where it was stored."""
    fit = fitted.fit
    if saved is not None and saved.contradiction is not None:
        fit = replace(fit, notices=(saved.contradiction.notice(), *fit.notices))
    return _fit_out(
        fit,
        excluded=excluded_out(fitted.request),
        trace_digests=fitted.trace_digests,
        fit_id=saved.fit_id if saved else None,
        profile=(
            ProfileRevisionOut(saved.profile.name, saved.profile.current.number) if saved else None
        ),
        plot=fit_plot_out(fitted.plot) if fitted.plot else None,
    )


def stored_fit_out(record: FitRecord) -> FitOut:
    """Return a stored fit."""
    request = record.request or FitRequest()
    return given_fit_out(GivenFit(record.fit, record.trace_digests, request, record.id))


def given_fit_out(given: GivenFit) -> FitOut:
    """Return a fit that was made before."""
    return _fit_out(
        given.fit,
        excluded=excluded_out(given.request),
        trace_digests=given.trace_digests,
        fit_id=given.fit_id,
        profile=None,
        plot=None,
    )


def _fit_out(
    fit: TraceFit,
    *,
    excluded: tuple[ExcludedSampleOut, ...],
    trace_digests: tuple[str, ...],
    fit_id: str | None,
    profile: ProfileRevisionOut | None,
    plot: FitPlotOut | None,
) -> FitOut:
    return FitOut(
        kind=fit.kind.value,
        method=fit.method.value,
        understood=dict(fit.understood),
        pipeline=fitted_pipeline_out(fit),
        aggregate=aggregate_fit_out(fit.aggregate) if fit.aggregate else None,
        loggp=loggp_fit_out(fit.loggp) if fit.loggp else None,
        warnings=notices_out(fit.notices),
        excluded=excluded,
        trace_digests=trace_digests,
        fit_id=fit_id,
        profile=profile,
        plot=plot,
        timed_whole=tuple(same_named(WholeMessagesOut, messages) for messages in fit.timed_whole),
        overlap=overlap_out(fit.overlap),
    )


def excluded_out(request: FitRequest) -> tuple[ExcludedSampleOut, ...]:
    """Return what was left out by hand."""
    return tuple(same_named(ExcludedSampleOut, one) for one in request.options.excluded)
