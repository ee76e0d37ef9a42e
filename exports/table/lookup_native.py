"""Table files read by the C library, on their bytes where they are.

Source    clients/c/include/sluice.h; exports/native/answer.h.
Cost      half a microsecond for a call, and some nanoseconds a fragment.
Exact     as exports.table.lookup.PythonReader, to the last bit.
Traps     numbers travel as addresses: what they belong to is kept as long as the reader. Calls keep
          the interpreter's lock; one reader is for one thread, because it fills its own buffers.
"""

from __future__ import annotations

import ctypes
from functools import cache, partial
from typing import Any

from domain.errors import InvalidTable
from exports.native import library
from exports.table.lookup import (
    BUFFERED_FRAGMENTS,
    Answer,
    Answerer,
    Evaluator,
    PythonReader,
    TableHead,
    TableReader,
    answer_by,
    check_covered,
    head_of,
)

_E_RANGE, _E_CAPACITY = -8, -9


def open_reader(file: bytes) -> TableReader:
    """A reader of these bytes, which are checked in everything. Raises InvalidTable."""
    return native_reader(file) or PythonReader.of(file)


def native_reader(file: bytes) -> NativeReader | None:
    """A reader of these bytes, or None where the library was not built. Raises InvalidTable."""
    found = _native()
    return None if found is None else NativeReader.of(file, found)


class _Table(ctypes.Structure):
    _fields_ = [("opaque", ctypes.c_uint64 * 256)]


class _Description(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("min_message_bytes", ctypes.c_uint64),
        ("max_message_bytes", ctypes.c_uint64),
        ("relative_gap", ctypes.c_double),
        ("min_fragment_bytes", ctypes.c_uint64),
        ("max_fragment_bytes", ctypes.c_uint64),
        ("alignment_bytes", ctypes.c_uint64),
        ("max_fragments", ctypes.c_uint64),
        ("fragment_cap", ctypes.c_uint64),
        ("max_schedule_fragments", ctypes.c_uint64),
        ("cut_count", ctypes.c_uint64),
        ("repeat_count", ctypes.c_uint64),
        ("file_bytes", ctypes.c_uint64),
        ("revision", ctypes.c_uint32),
        ("checksum", ctypes.c_uint32),
        ("profile", ctypes.c_char * 72),
    ]


class _Answer(ctypes.Structure):
    _fields_ = [
        ("table", ctypes.c_void_p),
        ("evaluator", ctypes.c_void_p),
        ("pipeline", ctypes.c_void_p),
        ("capacity", ctypes.c_uint64),
        ("fragment_bytes", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("text", ctypes.c_void_p),
        ("fragments", ctypes.c_uint64),
        ("text_bytes", ctypes.c_uint64),
        ("repeat_bytes", ctypes.c_uint64),
        ("repeats", ctypes.c_uint64),
        ("cut_gap", ctypes.c_double),
        ("repeat_gap", ctypes.c_double),
        ("cut_us", ctypes.c_double),
        ("repeat_us", ctypes.c_double),
    ]


# Where in the structure, in words of eight bytes.
_FRAGMENTS, _TEXT, _SIZE, _REPEATS, _GAP, _, _CUT_US, _REPEAT_US = range(7, 15)
_TEXT_BYTES = 16  # for each fragment


class _Native:
    """The functions of the library, with the types of what they take."""

    def __init__(self, loaded: ctypes.PyDLL) -> None:
        pointer, size, count = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
        self.open = _function(loaded, "sluice_table_from_memory", pointer, pointer, count)
        self.describe = _function(loaded, "sluice_table_describe", pointer, pointer)
        self.repeat = _function(loaded, "sluice_repeat", pointer, size, pointer)
        self.schedule = _function(loaded, "sluice_schedule", pointer, size, pointer, count, pointer)
        self.gaps = _function(loaded, "sluice_certificate", pointer, size, pointer, pointer)
        self.answer = _function(loaded, "sluice_answer_for", pointer, size)
        self.text = loaded.sluice_error_text
        self.text.argtypes, self.text.restype = [ctypes.c_int], ctypes.c_char_p

    def check_file(self, code: int) -> None:
        """Raise InvalidTable for what opening returned."""
        if code:
            text: bytes = self.text(code)
            raise InvalidTable(f"not a valid table file: {text.decode()}")


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
        self.native = native
        self.at = ctypes.addressof(table)
        described = _Description(ctypes.sizeof(_Description))
        native.describe(self.at, ctypes.addressof(described))
        self.max_schedule_fragments = int(described.max_schedule_fragments)
        room = min(self.max_schedule_fragments, BUFFERED_FRAGMENTS)
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
        code = self.native.repeat(self.at, message_bytes, words.at)
        if code:
            self.check(code, message_bytes)
            return 0
        return words.view[0]

    def schedule(self, message_bytes: int) -> list[int]:
        """The fragment sizes in sending order."""
        buffer, words = self._buffer, self._words
        if self.max_schedule_fragments > self._room and self.count(message_bytes) > self._room:
            buffer = _Buffer(words.view[0])
        code = self.native.schedule(self.at, message_bytes, buffer.at, buffer.room, words.at)
        if code:
            self.check(code, message_bytes)
        return buffer.view[: words.view[0]].tolist()

    def count(self, message_bytes: int) -> int:
        """How many fragments the schedule has."""
        words = self._words
        words.view[0] = 0
        code = self.native.schedule(self.at, message_bytes, None, 0, words.at)
        self.check(code, message_bytes)
        return words.view[0]

    def gaps(self, message_bytes: int) -> tuple[float, float]:
        """What is proven of the schedule, and of the repeated size."""
        code = self.native.gaps(self.at, message_bytes, self._gap_at, self._gap_at + 8)
        if code:
            self.check(code, message_bytes)
        return self._gaps[0], self._gaps[1]

    def answerer(self, evaluator: Evaluator) -> Answerer:
        """All of this in one call, by this evaluator; None for more fragments than are kept.

        An evaluator with `native` (the addresses of its function and its pipeline, and the delay)
        is called from C.
        """
        native = getattr(evaluator, "native", None)
        if native is None:
            return partial(answer_by, self, evaluator, maximum=BUFFERED_FRAGMENTS)
        return _NativeAnswers(self, evaluator, native)

    def sibling(self) -> NativeReader:
        """Another reader of the same bytes, for another thread."""
        file, table = self._kept
        return NativeReader(file, self.head, self.native, table)

    def check(self, code: int, message_bytes: int) -> None:
        """Raise InvalidInput for a message outside the range."""
        if code == _E_RANGE:
            check_covered(self.head, message_bytes)


class _NativeAnswers:
    """Whole answers: the evaluator is called where the sizes are."""

    def __init__(
        self, reader: NativeReader, evaluator: Evaluator, native: tuple[int, int, float]
    ) -> None:
        function, pipeline, self._delay_us = native
        room = BUFFERED_FRAGMENTS
        arrays = _Buffer(room), (ctypes.c_double * room)(), (ctypes.c_char * (room * _TEXT_BYTES))()
        buffer, sizes, text = arrays
        answer = _Answer(reader.at, function, pipeline, room, buffer.at)
        answer.sizes, answer.text = ctypes.addressof(sizes), ctypes.addressof(text)
        self._kept = reader, evaluator, arrays, answer
        self._check = reader.check
        self._ask, self._at = reader.native.answer, ctypes.addressof(answer)
        plain = memoryview(answer).cast("B")
        self._words, self._numbers = plain.cast("Q"), plain.cast("d")
        self._text = memoryview(text).cast("B")

    def __call__(self, message_bytes: int) -> Answer | None:
        code = self._ask(self._at, message_bytes)
        if code:
            if code == _E_CAPACITY:
                return None
            self._check(code, message_bytes)
        words, numbers, delay_us = self._words, self._numbers, self._delay_us
        repeats = words[_REPEATS]
        return (
            words[_FRAGMENTS],
            bytes(self._text[: words[_TEXT]]),
            numbers[_CUT_US] + delay_us,
            numbers[_GAP],
            words[_SIZE],
            repeats,
            numbers[_REPEAT_US] + delay_us if repeats else 0.0,
        )


class _Buffer:
    """Unsigned words of 64 bits that C fills and Python reads."""

    __slots__ = ("_words", "at", "room", "view")

    def __init__(self, room: int) -> None:
        self._words = (ctypes.c_uint64 * room)()
        self.room = room
        self.at = ctypes.addressof(self._words)
        self.view = memoryview(self._words).cast("B").cast("Q")
