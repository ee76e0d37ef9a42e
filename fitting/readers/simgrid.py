"""SimGrid's platform-calibration: one row a timed MPI call, without a header line.

    MPI_Send,4096,32.633089,7.082000e-06
    MPI_Recv,4096,32.633089,2.322920e-04

Operation, bytes, start and duration, in seconds. In its ping-pong an MPI_Send and the MPI_Recv of
the answer share their start; the sum of their durations is a round trip, and half of it a latency.
MPI_Isend, MPI_Recv alone, MPI_Iprobe, MPI_Test and MPI_Wtime are costs of calls and no latencies:
they are left out where there is a ping-pong, and refused by name where there is none.
"""

from __future__ import annotations

import re

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec
from fitting.readers.kinds import check_kind
from fitting.readers.text import (
    Collector,
    Line,
    left_out_text,
    lines_of,
    number_of,
    refuse,
    size_of,
    sizes_text,
)

FORMAT = "SimGrid calibration CSV"
_ROW = re.compile(r"^\"?(MPI_[A-Za-z]{1,40})\"?,([^,]*),([^,]*),([^,]*)$")
_SECOND_US = 1e6
_COLUMNS = 4


def _recognises(head: str) -> bool:
    for line in head.splitlines():
        text = line.strip().lstrip("\ufeff")
        if text and not text.startswith("#"):
            return _ROW.match(text) is not None
    return False


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    samples, calls = Collector(), dict[str, int]()
    send: tuple[int, str, float] | None = None
    for line in lines_of(content):
        if line.text.startswith("#"):
            continue
        operation, size, start, duration_us = _row(line)
        calls[operation] = calls.get(operation, 0) + 1
        if operation == "MPI_Recv" and send is not None and send[:2] == (size, start):
            samples.add(size, (send[2] + duration_us) / 2.0)
        send = (size, start, duration_us) if operation == "MPI_Send" else None
    if not samples:
        refuse(_missing(tuple(calls), samples))
    trace = MessageTrace(latency=samples.samples())
    check_kind(trace, kind, FORMAT)
    others = sum(calls.values()) - 2 * (len(samples) + sum(samples.left_out.values()))
    said = [
        ("format", FORMAT),
        ("time_unit", "s, turned into µs"),
        ("latency_is", "half of MPI_Send + MPI_Recv of one ping-pong"),
        ("statistic", "every sample"),
    ]
    if others:
        said.append(("calls_left_out", f"{others}: costs of calls that are no latencies"))
    return Reading(FORMAT, trace, (*said, *sizes_text(trace.latency), *left_out_text(samples)))


def _row(line: Line) -> tuple[str, int, str, float]:
    found = _ROW.match(line.text)
    size = size_of(found.group(2).strip()) if found else None
    duration = number_of(found.group(4).strip()) if found else None
    if found is None or size is None or duration is None:
        return refuse(f"line {line.number}: expected operation,bytes,start,duration in seconds")
    return found.group(1), size, found.group(3).strip(), duration * _SECOND_US


def _missing(calls: tuple[str, ...], samples: Collector) -> str:
    if samples.left_out:
        return "no ping-pong with more than 0 bytes and a time from 0 up"
    return (
        f"no ping-pong (MPI_Send and MPI_Recv of one start), only {', '.join(calls)[:200]}: the "
        "time inside one call is not the time of a message on its way"
    )


SPEC = ReaderSpec(
    format=FORMAT,
    layout="rows MPI_Send,bytes,start,duration and MPI_Recv,... without a header line",
    recognises=_recognises,
    read=_read,
)
