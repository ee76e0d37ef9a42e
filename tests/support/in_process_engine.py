"""An engine of threads, for tests that need no processes.

What it runs can be ended between its reports alone, and may do anything to this process.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.execution.engine import (
    Best,
    Capacity,
    Crashed,
    Done,
    End,
    FairQueue,
    Limit,
    LimitExceeded,
    Pool,
    Refused,
    Sink,
    Started,
    Steps,
    Stopped,
    Task,
)
from app.execution.slot import SubmittedTask
from domain.errors import NotReady, Overloaded, SluiceError, SolverFailed

JOIN_LIMIT_S = 30.0


class _Ended(BaseException):
    """Raised in an operation that has to end; no `except Exception` of it catches this."""

    def __init__(self, end: End) -> None:
        super().__init__(end)
        self.end = end


@dataclass(frozen=True, slots=True)
class _Report:
    """Passes on what an operation reports, and ends it where it has to."""

    running: SubmittedTask
    closing: threading.Event
    started_s: float = field(default_factory=time.monotonic)

    @property
    def files(self) -> Sequence[int]:
        return self.running.files

    def steps(self, done: int, total: int) -> None:
        self.running.send(Steps(done, total))
        self.check()

    def best(self, result: object) -> None:
        self.running.send(Best(pickle.dumps(result, pickle.HIGHEST_PROTOCOL)))
        self.check()

    def check(self) -> None:
        """Raise where the operation has to end."""
        if self.closing.is_set():
            raise _Ended(Stopped(is_closing=True))
        if self.running.is_cancelled:
            raise _Ended(Stopped())
        if time.monotonic() > self.started_s + self.running.task.limits.time_s:
            raise _Ended(LimitExceeded(Limit.TIME))


class InProcessEngine:
    """Keeps the `Engine` protocol, but for what takes a process; all pools share its slots."""

    def __init__(
        self, slots: int = 1, *, max_waiting: int = 1000, max_of_requester: int = 1000
    ) -> None:
        self._changed = threading.Condition()
        self._queue: FairQueue[SubmittedTask] = FairQueue(
            max_waiting=max_waiting, max_of_requester=max_of_requester
        )
        self._known: dict[tuple[str, int], SubmittedTask] = {}
        self._slots = slots
        self._busy = 0
        self._is_closed = False
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(slots)]
        for thread in self._threads:
            thread.start()

    def submit(self, task: Task, sink: Sink) -> None:
        with self._changed:
            if self._is_closed:
                raise NotReady("the service is stopping")
            if (task.id, task.claim) in self._known:
                return
            running = SubmittedTask.of(task, sink)
            try:
                if self._queue.add(running, requester=task.requester) is not None:
                    raise Overloaded("too many tasks of this client are waiting")
            except Overloaded:
                running.close_files()
                raise
            self._known[running.key] = running
            self._changed.notify()

    def cancel(self, task_id: str, claim: int) -> None:
        running = self._known.get((task_id, claim))
        if running is not None:
            running.cancel()
            if self._queue.remove(running, requester=running.task.requester):
                threading.Thread(target=running.end, args=(Stopped(),)).start()

    def capacity(self, pool: Pool) -> Capacity:
        left = pool is Pool.LONG and self._slots > 1  # to clients, as a service does
        slots = self._slots
        return Capacity(slots, self._busy, ready=slots, for_jobs=slots - left, for_each=slots)

    def close(self, *, drain_s: float = 0.0) -> None:
        with self._changed:
            self._is_closed = True
            waiting = self._queue.drain()
            self._changed.notify_all()
        for running in waiting:
            running.end(Stopped(is_closing=True))
        until_s = time.monotonic() + drain_s
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        self._closing.set()
        for thread in self._threads:
            thread.join(JOIN_LIMIT_S)

    def _run(self) -> None:
        while (running := self._next()) is not None:
            running.send(Started(f"{os.getpid()}"))
            running.end(_end_of(running, self._closing))
            with self._changed:
                self._busy -= 1

    def _next(self) -> SubmittedTask | None:
        with self._changed:
            while (running := self._queue.take()) is None:
                if self._is_closed:
                    return None
                self._changed.wait()
            self._busy += 1
            return running


def _end_of(running: SubmittedTask, closing: threading.Event) -> End:
    report = _Report(running, closing)
    try:
        report.check()
        result = pickle.loads(running.task.work).run(report)
        payload = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except _Ended as ended:
        return ended.end
    except SluiceError as error:
        return Refused(pickle.dumps(error))
    except Exception as error:
        failure = SolverFailed(f"the operation raised {type(error).__name__}")
        return Refused(pickle.dumps(failure))
    except BaseException as error:
        return Crashed(f"it raised {type(error).__name__}")
    if len(payload) > running.task.limits.result_bytes:
        return LimitExceeded(Limit.RESULT)
    return Done(payload)
