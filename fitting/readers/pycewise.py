"""pycewise's input: a header line with `size` and `duration`, one row a measurement.

    size,duration
    4096,0.0001156

Other columns (op, start, index) are left out. The file does not say its unit: pycewise comes from
SimGrid's calibration, whose times are seconds, so seconds are assumed and a notice says so. A
column `duration_us` is taken at its word. The durations are taken as one-way latencies.
"""

from __future__ import annotations

import csv
import io

from domain.measurement import MessageTrace, Reading, TraceKind
from domain.solution import Notice
from fitting.contract import ReaderSpec
from fitting.readers.kinds import check_kind
from fitting.readers.text import (
    Collector,
    decoded,
    left_out_text,
    number_of,
    refuse,
    size_of,
    sizes_text,
)

FORMAT = "pycewise CSV"
_SIZE, _SECONDS, _MICROSECONDS = "size", "duration", "duration_us"


def _recognises(head: str) -> bool:
    for line in head.removeprefix("\ufeff").splitlines():
        if line.strip() and not line.startswith("#"):
            names = _names(line)
            return _SIZE in names and (_SECONDS in names or _MICROSECONDS in names)
    return False


def _names(line: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in line.split(",")]


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    text = decoded(content)
    lines = ((n, line.strip()) for n, line in enumerate(io.StringIO(text), 1))
    kept = ((n, line) for n, line in lines if line and not line.startswith("#"))
    number, header = next(kept, (1, ""))
    names = _names(header)
    if _SIZE not in names:
        refuse(f"line {number}: expected a header line with {_SIZE} and {_SECONDS}")
    is_seconds = _MICROSECONDS not in names
    size_place = names.index(_SIZE)
    time_place = names.index(_SECONDS if is_seconds else _MICROSECONDS)
    samples = Collector()
    for number, line in kept:
        _row(number, line, (size_place, time_place), samples, scale=1e6 if is_seconds else 1.0)
    if not samples:
        refuse("no rows with a size of more than 0 bytes and a duration from 0 up")
    trace = MessageTrace(latency=samples.samples())
    check_kind(trace, kind, FORMAT)
    said = (
        ("format", FORMAT),
        ("time_unit", "s (assumed), turned into µs" if is_seconds else "µs"),
        ("latency_is", "one way (assumed)"),
        ("statistic", "every sample"),
    )
    understood = (*said, *sizes_text(trace.latency), *left_out_text(samples))
    return Reading(FORMAT, trace, understood, _notices() if is_seconds else ())


def _row(
    number: int, line: str, places: tuple[int, int], samples: Collector, *, scale: float
) -> None:
    try:
        fields = next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration):
        refuse(f"line {number}: a quoted field is not closed")
    if len(fields) <= max(places):
        samples.leave_out("with too few columns")
        return
    size, value = size_of(fields[places[0]].strip()), number_of(fields[places[1]].strip())
    if size is None or value is None:
        refuse(f"line {number}: expected a whole number of bytes and a duration")
    samples.add(size, value * scale)


def _notices() -> tuple[Notice, ...]:
    return (
        Notice(
            "unit_assumed",
            "the file does not say its unit: durations are taken as seconds, one way; name the "
            "column duration_us where they are µs",
        ),
    )


SPEC = ReaderSpec(
    format=FORMAT,
    layout="a header line with the columns size and duration",
    recognises=_recognises,
    read=_read,
)
