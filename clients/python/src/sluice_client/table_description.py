"""What a table file says of itself; sizes are whole bytes, times µs, per-byte costs ns.

The fields have the names of those in requests, which take a pipeline of these as it is. They stand
here since who reads tables may have a Python that is too old for `sluice_client.contract`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableRange:
    """One cost line, µs a fragment and ns a byte, up to this fragment size; None: without end."""

    overhead_us: float
    ns_per_byte: float
    up_to_bytes: int | None


@dataclass(frozen=True)
class TableStage:
    """A name, and a cost line for each range of fragment sizes, ascending, the last one open."""

    name: str
    ranges: tuple[TableRange, ...]


@dataclass(frozen=True)
class TablePipeline:
    """Ordered stages, and a constant delay (µs) that occupies none of them."""

    stages: tuple[TableStage, ...]
    delay_us: float


@dataclass(frozen=True)
class TableConstraints:
    """What every schedule of a table respects; None: no such limit."""

    min_fragment_bytes: int
    max_fragment_bytes: int | None
    alignment_bytes: int
    max_fragments: int | None


@dataclass(frozen=True)
class TableDescription:
    """What a table file is for. `profile` is empty, and `revision` 0, where it has no name.

    `relative_gap` is the tolerance that was asked for; `max_schedule_fragments` the greatest number
    of fragments that any of its schedules has.
    """

    profile: str
    revision: int
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    constraints: TableConstraints
    fragment_cap: int
    cut_entries: int
    repeat_entries: int
    max_schedule_fragments: int
    file_bytes: int
    pipeline: TablePipeline
