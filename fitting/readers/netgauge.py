"""Netgauge's LogGP pattern (netgauge -x loggp -o FILE).

    # size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)
    1 10 10.250000 28.100000 131.300000 5.125000 ...

PRTT(n,d,s) is the time in µs that n messages of s bytes took, sent with d µs of computation between
them, until the single reply had come; each is a median. So a message costs (PRTT(n,d,s) -
PRTT(1,0,s)) / (n - 1): with d = 0 the interval between messages, with d = PRTT(1,0,s) the
computation and the send overhead, for the sender handles no replies. o_r was measured by the
receiver. Netgauge's own columns after o_r are not used: its plain regression over a protocol switch
gives negative values. Where it believes to see such a switch it prints the row of that size twice,
with other values in those columns; it was measured once. Older versions print one column o for o_s
and o_r, which is then o_s. What Netgauge prints on the screen ("L=... s=... o_s=...") holds derived
values alone, without the times they come from, and is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from contract.limits import MAX_TIME_US
from domain.conditions import Condition
from domain.measurement import Reading, SignatureTrace, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.text import (
    BELOW_ZERO,
    Collector,
    Line,
    check_kind,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
    size_of,
)

FORMAT = "Netgauge LogGP"
_HEADER = re.compile(
    r"^#\s*size\s+n\s+PRTT\(1,0,s\)\s+PRTT\(n,0,s\)\s+PRTT\(n,PRTT\(1,0,s\),s\)(.*)"
)
_MIN_COLUMNS = 5
_ON_SCREEN = re.compile(r"^[ \t]*L=\S+\s+s=[0-9]+\s+o_s=", re.MULTILINE)
_MAX_BURST = 2**31


@dataclass(slots=True)
class _Rows:
    """What was read so far, and what the last header line said."""

    costs: Collector = field(default_factory=Collector)
    bursts: list[int] = field(default_factory=list)
    computation_us: list[float] = field(default_factory=list)
    round_trip: Collector = field(default_factory=Collector)
    receive: Collector = field(default_factory=Collector)
    runs: int = 0
    names: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # the columns of times of the row before

    def begin(self, names: list[str]) -> None:
        """A header line, with these columns after those of times."""
        self.runs, self.names, self.before = self.runs + 1, names, []
        for part in (self.costs, self.round_trip, self.receive):
            part.condition = Condition(self.runs)

    def add(self, size: int, burst: int, computation_us: float, cost_us: float) -> None:
        """Take one cost, or count why not."""
        if not 0.0 <= cost_us <= MAX_TIME_US:
            # A negative one is of a burst that took less than a single message.
            self.receive.leave_out(BELOW_ZERO if cost_us < 0.0 else "not finite")
            return
        self.costs.add(size, cost_us)
        self.bursts.append(burst)
        self.computation_us.append(computation_us)


def _detects(head: str) -> bool:
    return "PRTT(1,0,s)" in head or _ON_SCREEN.search(head) is not None


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    rows = _Rows()
    for line in lines_of(content):
        if header := _HEADER.match(line.text):
            rows.begin(header.group(1).split())
        elif rows.runs and line.text[0].isdigit():
            _row(line, rows)
        elif not rows.runs and _ON_SCREEN.match(line.text):
            refuse(
                f"line {line.number}: these are the values that Netgauge derives and prints on the "
                "screen; expected the times themselves, which it writes with -o FILE"
            )
    if not rows.costs:
        refuse("no rows of sizes and PRTT times after the Netgauge header")
    trace = SignatureTrace(
        tuple(rows.costs.sizes),
        tuple(rows.bursts),
        tuple(rows.computation_us),
        tuple(rows.costs.times_us),
        round_trip=rows.round_trip.samples(),
        receive=rows.receive.samples(),
        handles_replies=False,
    )
    check_kind(trace, kind, FORMAT)
    conditions = tuple(part.spans() for part in (rows.costs, rows.round_trip, rows.receive))
    return Reading(FORMAT, trace, _understood(trace, rows), conditions=conditions)


def _understood(trace: SignatureTrace, rows: _Rows) -> tuple[tuple[str, str], ...]:
    return (
        ("format", FORMAT),
        ("time_unit", "µs"),
        ("size_unit", "bytes"),
        ("round_trip_is", "PRTT(1,0,s), a full round trip"),
        ("cost_is", "(PRTT(n,d,s) - PRTT(1,0,s)) / (n - 1), without replies"),
        ("statistic", "median over the tests of a size"),
        ("columns_left_out", "L, g, G and lsqu: Netgauge's own fit"),
        ("runs", str(rows.runs)),
        *format_sizes(trace.round_trip),
        *format_left_out(rows.round_trip, rows.receive),
    )


def _row(line: Line, rows: _Rows) -> None:
    words = line.fields
    size = size_of(words[0])
    burst = size_of(words[1]) if len(words) > 1 else None
    times = [number_of(word) for word in words[2:_MIN_COLUMNS]]
    too_short = len(words) < _MIN_COLUMNS + len(rows.names)
    if size is None or burst is None or None in times or too_short:
        rows.round_trip.leave_out("cut off or not a number")
        return
    if words[:_MIN_COLUMNS] == rows.before:
        rows.round_trip.leave_out("printed twice")
        return
    rows.before = words[:_MIN_COLUMNS]
    if not 2 <= burst <= _MAX_BURST:
        rows.round_trip.leave_out(f"of bursts outside 2 to {_MAX_BURST} messages")
        return
    one, many, spaced = (float(time if time is not None else math.nan) for time in times)
    taken = len(rows.round_trip)
    rows.round_trip.add(size, one)
    if len(rows.round_trip) > taken:
        rows.add(size, burst, 0.0, (many - one) / (burst - 1))
        rows.add(size, burst, one, (spaced - one) / (burst - 1))
        _receive(size, words, rows)


def _receive(size: int, words: list[str], rows: _Rows) -> None:
    """The receive overhead, where the file has it."""
    if "o_r" not in rows.names:
        return
    value = number_of(words[_MIN_COLUMNS + rows.names.index("o_r")])
    if value is not None and value >= 0.0:
        rows.receive.add(size, value)
    else:
        rows.receive.leave_out("receive overheads below 0 or not finite")


SPEC = ReaderSpec(
    format=FORMAT,
    about="netgauge -x loggp -o FILE",
    layout='a header line "# size n PRTT(1,0,s) PRTT(n,0,s) ..."',
    marks=(
        mark('a line that begins "# size n"', r"^#\s*size n\b"),
        mark("a column PRTT(1,0,s)", r"PRTT\(1,0,s\)"),
    ),
    detects=_detects,
    read=_read,
)
