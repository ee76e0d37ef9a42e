"""The solver's side of the channel: warm up, then one task after the other."""

from __future__ import annotations

import faulthandler
import importlib
import os
import pickle
import resource
import socket
import threading
import traceback
from collections.abc import Callable
from typing import cast

from app.pool.frames import Frame, Kind, receive, send
from app.pool.task import SolveTask
from domain.errors import SluiceError, SolverFailed
from domain.solution import Solution

Runner = Callable[..., Solution]  # called as solvers.solve is
_LEAST_ROOM_BYTES = 64 * 2**20


def serve(channel: socket.socket, runner_name: str, memory_bytes: int) -> None:
    """Answer tasks until the server closes the channel.

    `runner_name` is "module:function"; where the module has a `warm_up`, it is called first. The
    memory cap is set after that, so that what is there at rest is known.
    """
    faulthandler.enable()
    module_name, _, name = runner_name.partition(":")
    module = importlib.import_module(module_name)
    runner = cast(Runner, getattr(module, name))
    getattr(module, "warm_up", lambda: None)()
    _cap_memory(memory_bytes)
    send(channel, Kind.READY, str(os.getpid()).encode())
    while (frame := receive(channel)) is not None:
        send(channel, Kind.STARTED)
        answer = _answer(channel, runner, frame)
        send(channel, answer.kind, answer.payload)


def _answer(channel: socket.socket, runner: Runner, frame: Frame) -> Frame:
    """Run one task. Whatever it raises becomes an answer; only the process's end does not."""
    report = _Report(channel)
    try:
        task: SolveTask = pickle.loads(frame.payload)
        solution = runner(
            task.problem,
            task.strategy,
            relative_gap=task.relative_gap,
            time_limit_s=task.time_limit_s,
            static_bytes=task.static_bytes,
            on_incumbent=report.incumbent,
        )
        return Frame(Kind.SOLUTION, pickle.dumps(solution))
    except MemoryError:
        return Frame(Kind.OUT_OF_MEMORY, b"")
    except SluiceError as error:
        return Frame(Kind.ERROR, pickle.dumps(error))
    except BaseException as error:
        traceback.print_exc()  # for the server's log
        failure = SolverFailed(f"the solver raised {type(error).__name__}")
        return Frame(Kind.ERROR, pickle.dumps(failure))
    finally:
        report.close()


class _Report:
    """Sends incumbents while the task runs, from whichever thread.

    Each is sent at once and in full: a later moment may never come. A solution costs its solver far
    more than it costs to send, since every one is judged in plain Python.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._closed = False

    def incumbent(self, best: Solution) -> None:
        """A complete answer, better than those before."""
        payload = pickle.dumps(best)
        with self._lock:
            if not self._closed:
                send(self._channel, Kind.INCUMBENT, payload)

    def close(self) -> None:
        """The task has ended: what a thread of it still finds belongs to no task."""
        with self._lock:
            self._closed = True


def _cap_memory(memory_bytes: int) -> None:
    """Refuse allocations that would take this process beyond the cap.

    RLIMIT_DATA counts private writable pages; RLIMIT_AS would also count address space that is
    reserved and never used, which libraries with threads do by the gigabyte. What is mapped at
    rest is more than what is in use, so the limit is what is mapped plus the room that is left.
    Every process that the solver starts inherits it; the server watches their sum.
    """
    if not os.path.exists("/proc/self/status"):
        return
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    mapped_bytes, used_bytes = (int(fields[key].split()[0]) * 1024 for key in ("VmData", "VmRSS"))
    limit = mapped_bytes + max(_LEAST_ROOM_BYTES, memory_bytes - used_bytes)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
