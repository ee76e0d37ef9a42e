"""The plot of a fit as data for a page: samples, lines and bands by column."""

from __future__ import annotations

from typing import Any

from app.schemas.base import Output
from domain.fit_plot import FitPlot, PlotRole, SignaturePlot, StagePlot


class PlotPointsOut(Output):
    """Samples by column, ascending by size and then by time.

    `relative_residual` is (time - fitted) / fitted, null where the fitted time is 0.
    """

    message_bytes: list[int]
    time_us: list[float]
    relative_residual: list[float | None]
    is_outlier: list[bool]
    is_used: list[bool]


class CurvePieceOut(Output):
    """The line of one fit range, sampled by column, with the 95 % band of the mean time."""

    message_bytes: list[float]
    time_us: list[float]
    low_us: list[float]
    high_us: list[float]
    up_to_bytes: int | None


class StagePlotOut(Output):
    """One stage: at most 2000 of its `num_samples`, or medians where `shows_medians`."""

    name: str
    role: PlotRole
    num_samples: int
    shows_medians: bool
    points: PlotPointsOut
    pieces: list[CurvePieceOut]


class SignatureCurveOut(Output):
    """Mean cost of one of `bursts` messages, at so much computation between them."""

    computation_us: float
    bursts: list[int]
    cost_us: list[float]


class SignaturePlotOut(Output):
    """The signature of an end point at one message size."""

    message_bytes: int
    curves: list[SignatureCurveOut]


class FitPlotOut(Output):
    """All that a plot of a fit shows; what was estimated is in the fit itself."""

    stages: list[StagePlotOut]
    signatures: list[SignaturePlotOut]


def fit_plot_document(plot: FitPlot) -> dict[str, Any]:
    """FitPlotOut."""
    return {
        "stages": [_stage_document(stage) for stage in plot.stages],
        "signatures": [_signature_document(signature) for signature in plot.signatures],
    }


def _stage_document(stage: StagePlot) -> dict[str, Any]:
    return {
        "name": stage.name,
        "role": stage.role,
        "num_samples": stage.num_samples,
        "shows_medians": stage.shows_medians,
        "points": _columns(PlotPointsOut, stage.points),
        "pieces": [_columns(CurvePieceOut, piece) for piece in stage.pieces],
    }


def _signature_document(signature: SignaturePlot) -> dict[str, Any]:
    return {
        "message_bytes": signature.message_bytes,
        "curves": [_columns(SignatureCurveOut, curve) for curve in signature.curves],
    }


def _columns(model: type[Output], value: object) -> dict[str, Any]:
    return {name: getattr(value, name) for name in model.model_fields}
