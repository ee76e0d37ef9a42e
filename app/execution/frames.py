"""Frames on the channel between an engine and its worker process: kind, length, bytes.

The engine never waits inside a frame: a process that stops in the middle of one is a process that
hangs, and has to be noticed. So it feeds an `Assembler` with whatever has arrived.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

MAX_FILES = 64  # a task may bring; the kernel passes 253 at most

_HEADER = struct.Struct("!BI")
_STEPS = struct.Struct("!QQ")
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

    @classmethod
    def parse(cls, payload: bytes, files: Sequence[int]) -> TaskFrame:
        """Read what `send_task` has sent."""
        memory_bytes, result_bytes = _TASK.unpack_from(payload)
        return cls(memory_bytes, result_bytes, payload[_TASK.size :], files)


def pack_steps(done: int, total: int) -> bytes:
    """Return the payload of a STEPS frame; numbers beyond 64 bits raise struct.error."""
    return _STEPS.pack(done, total)


def unpack_steps(payload: bytes) -> tuple[int, int]:
    """Return the steps done and the steps of all."""
    done, total = _STEPS.unpack(payload)
    return done, total


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
    return None if payload is None else TaskFrame.parse(payload, files)


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
