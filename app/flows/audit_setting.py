"""The question of an audit: a setting, and the model that was found or fitted for it."""

from __future__ import annotations

from analysis.audit import AuditQuestion, AuditScope
from app.flows.solve_message import Prepared
from domain.fit import TraceFit


def audit_question(prepared: Prepared, scope: AuditScope, *, fragment_cap: int) -> AuditQuestion:
    """The audit of a model that was found or fitted."""
    fit = prepared.fitted.fit if prepared.fitted else None
    return AuditQuestion(
        model=prepared.problem.model,
        profile=prepared.profile,
        scope=scope,
        fragment_cap=fragment_cap,
        fit_notices=fit.notices if fit else (),
        measured_bytes=_measured_bytes(fit) if fit else None,
    )


def _measured_bytes(fit: TraceFit) -> int | None:
    both = (fit.aggregate.total, fit.aggregate.bottleneck) if fit.aggregate else fit.stages
    return min((stage.lines[-1].to_bytes for stage in both), default=None)
