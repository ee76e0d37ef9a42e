"""Long work in threads of the test's own process, where a worker's start would take most of the
time; what is computed there can be replaced.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from app.execution.engine import Capacity, Engine, Pool, Sink, Task
from app.settings import Settings
from tests.support.engines import local_engine
from tests.support.in_process_engine import InProcessEngine

GUARD_S = 60.0
SLOTS = 2


class LongHere:
    """An engine of two: solves go to another one, all else runs in this process."""

    def __init__(self, solving: Engine, here: Engine) -> None:
        self._engines = {Pool.SOLVE: solving, Pool.READ: here, Pool.LONG: here}

    def submit(self, task: Task, sink: Sink) -> None:
        self._engines[task.pool].submit(task, sink)

    def cancel(self, task_id: str, claim: int) -> None:
        for engine in self._engines.values():
            engine.cancel(task_id, claim)

    def capacity(self, pool: Pool) -> Capacity:
        return self._engines[pool].capacity(pool)

    def close(self, *, drain_s: float = 0.0) -> None:
        for engine in self._engines.values():
            engine.close(drain_s=drain_s)


def long_here_engine(settings: Settings, **limits: int) -> Engine:
    """The local engine for solves; `limits` are of what waits for the rest."""
    return LongHere(local_engine(settings), InProcessEngine(SLOTS, **limits))


def note_questions(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[Any]:
    """The questions that are put to a function of this module from now on."""
    questions: list[Any] = []
    run = getattr(module, name)

    def noted(question: Any, *reports: Any) -> Any:
        questions.append(question)
        return run(question, *reports)

    monkeypatch.setattr(module, name, noted)
    return questions


class GatedRun:
    """In place of a `run`: goes on until it is let go, or ended from outside."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.started = 0
        self.running = 0
        self._lock = threading.Lock()

    def run(self, work: Any, report: Any) -> Any:
        """One step of two is done, and no more."""
        with self._counted():
            end_s = time.monotonic() + GUARD_S
            while not self.gate.is_set():
                assert time.monotonic() < end_s, "waited in vain"
                report.steps(1, 2)
                time.sleep(0.02)
        raise AssertionError("nobody let it go on to a result")

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self.started += 1
            self.running += 1
        try:
            yield
        finally:
            with self._lock:
                self.running -= 1

    def as_method(self) -> Callable[[Any, Any], Any]:
        """To be set as a class's `run`."""
        return lambda work, report: self.run(work, report)
