"""What workers are sent of a table: what is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from select import select

from app.operations.operation import Report
from app.questions.tables import CompiledTable, TableQuestion, compile_table


@dataclass(frozen=True, slots=True)
class TableWork:
    """What is compiled."""

    question: TableQuestion

    def run(self, report: Report) -> CompiledTable:
        """Compile; time is up once the operation's file can be read, where it has one.

        Raises Infeasible, LimitReached and SolverFailed.
        """
        return compile_table(self.question, report.steps, _ended_by(report.files))


def _ended_by(files: Sequence[int]) -> Callable[[], bool] | None:
    return (lambda: bool(select(files, (), (), 0)[0])) if files else None
