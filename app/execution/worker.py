"""The engine's handles: on the process that forks workers, and on one worker.

A worker is started, sent tasks, read and ended by one thread. Nothing here waits for the operation
process without a limit.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from app.execution import processes
from app.execution.child import WorkerOptions
from app.execution.operation_process import Assembler, Frame, Kind, TaskFrame, send_task

_IMPORTED_FROM = Path(__file__).resolve().parents[__name__.count(".")]
_SEND_LIMIT_S = 5.0
_STOP_LIMIT_S = 0.75
_CLOSE_LIMIT_S = 5.0
_READ_BYTES = 2**18
_TAIL_BYTES = 4096
_MAX_FRAME_BYTES = 4096  # of what is no result
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ForkServer:
    """Starts workers by a fork of a process that has loaded what they need. Thread-safe.

    It is started with the first worker, and anew where it has ended.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def fork(
        self,
        options: WorkerOptions,
        control: socket.socket,
        channel: socket.socket,
        output: io.FileIO,
    ) -> None:
        """Have a worker started with these ends. Raises OSError where no process can be."""
        files = [control.fileno(), channel.fileno(), output.fileno()]
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._start(output)
            try:
                self._send(options, files)
            except BrokenPipeError:  # it has ended just now
                self._end()
                self._start(output)
                self._send(options, files)

    def close(self, *, hangs: bool = False) -> None:
        """End it, and wait until it and all workers, whose sides are closed, are gone; one that
        hangs, at once and without its workers. The next worker starts another.
        """
        with self._lock:
            if hangs and self._process is not None:
                self._process.kill()
            self._end()

    def _start(self, output: io.FileIO) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            here.settimeout(_SEND_LIMIT_S)
            self._requests = here
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app.execution.child", str(there.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(there.fileno(),),
                cwd=_IMPORTED_FROM,
                env=_environment(),
                start_new_session=True,
            )

    def _send(self, options: WorkerOptions, files: list[int]) -> None:
        assert self._requests is not None
        socket.send_fds(self._requests, [json.dumps(asdict(options)).encode()], files)

    def _end(self) -> None:
        process, requests, self._process, self._requests = self._process, self._requests, None, None
        if requests is not None:
            requests.close()
        if process is None:
            return
        try:
            process.wait(_CLOSE_LIMIT_S)
        except subprocess.TimeoutExpired:
            processes.kill_tree(process.pid)
            process.wait()


class Worker:
    """A guardian and its operation process, from start to end. Raises OSError at failed starts."""

    def __init__(self, options: WorkerOptions, fork_server: ForkServer) -> None:
        self._rest_bytes = 0
        self._memory_bytes = 0
        self._max_frame_bytes = _MAX_FRAME_BYTES
        self._guardian: int | None = None
        self.pid: int | None = None  # the operation process's, once it is warm
        self.ended: str | None = None  # how the operation process did, in words
        self._tail = b""
        self._assembler = Assembler()
        with contextlib.ExitStack() as undo:
            self._folder = tempfile.mkdtemp(prefix="sluice-worker-")
            undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
            pair = socket.socketpair(type=socket.SOCK_SEQPACKET)
            self._control, control = map(undo.enter_context, pair)
            self._channel, channel = map(undo.enter_context, socket.socketpair())
            self._output, output = (undo.enter_context(end) for end in _pipe())
            self._selector = undo.enter_context(selectors.DefaultSelector())
            fork_server.fork(replace(options, folder=self._folder), control, channel, output)
            self._undo = undo.pop_all()
        for end in (control, channel, output):
            end.close()
        self._channel.settimeout(_SEND_LIMIT_S)
        for source in (self._control, self._channel, self._output):
            self._selector.register(source, selectors.EVENT_READ)

    @property
    def tail(self) -> str:
        """The last of what the operation, or a library in it, has printed by now."""
        self._read_output()
        return self._tail.decode(errors="replace").strip()

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
                self.pid = int(frame.payload)
                self._rest_bytes = processes.resident_bytes([self.pid])
        return frames

    def free_bytes(self) -> int:
        """Return how much memory the operation and all that it started may still take.

        Below 0 they have to be killed, and may have been stopped already.
        """
        family = self._family()
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
        family = self._family()
        processes.send_all(pid for pid in family if pid != self.pid)
        kept_bytes = processes.resident_bytes(family) - self._rest_bytes
        return kept_bytes <= (self._memory_bytes - self._rest_bytes) // 2

    def stop(self) -> None:
        """End the operation process and everything below the guardian, and see them gone.

        Where there is no guardian yet it will end by itself.
        """
        self._selector.close()
        with contextlib.suppress(OSError):  # the guardian has ended
            self._control.shutdown(socket.SHUT_WR)  # has it end everything
        processes.send_all(self._family())
        if self._guardian is not None and self.ended is None and not self._reports_its_end():
            # It was stopped, or starved. What it leaves is killed by the fork server.
            processes.send_all([*self._family(), self._guardian])
        self._undo.close()

    def _family(self) -> tuple[int, ...]:
        return () if self._guardian is None else processes.descendants(self._guardian)

    def _reports_its_end(self) -> bool:
        """Return whether the guardian closes its side in time, which it does at its end."""
        end_s = time.monotonic() + _STOP_LIMIT_S
        with contextlib.suppress(OSError):
            while (left_s := end_s - time.monotonic()) > 0:
                self._control.settimeout(left_s)
                if not self._control.recv(64):
                    return True
        return False

    def _read_channel(self) -> list[Frame]:
        data = self._receive()
        if data:
            return self._assembled(data)
        self._unwatch(self._channel)  # the guardian will say how the operation process ended
        return []

    def _read_report(self) -> list[Frame]:
        """Read who the guardian is; or how it ended, with all that the operation sent before."""
        try:
            report = self._control.recv(64, socket.MSG_DONTWAIT)
        except OSError:
            report = b""
        if report and self._guardian is None:
            self._guardian = int(report)
            return []
        self.ended = _ending(report)
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


def _pipe() -> tuple[io.FileIO, io.FileIO]:
    """Return the reading end, which never waits, and the writing end."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    return io.FileIO(read, "r"), io.FileIO(write, "w")


def _environment() -> dict[str, str]:
    kept = processes.environment_for_children()
    paths = [str(_IMPORTED_FROM), *filter(None, [kept.get("PYTHONPATH")])]
    return {
        **kept,
        **dict.fromkeys(_ONE_THREAD, "1"),  # workers are as many as cores: threads would fight
        "PYTHONPATH": os.pathsep.join(paths),
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
