"""The project's own format of whole messages.

    message_bytes,repetition,latency_us,interarrival_us
    4096,0,184.3,81.2

Either time column, or both; an empty field was not measured. Latencies are one-way and of
unpipelined messages, inter-arrival times of back-to-back messages of one size. A header with these
names is never one of stages: beside stages, the time of the whole message is total_us.
"""

from __future__ import annotations

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.columns import (
    REPETITION,
    SIZE,
    Block,
    Column,
    header_of,
    read_blocks,
    samples_of,
)
from fitting.readers.kinds import check_kind
from fitting.readers.text import refuse, sizes_text

FORMAT = "message CSV"
_LATENCY, _INTERARRIVAL = "latency_us", "interarrival_us"
_TIMES = {_LATENCY, _INTERARRIVAL}
_HEADER = f"{SIZE.name},{REPETITION.name},{_LATENCY} or {_INTERARRIVAL} or both"


def _recognises(head: str) -> bool:
    names = header_of(head, SIZE.name)
    return names[1:2] == (REPETITION.name,) and not _TIMES.isdisjoint(names[2:])


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    blocks: dict[tuple[str, ...], Block] = {}

    def block_of(names: tuple[str, ...], number: int) -> Block:
        _check_header(names, number)
        times = (Column(name, may_be_empty=True) for name in names[2:])
        return blocks.setdefault(names, Block((SIZE, REPETITION, *times)))

    read_blocks(content, block_of)
    latency, interarrival = (samples_of(blocks.values(), n) for n in (_LATENCY, _INTERARRIVAL))
    if latency is None and interarrival is None:
        refuse("no measurements: expected at least one row with a time")
    trace = MessageTrace(latency, interarrival)
    check_kind(trace, kind, FORMAT)
    said = [("format", FORMAT), ("time_unit", "µs"), ("size_unit", "bytes")]
    if latency is not None:
        said.append(("latency_is", "one way, as the file says"))
    if interarrival is not None:
        said.append(("interarrival_is", "between arrivals, as the file says"))
    return Reading(FORMAT, trace, (*said, *sizes_text(latency, interarrival)))


def _check_header(names: tuple[str, ...], number: int) -> None:
    if names[1:2] != (REPETITION.name,) or len(names) < 3 or len(set(names)) < len(names):
        refuse(f"line {number}: expected the header line {_HEADER}")
    if not set(names[2:]) <= _TIMES:
        refuse(
            f"line {number}: expected the header line {_HEADER}; beside the times of stages the "
            "time of the whole message is total_us, the last column"
        )


SPEC = ReaderSpec(
    format=FORMAT,
    about="latencies of whole messages, times between arrivals, or both",
    layout=f"a header line {_HEADER}",
    marks=(
        mark("message_bytes as the first column", r'^"?message_bytes\b"?\s*,'),
        mark("repetition as the second", r'^[^,]+,\s*"?repetition\b'),
        mark("a column latency_us or interarrival_us", r"\b(latency|interarrival)_us\b"),
    ),
    recognises=_recognises,
    read=_read,
)
