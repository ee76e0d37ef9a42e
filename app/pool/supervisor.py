"""One thread that keeps one worker: gives it tasks, watches it, ends it, replaces it."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.pool.desk import Desk
from app.pool.endings import End, Outcome, concluded
from app.pool.frames import Frame, Kind
from app.pool.tickets import Ticket
from app.pool.worker import Worker
from domain.errors import SluiceError, SolverFailed
from domain.solution import Solution
from models.records import JobState

_log = logging.getLogger(__name__)

_WATCH_S = 0.025  # between looks at cancellation and memory
_CLOSE_WATCH_S = 0.005  # the same where more than half of the memory is used: it fills fast
_IDLE_S = 1.0  # between looks at a worker that waits
_START_LIMIT_S = 120.0
_START_PAUSE_S = (1.0, 60.0)  # first and longest pause between starts that fail
_ATTEMPTS = 3
_ALLOCATION_REFUSED = ("bad_alloc", "MemoryError", "Cannot allocate memory", "out of memory")


class _Lost(Exception):
    """The worker had ended before the task reached it; another one may do it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What every solve of an engine has to keep to."""

    memory_bytes: int
    grace_s: float


class Supervisor:
    """Runs until the desk closes; leaves no process behind."""

    def __init__(
        self, desk: Desk, rules: Rules, *, name: str, start_worker: Callable[[], Worker]
    ) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._desk = desk
        self._rules = rules
        self._start_worker = start_worker
        self._worker: Worker | None = None
        self._pause_s = 0.0
        self._start_at_s = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether there is a warm worker, busy or not."""
        return self._worker is not None

    def start(self) -> None:
        """Start the thread, which starts a worker."""
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            while not self._desk.closing:
                self._keep_worker_or_log()
                ticket = self._desk.take(_IDLE_S)
                if ticket is not None:
                    self._serve(ticket)
        finally:
            self._end_worker()

    def _keep_worker_or_log(self) -> None:
        try:
            self._keep_worker()
        except Exception:  # a defect of this engine must not cost its thread
            _log.exception("the engine failed to keep a worker")
            self._end_worker()

    # ---- a task ---------------------------------------------------------------------------------

    def _serve(self, ticket: Ticket) -> None:
        try:
            outcome = self._solve_somehow(ticket)
        except Exception:  # as above
            _log.exception("the engine failed on a solve")
            self._end_worker()
            outcome = Outcome(SolverFailed("the engine failed"), JobState.FAILED)
        self._desk.conclude(ticket, outcome.value, outcome.state)

    def _solve_somehow(self, ticket: Ticket) -> Outcome:
        pickled = pickle.dumps(ticket.task)
        for _ in range(_ATTEMPTS):
            worker = self._worker or self._started()
            if worker is None:
                break
            try:
                return self._solve(worker, ticket, pickled)
            except _Lost:
                self._end_worker()
        if self._desk.closing:
            return self._cut_off(ticket, End.CLOSE)
        return Outcome(SolverFailed("no process can be started to solve in"), JobState.FAILED)

    def _solve(self, worker: Worker, ticket: Ticket, pickled: bytes) -> Outcome:
        """Wait for the answer, or for a reason not to."""
        deadline_s = time.monotonic() + ticket.task.time_limit_s + self._rules.grace_s
        try:
            worker.send_task(pickled)
        except OSError:
            raise _Lost from None
        look_s, arrived = time.monotonic() + _WATCH_S, False
        while True:
            for frame in worker.frames(min(look_s, deadline_s) - time.monotonic()):
                arrived = True
                if frame.kind is Kind.INCUMBENT:
                    ticket.incumbent = frame.payload
                elif frame.kind in (Kind.SOLUTION, Kind.ERROR):
                    return self._answered(worker, frame)
                elif frame.kind is Kind.OUT_OF_MEMORY:
                    return self._cut_off(ticket, End.MEMORY)
            if worker.ended is not None:
                if not arrived:
                    raise _Lost
                return self._crashed(worker, ticket)
            now_s = time.monotonic()
            if now_s >= deadline_s:
                return self._cut_off(ticket, End.TIME)
            if now_s < look_s:
                continue
            memory_share = worker.memory_share()
            pause_s = _WATCH_S if memory_share < 0.5 else _CLOSE_WATCH_S
            look_s = time.monotonic() + pause_s  # from now: the look itself may have taken long
            end = self._reason_to_end(ticket, memory_share=memory_share)
            if end is not None:
                return self._cut_off(ticket, end)

    def _reason_to_end(self, ticket: Ticket, *, memory_share: float) -> End | None:
        if self._desk.closing:
            return End.CLOSE
        if ticket.cancel_requested:
            return End.CANCEL
        return End.MEMORY if memory_share > 1.0 else None

    def _answered(self, worker: Worker, frame: Frame) -> Outcome:
        if not worker.settle():
            self._end_worker()
        value: Solution | SluiceError = pickle.loads(frame.payload)
        return Outcome(value, JobState.DONE if isinstance(value, Solution) else JobState.FAILED)

    def _crashed(self, worker: Worker, ticket: Ticket) -> Outcome:
        _log.warning("a solver ended during a solve: %s\n%s", worker.ended, worker.tail)
        refused = any(sign in worker.tail for sign in _ALLOCATION_REFUSED)
        return self._cut_off(ticket, End.MEMORY if refused else End.CRASH)

    def _cut_off(self, ticket: Ticket, end: End) -> Outcome:
        how = "" if self._worker is None else self._worker.ended or ""
        self._end_worker()
        return concluded(ticket, end, memory_bytes=self._rules.memory_bytes, how=how)

    # ---- the worker -----------------------------------------------------------------------------

    def _keep_worker(self) -> None:
        """Have a live, warm worker; where none can be started, try again less and less often."""
        if self._worker is not None:
            self._worker.frames(0.0)
            if self._worker.ended is None:
                return
            _log.warning("a waiting solver ended: %s\n%s", self._worker.ended, self._worker.tail)
            self._end_worker()
        if time.monotonic() >= self._start_at_s:
            self._started()

    def _started(self) -> Worker | None:
        """Start a worker now; None where that fails, or the desk closes meanwhile."""
        self._worker = self._start()
        if self._worker is None:
            first_s, longest_s = _START_PAUSE_S
            self._pause_s = min(longest_s, max(first_s, 2 * self._pause_s))
            self._start_at_s = time.monotonic() + self._pause_s
        else:
            self._pause_s = self._start_at_s = 0.0
        return self._worker

    def _start(self) -> Worker | None:
        try:
            worker = self._start_worker()
        except OSError as error:
            _log.error("cannot start a solver: %s", error)
            return None
        limit_s = time.monotonic() + _START_LIMIT_S
        while worker.ended is None and time.monotonic() < limit_s and not self._desk.closing:
            if any(frame.kind is Kind.READY for frame in worker.frames(_WATCH_S)):
                return worker
        if not self._desk.closing:
            _log.error("a solver did not start: %s\n%s", worker.ended, worker.tail)
        worker.stop()
        return None

    def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()
