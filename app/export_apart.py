"""Exports whose sizes have to be chosen, in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass

from app.apart import Apart, ReportSteps, Watch, unwatched
from app.flows.export_setting import Exported, ExportQuestion, export


@dataclass(frozen=True, slots=True)
class ExportTask:
    """What to export."""

    question: ExportQuestion

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""
        return "export"

    def prepare(self) -> None:
        """Load what every choice of sizes needs."""
        import analysis.size_choice  # noqa: F401
        import exports.slt  # noqa: F401
        import solvers

        solvers.warm_up()

    def run(self, report: ReportSteps) -> Exported:
        """Choose and render. Raises SluiceError."""
        return export(self.question, report)


class ExportApart:
    """One export. `run` blocks; `cancel` may be called by another thread."""

    def __init__(self, question: ExportQuestion, *, memory_bytes: int) -> None:
        self._child = Apart(ExportTask(question), memory_bytes=memory_bytes)

    def run(self, watch: Watch = unwatched) -> Exported:
        """The export. Raises what `export` does, Cancelled, LimitReached and SolverFailed."""
        return self._child.run(watch)

    def cancel(self) -> None:
        """Nobody waits any more: kill the process."""
        self._child.cancel()
