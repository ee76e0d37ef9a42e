"""Frames on the channel between the server and a solver: kind, length, bytes.

The server never waits inside a frame: a solver that stops in the middle of one is a solver that
hangs, and has to be noticed. So it feeds an `Assembler` with whatever has arrived.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

_HEADER = struct.Struct("!BI")


class Kind(IntEnum):
    """What a frame says. Payloads are pickles, except where there is none."""

    READY = 1  # solver: warm and waiting for a task; its process id in digits
    TASK = 2  # server: SolveTask
    STARTED = 3  # solver: the task has arrived; none
    INCUMBENT = 4  # solver: Solution, best so far
    SOLUTION = 5  # solver: Solution, the answer
    ERROR = 6  # solver: SluiceError; there is no answer
    OUT_OF_MEMORY = 7  # solver: an allocation was refused; none


@dataclass(frozen=True, slots=True)
class Frame:
    """One message on the channel."""

    kind: Kind
    payload: bytes


def send(channel: socket.socket, kind: Kind, payload: bytes = b"") -> None:
    """Send one frame; blocks as the socket does."""
    channel.sendall(_HEADER.pack(kind, len(payload)))
    if payload:
        channel.sendall(payload)


def receive(channel: socket.socket) -> Frame | None:
    """The next frame of a blocking channel; None once the other side has closed it."""
    header = _exactly(channel, _HEADER.size)
    if header is None:
        return None
    kind, length = _HEADER.unpack(header)
    payload = _exactly(channel, length)
    return None if payload is None else Frame(Kind(kind), payload)


def _exactly(channel: socket.socket, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        part = channel.recv(min(length - len(data), 2**20))
        if not part:
            return None
        data += part
    return bytes(data)


class Assembler:
    """Puts frames together from bytes that arrive in any pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add what has arrived; yields the frames that are complete."""
        self._data += data
        while len(self._data) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._data)
            end = _HEADER.size + length
            if len(self._data) < end:
                return
            payload = bytes(self._data[_HEADER.size : end])
            del self._data[:end]
            yield Frame(Kind(kind), payload)
