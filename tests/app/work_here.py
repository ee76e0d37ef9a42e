"""Compilations, exports and audits of jobs in the test's own process, or waiting to be let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import solvers
from analysis import audit as auditing
from app import export_desk, job_work, table_desk
from app.apart import Apart, Watch, unwatched
from app.flows import build_table, export_setting
from app.progress_file import Steps
from domain.errors import MemoryLimitReached
from tests.app.apart_tasks import Do
from tests.app.serving import GUARD_S, MIB
from tests.support.plan_tables import whole_messages

Run = Callable[[Any, Watch], Any]

_FLOWS: dict[type, Callable[..., Any]] = {
    build_table.TableQuestion: build_table.compile_table,
    export_setting.ExportQuestion: export_setting.export,
    auditing.AuditQuestion: auditing.audit,
}


class WorkHere:
    """What was asked for, and how it is worked on: `run` may be replaced."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.run: Run | None = None
        self.gate = threading.Event()

    def waits(self, question: Any, watch: Watch) -> Any:
        """One step of two is done, and no more until the gate is open; then it fails."""
        end_s = time.monotonic() + GUARD_S
        while not self.gate.is_set():
            assert time.monotonic() < end_s, "waited in vain"
            watch(Steps(1, 2))
            time.sleep(0.02)
        raise MemoryLimitReached("too much of it")

    def here(self, question: Any, watch: Watch) -> Any:
        """Do the work."""
        return _FLOWS[type(question)](question, lambda done, total: watch(Steps(done, total)))

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand in for processes, of clients that wait too; compilers give whole messages."""
        monkeypatch.setattr(solvers, "compile_table", whole_messages)
        child = self._child()
        for name in ("TableApart", "ExportApart", "AuditApart"):
            monkeypatch.setattr(job_work, name, child)
        monkeypatch.setattr(table_desk, "TableApart", child)
        monkeypatch.setattr(export_desk, "ExportApart", child)

    def _child(self) -> type:
        work = self

        class Child:
            def __init__(self, question: Any, *, memory_bytes: int) -> None:
                assert memory_bytes > 0
                self.question = question

            def run(self, watch: Watch = unwatched) -> Any:
                work.asked.append(self.question)
                return (work.run or work.here)(self.question, watch)

            def cancel(self) -> None:
                """Nothing to end."""

        return Child


class Refused:
    """In place of a process: work that fails at once."""

    def __init__(self, question: object, *, memory_bytes: int) -> None:
        assert memory_bytes > 0

    def run(self, watch: Watch = unwatched) -> object:
        """Fail."""
        raise MemoryLimitReached("too much of it")


def asleep(question: object, *, memory_bytes: int) -> Apart[object]:
    """In place of a compilation: a process that is there, says how far it is, and sleeps."""
    return Apart(Do("begin"), memory_bytes=512 * MIB)
