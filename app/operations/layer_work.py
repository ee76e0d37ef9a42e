"""What workers are sent of a messaging layer: what is asked about it."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.layer_answer import LayerAnswer, LayerQuestion, layer_costs
from app.operations.operation import Report


@dataclass(frozen=True, slots=True)
class LayerWork:
    """What is asked about a messaging layer."""

    question: LayerQuestion

    def run(self, report: Report) -> LayerAnswer:
        """Compute; its steps are solves. Raises SluiceError."""

        def on_progress(done: int, total: int, answer: LayerAnswer) -> None:
            report.steps(done, total)
            report.best(answer)

        return layer_costs(self.question, on_progress=on_progress)

    def compute(self) -> LayerAnswer:
        """Compute without a report."""
        return layer_costs(self.question)
