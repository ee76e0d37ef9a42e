"""The reference mover from Python: messages over sockets in a table's fragments, beside the work.

    from sluice_client.mover import Mover
    with Mover(table="profile.slt") as mover:
        peer = mover.add_peer(connected_socket)
        arriving = mover.receive(peer, 1, halo)      # any writable buffer, as bytearray or an array
        leaving = mover.send(peer, 1, edge)
        ...                                          # calculate meanwhile
        arriving.wait()
        leaving.wait()

The agent is a thread of the C library and needs no Python: the calculation may keep the
interpreter's lock. Waiting gives the lock away.

Source    clients/c/mover/include/sluice_mover.h of Sluice, through ctypes; Linux.
Traps     a buffer has to stay as it is until its ticket is done: the mover holds it, also where
          the ticket is dropped, and copies nothing; one that is not contiguous is refused.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from sluice_client.errors import SluiceClientError

_OK, _TIMEOUT, _STALLED = 0, -35, -36
_SYSTEM, _CLOSED = -33, -41
_ABORT, _DRAIN = 0, 1
_LIVE_BYTES = 9216  # of a sluice_live
_MOST_MS = 2**31 - 1
_MOST_NUMBER, _MOST_BYTES = 2**32 - 1, 2**64 - 1


class MoverError(SluiceClientError):
    """What the mover says no to: `code` is sluice_mover.h's, `report` what it knows of the ticket.

    A message that timed out or stalled is still on its way: wait again, or cancel it.
    """

    def __init__(self, code: int, text: str, report: MoverReport | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.report = report


class TimedOut(MoverError, TimeoutError):
    """The message is not through within the time that was given; its ticket stays."""


class Stalled(MoverError):
    """Nothing moved for the time that the mover was given; its ticket stays."""


@dataclass(frozen=True)
class MoverReport:
    """What is known of a message; times in ns, of CLOCK_MONOTONIC, 0 where there is none yet.

    `credit_bytes` is what the peer would take of messages for which no receive waits there.
    """

    is_send: bool
    peer: int
    tag: int
    message_bytes: int
    moved_bytes: int
    fragments: int
    credit_bytes: int
    begin_ns: int
    end_ns: int
    busy_ns: int


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("table", ctypes.c_void_p),
        *(
            (name, ctypes.c_uint64)
            for name in (
                "fragment_bytes",
                "max_fragment_bytes",
                "early_bytes",
                "send_buffer_bytes",
                "receive_buffer_bytes",
            )
        ),
        *(
            (name, ctypes.c_uint32)
            for name in ("max_peers", "max_tickets", "stall_ms", "never_stall")
        ),
    ]


class _How(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("pack", ctypes.c_void_p),
        ("unpack", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("fragment_bytes", ctypes.c_uint64),
    ]


class _Report(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("code", ctypes.c_int32),
        ("is_send", ctypes.c_uint32),
        ("peer", ctypes.c_uint32),
        ("tag", ctypes.c_uint32),
        ("message_bytes", ctypes.c_uint64),
        ("moved_bytes", ctypes.c_uint64),
        ("fragments", ctypes.c_uint64),
        ("credit_bytes", ctypes.c_uint64),
        ("begin_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("busy_ns", ctypes.c_int64),
    ]


_COUNTERS = (
    *("messages_sent", "messages_received", "fragments_sent", "fragments_received"),
    *("bytes_sent", "bytes_received", "writes", "reads", "polls", "held"),
    *("early_bytes", "max_early_bytes", "sender_ns", "receiver_ns"),
)


class _Statistics(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), *((name, ctypes.c_uint64) for name in _COUNTERS)]


class Ticket:
    """A message on its way, as `Mover.send` and `Mover.receive` give it."""

    def __init__(self, mover: Mover, number: int) -> None:
        self._mover, self._number = mover, number
        self._ended: MoverReport | MoverError | None = None

    def wait(self, timeout_s: float | None = None) -> MoverReport:
        """Return what happened when it is done; without a timeout however long it takes.

        Raises TimedOut, Stalled, or MoverError where the message failed; asked again, the same.
        """
        if self._ended is None:
            self._take(-1 if timeout_s is None else _milliseconds(timeout_s))
        assert self._ended is not None
        if isinstance(self._ended, MoverError):
            raise self._ended
        return self._ended

    def is_done(self) -> bool:
        """Return whether waiting would end at once."""
        if self._ended is None:
            try:
                self._take(0)
            except TimedOut:
                return False
        return True

    def cancel(self) -> None:
        """Ask for it to be taken back; `wait` says whether that came in time."""
        if self._ended is None:
            self._mover._checked(self._mover._call("cancel", self._number))

    def _take(self, timeout_ms: int) -> None:
        raw = _Report(ctypes.sizeof(_Report))
        code = self._mover._call("wait", self._number, timeout_ms, ctypes.byref(raw))
        raw.code = raw.code or code  # a mover that was closed reports nothing of its tickets
        report = MoverReport(
            bool(raw.is_send),
            *(int(getattr(raw, name)) for name, _ in _Report._fields_[3:]),  # type: ignore[misc]
        )
        if code in (_TIMEOUT, _STALLED):
            kind = TimedOut if code == _TIMEOUT else Stalled
            raise kind(code, self._mover._described(raw), report)
        self._mover._held.pop(self._number, None)  # the buffer is the caller's again
        failed = MoverError(code, self._mover._described(raw), report) if code != _OK else None
        self._ended = failed or report


class Mover:
    """A mover: its agent runs from here until `close`, or the end of the `with` block.

    `library` is the path of libsluice-mover.so; else SLUICE_MOVER_LIBRARY of the environment, or
    where the system finds it. `table` is a table file that cuts messages, which `swap_table`
    replaces; sizes are bytes, and 0 or None is the library's default. Raises MoverError, ValueError
    for a number out of range, and OSError where there is no library.
    """

    _mover: ctypes.c_void_p | None = None

    def __init__(
        self,
        *,
        library: str | os.PathLike[str] | None = None,
        table: str | os.PathLike[str] | None = None,
        fragment_bytes: int = 0,
        max_fragment_bytes: int = 0,
        early_bytes: int = 0,
        send_buffer_bytes: int = 0,
        receive_buffer_bytes: int = 0,
        max_peers: int = 0,
        max_tickets: int = 0,
        stall_s: float | None = None,
    ) -> None:
        self._held: dict[int, memoryview] = {}  # by ticket: the agent may be at work in them
        sizes = {
            "fragment_bytes": fragment_bytes,
            "max_fragment_bytes": max_fragment_bytes,
            "early_bytes": early_bytes,
            "send_buffer_bytes": send_buffer_bytes,
            "receive_buffer_bytes": receive_buffer_bytes,
        }
        for name, value in sizes.items():
            _check_whole(name, value, _MOST_BYTES)
        _check_whole("max_peers", max_peers, _MOST_NUMBER)
        _check_whole("max_tickets", max_tickets, _MOST_NUMBER)
        self._library = _loaded(library)
        self._live = ctypes.create_string_buffer(_LIVE_BYTES) if table is not None else None
        options = _Options(
            ctypes.sizeof(_Options),
            None,
            *(fragment_bytes, max_fragment_bytes, early_bytes),
            *(send_buffer_bytes, receive_buffer_bytes, max_peers, max_tickets),
            0 if stall_s is None else max(1, round(stall_s * 1000)),
        )
        if table is not None:
            code = self._library.sluice_live_open(self._live, os.fsencode(table))
            if code != _OK:
                self._live = None
                raise MoverError(code, self._text(code))
            options.table = ctypes.addressof(self._live)  # type: ignore[arg-type]
        opened = ctypes.c_void_p()
        code = self._library.sluice_mover_open(ctypes.byref(opened), ctypes.byref(options))
        if code != _OK:
            self._close_table()
            raise MoverError(code, self._text(code))
        self._mover = opened

    def add_peer(self, connected: socket.socket) -> int:
        """Take over a connected stream socket, at whose other end is a mover too: its number."""
        number = ctypes.c_uint32()
        self._checked(self._call("add_peer", connected.fileno(), ctypes.byref(number)))
        connected.detach()
        return number.value

    def send(self, peer: int, tag: int, buffer: Any, *, fragment_bytes: int = 0) -> Ticket:
        """Begin to send all of a buffer; it has to stay as it is until the ticket is done."""
        view = _bytes_of(buffer)
        _check_whole("fragment_bytes", fragment_bytes, _MOST_BYTES)
        how = _How(ctypes.sizeof(_How), None, None, None, fragment_bytes)
        return self._begun("send", peer, tag, view, ctypes.byref(how))

    def receive(self, peer: int, tag: int, buffer: Any) -> Ticket:
        """Begin to receive into a writable buffer the next message of this peer and tag."""
        view = _bytes_of(buffer)
        if view.readonly:
            raise TypeError("expected a buffer that can be written to")
        return self._begun("receive", peer, tag, view, None)

    def statistics(self) -> dict[str, int]:
        """Return the counters since it was opened, by their names in sluice_mover.h."""
        raw = _Statistics(ctypes.sizeof(_Statistics))
        self._checked(self._call("get_statistics", ctypes.byref(raw)))
        return {name: int(getattr(raw, name)) for name in _COUNTERS}

    def swap_table(self, table: str | os.PathLike[str]) -> None:
        """Cut messages that begin from now on by this table file; a refused one changes nothing."""
        if self._live is None:
            raise ValueError("this mover was opened without a table")
        self._checked(self._library.sluice_live_swap(self._live, os.fsencode(table)))

    def close(self, *, drain: bool = True, timeout_s: float = 10.0) -> None:
        """End the agent and close its sockets; draining, when all sends have left.

        Threads that wait are told that it was closed; none may begin a call meanwhile. Raises
        TimedOut where sends were left; it is closed all the same.
        """
        mover, self._mover = self._mover, None
        if mover is None:
            return
        ending = _DRAIN if drain else _ABORT
        code = self._library.sluice_mover_close(mover, ending, _milliseconds(timeout_s))
        self._held.clear()
        self._close_table()
        if code == _TIMEOUT:
            raise TimedOut(code, "closed before all sends had left")
        self._checked(code)

    def __enter__(self) -> Mover:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(drain=kind is None)

    def __del__(self) -> None:
        with suppress(MoverError):  # buffers must not go before the agent does
            self.close(drain=False)

    def _begun(self, what: str, peer: int, tag: int, view: memoryview, how: Any) -> Ticket:
        _check_whole("peer", peer, _MOST_NUMBER)
        _check_whole("tag", tag, _MOST_NUMBER)
        ticket = ctypes.c_uint64()
        code = self._call(what, peer, tag, _address(view), view.nbytes, how, ctypes.byref(ticket))
        self._checked(code)
        self._held[ticket.value] = view
        return Ticket(self, ticket.value)

    def _call(self, what: str, *arguments: Any) -> int:
        if self._mover is None:
            return _CLOSED
        code: int = getattr(self._library, f"sluice_mover_{what}")(self._mover, *arguments)
        return code

    def _checked(self, code: int) -> None:
        if code == _SYSTEM:
            raise MoverError(code, f"{self._text(code)}: {os.strerror(ctypes.get_errno())}")
        if code != _OK:
            raise MoverError(code, self._text(code))

    def _text(self, code: int) -> str:
        text: bytes = self._library.sluice_mover_error_text(code)
        return text.decode()

    def _described(self, raw: _Report) -> str:
        text = ctypes.create_string_buffer(300)
        self._library.sluice_mover_describe(ctypes.byref(raw), text, len(text))
        return text.value.decode()

    def _close_table(self) -> None:
        if self._live is not None:
            self._library.sluice_live_close(self._live)


def _milliseconds(seconds: float) -> int:
    return round(1000 * min(_MOST_MS / 1000, max(0.0, seconds)))


def _check_whole(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"expected {name} to be a whole number from 0 to {most}, got {value!r}")


def _bytes_of(buffer: Any) -> memoryview:
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise TypeError("expected a buffer whose bytes lie in one piece")
    return view


class _RawBuffer(ctypes.Structure):
    """Py_buffer, of which the address is asked: read-only buffers have no other way to it."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def _address(view: memoryview) -> int | None:
    raw = _RawBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(raw), 0)
    try:
        address: int | None = raw.buf
        return address
    finally:  # the view itself keeps the buffer where it is
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(raw))


def _loaded(library: str | os.PathLike[str] | None) -> Any:
    asked = library or os.environ.get("SLUICE_MOVER_LIBRARY")
    name = os.fspath(asked) if asked else ctypes.util.find_library("sluice-mover")
    if name is None:
        raise OSError(
            "there is no libsluice-mover here: make -C clients/c/mover install, or name its path"
        )
    loaded = ctypes.CDLL(name, use_errno=True)
    pointer, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    message = (pointer, u32, u32, pointer, u64, pointer, pointer)
    signatures = {
        "mover_open": (pointer, pointer),
        "mover_add_peer": (pointer, ctypes.c_int, pointer),
        "mover_close": (pointer, ctypes.c_int, u32),
        "mover_send": message,
        "mover_receive": message,
        "mover_wait": (pointer, u64, ctypes.c_int, pointer),
        "mover_cancel": (pointer, u64),
        "mover_get_statistics": (pointer, pointer),
        "mover_describe": (pointer, ctypes.c_char_p, ctypes.c_size_t),
        "mover_error_text": (ctypes.c_int,),
        "live_open": (pointer, ctypes.c_char_p),
        "live_swap": (pointer, ctypes.c_char_p),
        "live_close": (pointer,),
    }
    for function, arguments in signatures.items():
        getattr(loaded, f"sluice_{function}").argtypes = arguments
    loaded.sluice_mover_error_text.restype = ctypes.c_char_p
    loaded.sluice_mover_describe.restype = ctypes.c_size_t
    loaded.sluice_live_close.restype = None
    return loaded
