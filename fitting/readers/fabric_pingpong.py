"""fi_pingpong of libfabric.

    bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
    64      10      =10      1.2k        0.00s      5.11      12.53       0.08
    4k      10      =10      80k         0.00s    215.58      19.00       0.05

`usec/xfer` is half a round trip, the mean of the iterations (`show_perf` of pingpong.c divides by
two transfers an iteration). Sizes are of 1024: 4k is 4096 bytes; one with a point, as 1.5k, was
rounded, and is taken where it is whole. Where fewer messages were acknowledged than sent the row is
left out. Bandwidth tests of fabtests print another table (`iters`), and are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.text import (
    Collector,
    Line,
    check_kind,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
)

FORMAT = "fi_pingpong"
_HEADER = re.compile(
    r"^[^\S\n]{0,40}bytes[^\S\n]{1,40}(?:#sent[^\S\n]{1,40}#ack|iters)\b[^\n]{1,120}usec/xfer",
    re.MULTILINE,
)
_SIZE = re.compile(r"([0-9]{1,12})(?:\.([0-9]))?([kmgt]?)", re.IGNORECASE)
_PREFIXES = " kmgt"  # each 1024 times the one before
_COLUMNS, _ACK, _TIME = 8, 2, 6


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    samples: Collector = field(default_factory=Collector)
    runs: int = 0

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if _HEADER.match(line.text):
            if "#ack" not in line.fields:
                refuse(
                    f"line {line.number}: fabtests print this table for ping-pongs and for "
                    "bandwidths, and do not say which: run fi_pingpong, or name the columns, as "
                    "in size=bytes,time=usec/xfer:us"
                )
            self.runs += 1
            self.samples.begin_run()
        elif self.runs and line.text[0].isdigit():
            self._row(line)

    def _row(self, line: Line) -> None:
        words = line.fields
        if _SIZE.fullmatch(words[0]) is None or len(words) < 2:
            return  # a line of another program
        size, time_us = _bytes(words[0]), None
        if len(words) == _COLUMNS and line.is_whole:
            time_us = number_of(words[_TIME])
        if time_us is None:
            self.samples.leave_out("cut off or not a number")
        elif not words[_ACK].startswith("="):
            self.samples.leave_out("with fewer messages acknowledged than sent")
        elif size is None:
            self.samples.leave_out("of a size that was rounded")
        else:
            self.samples.add(size, time_us)


def _bytes(word: str) -> int | None:
    """The size; None for one that was rounded to a tenth and is not whole."""
    found = _SIZE.fullmatch(word)
    if found is None:
        return None
    scale = 1 << 10 * _PREFIXES.index(found[3].lower() or " ")
    tenths = int(found[1]) * 10 + int(found[2] or 0)
    return tenths * scale // 10 if tenths * scale % 10 == 0 else None


def _detects(text: str) -> bool:
    return "usec/xfer" in text and _HEADER.search(text) is not None


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    if not output.samples:
        refuse("no rows of sizes and times after the header of fi_pingpong")
    trace = MessageTrace(latency=output.samples.samples())
    check_kind(trace, kind, FORMAT)
    stated = (
        ("format", FORMAT),
        ("time_unit", "µs"),
        ("size_unit", "k of 1024 bytes"),
        ("latency_is", "half a round trip"),
        ("statistic", "mean over the iterations of a row"),
        ("runs", str(output.runs)),
    )
    counted, left_out = format_sizes(trace.latency), format_left_out(output.samples)
    conditions = (output.samples.spans(), ())
    return Reading(FORMAT, trace, (*stated, *counted, *left_out), conditions=conditions)


SPEC = ReaderSpec(
    format=FORMAT,
    about="fi_pingpong of libfabric",
    layout='a header line "bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec"',
    marks=(
        mark("a column #ack", r"\s#ack\b"),
        mark("a column usec/xfer", r"\busec/xfer\b"),
    ),
    detects=_detects,
    read=_read,
)
