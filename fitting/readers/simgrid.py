"""SimGrid's platform-calibration: one row a timed MPI call.

    MPI_Send,4096,32.633089,7.082000e-06
    MPI_Recv,4096,32.633089,2.322920e-04

Operation, bytes, start and duration, in seconds. The calibration programs write no header line;
files that were gathered afterwards often have one (op,size,start,duration, in any order), which is
understood. In the ping-pong an MPI_Send and the MPI_Recv of the answer share their start; the sum
of their durations is a round trip, and half of it a latency. Where there is no ping-pong, the time
inside MPI_Send, MPI_Isend and MPI_Recv is that of a stage each; that of a receive has the wait for
the message in it. MPI_Iprobe, MPI_Test and MPI_Wtime are no stages of a message: they are left out,
and refused by name alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from domain.measurement import MessageTrace, Reading, Samples, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.columns import fields_of
from fitting.readers.stage_rows import StageRows
from fitting.readers.text import (
    BELOW_ZERO,
    Collector,
    Line,
    check_kind,
    first_rows,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
    size_of,
)

FORMAT = "SimGrid calibration CSV"
_OPERATIONS = {"op", "operation", "function", "call"}
_SIZES = {"size", "msg_size", "message_size", "count"}
_CALL = re.compile(r"MPI_[A-Za-z_]{1,40}")
_BEGINS = re.compile(
    r'^(?:"?MPI_[A-Za-z_]{1,40}"?,'
    r"|(?=[^\n]{0,400}?\bstart\b)(?=[^\n]{0,400}?\bduration\b)[^,\n]{1,60},)",
    re.MULTILINE | re.IGNORECASE,
)
# As the programs print a duration (%e): what is shorter was cut off, and would be read as seconds.
_WHOLE_DURATION = re.compile(r"[0-9]\.[0-9]{6}e[+-][0-9]{2,3}|-?(?:nan|inf)")
_STAGES = ("MPI_Send", "MPI_Isend", "MPI_Recv")
_SECOND_US = 1e6
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class _Places:
    """Which field is what, and how many there are."""

    operation: int = 0
    size: int = 1
    start: int = 2
    duration: int = 3
    count: int = 4


_WITHOUT_HEADER = _Places()


def is_calls(head: str) -> bool:
    """Return whether the beginning of this file is rows of MPI calls, with or without a header
    line.
    """
    kept = iter(first_rows(head, 2))
    names = _split(next(kept, ""))
    places = _places(names)
    if places is None:
        return len(names) == _WITHOUT_HEADER.count and _CALL.fullmatch(names[0]) is not None
    row = _split(next(kept, ""))
    return len(row) > places.operation and _CALL.fullmatch(row[places.operation]) is not None


def _split(line: str) -> list[str]:
    return [field.strip().strip('"') for field in line.split(",")]


def _places(names: list[str]) -> _Places | None:
    """The places in a header line; None where this is none."""
    lower = [name.lower() for name in names]
    operation = next((place for place, name in enumerate(lower) if name in _OPERATIONS), None)
    size = next((place for place, name in enumerate(lower) if name in _SIZES), None)
    if operation is None or size is None or "start" not in lower or "duration" not in lower:
        return None
    return _Places(operation, size, lower.index("start"), lower.index("duration"), len(names))


@dataclass(slots=True)
class _PingPongs:
    """Sends and receives, paired by size and start, and each by itself."""

    samples: Collector = field(default_factory=Collector)
    calls: dict[str, int] = field(default_factory=dict)
    rows: StageRows = field(default_factory=StageRows)
    paired: int = 0
    waiting: dict[str, dict[tuple[int, str], list[float]]] = field(
        default_factory=lambda: {"MPI_Send": {}, "MPI_Recv": {}}
    )

    def add(self, operation: str, size: int, start: str, duration_us: float) -> None:
        """Take a call; with its counterpart it is a sample."""
        self.calls[operation] = self.calls.get(operation, 0) + 1
        if operation in _STAGES:
            self.rows.of(operation).add(size, duration_us)
        if operation not in self.waiting:
            return
        other = self.waiting["MPI_Recv" if operation == "MPI_Send" else "MPI_Send"]
        answers_us = other.get((size, start))
        if not answers_us:
            self.waiting[operation].setdefault((size, start), []).append(duration_us)
            return
        answer_us = answers_us.pop(0)
        self.paired += 2
        if min(duration_us, answer_us) < 0.0:
            self.samples.leave_out(BELOW_ZERO)
        else:
            self.samples.add(size, (duration_us + answer_us) * _HALF)


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    found, places = _PingPongs(), _WITHOUT_HEADER
    last = content.count(b"\n") + 1 if content[-1:] not in (b"\n", b"\r") else None
    for line in lines_of(content):
        if line.text.startswith("#"):
            continue
        fields = fields_of(line.text, line.number)
        if line.number == last and _is_cut_off(fields, places):
            found.samples.leave_out("cut off")
        elif row := _row(fields, places):
            found.add(*row)
        else:
            places = _places(fields) or _refuse_row(line)
    if not found.samples:
        return _read_stages(found, kind)
    trace = MessageTrace(latency=found.samples.samples())
    check_kind(trace, kind, FORMAT)
    return Reading(FORMAT, trace, _understood(found, trace))


def _read_stages(found: _PingPongs, kind: TraceKind | None) -> Reading:
    """What single calls cost, where no ping-pong is in the file. Raises UnreadableTrace."""
    trace = None if found.paired else found.rows.trace()
    if trace is None:
        refuse(_missing(found))
    check_kind(trace, kind, FORMAT)
    stated = [
        ("format", FORMAT),
        ("time_unit", "s, turned into µs"),
        ("measured", "time inside a call; a receive has the wait for its message in it"),
        ("statistic", "every sample"),
    ]
    others = [name for name in sorted(found.calls) if name not in _STAGES]
    if others:
        stated.append(("calls_left_out", ", ".join(others)[:200]))
    counted = format_sizes(Samples(trace.message_bytes, trace.stage_us[0]))
    left_out = format_left_out(*found.rows.stages.values())
    return Reading(FORMAT, trace, (*stated, *counted, *left_out))


def _row(fields: list[str], places: _Places) -> tuple[str, int, str, float] | None:
    """Operation, size, start and duration in µs; None where this is no row."""
    if len(fields) != places.count or not _CALL.fullmatch(fields[places.operation]):
        return None
    size, duration = size_of(fields[places.size]), number_of(fields[places.duration])
    if size is None or duration is None:
        return None
    return fields[places.operation], size, fields[places.start], duration * _SECOND_US


def _refuse_row(line: Line) -> NoReturn:
    refuse(f"line {line.number}: expected operation,bytes,start,duration in seconds")


def _is_cut_off(fields: list[str], places: _Places) -> bool:
    if len(fields) < places.count:
        return True
    return places is _WITHOUT_HEADER and not _WHOLE_DURATION.fullmatch(fields[places.duration])


def _understood(found: _PingPongs, trace: MessageTrace) -> tuple[tuple[str, str], ...]:
    stated = [
        ("format", FORMAT),
        ("time_unit", "s, turned into µs"),
        ("size_unit", "bytes"),
        ("latency_is", "half of MPI_Send + MPI_Recv of one ping-pong"),
        ("statistic", "every sample"),
    ]
    others = sum(found.calls.values()) - found.paired
    if others:
        names = ", ".join(sorted(found.calls))[:200]
        stated.append(
            ("calls_left_out", f"{others}: costs of calls that are no latencies (of {names})")
        )
    return (*stated, *format_sizes(trace.latency), *format_left_out(found.samples))


def _missing(found: _PingPongs) -> str:
    if found.paired:
        return "no ping-pong with more than 0 bytes and a time from 0 up"
    return (
        "no ping-pong (MPI_Send and MPI_Recv of one start), only "
        f"{', '.join(sorted(found.calls))[:200]}: the time inside one call is not the time of a "
        "message on its way"
    )


SPEC = ReaderSpec(
    format=FORMAT,
    about="the ping-pong of platform-calibration, or its sends and receives",
    layout="rows MPI_Send,bytes,start,duration and MPI_Recv,..., with or without a header line",
    marks=(
        mark("rows of MPI calls", r"\bMPI_[A-Z][a-z]+"),
        mark(
            "commas between operation, bytes, start and duration",
            r'\bMPI_\w+"?\s*,|,\s*"?MPI_\w+',
        ),
    ),
    detects=is_calls,
    read=_read,
    begins=_BEGINS,
)
