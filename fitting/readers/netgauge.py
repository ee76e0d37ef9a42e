"""Netgauge's LogGP pattern (netgauge -x loggp -o FILE).

    # size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)
    1 10 10.250000 28.100000 131.300000 5.125000 ...

PRTT(n,d,s) is the time in µs that n messages of s bytes took, sent with d µs of computation between
them, until the single reply had come; each is a median. So a message costs (PRTT(n,d,s) -
PRTT(1,0,s)) / (n - 1): with d = 0 the interval between messages, with d = PRTT(1,0,s) the
computation and the send overhead, for the sender handles no replies. o_r was measured by the
receiver. Netgauge's own columns after o_r are not used: its plain regression over a protocol switch
gives negative values.
Older versions print one column o for o_s and o_r, which is then o_s.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from domain.measurement import MAX_TIME_US, Reading, SignatureTrace, TraceKind
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

FORMAT = "Netgauge LogGP"
_HEADER = re.compile(
    r"^#\s*size\s+n\s+PRTT\(1,0,s\)\s+PRTT\(n,0,s\)\s+PRTT\(n,PRTT\(1,0,s\),s\)(.*)"
)
_LEAST_COLUMNS = 5


@dataclass(slots=True)
class _Rows:
    sizes: list[int] = field(default_factory=list)
    bursts: list[int] = field(default_factory=list)
    computation_us: list[float] = field(default_factory=list)
    cost_us: list[float] = field(default_factory=list)

    def add(self, size: int, burst: int, computation_us: float, cost_us: float) -> None:
        self.sizes.append(size)
        self.bursts.append(burst)
        self.computation_us.append(computation_us)
        self.cost_us.append(cost_us)


def _recognises(head: str) -> bool:
    return "PRTT(1,0,s)" in head


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    rows, round_trip, receive = _Rows(), Collector(), Collector()
    runs, receive_place = 0, None
    for line in lines_of(content):
        if header := _HEADER.match(line.text):
            runs += 1
            names = header.group(1).split()
            receive_place = _LEAST_COLUMNS + names.index("o_r") if "o_r" in names else None
        elif runs and line.text[0].isdigit():
            _row(line, rows, round_trip, receive, receive_place)
    if not rows.sizes:
        refuse("no rows of sizes and PRTT times after the Netgauge header")
    trace = SignatureTrace(
        tuple(rows.sizes),
        tuple(rows.bursts),
        tuple(rows.computation_us),
        tuple(rows.cost_us),
        round_trip=round_trip.samples(),
        receive=receive.samples(),
        handles_replies=False,
    )
    check_kind(trace, kind, FORMAT)
    said = (
        ("format", FORMAT),
        ("time_unit", "µs"),
        ("round_trip_is", "PRTT(1,0,s), a full round trip"),
        ("cost_is", "(PRTT(n,d,s) - PRTT(1,0,s)) / (n - 1), without replies"),
        ("statistic", "median over the tests of a size"),
        ("runs", str(runs)),
    )
    counted = sizes_text(trace.round_trip)
    return Reading(FORMAT, trace, (*said, *counted, *left_out_text(round_trip, receive)))


def _row(
    line: Line, rows: _Rows, round_trip: Collector, receive: Collector, receive_place: int | None
) -> None:
    words = line.fields
    size = size_of(words[0])
    burst = size_of(words[1]) if len(words) > 1 else None
    times = [number_of(word) for word in words[2:_LEAST_COLUMNS]]
    if size is None or burst is None or None in times or len(words) < _LEAST_COLUMNS:
        round_trip.leave_out("cut off or not a number")
        return
    one, many, spaced = (float(time if time is not None else math.nan) for time in times)
    if burst < 2:
        round_trip.leave_out("of a burst of one message")
        return
    before = len(round_trip)
    round_trip.add(size, one)
    if len(round_trip) == before:
        return
    for computation_us, whole in ((0.0, many), (one, spaced)):
        cost = (whole - one) / (burst - 1)
        if 0.0 <= cost <= MAX_TIME_US:
            rows.add(size, burst, computation_us, cost)
        else:
            receive.leave_out("bursts faster than a single message, or not finite")
    if receive_place is not None and len(words) > receive_place:
        value = number_of(words[receive_place])
        if value is not None and value >= 0.0:
            receive.add(size, value)
        else:
            receive.leave_out("receive overheads below 0 or not finite")


SPEC = ReaderSpec(
    format=FORMAT,
    layout='a header line "# size n PRTT(1,0,s) PRTT(n,0,s) ..."',
    recognises=_recognises,
    read=_read,
)
