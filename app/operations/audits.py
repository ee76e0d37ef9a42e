"""Audit a setting: what it costs over the best known, and what to change. Nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.audit import Audit, AuditQuestion, ended
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.work import AuditWork
from app.questions.optimize import prepare, stored_fit, stored_revision
from app.questions.settings import audit_question
from app.schemas.audit import AuditIn, render_audit
from app.schemas.base import parse_json
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import UnitOfWork

TIME_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class AuditSetting(OperationDefaults[Audit]):
    """One audit. `request_for` gives its request with the profile pinned to a revision."""

    question: AuditQuestion
    request_for: Callable[[ProfileRevision | None], bytes]

    @property
    def kind(self) -> OperationKind:
        return OperationKind.AUDIT

    @property
    def noun(self) -> str:
        return "audit"

    @property
    def time_s(self) -> float:
        """The audit's own limit is less."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """An AuditIn as JSON."""
        return self.request_for(self.question.profile)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question.digest())

    @property
    def work(self) -> AuditWork:
        return AuditWork(self.question)

    def run(self, report: Report) -> Audit:
        """Audit. Raises SluiceError."""
        return self.work.run(report)

    def cut_off(self, best: Audit, why: SluiceError) -> Audit:
        """Return the audit by what was solved so far, with the note why it is that."""
        return ended(best, why)

    def keep(self, unit: UnitOfWork, result: Audit) -> Outcome:
        """Store nothing."""
        return Outcome(render_audit(result))


def audit_operation(asked: AuditIn, unit: UnitOfWork, settings: Settings) -> AuditSetting:
    """Find or fit the model. Raises NotFound, InvalidInput, and what a fit does."""
    scope, cap = asked.to_domain(), settings.max_fragments
    find, find_fit = stored_revision(unit), stored_fit(unit)
    prepared = prepare(asked.to_question(), find, fragment_cap=cap, find_fit=find_fit)
    question = audit_question(prepared, scope, fragment_cap=cap)
    return AuditSetting(question, asked.as_job)


def requested_audit(request: bytes, unit: UnitOfWork, settings: Settings) -> AuditSetting:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return audit_operation(parse_json(AuditIn, request), unit, settings)
