"""What workers are sent of an export: what is chosen and rendered."""

from __future__ import annotations

from dataclasses import dataclass

from app.operations.operation import Report
from app.questions.settings import Exported, ExportQuestion, export


@dataclass(frozen=True, slots=True)
class ExportWork:
    """What is exported."""

    question: ExportQuestion

    def run(self, report: Report) -> Exported:
        """Choose and render. Raises what `export` does."""
        return export(self.question, report.steps, report.best)
