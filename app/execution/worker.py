"""The engine's handle on one worker: start it, send it tasks, read its frames, end it.

Used by one thread. Nothing here waits for the operation process without a limit.
"""

from __future__ import annotations

import contextlib
import io
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from app.execution import processes
from app.execution.child import ChildOptions
from app.execution.frames import Assembler, Frame, Kind, TaskFrame, send_task

RUN_OPERATION = "app.execution.operation_process:run_operation"

_IMPORTED_FROM = Path(__file__).resolve().parents[__name__.count(".")]
_SEND_LIMIT_S = 5.0
_STOP_LIMIT_S = 0.75
_READ_BYTES = 2**18
_TAIL_BYTES = 4096
_MAX_FRAME_BYTES = 4096  # of what is no result
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What the workers of a pool run, and how.

    `runner` ("module:function") is called with a task's work and a report, and returns its
    result; `warm_up`, too, is a function, called once before the first task. `niceness` above 0
    lets everything else on the machine go first.
    """

    runner: str = RUN_OPERATION
    warm_up: str = ""
    niceness: int = 10


class Worker:
    """A guardian and its operation process, from start to end. Raises OSError at failed starts."""

    def __init__(self, options: WorkerOptions) -> None:
        self._rest_bytes = 0
        self._memory_bytes = 0
        self._max_frame_bytes = _MAX_FRAME_BYTES
        self._pid: int | None = None
        self._ended: str | None = None
        self._tail = b""
        self._assembler = Assembler()
        with contextlib.ExitStack() as undo:
            self._folder = tempfile.mkdtemp(prefix="sluice-worker-")
            undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
            self._control, control = _socket_pair(undo)
            self._channel, channel = _socket_pair(undo)
            self._output, output = (undo.enter_context(end) for end in _pipe())
            self._selector = undo.enter_context(selectors.DefaultSelector())
            self._process = _start(
                ChildOptions(
                    control.fileno(),
                    channel.fileno(),
                    self._folder,
                    options.runner,
                    options.warm_up,
                    options.niceness,
                ),
                output,
            )
            self._undo = undo.pop_all()
        for end in (control, channel, output):
            end.close()
        self._channel.settimeout(_SEND_LIMIT_S)
        for source in (self._control, self._channel, self._output):
            self._selector.register(source, selectors.EVENT_READ)

    @property
    def guardian(self) -> int:
        """The guardian's process id; everything else of this worker is below it."""
        return self._process.pid

    @property
    def pid(self) -> int | None:
        """The operation process's id, once it is warm."""
        return self._pid

    @property
    def ended(self) -> str | None:
        """How the operation process ended, in words; None while it lives."""
        return self._ended

    @property
    def tail(self) -> str:
        """The last of what the operation, or a library in it, printed."""
        return self._tail.decode(errors="replace").strip()

    def read_tail(self) -> str:
        """Return the tail, with what has been printed just now."""
        self._read_output()
        return self.tail

    def send(self, task: TaskFrame) -> None:
        """Send a task. Raises OSError where the operation process does not take it."""
        self._tail = b""
        self._memory_bytes = task.memory_bytes
        self._max_frame_bytes = max(_MAX_FRAME_BYTES, task.result_bytes)
        send_task(self._channel, task)

    def watch(self, wake: socket.socket) -> None:
        """Have `frames` return early where something has arrived at this socket, and empty it."""
        self._selector.register(wake, selectors.EVENT_READ, _empty)

    def frames(self, timeout_s: float) -> list[Frame]:
        """Return what has arrived, waiting this long at most for anything at all.

        Raises BadFrame where the operation has written something else.
        """
        frames: list[Frame] = []
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            if key.fileobj is self._channel:
                frames += self._read_channel()
            elif key.fileobj is self._control:
                frames += self._read_report()
            elif key.data is not None:
                key.data(key.fileobj)
            else:
                self._read_output()
        for frame in frames:
            if frame.kind is Kind.READY:
                self._pid = int(frame.payload)
                self._rest_bytes = processes.resident_bytes([self._pid])
        return frames

    def free_bytes(self) -> int:
        """Return how much memory the operation and all that it started may still take.

        Below 0 they have to be killed, and may have been stopped already.
        """
        family = processes.descendants(self.guardian)
        used_bytes = processes.resident_bytes(family)
        if used_bytes > self._memory_bytes and len(family) > 1:
            # Perhaps not: what they share has counted for each of them.
            processes.send_all(family, signal.SIGSTOP)  # it would grow while it is measured
            used_bytes = processes.proportional_bytes(family)
            if used_bytes <= self._memory_bytes:
                processes.send_all(family, signal.SIGCONT)
        return self._memory_bytes - used_bytes

    def clean_up(self) -> bool:
        """Kill what a task has left behind; return whether the worker is fit for another task.

        It is not where it keeps so much memory that the next task would miss it.
        """
        family = processes.descendants(self.guardian)
        processes.send_all(pid for pid in family if pid != self._pid)
        kept_bytes = processes.resident_bytes(family) - self._rest_bytes
        return kept_bytes <= (self._memory_bytes - self._rest_bytes) // 2

    def stop(self) -> None:
        """End the operation process and everything below the guardian, and see them gone."""
        self._selector.close()
        self._control.close()  # has the guardian end it all
        processes.send_all(processes.descendants(self.guardian))
        try:
            clean = self._process.wait(_STOP_LIMIT_S) == 0
        except subprocess.TimeoutExpired:  # the guardian was stopped, or starved
            clean = False
        if not clean:
            self._stop_without_guardian()
        self._undo.close()

    def _stop_without_guardian(self) -> None:
        """Kill what was below a guardian that has ended, by the environment it was started with."""
        processes.send_all(processes.descendants(self.guardian))
        processes.send_all(processes.with_environment(f"TMPDIR={self._folder}"))
        self._process.kill()
        self._process.wait()

    def _read_channel(self) -> list[Frame]:
        data = self._receive()
        if data:
            return self._assembled(data)
        self._unwatch(self._channel)  # the guardian will say how the operation process ended
        return []

    def _read_report(self) -> list[Frame]:
        """Return the guardian has finished: read all that the operation had still sent before."""
        try:
            report = self._control.recv(64)
        except OSError:
            report = b""
        self._ended = _ending(report)
        self._unwatch(self._control)
        frames: list[Frame] = []
        while data := self._receive():
            frames += self._assembled(data)
        self._read_output()
        return frames

    def _assembled(self, data: bytes) -> list[Frame]:
        return list(self._assembler.feed(data, max_bytes=self._max_frame_bytes))

    def _unwatch(self, source: socket.socket | io.FileIO) -> None:
        with contextlib.suppress(KeyError):  # the end of one may be seen in reading another
            self._selector.unregister(source)

    def _receive(self) -> bytes:
        try:
            return self._channel.recv(_READ_BYTES, socket.MSG_DONTWAIT)
        except OSError:
            return b""

    def _read_output(self) -> None:
        data = self._output.read(_READ_BYTES)
        if data is None:  # nothing there
            return
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        if not data:
            self._unwatch(self._output)


def _empty(wake: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        wake.recv(_READ_BYTES, socket.MSG_DONTWAIT)


def _socket_pair(undo: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    here, there = socket.socketpair()
    return undo.enter_context(here), undo.enter_context(there)


def _pipe() -> tuple[io.FileIO, io.FileIO]:
    """Return the reading end, which never waits, and the writing end."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    return io.FileIO(read, "r"), io.FileIO(write, "w")


def _start(options: ChildOptions, output: io.FileIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "app.execution.child", *options.arguments()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(options.control_fd, options.channel_fd),
        cwd=_IMPORTED_FROM,
        env=_environment(options.folder),
        start_new_session=True,
    )


def _environment(folder: str) -> dict[str, str]:
    kept = processes.environment_for_children()
    paths = [str(_IMPORTED_FROM), *filter(None, [kept.get("PYTHONPATH")])]
    return {
        **kept,
        **dict.fromkeys(_ONE_THREAD, "1"),  # workers are as many as cores: threads would fight
        "PYTHONPATH": os.pathsep.join(paths),
        "TMPDIR": folder,
    }


def _ending(report: bytes) -> str:
    if not report:
        return "the process that guards it was killed"
    code = int(report)
    if code >= 0:
        return f"it exited with code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"
