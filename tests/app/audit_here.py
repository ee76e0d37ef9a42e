"""Audits in the test's own process, where starting another would take most of the time."""

from __future__ import annotations

from analysis.audit import Audit, AuditQuestion, audit
from app.apart import Watch, unwatched


class AuditHere:
    """Stands in for app.audit_apart.AuditApart."""

    def __init__(self, question: AuditQuestion, *, memory_bytes: int) -> None:
        self._question = question

    def run(self, watch: Watch = unwatched) -> Audit:
        """The audit."""
        return audit(self._question)

    def cancel(self) -> None:
        """Nobody waits any more; it is short."""
