"""Compiles plan tables in a process of its own, with a memory cap and a time limit."""

from __future__ import annotations

from dataclasses import dataclass

from app.apart import Apart, ReportSteps, Watch, unwatched
from app.flows.build_table import CompiledTable, TableQuestion, compile_table


@dataclass(frozen=True, slots=True)
class TableTask:
    """What to compile."""

    question: TableQuestion

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""
        return "compilation"

    def prepare(self) -> None:
        """Load what every compilation needs."""
        import exports.slt  # noqa: F401
        import solvers

        solvers.warm_up()

    def run(self, report: ReportSteps) -> CompiledTable:
        """Compile. Raises SluiceError."""
        return compile_table(self.question, report)


class TableApart:
    """One compilation. `run` blocks; `cancel` may be called by another thread."""

    def __init__(self, question: TableQuestion, *, memory_bytes: int) -> None:
        self._child = Apart(TableTask(question), memory_bytes=memory_bytes)

    def run(self, watch: Watch = unwatched) -> CompiledTable:
        """The table. Raises what `compile_table` does, Cancelled, LimitReached, SolverFailed."""
        return self._child.run(watch)

    def cancel(self) -> None:
        """Nobody waits any more: kill the process."""
        self._child.cancel()
