"""A mover in Python logs when each of its stages had which fragment, for `sluice fit`.

    from sluice_client.trace import Trace
    with Trace("stages.csv", stages=("hash", "send")) as trace:
        with trace.message(number):
            with trace.stage("hash", len(data), fragment=i):
                ...
            async with trace.stage("send", len(data), fragment=i):
                await ...

Needs nothing but Python 3.9. Any number of threads and tasks may share a trace. The number of the
message is a context variable: tasks have that of the code that started them, a thread names it.

File      the project's direct CSV (docs/measurements.md), as sluice_trace.h of the C library
          writes it: a row a fragment, begins by time.monotonic_ns() from the first event on.
Busy      the thread's processor time is read where it is worth it: where the stage's last event in
          this thread took LONG_NS or more, else once a message, at most once in so long. It is -1
          over `async with`, and where an event loop runs in the thread.
Kept      a row is written when all stages had the fragment, or WAITING later ones have begun to be
          kept; rows are in the file after at most ROWS more or a second. What a killed process
          loses are these. A process that ends, or closes the trace, loses nothing.
Cost      some microseconds an event, no part of its time.
Traps     every pair of message and fragment is used once. A stage that raises has no event. In a
          forked child the trace is closed. Where the file cannot be written the mover goes on
          without being traced, and `close` raises.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import threading
import time
from asyncio import _get_running_loop
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from operator import index
from types import TracebackType
from typing import Any, TypeVar

MAX_NUMBER = 2**48
MAX_STAGES = 64
WAITING = 1024  # fragments that not every stage had yet
ROWS = 64
LONG_NS = 50_000
_FLUSH_NS = 10**9
_REMEMBERED = 2**14  # fragments of which a second event of a stage is recognised
_UNWRITTEN = ',"\n\r#'

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Key = tuple[int, int]
# Bytes, begin, duration, processor time of a stage's event, all but the first in ns.
_Event = tuple[int, int, int, int]
_message: ContextVar[int | None] = ContextVar("sluice_trace_message", default=None)


class Trace:
    """A file of events that is being written. Raises ValueError for names no file can have, OSError
    where it cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str], *, stages: Sequence[str]) -> None:
        _check_stages(stages)
        self._places = {name: place for place, name in enumerate(stages)}
        self._lock = threading.RLock()
        self._mine = _Mine(len(stages))
        self._origin_ns = -1
        self._waiting: OrderedDict[_Key, dict[int, _Event]] = OrderedDict()
        self._written: OrderedDict[_Key, int] = OrderedDict()  # a bit a stage
        self._repetitions: dict[int, int] = {}
        self._rows: list[str] = []
        self._flushed_ns = time.monotonic_ns()
        self._repeated = 0
        self._error: OSError | None = None
        self._file: Any | None = open(path, "wb", buffering=0)  # noqa: SIM115
        self._rows.append(_header(stages))
        _open_traces.add(self)

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def message(self, number: int) -> Iterator[None]:
        """Say inside of which message the fragments are."""
        token = _message.set(_number(number, "message"))
        try:
            yield
        finally:
            _message.reset(token)

    def stage(
        self, name: str, fragment_bytes: int, fragment: int, *, message: int | None = None
    ) -> Span:
        """Return a context manager that times a stage on a fragment, to be entered once.

        `with` for code of one thread, `async with` over `await`. Raises ValueError naming the
        parameter.
        """
        place = self._places.get(name, -1)
        if place < 0:
            raise ValueError(f"name: expected one of {', '.join(self._places)}")
        number = _message.get() if message is None else _number(message, "message")
        if number is None:
            raise ValueError(
                "message: expected its number, or a block `with trace.message(number)`"
            )
        size = index(fragment_bytes)
        if not 1 <= size <= MAX_NUMBER:
            raise ValueError(f"fragment_bytes: expected 1 to {MAX_NUMBER}")
        return Span(self, place, (number, _number(fragment, "fragment")), size)

    def staged(
        self,
        name: str,
        *,
        fragment_bytes: Callable[..., int],
        fragment: Callable[..., int],
        message: Callable[..., int] | None = None,
    ) -> Callable[[_Function], _Function]:
        """Return a decorator that times a function, or a coroutine function, as a stage.

        `fragment_bytes`, `fragment` and `message` are given its arguments. Raises TypeError for
        generators, which work while others iterate.
        """

        def span(args: tuple[Any, ...], named: dict[str, Any]) -> Span:
            number = None if message is None else message(*args, **named)
            size = fragment_bytes(*args, **named)
            return self.stage(name, size, fragment(*args, **named), message=number)

        def wrap(function: _Function) -> _Function:
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise TypeError("expected a function or a coroutine function, got a generator")
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def awaited(*args: Any, **named: Any) -> Any:
                    async with span(args, named):
                        return await function(*args, **named)

                return awaited  # type: ignore[return-value]

            @functools.wraps(function)
            def called(*args: Any, **named: Any) -> Any:
                with span(args, named):
                    return function(*args, **named)

            return called  # type: ignore[return-value]

        return wrap

    def flush(self) -> None:
        """Write the rows that are complete into the file. Raises OSError."""
        with self._lock:
            self._write()
            self._raise()

    def close(self) -> None:
        """Write all that was traced, and let the file go. Raises OSError where a write failed.

        Stages that end later leave no event.
        """
        with self._lock:
            if self._file is None:
                return
            while self._waiting:
                self._end_oldest()
            if self._repeated:
                said = "events are left out: their stage had the fragment before"
                self._rows.append(f"# {self._repeated} {said}\n")
            self._write()
            self._file.close()
            self._file = None
            _open_traces.discard(self)
            self._raise()

    def _begin_ns(self) -> int:
        """The clock; the first reading is what all begins count from."""
        if self._origin_ns < 0:
            with self._lock:
                if self._origin_ns < 0:
                    self._origin_ns = time.monotonic_ns()
                    return self._origin_ns
        return time.monotonic_ns()

    def _add(self, place: int, key: _Key, event: _Event) -> None:
        with self._lock:
            if self._file is None:
                return
            row = self._waiting.get(key)
            if row is None:
                row = self._waiting[key] = {}
                if len(self._waiting) > WAITING:
                    self._end_oldest()
            if place in row or self._written.get(key, 0) >> place & 1:
                self._repeated += 1
                if not row:
                    del self._waiting[key]
                return
            row[place] = event
            if len(row) == len(self._places):
                self._end(key, self._waiting.pop(key))
            if self._rows and event[1] + event[2] - self._flushed_ns > _FLUSH_NS:
                self._write()

    def _end_oldest(self) -> None:
        key, row = self._waiting.popitem(last=False)
        if row:
            self._end(key, row)

    def _end(self, key: _Key, row: dict[int, _Event]) -> None:
        """Make a row of the events of a fragment."""
        size, mask, origin = 0, self._written.get(key, 0), self._origin_ns
        times, begins = "", ""
        for place in self._places.values():
            event = row.get(place)
            if event is None:
                times += ","
                begins += ",,"
                continue
            fragment_bytes, begin_ns, duration_ns, busy_ns = event
            times += f",{duration_ns / 1000:.3f}"
            begins += f",{begin_ns - origin},{busy_ns}"
            mask |= 1 << place
            if fragment_bytes > size:
                size = fragment_bytes
        repetition = self._repetitions.get(size, 0)
        self._repetitions[size] = repetition + 1
        self._rows.append(f"{size},{repetition},{key[0]},{key[1]}{times}{begins}\n")
        self._written[key] = mask
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
        if len(self._rows) >= ROWS:
            self._write()

    def _write(self) -> None:
        rows, self._rows = "".join(self._rows).encode(), []
        self._flushed_ns = time.monotonic_ns()
        if self._file is None or self._error is not None:
            return
        try:
            while rows:
                rows = rows[self._file.write(rows) :]
        except OSError as failed:
            self._error = failed

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _leave(self) -> None:
        """Forget all in a forked child: its parent writes it."""
        self._lock = threading.RLock()
        self._file, self._waiting, self._rows = None, OrderedDict(), []


class _Mine(threading.local):
    """What a thread knows of each stage: whether processor time is due at its next event."""

    def __init__(self, stages: int) -> None:
        self.is_due = [True] * stages
        self.message = [-1] * stages
        self.read_ns = [0] * stages

    def ended(self, place: int, message: int, end_ns: int, duration_ns: int, busy_ns: int) -> None:
        """See to the next event of this stage."""
        if busy_ns >= 0:
            self.read_ns[place] = end_ns
        self.is_due[place] = duration_ns >= LONG_NS or (
            message != self.message[place] and end_ns - self.read_ns[place] >= LONG_NS
        )
        self.message[place] = message


class Span:
    """A stage at work on a fragment. Made by `Trace.stage`."""

    __slots__ = ("_begin_ns", "_busy_ns", "_key", "_place", "_size", "_trace")

    def __init__(self, trace: Trace, place: int, key: _Key, size: int) -> None:
        self._trace, self._place, self._key, self._size = trace, place, key, size
        self._begin_ns = self._busy_ns = -1

    def __enter__(self) -> Span:
        # A loop may run other tasks in this thread: what it computes is not this stage's.
        if self._trace._mine.is_due[self._place] and _get_running_loop() is None:
            self._busy_ns = time.thread_time_ns()
        self._begin_ns = self._trace._begin_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end_ns = time.monotonic_ns()
        busy_ns = -1 if self._busy_ns < 0 else time.thread_time_ns() - self._busy_ns
        if kind is None:
            trace, place, duration_ns = self._trace, self._place, end_ns - self._begin_ns
            trace._mine.ended(place, self._key[0], end_ns, duration_ns, busy_ns)
            trace._add(place, self._key, (self._size, self._begin_ns, duration_ns, busy_ns))

    async def __aenter__(self) -> Span:
        self._begin_ns = self._trace._begin_ns()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


def _number(number: int, name: str) -> int:
    value = index(number)
    if not 0 <= value <= MAX_NUMBER:
        raise ValueError(f"{name}: expected a number from 0 to {MAX_NUMBER}")
    return value


def _check_stages(stages: Sequence[str]) -> None:
    if isinstance(stages, str) or not 1 <= len(stages) <= MAX_STAGES:
        raise ValueError(f"stages: expected the names of 1 to {MAX_STAGES} stages")
    if len(set(stages)) < len(stages):
        raise ValueError("stages: expected a name of its own for every stage")
    for name in stages:
        if not 1 <= len(name) <= 100 or not name.isprintable() or name != name.strip():
            raise ValueError("stages: expected names of 1 to 100 characters")
        if name == "total" or any(letter in name for letter in _UNWRITTEN):
            raise ValueError(
                "stages: expected names without commas, quotes and #, none of them total"
            )


def _header(stages: Sequence[str]) -> str:
    times = "".join(f",{name}_us" for name in stages)
    begins = "".join(f",{name}_begin_ns,{name}_busy_ns" for name in stages)
    return (
        "# stage times of fragments, traced by the mover; clock: time.monotonic_ns\n"
        f"message_bytes,repetition,message,fragment{times}{begins}\n"
    )


_open_traces: set[Trace] = set()


def _close_all() -> None:
    for trace in list(_open_traces):
        trace.close()


def _leave_all() -> None:
    for trace in list(_open_traces):
        trace._leave()


# The set holds the traces, so that one that was dropped is written at the end too.
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
