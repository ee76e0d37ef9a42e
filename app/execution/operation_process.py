"""The channel between an engine and its operation process: frames on it, and the process's side.

A frame is kind, length, bytes. The engine never waits inside one: a process that stops in the
middle of a frame is a process that hangs, and has to be noticed. So it feeds an `Assembler` with
whatever has arrived. The operation process warms up, then runs one task after the other.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pickle
import resource
import socket
import struct
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias, cast

from domain.errors import SluiceError, SolverFailed

MAX_FILES = 64  # a task may bring; the kernel passes 253 at most

_HEADER = struct.Struct("!BI")
STEPS = struct.Struct("!QQ")  # the payload of a frame: steps done, of all
_TASK = struct.Struct("!QQ")
_READ_BYTES = 2**20


class Kind(IntEnum):
    """The kind of a frame."""

    READY = 1  # worker: warm and waiting for a task; its process id in digits
    TASK = 2  # engine: limits and work, and the descriptors of the task's files
    STARTED = 3  # worker: the task has arrived; no payload
    STEPS = 4  # worker: steps done, of all
    BEST = 5  # worker: a complete result, pickled
    RESULT = 6  # worker: the result, pickled
    REFUSED = 7  # worker: a SluiceError, pickled; there is no result
    FAILED = 8  # worker: a SluiceError, pickled, in place of another exception; it was printed
    OUT_OF_MEMORY = 9  # worker: an allocation was refused; no payload
    RESULT_TOO_LONG = 10  # worker: the result was not sent; no payload


class BadFrame(Exception):
    """What has arrived is no frame of a worker, or longer than its result may be."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message on the channel."""

    kind: Kind
    payload: bytes


@dataclass(frozen=True, slots=True)
class TaskFrame:
    """What a worker process is sent: limits in bytes, the work, and open descriptors."""

    memory_bytes: int
    result_bytes: int
    work: bytes
    files: Sequence[int] = ()


def send(channel: socket.socket, kind: Kind, payload: bytes = b"") -> None:
    """Send one frame; blocks as the socket does."""
    header = _HEADER.pack(kind, len(payload))
    if len(payload) < _READ_BYTES:
        channel.sendall(header + payload)
    else:
        channel.sendall(header)
        channel.sendall(payload)


def send_task(channel: socket.socket, task: TaskFrame) -> None:
    """Send a task with its descriptors; blocks as the socket does."""
    limits = _TASK.pack(task.memory_bytes, task.result_bytes)
    head = _HEADER.pack(Kind.TASK, len(limits) + len(task.work)) + limits
    sent = socket.send_fds(channel, [head], list(task.files)) if task.files else 0
    channel.sendall(head[sent:])
    channel.sendall(task.work)


def receive_task(channel: socket.socket) -> TaskFrame | None:
    """Return the next task of a blocking channel; None once the engine has closed it."""
    header, files, _, _ = socket.recv_fds(channel, _HEADER.size, MAX_FILES)
    rest = _exactly(channel, _HEADER.size - len(header)) if header else None
    if rest is None:
        return None
    _, length = _HEADER.unpack(header + rest)
    payload = _exactly(channel, length)
    if payload is None:
        return None
    memory_bytes, result_bytes = _TASK.unpack_from(payload)
    return TaskFrame(memory_bytes, result_bytes, payload[_TASK.size :], files)


def _exactly(channel: socket.socket, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        part = channel.recv(min(length - len(data), _READ_BYTES))
        if not part:
            return None
        data += part
    return bytes(data)


class Assembler:
    """Puts frames together from bytes that arrive in any pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes, *, max_bytes: int) -> Iterator[Frame]:
        """Add what has arrived; yields the frames that are complete.

        Raises BadFrame at a kind that does not exist, and at a payload of more than `max_bytes`,
        which is not waited for.
        """
        self._data += data
        while len(self._data) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._data)
            if kind not in _KINDS or length > max_bytes:
                raise BadFrame(f"kind {kind} of {length} bytes")
            end = _HEADER.size + length
            if len(self._data) < end:
                return
            payload = bytes(memoryview(self._data)[_HEADER.size : end])
            del self._data[:end]
            yield Frame(Kind(kind), payload)


_KINDS = frozenset(Kind)


# --- the operation process's side -----------------------------------------------------------------


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
        self.files: Sequence[int] = tuple(files)  # the descriptors that came with the task
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._is_closed = False

    def steps(self, done: int, total: int) -> None:
        """Report how far the operation is."""
        self._send(Kind.STEPS, STEPS.pack(done, total))

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
