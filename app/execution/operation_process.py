"""The operation process's side of the channel: warm up, then one task after the other."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pickle
import resource
import socket
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from app.execution.frames import (
    Frame,
    Kind,
    TaskFrame,
    pack_steps,
    receive_task,
    send,
)
from domain.errors import SluiceError, SolverFailed

Runner: TypeAlias = "Callable[[bytes, ChannelReport], object]"

_MIN_FREE_BYTES = 64 * 2**20


def run_operation(work: bytes, report: ChannelReport) -> object:
    """Run a pickled operation and return its result. Raises what it raises."""
    return pickle.loads(work).run(report)


def serve(channel: socket.socket, *, runner_name: str, warm_up_name: str) -> None:
    """Run tasks until the engine closes the channel.

    The memory cap is measured after the warm-up, so that what is there at rest is known.
    """
    faulthandler.enable()
    runner = cast(Runner, named(runner_name))
    if warm_up_name:
        named(warm_up_name)()
    rest = _Rest.measured()
    send(channel, Kind.READY, str(os.getpid()).encode())
    while (task := receive_task(channel)) is not None:
        send(channel, Kind.STARTED)
        if rest is not None:
            rest.cap_memory(task.memory_bytes)
        end = _run(channel, runner, task)
        for file in task.files:
            with contextlib.suppress(OSError):  # the task may have closed it
                os.close(file)
        del task
        send(channel, end.kind, end.payload)


def named(name: str) -> Callable[..., Any]:
    """Return the function "module:function"."""
    module, _, function = name.partition(":")
    return cast(Callable[..., Any], getattr(importlib.import_module(module), function))


def _run(channel: socket.socket, runner: Runner, task: TaskFrame) -> Frame:
    """Run one task. Whatever it raises becomes an end; only the process's end does not."""
    report = ChannelReport(channel, task.files, max_bytes=task.result_bytes)
    try:
        result = runner(task.work, report)
        payload = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return Frame(Kind.OUT_OF_MEMORY, b"")
    except SluiceError as error:
        return Frame(Kind.REFUSED, pickle.dumps(error))
    except BaseException as error:
        traceback.print_exc()  # for the log of the engine
        failure = SolverFailed(f"the operation raised {type(error).__name__}")
        return Frame(Kind.FAILED, pickle.dumps(failure))
    finally:
        report.close()
    if len(payload) > task.result_bytes:
        return Frame(Kind.RESULT_TOO_LONG, b"")
    return Frame(Kind.RESULT, payload)


class ChannelReport:
    """Sends what a task reports, from whichever of its threads, at once and in full.

    There may be no later time: the next call may be one that never returns. A result longer
    than results may be is not sent: it could not be the end either.
    """

    def __init__(self, channel: socket.socket, files: Sequence[int], *, max_bytes: int) -> None:
        self._channel = channel
        self._files = tuple(files)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def files(self) -> Sequence[int]:
        """The descriptors that came with the task."""
        return self._files

    def steps(self, done: int, total: int) -> None:
        """Report how far the operation is."""
        self._send(Kind.STEPS, pack_steps(done, total))

    def best(self, result: object) -> None:
        """Report a complete result, better than those before."""
        payload = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        if len(payload) <= self._max_bytes:
            self._send(Kind.BEST, payload)

    def close(self) -> None:
        """Send nothing more: what a thread of the task still finds belongs to no task."""
        with self._lock:
            self._is_closed = True

    def _send(self, kind: Kind, payload: bytes) -> None:
        with self._lock:
            if not self._is_closed:
                send(self._channel, kind, payload)


@dataclass(frozen=True, slots=True)
class _Rest:
    """Memory of this process before its first task, in bytes."""

    mapped_bytes: int
    used_bytes: int

    @classmethod
    def measured(cls) -> _Rest | None:
        """Return what is mapped and used now; None where there is no /proc."""
        if not os.path.exists("/proc/self/status"):
            return None
        with open("/proc/self/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        mapped, used = (int(fields[key].split()[0]) * 1024 for key in ("VmData", "VmRSS"))
        return cls(mapped, used)

    def cap_memory(self, memory_bytes: int) -> None:
        """Refuse allocations that would take this process beyond the cap.

        RLIMIT_DATA counts private writable pages; RLIMIT_AS would also count address space that is
        reserved and never used, which libraries with threads do by the gigabyte. What is mapped at
        rest is more than what is in use, so the limit is what is mapped plus what may be added.
        Every process that the task starts inherits it; the engine watches their sum.
        """
        limit = self.mapped_bytes + max(_MIN_FREE_BYTES, memory_bytes - self.used_bytes)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
