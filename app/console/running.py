"""Operations of the command line: quick ones here, others in a guarded worker process.

The worker has the memory cap of the service's workers and normal priority, since somebody waits for
it. Ctrl-C ends it and takes the best result so far, or has it finish with what it has; a second one
then ends it.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeAlias, TypeVar

from app.execution.engine import Best, Event, Pool, Started, Steps, Stopped
from app.text.numbers import format_gap
from app.text.units import format_proven
from app.ui.terminal import Screen
from domain.solution import Solution

if TYPE_CHECKING:
    from app.execution.engine import End, Engine, Task
    from app.execution.local import PoolOptions
    from app.operations.operation import Operation
    from app.settings import Settings


_LOOK_S = 0.1
_ENDS = (signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")
Show: TypeAlias = Callable[[Event | None, float], None]
OpenEngine: TypeAlias = "Callable[[], Engine]"


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end what runs meanwhile as Ctrl-C does, so that its temporary files
    go. What is ignored, as nohup has it, stays so; other threads than the main one have no signals.
    """
    is_main = threading.current_thread() is threading.main_thread()
    ends = [one for one in _ENDS if is_main and signal.getsignal(one) is signal.SIG_DFL]
    for number in ends:
        signal.signal(number, _as_interrupt)
    try:
        yield
    finally:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)


def _as_interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


@dataclass(frozen=True, slots=True)
class OperationRun(Generic[T]):
    """A result, and whether Ctrl-C ended the search for a better one."""

    result: T
    is_interrupted: bool = False


def run_operation(
    operation: Operation[T],
    settings: Settings,
    show: Show | None = None,
    *,
    open_engine: OpenEngine | None = None,
    finish: Callable[[], object] | None = None,
) -> OperationRun[T]:
    """Compute the result of an operation.

    `show` is given each event, or None ten times a second, and the seconds since the start.
    `finish` tells the operation that time is up: it is called at the first Ctrl-C, in place of
    ending it. Raises what the operation raises; LimitReached, SolverFailed, or Cancelled after
    Ctrl-C, where it ended without any result.
    """
    found = operation.run_here()
    if found is not None:
        return OperationRun(found)
    with _opened(open_engine or open_local_engine) as engine:
        return _run(engine, operation, settings, show, finish)


def _run(
    engine: Engine,
    operation: Operation[T],
    settings: Settings,
    show: Show | None,
    finish: Callable[[], object] | None,
) -> OperationRun[T]:
    from app.operations.tasks import result_of, task_of

    task = task_of(operation, id="1", memory_bytes=settings.worker_memory)
    heard = _Inbox(engine, task, show)
    is_finished = is_interrupted = False
    end: End | None = None
    while end is None:
        try:
            end = heard.until_end()
        except KeyboardInterrupt:
            if finish is not None and not is_finished:
                is_finished = True
                finish()
                continue
            is_interrupted = True
            engine.cancel(task.id, task.claim)
            heard.show = None
    result = result_of(operation, end, best=heard.best, limits=task.limits)
    return OperationRun(result, is_finished or (is_interrupted and isinstance(end, Stopped)))


def run_or_end(
    made: Callable[[int], Operation[T]], settings: Settings, show: Show | None = None
) -> OperationRun[T]:
    """Compute the result of an operation that Ctrl-C tells to finish with what it has.

    It is made with the end of a pipe: once there is something in it, time is up.
    """
    reading, writing = os.pipe()
    try:
        return run_operation(made(reading), settings, show, finish=lambda: os.write(writing, b"."))
    finally:
        os.close(reading)
        os.close(writing)


class _Inbox:
    """What a task reports, received in this thread."""

    def __init__(self, engine: Engine, task: Task, show: Show | None) -> None:
        self.best: bytes | None = None
        self.show = show
        self._messages: queue.SimpleQueue[Event | End] = queue.SimpleQueue()
        self._started_s = time.perf_counter()
        engine.submit(task, self._messages.put)

    def until_end(self) -> End:
        """Show events until the task ends."""
        while True:
            try:
                message = self._messages.get(timeout=_LOOK_S)
            except queue.Empty:
                self._show(None)
                continue
            if not isinstance(message, Started | Steps | Best):
                return message
            if isinstance(message, Best):
                self.best = message.result
            self._show(message)

    def _show(self, event: Event | None) -> None:
        if self.show is not None:
            self.show(event, time.perf_counter() - self._started_s)


def open_local_engine() -> Engine:
    from app.execution.local import LocalEngine

    return LocalEngine(console_pools())


def console_pools(workers: int = 1) -> Mapping[Pool, PoolOptions]:
    """Return the pools of a command: on demand, at normal priority, since somebody waits for it."""
    from app.execution.child import WorkerOptions
    from app.execution.local import PoolOptions
    from app.execution.slot import SlotOptions

    slot = SlotOptions(WorkerOptions(niceness=0), is_always_warm=False)
    return dict.fromkeys(Pool, PoolOptions(workers, slot))


@contextmanager
def _opened(open_engine: Callable[[], Any]) -> Iterator[Any]:
    engine = open_engine()
    try:
        yield engine
    finally:
        engine.close()


# --- progress on standard error, where a person looks ---------------------------------------------


_QUIET_S = 0.5  # what ends sooner needs no progress
_CLEAR = "\r\x1b[K"


@contextmanager
def solving_line(screen: Screen) -> Iterator[Show]:
    """Show a line with the best so far and the seconds since the start; it is erased after."""
    with erased_line(screen) as show:
        best: Solution | None = None

        def show_event(event: Event | None, elapsed_s: float) -> None:
            nonlocal best
            if isinstance(event, Best) and screen.is_terminal:
                best = pickle.loads(event.result).solution
            if elapsed_s >= _QUIET_S:
                show(f"{elapsed_s:.1f} s  {format_solving(best)}")

        yield show_event


def counting_line(screen: Screen, done_text: str = "solved") -> AbstractContextManager[Show]:
    """Show a line with how many steps of how many are done; it is erased after."""
    return _line(screen, "working", lambda steps: f"{steps.done} of {steps.total} {done_text}")


def share_line(screen: Screen, doing: str) -> AbstractContextManager[Show]:
    """Show a line with the share that is done; it is erased after."""
    return _line(screen, doing, lambda steps: f"{doing}: {steps.done / steps.total:.0%}")


def working_line(screen: Screen, doing: str) -> AbstractContextManager[Show]:
    """Show a line with the seconds since the start, of what tells no more; it is erased after."""
    return _line(screen, doing, lambda _: doing)


@contextmanager
def _line(screen: Screen, begun: str, said_of: Callable[[Steps], str]) -> Iterator[Show]:
    with erased_line(screen) as show:
        said = begun

        def show_event(event: Event | None, elapsed_s: float) -> None:
            nonlocal said
            if isinstance(event, Steps):
                said = said_of(event)
            if elapsed_s >= _QUIET_S:
                show(f"{elapsed_s:.1f} s  {said}")

        yield show_event


@contextmanager
def ticking_line(screen: Screen, doing: str) -> Iterator[None]:
    """Show that line while this process works itself; nothing else may be printed meanwhile."""
    if not screen.is_terminal:
        yield
        return
    ended, started_s = threading.Event(), time.perf_counter()
    with working_line(screen, doing) as show:

        def tick() -> None:
            while True:
                show(None, time.perf_counter() - started_s)
                if ended.wait(_LOOK_S):
                    return

        ticking = threading.Thread(target=tick, daemon=True)
        ticking.start()
        try:
            yield
        finally:
            ended.set()
            ticking.join()


def format_solving(best: Solution | None) -> str:
    """Return the best so far, the bound and what may be missing, in words."""
    if best is None:
        return "solving; no answer yet"
    latency, bound = format_proven(best.latency_us, best.lower_bound_us)
    return f"best {latency}  bound {bound}  gap {format_gap(best.relative_gap)}"


@contextmanager
def erased_line(screen: Screen) -> Iterator[Callable[[str], None]]:
    stream = screen.stream
    if not screen.is_terminal:
        yield lambda text: None
        return

    def show(text: str) -> None:
        stream.write(_CLEAR + screen.words(text)[: screen.width - 1])
        stream.flush()

    try:
        yield show
    finally:
        stream.write(_CLEAR)
        stream.flush()
