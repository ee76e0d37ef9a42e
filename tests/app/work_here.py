"""Compilations, exports and audits of jobs in the test's own process, or waiting to be let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import solvers
from analysis.audit import AuditQuestion, audit
from app.operations.call import Call
from app.operations.export_work import ExportWork
from app.operations.operation import Report
from app.operations.table_work import TableWork
from app.questions import settings, tables
from domain.errors import MemoryLimitReached
from tests.app.serving import GUARD_S
from tests.support.plan_tables import whole_messages

Run = Callable[[Any, Report], Any]

_FLOWS: dict[type, Callable[..., Any]] = {
    tables.TableQuestion: tables.compile_table,
    settings.ExportQuestion: settings.export,
    AuditQuestion: audit,
}


class WorkHere:
    """What was asked for, and how it is worked on: `run` may be replaced."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.run: Run | None = None
        self.gate = threading.Event()

    def waits(self, question: Any, report: Report) -> Any:
        """One step of two is done, and no more until the gate is open; then it fails."""
        end_s = time.monotonic() + GUARD_S
        while not self.gate.is_set():
            assert time.monotonic() < end_s, "waited in vain"
            report.steps(1, 2)
            time.sleep(0.02)
        raise MemoryLimitReached("too much of it")

    def here(self, question: Any, report: Report) -> Any:
        """Do the work."""
        return _FLOWS[type(question)](question, report.steps)

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand in for what workers run, also for clients; compilers give whole messages."""
        monkeypatch.setattr(solvers, "compile_table", whole_messages)

        def run(work: Any, report: Report) -> Any:
            self.asked.append(work.question)
            return (self.run or self.here)(work.question, report)

        for kind in (TableWork, ExportWork, Call):
            monkeypatch.setattr(kind, "run", run)
