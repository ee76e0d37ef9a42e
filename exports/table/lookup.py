"""Looking messages up in the bytes of a table file, in C where it was built, else in Python.

Source    docs/format.md; clients/c/include/sluice.h.
Cost      a bisection, and a few integer operations a fragment.
Exact     both readers give the same integers and the same certificates, to the last bit.
Traps     the bytes belong to the reader for as long as it lives, and are checked once, on opening.
          A reader fills buffers of its own: each thread needs its own (`sibling`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from domain.errors import InvalidInput
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.layout import CHECKED_FROM, HEADER, HEADER_BYTES, Header
from exports.table.pipeline import unpack_pipeline
from exports.table.slt import decode

BUFFERED_FRAGMENTS = 4096  # of a schedule: a reader keeps buffers for so many
_DECODED = 12  # bytes of a decoded plan table for each byte of its file, about

Evaluator: TypeAlias = Callable[[Sequence[int]], float]  # fragment sizes to latency, µs


@dataclass(frozen=True, slots=True)
class TableHead:
    """What a table file says of itself; sizes in bytes. `profile` is "" where it has no name."""

    profile: str
    revision: int
    pipeline: Pipeline
    limits: FragmentLimits
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float

    def covers(self, message_bytes: int) -> bool:
        """Whether the message is in the range."""
        return self.min_message_bytes <= message_bytes <= self.max_message_bytes


# All that is said of one message: how many fragments, their sizes as decimal numbers between
# commas, what they cost, what is proven of that; a repeated size, how many fragments it makes, what
# they cost. Latencies are µs. Of the repeated size all is 0 where none is admitted.
Answer: TypeAlias = tuple[int, bytes, float, float, int, int, float]
Answerer: TypeAlias = Callable[[int], Answer | None]


class TableReader(Protocol):
    """Lookups in one table file, for one thread. Raises InvalidInput outside the range."""

    @property
    def head(self) -> TableHead:
        """What the file says of itself."""
        ...

    @property
    def max_schedule_fragments(self) -> int:
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

    def answerer(self, evaluator: Evaluator) -> Answerer:
        """All of this in one call, by this evaluator; None for more fragments than are kept."""
        ...

    def sibling(self) -> TableReader:
        """Another reader of the same bytes, for another thread."""
        ...


def check_covered(head: TableHead, message_bytes: int) -> None:
    """Raise InvalidInput for a message outside the range."""
    if not head.covers(message_bytes):
        raise InvalidInput(
            f"expected {head.min_message_bytes} <= message_bytes <= {head.max_message_bytes}",
            field="message_bytes",
        )


def answer_by(
    reader: TableReader, evaluator: Evaluator, message_bytes: int, *, maximum: int | None = None
) -> Answer | None:
    """All that a reader says of a message; None where that is more than `most` fragments."""
    size = reader.repeat(message_bytes)
    repeats = -(-message_bytes // size) if size else 0
    if maximum is not None and max(repeats, reader.count(message_bytes)) > maximum:
        return None
    sizes = reader.schedule(message_bytes)
    gap, _ = reader.gaps(message_bytes)
    repeat_us = 0.0
    if size:
        rest = message_bytes - (repeats - 1) * size
        repeat_us = evaluator([*[size] * (repeats - 1), rest])
    text = ",".join(map(str, sizes)).encode()
    return len(sizes), text, evaluator(sizes), gap, size, repeats, repeat_us


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
        header.min_message_bytes,
        header.max_message_bytes,
        header.relative_gap,
    )


class PythonReader:
    """Reads the decoded plan table; any number of threads may."""

    def __init__(self, head: TableHead, table: PlanTable, file_bytes: int) -> None:
        self.head = head
        self.max_schedule_fragments = max(cut.fragments for cut in table.cuts)
        self.memory_bytes = _DECODED * file_bytes
        self._table = table
        self._sizes = [cut.message_bytes for cut in table.cuts]

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
        table = self._table
        check_covered(self.head, message_bytes)
        return table.cuts[bisect_right(self._sizes, message_bytes) - 1].fragments

    def gaps(self, message_bytes: int) -> tuple[float, float]:
        """What is proven of the schedule, and of the repeated size."""
        table = self._table
        return table.relative_gap_at(message_bytes), table.repeat_gap_at(message_bytes)

    def answerer(self, evaluator: Evaluator) -> Answerer:
        """All of this in one call, by this evaluator; None for more fragments than are kept."""
        return lambda message_bytes: answer_by(
            self, evaluator, message_bytes, maximum=BUFFERED_FRAGMENTS
        )

    def sibling(self) -> PythonReader:
        """This reader: it keeps no buffer."""
        return self
