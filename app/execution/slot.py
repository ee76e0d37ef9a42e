"""A slot, which runs one task at a time: one thread that keeps one worker."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeAlias

from app.execution.child import WorkerOptions
from app.execution.engine import (
    Best,
    Crashed,
    Done,
    End,
    Event,
    Limit,
    LimitExceeded,
    Refused,
    Sink,
    Started,
    Steps,
    Stopped,
    Task,
)
from app.execution.operation_process import STEPS, BadFrame, Frame, Kind, TaskFrame
from app.execution.worker import ForkServer, Worker

_log = logging.getLogger(__name__)


def _nobody() -> None:
    """Do nothing: no slot runs the task yet, and the one that begins it will look."""


@dataclass(eq=False, slots=True)
class SubmittedTask:
    """A task from its submission to its end. `files` are its own duplicates.

    `wake` is set by the slot that runs it, which then looks whether it was cancelled.
    Its events and its end are sent by one thread at a time: that of the slot which it was given
    to, or of the engine where it never got to one.
    """

    task: Task
    sink: Sink
    files: tuple[int, ...] = ()
    wake: Callable[[], None] = _nobody
    is_cancelled: bool = field(default=False, init=False)
    has_ended: bool = field(default=False, init=False)

    @classmethod
    def of(cls, task: Task, sink: Sink) -> SubmittedTask:
        """Take a task, with duplicates of its files. Raises OSError where one is not open."""
        return cls(task, sink, _duplicates(task.files))

    @property
    def key(self) -> tuple[str, int]:
        """What the engine knows it by."""
        return self.task.id, self.task.claim

    def cancel(self) -> None:
        """Have it end soon; the thread that runs it reports its end."""
        self.is_cancelled = True
        self.wake()

    def send(self, event: Event) -> None:
        """Report an event to the listener."""
        if not self.has_ended:
            self._call(event)

    def end(self, end: End) -> None:
        """Report how it ended. Only the first end counts."""
        if self.has_ended:
            return
        self.has_ended = True
        self.close_files()
        self._call(end)

    def close_files(self) -> None:
        """Close its duplicates."""
        files, self.files = self.files, ()
        for file in files:
            os.close(file)

    def _call(self, message: Event | End) -> None:
        try:
            self.sink(message)
        except Exception:  # a defect of a listener must not cost the engine its thread
            _log.exception("a task's sink failed at %s", type(message).__name__)


def _duplicates(files: tuple[int, ...]) -> tuple[int, ...]:
    made: list[int] = []
    try:
        made.extend(map(os.dup, files))
    except OSError:
        for file in made:
            os.close(file)
        raise
    return tuple(made)


# --- the slot -------------------------------------------------------------------------------------


_LOOK_S = 0.025  # between looks at a worker that starts
_MEMORY_LOOK_S = (0.005, 0.1)  # between looks at memory, for what it could fill meanwhile
_FILL_BYTES_PER_S = 4 * 2**30
_IDLE_S = 1.0  # between looks at a worker that waits
LONG_IDLE_S = 60.0  # a worker on demand that had no task for this time is ended
_START_LIMIT_S = 120.0
_ARRIVE_LIMIT_S = 20.0  # for a task to be taken by a warm worker
_START_PAUSE_S = (1.0, 60.0)  # first and longest pause between starts that fail
_ATTEMPTS = 3
_ALLOCATION_REFUSED = ("bad_alloc", "MemoryError", "Cannot allocate memory", "out of memory")
_HOST = socket.gethostname()


class _Stale(Exception):
    """The worker had ended before the task reached it; another one may do it."""


@dataclass(frozen=True, slots=True)
class SlotOptions:
    """How a slot keeps its worker.

    A worker is always there where `is_always_warm`; else it is started for a task, and ended when
    it had none for `idle_s`.
    """

    worker: WorkerOptions = field(default_factory=WorkerOptions)
    is_always_warm: bool = True
    idle_s: float = LONG_IDLE_S


class AnySlot(ABC):
    """Runs one task at a time. `on_idle` is called each time that it may be given one."""

    def __init__(self, on_idle: OnIdle) -> None:
        self._on_idle = on_idle
        self._closing = threading.Event()
        self.deaths: Counter[str] = Counter()  # of worker processes, by why

    @property
    def is_ready(self) -> bool:
        """Whether a task would begin at once."""
        return True

    @abstractmethod
    def start(self) -> None:
        """Begin to take tasks, and keep a worker where one has to be warm."""

    @abstractmethod
    def give(self, running: SubmittedTask) -> None:
        """Run a task."""

    def end(self) -> None:
        """Cut off what runs, and take no more."""
        self._closing.set()
        self._wake_up()

    @abstractmethod
    def join(self, timeout: float | None = None) -> None:
        """Wait for its thread, where it has one."""

    @abstractmethod
    def _wake_up(self) -> None:
        """Have what runs look whether it has to stop."""

    def _reason_to_stop(self, running: SubmittedTask) -> Stopped | None:
        if self._closing.is_set():
            return Stopped(is_closing=True)
        return Stopped() if running.is_cancelled else None

    def _report(self, running: SubmittedTask, end: End) -> None:
        """Say how a task has ended, and count where a worker process has with it."""
        if isinstance(end, Crashed):
            self.deaths["crash"] += 1
        elif isinstance(end, LimitExceeded) and end.limit is not Limit.RESULT:
            self.deaths[end.limit.value] += 1
        running.end(end)


OnIdle: TypeAlias = Callable[[AnySlot, SubmittedTask | None], None]


class Slot(threading.Thread, AnySlot):
    """A thread that runs tasks in a worker process until `end`, and leaves none behind."""

    def __init__(
        self, options: SlotOptions, fork_server: ForkServer, *, name: str, on_idle: OnIdle
    ) -> None:
        threading.Thread.__init__(self, name=name, daemon=True)
        AnySlot.__init__(self, on_idle)
        self._inbox: queue.SimpleQueue[SubmittedTask | None] = queue.SimpleQueue()
        self._options = options
        self._fork_server = fork_server
        self._wake, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._worker: Worker | None = None
        self._pause_s = 0.0
        self._start_at_s = 0.0
        self._used_s = time.monotonic()

    @property
    def is_ready(self) -> bool:
        """Whether there is a warm worker, busy or not."""
        return self._worker is not None

    def give(self, running: SubmittedTask) -> None:
        """Run a task."""
        self._inbox.put(running)

    def run(self) -> None:
        """Keep a worker, and have it run what is given: what the thread does."""
        try:
            if self._options.is_always_warm:
                self._keep_worker()
            self._on_idle(self, None)
            while not self._closing.is_set():
                try:
                    running = self._inbox.get(timeout=self._until_look_s())
                except queue.Empty:
                    self._keep_worker()
                    continue
                if running is not None:
                    self._serve(running)
        finally:
            self._end_worker()
            self._wake.close()
            self._waker.close()

    def _until_look_s(self) -> float | None:
        """Return how long the slot may sleep: no time at all where a worker is missing."""
        if self._worker is not None:
            return _IDLE_S
        if not self._options.is_always_warm:
            return None
        return min(_IDLE_S, max(0.0, self._start_at_s - time.monotonic()))

    def end(self) -> None:
        """Cut off what runs, and let the thread end."""
        super().end()
        self._inbox.put(None)

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):  # awake anyway, or ended
            self._waker.send(b"\0")

    # --- a task -----------------------------------------------------------------------------------

    def _serve(self, running: SubmittedTask) -> None:
        try:
            end = self._run_somehow(running)
        except Exception:  # a defect of this engine must not cost its thread
            _log.exception("the engine failed on a task")
            self._end_worker()
            end = Crashed("the engine failed")
        self._report(running, end)
        self._clean_up()
        self._used_s = time.monotonic()
        self._on_idle(self, running)

    def _run_somehow(self, running: SubmittedTask) -> End:
        running.wake = self._wake_up
        for _ in range(_ATTEMPTS):
            if (stop := self._reason_to_stop(running)) is not None:
                return stop
            worker = self._worker or self._begun_worker(
                lambda: self._reason_to_stop(running) is not None
            )
            if worker is None:
                break
            try:
                return self._run_in(worker, running)
            except _Stale:
                self.deaths["idle"] += 1
                self._end_worker()
        return self._reason_to_stop(running) or Crashed("no worker process could be started")

    def _run_in(self, worker: Worker, running: SubmittedTask) -> End:
        """Wait for the end, or for a reason not to."""
        limits = running.task.limits
        try:
            worker.send(
                TaskFrame(
                    limits.memory_bytes, limits.result_bytes, running.task.work, running.files
                )
            )
        except OSError:
            raise _Stale from None
        deadline_s, has_started = time.monotonic() + _ARRIVE_LIMIT_S, False
        look_s = time.monotonic() + _MEMORY_LOOK_S[0]
        while True:
            try:
                frames = worker.frames(min(look_s, deadline_s) - time.monotonic())
            except BadFrame as bad:
                _log.warning("a worker sent a bad frame in a task: %s\n%s", bad, worker.tail)
                return self._cut_off(Crashed("it wrote into its channel"))
            if frames and not has_started:
                has_started = True
                deadline_s = time.monotonic() + limits.time_s
                running.send(Started(f"{_HOST}:{worker.pid}"))
            end = _read(frames, running)
            if any(frame.kind is Kind.FAILED for frame in frames):
                _log.warning("an operation raised what it must not:\n%s", worker.tail)
            if end is not None:
                return end if isinstance(end, Done | Refused) else self._cut_off(end)
            if worker.ended is not None:
                if not has_started:
                    raise _Stale
                return self._crashed(worker)
            stop = self._reason_to_stop(running)
            if stop is not None:
                return self._cut_off(stop)
            now_s = time.monotonic()
            if now_s >= deadline_s:
                if not has_started:
                    raise _Stale
                return self._cut_off(LimitExceeded(Limit.TIME))
            if now_s < look_s:
                continue
            free_bytes = worker.free_bytes()
            if free_bytes < 0:
                return self._cut_off(LimitExceeded(Limit.MEMORY))
            shortest_s, longest_s = _MEMORY_LOOK_S
            pause_s = min(longest_s, max(shortest_s, free_bytes / _FILL_BYTES_PER_S))
            look_s = time.monotonic() + pause_s  # from now: the look itself may have taken long

    def _crashed(self, worker: Worker) -> End:
        _log.warning("a worker process ended in a task: %s\n%s", worker.ended, worker.tail)
        if any(sign in worker.tail for sign in _ALLOCATION_REFUSED):
            return self._cut_off(LimitExceeded(Limit.MEMORY))
        return self._cut_off(Crashed(worker.ended or "nothing is known of why"))

    def _cut_off(self, end: End) -> End:
        self._end_worker()
        return end

    # --- the worker -------------------------------------------------------------------------------

    def _keep_worker(self) -> None:
        """Replace a worker that has ended; where none can be started, try less and less often."""
        try:
            worker = self._worker
            if worker is not None:
                worker.frames(0.0)
                if worker.ended is not None:
                    _log.warning("a waiting worker ended: %s\n%s", worker.ended, worker.tail)
                    self.deaths["idle"] += 1
                    self._end_worker()
            if self._options.is_always_warm:
                if self._worker is None and time.monotonic() >= self._start_at_s:
                    self._begun_worker(self._closing.is_set)
            elif time.monotonic() >= self._used_s + self._options.idle_s:
                self._end_worker()
        except Exception:  # as in a task
            _log.exception("the engine failed to keep a worker")
            self._end_worker()

    def _begun_worker(self, has_to_stop: Callable[[], bool]) -> Worker | None:
        """Start a worker now; None where that fails, or has to stop meanwhile."""
        self._worker = self._start(has_to_stop)
        if self._worker is not None:
            self._pause_s = self._start_at_s = 0.0
        elif not has_to_stop():
            first_s, longest_s = _START_PAUSE_S
            self._pause_s = min(longest_s, max(first_s, 2 * self._pause_s))
            self._start_at_s = time.monotonic() + self._pause_s
        return self._worker

    def _start(self, has_to_stop: Callable[[], bool]) -> Worker | None:
        try:
            worker = Worker(self._options.worker, self._fork_server)
        except OSError as error:
            _log.error("cannot start a worker process: %s", error)
            return None
        worker.watch(self._wake)
        limit_s = time.monotonic() + _START_LIMIT_S
        while worker.ended is None and time.monotonic() < limit_s and not has_to_stop():
            if any(frame.kind is Kind.READY for frame in worker.frames(_LOOK_S)):
                return worker
        if not has_to_stop():
            _log.error("a worker process did not start: %s\n%s", worker.ended, worker.tail)
            if worker.ended is None:
                self._fork_server.close(hangs=True)  # it may hang in a warm-up
        worker.stop()
        return None

    def _clean_up(self) -> None:
        if self._worker is not None and not self._worker.clean_up():
            self._end_worker()

    def _end_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()


def _read(frames: list[Frame], running: SubmittedTask) -> End | None:
    """Pass events on; return the end, where it is among these frames.

    Of steps that have arrived together the last ones are passed on.
    """
    for frame, following in zip_longest(frames, frames[1:]):
        if frame.kind is Kind.STEPS:
            if following is None or following.kind is not Kind.STEPS:
                running.send(Steps(*STEPS.unpack(frame.payload)))
        elif frame.kind is Kind.BEST:
            running.send(Best(frame.payload))
        elif frame.kind is not Kind.STARTED:
            return _end(frame)
    return None


def _end(frame: Frame) -> End:
    if frame.kind is Kind.RESULT:
        return Done(frame.payload)
    if frame.kind in (Kind.REFUSED, Kind.FAILED):
        return Refused(frame.payload)
    if frame.kind is Kind.OUT_OF_MEMORY:
        return LimitExceeded(Limit.MEMORY)
    if frame.kind is Kind.RESULT_TOO_LONG:
        return LimitExceeded(Limit.RESULT)
    return Crashed(f"it sent a frame {frame.kind.name}")
