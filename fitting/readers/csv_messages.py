"""The project's own format of whole messages.

    message_bytes,repetition,latency_us,interarrival_us
    4096,0,184.3,81.2

Either time column, or both; an empty field was not measured. Latencies are one-way and of
unpipelined messages, inter-arrival times of back-to-back messages of one size.
"""

from __future__ import annotations

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec
from fitting.readers.columns import blocks_of, header_of
from fitting.readers.kinds import check_kind
from fitting.readers.text import Collector, refuse, sizes_text

FORMAT = "message CSV"
_SIZE, _REPETITION = "message_bytes", "repetition"
_LATENCY, _INTERARRIVAL = "latency_us", "interarrival_us"
_HEADER = f"{_SIZE},{_REPETITION},{_LATENCY} or {_INTERARRIVAL} or both"


def _recognises(head: str) -> bool:
    names = header_of(head, _SIZE)
    times = set(names[2:])
    return len(names) > 2 and names[1] == _REPETITION and times <= {_LATENCY, _INTERARRIVAL}


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    parts = {_LATENCY: Collector(), _INTERARRIVAL: Collector()}
    for header, rows in blocks_of(content, first_column=_SIZE):
        names = [name.strip() for name in header.text.split(",")]
        if names[1:2] != [_REPETITION] or not set(names[2:]) <= set(parts) or len(names) < 3:
            refuse(f"line {header.number}: expected the header line {_HEADER}")
        for row in rows:
            size = row.size(0)
            row.size(1, greatest=2**48, least=0)
            for place, name in enumerate(names[2:], 2):
                time_us = row.time_us(place)
                if time_us is not None:
                    parts[name].add(size, time_us)
    latency, interarrival = (part.samples() for part in parts.values())
    if latency is None and interarrival is None:
        refuse("no measurements: expected at least one row with a time")
    trace = MessageTrace(latency, interarrival)
    check_kind(trace, kind, FORMAT)
    said = [("format", FORMAT), ("time_unit", "µs")]
    if latency is not None:
        said.append(("latency_is", "one way, as the file says"))
    if interarrival is not None:
        said.append(("interarrival_is", "between arrivals, as the file says"))
    return Reading(FORMAT, trace, (*said, *sizes_text(latency, interarrival)))


SPEC = ReaderSpec(
    format=FORMAT,
    layout=f"a header line {_HEADER}",
    recognises=_recognises,
    read=_read,
)
