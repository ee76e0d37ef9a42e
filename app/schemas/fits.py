"""What POST /fit answers, and the `fit` of an optimisation."""

from __future__ import annotations

from typing import Any

from app.flows.fit_trace import SavedFit
from app.schemas.base import Output
from domain.measurement import PipelineFit, StageFit
from domain.solution import Notice


class NoticeOut(Output):
    """Something a user must see: a stable code and a sentence."""

    code: str
    detail: str


class ProfileRevisionOut(Output):
    """A hardware profile's revision by name and number."""

    name: str
    revision: int


class StageFitOut(Output):
    """One stage's fitted line; intervals are 95 %, [low, high]."""

    name: str
    overhead_us: float
    ns_per_byte: float
    overhead_us_interval: tuple[float, float]
    ns_per_byte_interval: tuple[float, float]
    overhead_std_error_us: float
    ns_per_byte_std_error: float
    residual_std_us: float
    r_squared: float
    num_samples: int
    clipped: list[str]


class FittedPipelineOut(Output):
    """The fitted stages, in order."""

    stages: list[StageFitOut]


class FitOut(Output):
    """A fit: what was understood, the stages, and what to beware of.

    `aggregate` is for traces that do not tell the stages apart, and null for direct ones. `profile`
    is what the fit was saved as, if it was.
    """

    kind: str
    method: str
    understood: dict[str, str]
    pipeline: FittedPipelineOut
    aggregate: None
    warnings: list[NoticeOut]
    fit_id: str | None
    profile: ProfileRevisionOut | None


def fit_document(fit: PipelineFit, saved: SavedFit | None) -> dict[str, Any]:
    """FitOut."""
    return {
        "kind": fit.kind,
        "method": fit.method,
        "understood": dict(fit.understood),
        "pipeline": {"stages": [_stage_document(stage) for stage in fit.stages]},
        "aggregate": None,
        "warnings": [notice_document(notice) for notice in fit.notices],
        "fit_id": saved.fit_id if saved else None,
        "profile": (
            {"name": saved.profile.name, "revision": saved.profile.current.number}
            if saved
            else None
        ),
    }


def notice_document(notice: Notice) -> dict[str, str]:
    """NoticeOut."""
    return {"code": notice.code, "detail": notice.detail}


def _stage_document(stage: StageFit) -> dict[str, Any]:
    return {
        "name": stage.name,
        "overhead_us": stage.overhead_us,
        "ns_per_byte": stage.ns_per_byte,
        "overhead_us_interval": stage.overhead_us_interval,
        "ns_per_byte_interval": stage.ns_per_byte_interval,
        "overhead_std_error_us": stage.overhead_std_error_us,
        "ns_per_byte_std_error": stage.ns_per_byte_std_error,
        "residual_std_us": stage.residual_std_us,
        "r_squared": stage.r_squared,
        "num_samples": stage.num_samples,
        "clipped": stage.clipped,
    }
