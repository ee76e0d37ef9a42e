"""Looking messages up in the bytes of a table file, in C where it was built, else in Python.

Source    docs/format.md; clients/c/include/sluice.h.
Cost      a bisection, and a few integer operations a fragment.
Exact     both readers give the same integers and the same certificates, to the last bit.
Traps     the bytes belong to the reader for as long as it lives, and are checked once, on opening.
          A reader fills buffers of its own: each thread needs its own (`sibling`).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from domain.errors import InvalidInput, InvalidTable
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.native import library
from exports.slt import decode
from exports.slt_layout import CHECKED_FROM, HEADER, HEADER_BYTES, Header
from exports.slt_pipeline import unpack_pipeline

KEPT_FRAGMENTS = 4096  # of a schedule: a reader keeps a buffer for so many
_DECODED = 12  # bytes of a decoded plan table for each byte of its file, about
_E_NO_REPEAT, _E_RANGE = -10, -8


@dataclass(frozen=True, slots=True)
class TableHead:
    """What a table file says of itself; sizes in bytes. `profile` is "" where it has no name."""

    profile: str
    revision: int
    pipeline: Pipeline
    limits: FragmentLimits
    least_bytes: int
    greatest_bytes: int
    relative_gap: float

    def covers(self, message_bytes: int) -> bool:
        """Whether the message is in the range."""
        return self.least_bytes <= message_bytes <= self.greatest_bytes


class TableReader(Protocol):
    """Look-ups in one table file, for one thread. Raises InvalidInput outside the range."""

    @property
    def head(self) -> TableHead:
        """What the file says of itself."""
        ...

    @property
    def most_fragments(self) -> int:
        """The greatest number of fragments of any message."""
        ...

    @property
    def memory_bytes(self) -> int:
        """What the reader holds beside the file, about."""
        ...

    def repeat(self, message_bytes: int) -> int:
        """The best repeated size; 0 where none is admitted."""
        ...

    def schedule(self, message_bytes: int) -> list[int]:
        """The fragment sizes in sending order."""
        ...

    def count(self, message_bytes: int) -> int:
        """How many fragments the schedule has."""
        ...

    def gaps(self, message_bytes: int) -> tuple[float, float]:
        """What is proven of the schedule, and of the repeated size."""
        ...

    def sibling(self) -> TableReader:
        """Another reader of the same bytes, for another thread."""
        ...


def open_reader(file: bytes) -> TableReader:
    """A reader of these bytes, which are checked in everything. Raises InvalidTable."""
    native = _native()
    return PythonReader.of(file) if native is None else NativeReader.of(file, native)


def head_of(file: bytes) -> TableHead:
    """What a file that was checked says of itself."""
    header = Header(*HEADER.unpack(file[CHECKED_FROM:HEADER_BYTES]))
    limits = FragmentLimits(
        header.min_fragment_bytes,
        header.max_fragment_bytes or None,
        header.alignment_bytes,
        header.max_fragments or None,
    )
    return TableHead(
        header.name[: header.name_bytes].decode("ascii"),
        header.revision,
        unpack_pipeline(memoryview(file)[header.pipeline_offset :]),
        limits,
        header.least_bytes,
        header.greatest_bytes,
        header.relative_gap,
    )


# --- in Python ------------------------------------------------------------------------------------


class PythonReader:
    """Reads the decoded plan table; any number of threads may."""

    def __init__(self, head: TableHead, table: PlanTable, file_bytes: int) -> None:
        self.head = head
        self.most_fragments = max(cut.fragments for cut in table.cuts)
        self.memory_bytes = _DECODED * file_bytes
        self._table = table

    @classmethod
    def of(cls, file: bytes) -> PythonReader:
        """A reader of a file. Raises InvalidTable."""
        table = decode(file).table
        return cls(head_of(file), table, len(file))

    def repeat(self, message_bytes: int) -> int:
        """The best repeated size; 0 where none is admitted."""
        return self._table.repeated_size_at(message_bytes)

    def schedule(self, message_bytes: int) -> list[int]:
        """The fragment sizes in sending order."""
        return list(self._table.cut_at(message_bytes))

    def count(self, message_bytes: int) -> int:
        """How many fragments the schedule has."""
        return len(self._table.cut_at(message_bytes))

    def gaps(self, message_bytes: int) -> tuple[float, float]:
        """What is proven of the schedule, and of the repeated size."""
        table = self._table
        return table.relative_gap_at(message_bytes), table.repeat_gap_at(message_bytes)

    def sibling(self) -> PythonReader:
        """This reader: it keeps no buffer."""
        return self


# --- in C -----------------------------------------------------------------------------------------


class _Table(ctypes.Structure):
    _fields_ = [("opaque", ctypes.c_uint64 * 256)]


class _Description(ctypes.Structure):
    _fields_ = [
        ("least_bytes", ctypes.c_uint64),
        ("greatest_bytes", ctypes.c_uint64),
        ("relative_gap", ctypes.c_double),
        ("min_fragment_bytes", ctypes.c_uint64),
        ("max_fragment_bytes", ctypes.c_uint64),
        ("alignment_bytes", ctypes.c_uint64),
        ("max_fragments", ctypes.c_uint64),
        ("fragment_cap", ctypes.c_uint64),
        ("most_fragments", ctypes.c_uint64),
        ("cut_count", ctypes.c_uint64),
        ("repeat_count", ctypes.c_uint64),
        ("file_bytes", ctypes.c_uint64),
        ("revision", ctypes.c_uint32),
        ("checksum", ctypes.c_uint32),
        ("profile", ctypes.c_char * 72),
    ]


class _Native:
    """The functions of the library, with the types of what they take."""

    def __init__(self, loaded: ctypes.PyDLL) -> None:
        pointer, size, count = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
        self.open = _function(loaded, "sluice_table_from_memory", pointer, pointer, count)
        self.describe = _function(loaded, "sluice_table_describe", pointer, pointer)
        self.repeat = _function(loaded, "sluice_repeat", pointer, size, pointer)
        self.schedule = _function(loaded, "sluice_schedule", pointer, size, pointer, count, pointer)
        self.gaps = _function(loaded, "sluice_certificate", pointer, size, pointer, pointer)
        self.text = loaded.sluice_error_text
        self.text.argtypes, self.text.restype = [ctypes.c_int], ctypes.c_char_p

    def check_file(self, code: int) -> None:
        """Raise InvalidTable for what opening returned."""
        if code:
            told: bytes = self.text(code)
            raise InvalidTable(f"not a valid table file: {told.decode()}")


def _function(loaded: ctypes.PyDLL, name: str, *takes: Any) -> Any:
    found = getattr(loaded, name)
    found.argtypes, found.restype = list(takes), ctypes.c_int
    return found


@cache
def _native() -> _Native | None:
    loaded = library()
    return None if loaded is None else _Native(loaded)


class NativeReader:
    """Calls the library on the bytes where they are."""

    def __init__(self, file: bytes, head: TableHead, native: _Native, table: _Table) -> None:
        self.head = head
        self._kept = file, table  # the library reads both for as long as this lives
        self._native = native
        self._table = ctypes.addressof(table)
        described = _Description()
        native.describe(self._table, ctypes.addressof(described))
        self.most_fragments = int(described.most_fragments)
        room = min(self.most_fragments, KEPT_FRAGMENTS)
        self.memory_bytes = 8 * room + ctypes.sizeof(table)
        self._buffer, self._room = _Buffer(room), room
        self._words, self._gaps = _Buffer(1), (ctypes.c_double * 2)()
        self._gap_at = ctypes.addressof(self._gaps)

    @classmethod
    def of(cls, file: bytes, native: _Native) -> NativeReader:
        """A reader of a file. Raises InvalidTable."""
        table = _Table()
        at = ctypes.cast(ctypes.c_char_p(file), ctypes.c_void_p)
        native.check_file(native.open(ctypes.addressof(table), at, len(file)))
        return cls(file, head_of(file), native, table)

    def repeat(self, message_bytes: int) -> int:
        """The best repeated size; 0 where none is admitted."""
        words = self._words
        code = self._native.repeat(self._table, message_bytes, words.at)
        if code:
            self._check(code)
            return 0
        return words.view[0]

    def schedule(self, message_bytes: int) -> list[int]:
        """The fragment sizes in sending order."""
        buffer, words = self._buffer, self._words
        if self.most_fragments > self._room and self.count(message_bytes) > self._room:
            buffer = _Buffer(words.view[0])
        code = self._native.schedule(self._table, message_bytes, buffer.at, buffer.room, words.at)
        if code:
            self._check(code)
        return buffer.view[: words.view[0]].tolist()

    def count(self, message_bytes: int) -> int:
        """How many fragments the schedule has."""
        words = self._words
        words.view[0] = 0
        self._check(self._native.schedule(self._table, message_bytes, None, 0, words.at))
        return words.view[0]

    def gaps(self, message_bytes: int) -> tuple[float, float]:
        """What is proven of the schedule, and of the repeated size."""
        code = self._native.gaps(self._table, message_bytes, self._gap_at, self._gap_at + 8)
        if code:
            self._check(code)
        return self._gaps[0], self._gaps[1]

    def sibling(self) -> NativeReader:
        """Another reader of the same bytes, for another thread."""
        file, table = self._kept
        return NativeReader(file, self.head, self._native, table)

    def _check(self, code: int) -> None:
        if code == _E_RANGE:
            head = self.head
            raise InvalidInput(
                f"expected {head.least_bytes} <= message_bytes <= {head.greatest_bytes}",
                field="message_bytes",
            )


class _Buffer:
    """Unsigned words of 64 bits that C fills and Python reads."""

    __slots__ = ("_words", "at", "room", "view")

    def __init__(self, room: int) -> None:
        self._words = (ctypes.c_uint64 * room)()
        self.room = room
        self.at = ctypes.addressof(self._words)
        self.view = memoryview(self._words).cast("B").cast("Q")
