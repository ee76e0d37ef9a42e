"""The reader of table files: lookups by message size, from a copy in memory, without a server.

Source    docs/format.md of Sluice, version 1, whose integer arithmetic this is to the byte.
Cost      opening: linear in the file, once. A lookup: a bisection, and for a schedule one pass
          over its fragments.
Traps     a table does not follow its file: what happens to the file later reaches no open table.
"""

from __future__ import annotations

import hashlib
import os
import struct
from bisect import bisect_right
from collections.abc import Sequence
from operator import index, sub
from types import TracebackType
from typing import NamedTuple

from sluice_client.errors import InvalidTable, OutOfRange
from sluice_client.table_checks import check_records, checked_header
from sluice_client.table_description import TableConstraints, TableDescription, TablePipeline
from sluice_client.table_layout import CUT_WORDS, REPEAT_WORDS, Columns, Header
from sluice_client.table_paths import found_path, opened
from sluice_client.table_pipeline import read_pipeline

_HALF = 1 << 31
_MAX_READ_BYTES = 1 << 28  # of one file: tables have a few KiB


class Certificate(NamedTuple):
    """What is proven for a message: how far above a lower bound its latency is at most, relative.

    `cut_relative_gap` is the schedule's, against every admitted cut; `repeat_relative_gap` the
    repeated size's, against every admitted repeated size.
    """

    cut_relative_gap: float
    repeat_relative_gap: float


class Table:
    """A validated table file. Lookups change nothing, so any number of threads may share one.

    Made by `Table.open` or `Table.from_bytes`; both raise InvalidTable. Lookups raise OutOfRange
    for a message outside `description.min_message_bytes` to `max_message_bytes`, and ValueError
    after `close`.
    """

    __slots__ = (
        "_columns",
        "_cut_messages",
        "_cuts",
        "_data",
        "_maximum",
        "_minimum",
        "_positions",
        "_repeat_growths",
        "_repeat_messages",
        "_repeat_sizes",
        "_repeats",
        "_unit",
        "description",
    )

    def __init__(self, content: bytes | bytearray | memoryview) -> None:
        data = memoryview(bytes(content))  # of what may be changed, a copy
        header = checked_header(data)
        columns = Columns.of(data, header)
        check_records(header, columns, data)
        pipeline = read_pipeline(data[header.pipeline_offset :])
        self.description: TableDescription = _description(
            header, columns, pipeline, file_bytes=len(data)
        )
        self._data, self._columns = data, columns
        # Lists, because a view makes a number of each word that it is asked for.
        self._cuts, self._cut_messages = columns.cuts, columns.cut_messages.tolist()
        self._repeats, self._repeat_messages = columns.repeats, columns.repeat_messages.tolist()
        self._repeat_sizes: list[int] = columns.repeats[1::REPEAT_WORDS].tolist()
        self._positions = columns.positions
        self._minimum, self._maximum = header.min_message_bytes, header.max_message_bytes
        self._unit = header.alignment_bytes
        self._repeat_growths = _growths(self._repeat_messages, self._repeat_sizes, self._unit)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Table:
        """Read a file into memory and validate all of it.

        Raises InvalidTable, also for a pipe or a device and where the file changed while it was
        read; OSError if it cannot be read. Whoever overwrites, shortens or removes the file later
        does not reach the table.
        """
        with opened(path) as file:
            before = os.fstat(file.fileno())
            if before.st_size > _MAX_READ_BYTES:
                raise InvalidTable(f"expected at most {_MAX_READ_BYTES} bytes in a file")
            data = file.read()
            after = os.fstat(file.fileno())
        is_whole = len(data) == before.st_size == after.st_size
        if not is_whole or before.st_mtime_ns != after.st_mtime_ns:
            raise InvalidTable("the file changed while it was read")
        return cls.from_bytes(data)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Table:
        """Return a table from the bytes of its file. Raises InvalidTable."""
        return cls(data)

    @classmethod
    def find(cls, name: str) -> Table:
        """Open the table of this name where the C library looks for it too.

        SLUICE_TABLE names a file, or a folder in which NAME.slt is; where it is not set, NAME.slt
        is looked for in $XDG_CONFIG_HOME/sluice, or ~/.config/sluice without that, and then in
        /etc/sluice. Raises FileNotFoundError where there is none, ValueError for what is no name,
        and what `open` raises.
        """
        return cls.open(found_path(name))

    def repeat(self, message_bytes: int) -> int:
        """Return the best repeated size for this message, bytes: fragments of it, then what is
        left.

        0 where the table's limits admit cuts and none that repeats one size. Raises OutOfRange.
        """
        message = message_bytes if message_bytes.__class__ is int else index(message_bytes)
        if not self._minimum <= message <= self._maximum:
            raise self._outside()
        at = bisect_right(self._repeat_messages, message) - 1
        size = self._repeat_sizes[at]
        growth = self._repeat_growths[at]
        if growth is None:
            return size
        begin, length, units, unit = growth
        # Both roundings upwards: a size that falls short by one byte costs a further fragment.
        return size - unit * (units * -(((begin - message) << 32) // length) >> 32)

    def schedule(self, message_bytes: int) -> list[int]:
        """Return the fragment sizes for this message, whole bytes, in sending order; they sum to
        it.

        Raises OutOfRange.
        """
        message = message_bytes if message_bytes.__class__ is int else index(message_bytes)
        if not self._minimum <= message <= self._maximum:
            raise self._outside()
        at = CUT_WORDS * (bisect_right(self._cut_messages, message) - 1)
        cuts, unit = self._cuts, self._unit
        begin, first, count = cuts[at], cuts[at + 1], cuts[at + 2] - 1
        if not count:
            return [message]
        ends = self._positions[first : first + count].tolist()
        if begin != message:
            other = first + count  # where the next record's positions begin
            share = ((message - begin) << 32) // (cuts[at + CUT_WORDS] - begin)
            after = self._positions[other : other + count].tolist()
            ends = [low + (((high - low) * share + _HALF) >> 32) for low, high in zip(ends, after)]
        if unit != 1:
            ends = [unit * end for end in ends]
        ends.append(message)
        return list(map(sub, ends, [0, *ends]))

    def certificate(self, message_bytes: int) -> Certificate:
        """Return what is proven of this message's schedule and repeated size. Raises OutOfRange."""
        message = message_bytes if message_bytes.__class__ is int else index(message_bytes)
        if not self._minimum <= message <= self._maximum:
            raise self._outside()
        cut = CUT_WORDS * (bisect_right(self._cut_messages, message) - 1)
        repeat = REPEAT_WORDS * (bisect_right(self._repeat_messages, message) - 1)
        return Certificate(
            _double(self._cuts[cut + CUT_WORDS - 1]),
            _double(self._repeats[repeat + REPEAT_WORDS - 1]),
        )

    @property
    def digest(self) -> str:
        """The SHA-256 of the file, in hexadecimal: what the service knows it by."""
        return hashlib.sha256(self._data).hexdigest()

    def close(self) -> None:
        """Give the file's bytes back now; all of it is given back with the last reference."""
        self._minimum, self._maximum = 1, 0  # no message is inside
        for view in (*self._columns[::-1], self._data):
            view.release()

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        about = self.description
        name = f"{about.profile}@{about.revision}" if about.profile else "unnamed"
        return f"<Table {name}, {about.min_message_bytes} to {about.max_message_bytes} bytes>"

    def _outside(self) -> ValueError:
        if self._minimum > self._maximum:
            return ValueError("the table is closed")
        return OutOfRange(f"expected {self._minimum} <= message_bytes <= {self._maximum}")


def _growths(
    messages: Sequence[int], sizes: Sequence[int], unit: int
) -> list[tuple[int, int, int, int] | None]:
    """How the size grows from each record to the next: the message that it begins at, the bytes to
    the next, the units that are added until there, negative, and the unit; None where it stays.
    docs/format.md, Reading a repeated size.
    """
    found: list[tuple[int, int, int, int] | None] = []
    for at in range(len(messages) - 1):
        begin, end, size, after = messages[at], messages[at + 1], sizes[at], sizes[at + 1]
        stays = not size or not after or after == size or -(-begin // size) != -(-end // after)
        found.append(None if stays else (begin, end - begin, (size - after) // unit, unit))
    return [*found, None]


def _double(word: int) -> float:
    return float(struct.unpack("<d", word.to_bytes(8, "little"))[0])


def _description(
    header: Header, columns: Columns, pipeline: TablePipeline, *, file_bytes: int
) -> TableDescription:
    return TableDescription(
        profile=header.name[: header.name_bytes].decode("ascii"),
        revision=header.revision,
        min_message_bytes=header.min_message_bytes,
        max_message_bytes=header.max_message_bytes,
        relative_gap=header.relative_gap,
        constraints=TableConstraints(
            header.min_fragment_bytes,
            header.max_fragment_bytes or None,
            header.alignment_bytes,
            header.max_fragments or None,
        ),
        fragment_cap=header.fragment_cap,
        cut_entries=header.cut_count,
        repeat_entries=header.repeat_count,
        max_schedule_fragments=max(columns.cuts[2::CUT_WORDS]),
        file_bytes=file_bytes,
        pipeline=pipeline,
    )
