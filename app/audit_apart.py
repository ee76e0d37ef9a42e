"""Audits settings in a process of its own, with a memory cap and a time limit."""

from __future__ import annotations

from dataclasses import dataclass

from app.apart import Apart, ReportSteps, Watch, unwatched
from app.flows.audit_setting import Audit, AuditQuestion, audit


@dataclass(frozen=True, slots=True)
class AuditTask:
    """What to audit."""

    question: AuditQuestion

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""
        return "audit"

    def prepare(self) -> None:
        """Load what every audit needs."""
        import solvers
        import solvers.settings.regret

        solvers.warm_up()

    def run(self, report: ReportSteps) -> Audit:
        """Audit. Raises SluiceError."""
        return audit(self.question, report)


class AuditApart:
    """One audit. `run` blocks; `cancel` may be called by another thread."""

    def __init__(self, question: AuditQuestion, *, memory_bytes: int) -> None:
        self._child = Apart(AuditTask(question), memory_bytes=memory_bytes)

    def run(self, watch: Watch = unwatched) -> Audit:
        """The audit. Raises what `audit` does, Cancelled, LimitReached and SolverFailed."""
        return self._child.run(watch)

    def cancel(self) -> None:
        """Nobody waits any more: kill the process."""
        self._child.cancel()
