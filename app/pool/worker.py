"""The server's handle on one worker: start it, send it tasks, see what it says, end it.

Used by one thread. Nothing here waits for the solver without a limit.
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
from pathlib import Path

from app.pool import processes
from app.pool.child import ChildOptions
from app.pool.frames import Assembler, Frame, Kind, send

_CHECKOUT = Path(__file__).resolve().parent.parent.parent
_SEND_LIMIT_S = 1.0
_STOP_LIMIT_S = 0.75
_READ_BYTES = 2**18
_TAIL_BYTES = 4096
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    """A guardian and its solver, from start to end. Raises OSError where none can be started."""

    def __init__(self, *, runner: str, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._rest_bytes = 0
        self._solver: int | None = None
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
            options = ChildOptions(
                control.fileno(), channel.fileno(), memory_bytes, self._folder, runner
            )
            self._process = _start(options, output)
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
    def ended(self) -> str | None:
        """How the solver ended, in words; None while it lives."""
        return self._ended

    @property
    def tail(self) -> str:
        """The last of what the solver, or a library in it, printed."""
        return self._tail.decode(errors="replace").strip()

    def send_task(self, pickled: bytes) -> None:
        """Send a SolveTask. Raises OSError where the solver does not take it."""
        self._tail = b""
        send(self._channel, Kind.TASK, pickled)

    def frames(self, timeout_s: float) -> list[Frame]:
        """What has arrived, waiting this long at most for anything at all."""
        frames: list[Frame] = []
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            if key.fileobj is self._channel:
                frames += self._read_channel()
            elif key.fileobj is self._control:
                frames += self._read_report()
            else:
                self._read_output()
        for frame in frames:
            if frame.kind is Kind.READY:
                self._solver = int(frame.payload)
                self._rest_bytes = processes.resident_bytes([self._solver])
        return frames

    def memory_share(self) -> float:
        """Memory that the solver and all that it started use, as a share of the cap.

        Above 1 they have to be killed, and may have been stopped already.
        """
        family = processes.descendants(self.guardian)
        used_bytes = processes.resident_bytes(family)
        if used_bytes > self._memory_bytes and len(family) > 1:
            # Perhaps not: what they share has counted for each of them.
            processes.send_all(family, signal.SIGSTOP)  # it would grow while it is measured
            used_bytes = processes.proportional_bytes(family)
            if used_bytes <= self._memory_bytes:
                processes.send_all(family, signal.SIGCONT)
        return used_bytes / self._memory_bytes

    def settle(self) -> bool:
        """Kill what a task has left behind; whether the solver is fit for another one.

        It is not where it keeps so much memory that the next task would miss it.
        """
        family = processes.descendants(self.guardian)
        processes.send_all(pid for pid in family if pid != self._solver)
        kept_bytes = processes.resident_bytes(family) - self._rest_bytes
        return kept_bytes <= (self._memory_bytes - self._rest_bytes) // 2

    def stop(self) -> None:
        """End the solver and everything below the guardian, and see them gone."""
        self._selector.close()
        self._control.close()  # tells the guardian to end it all
        processes.send_all(processes.descendants(self.guardian))
        try:
            clean = self._process.wait(_STOP_LIMIT_S) == 0
        except subprocess.TimeoutExpired:  # the guardian was stopped, or starved
            clean = False
        if not clean:
            self._stop_without_guardian()
        self._undo.close()

    def _stop_without_guardian(self) -> None:
        """What was below it has another parent by now, or will have; what it started with stays."""
        processes.send_all(processes.descendants(self.guardian))
        processes.send_all(processes.with_environment(f"TMPDIR={self._folder}"))
        self._process.kill()
        self._process.wait()

    def _read_channel(self) -> list[Frame]:
        data = self._receive()
        if data:
            return list(self._assembler.feed(data))
        self._unwatch(self._channel)  # the guardian will say how the solver ended
        return []

    def _read_report(self) -> list[Frame]:
        """The guardian has finished: read all that the solver had still sent before."""
        try:
            report = self._control.recv(64)
        except OSError:
            report = b""
        self._ended = _ending(report)
        self._unwatch(self._control)
        frames: list[Frame] = []
        while data := self._receive():
            frames += self._assembler.feed(data)
        self._read_output()
        return frames

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


def _socket_pair(undo: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    here, there = socket.socketpair()
    return undo.enter_context(here), undo.enter_context(there)


def _pipe() -> tuple[io.FileIO, io.FileIO]:
    """The reading end, which never waits, and the writing end."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    return io.FileIO(read, "r"), io.FileIO(write, "w")


def _start(options: ChildOptions, output: io.FileIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "app.pool.child", *options.arguments()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(options.control_fd, options.channel_fd),
        cwd=_CHECKOUT,
        env=_environment(options.folder),
        start_new_session=True,
    )


def _environment(folder: str) -> dict[str, str]:
    kept = processes.environment_for_children()
    paths = [str(_CHECKOUT), *filter(None, [kept.get("PYTHONPATH")])]
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
