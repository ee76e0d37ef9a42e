"""perftest: ib_send_lat, ib_write_lat, ib_read_lat and their ib_*_bw.

     #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec] ...
    Conflicting CPU frequency values detected: 1500.000000 != 3100.000000. CPU Frequency is not max.
     2       1000          4.70           13.20        4.83                4.82 ...

t_typical is the median over the iterations, half a round trip for send and write; a read or an
atomic is a whole operation (request and data), which is said. A duration run prints t_avg alone.
With -U or -H every iteration is printed before its row ("#, usec", then "1, 4.83"): then all of
them are taken in place of their median. `BW average` is in MB/sec or MiB/sec, both of 2^20 bytes,
or in Gb/sec of 10^9 bits, and gives the time between messages. Several queue pairs (`Number of
qps`, `-q`) send at once: their rate is that of so many lanes, and said to be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import nan

from domain.measurement import MessageTrace, Reading, TraceKind
from domain.solution import Notice
from fitting.contract import NamedTests, ReaderSpec, mark
from fitting.readers.text import (
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

FORMAT = "perftest"
_TITLE = re.compile(
    r"\b((?:RDMA_)?(?:Send|Write|Read|Atomic)(?:_imm)?)\b(.{0,60}?)\b(Latency|BW)( .{1,40})? Test$"
)
_COLUMN = re.compile(
    r"#?[A-Za-z0-9_.#%]+(?: ?(?:peak|average|percentile|Port[12]))*(?:\[[^\]]{0,40}\])?"
)
_DUMP = re.compile(r"^#, (usec|cycles)$")
_ITERATION = re.compile(r"^[0-9]{1,12}, ([0-9.e+-]{1,30}|-?nan|inf)$")
_WARNING = "Conflicting CPU frequency values"
_BITS_PER_GIGABIT, _MEBIBYTE = 1e9, 2**20
_TIMES = ("t_typical[usec]", "t_avg[usec]")
_BANDWIDTHS = ("BW average[MB/sec]", "BW average[MiB/sec]", "BW average[Gb/sec]")
# Of the box above a table, or of a command line.
_QPS = re.compile(
    r"Number of qps\s{0,20}:\s{0,20}([0-9]{1,6})"
    r"|\bib_(?:send|write|read|atomic)_(?:bw|lat)\b.{0,400}?\s(?:-q ?|--qp[= ])([0-9]{1,6})\b"
)
_BY_NAME = re.compile(r"(?:^|_)(send|write|read|atomic)_(?:lat|bw)\b")  # ib_read_lat
BOTH_WAYS = "both directions share the stages; run it without -b"
_CYCLES = "the times are in cycles; run perftest without --report-cycles"


@dataclass(frozen=True, slots=True)
class _Table:
    """Which column holds what in the rows that follow."""

    column: str
    place: int
    columns: int

    @property
    def is_bandwidth(self) -> bool:
        return self.column in _BANDWIDTHS


def _detects(head: str) -> bool:
    return "#bytes" in head and "#iterations" in head


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    latency: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    verb: str = ""
    tests: dict[str, None] = field(default_factory=dict)
    columns: dict[str, None] = field(default_factory=dict)
    runs: int = 0
    warnings: int = 0
    _table: _Table | None = None
    _qps: int | None = None  # queue pairs at once, where the run says it
    _iterations: list[float] = field(default_factory=list)

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if title := _TITLE.search(line.text):
            self._begin_test(line, title)
        elif line.text.startswith("#bytes"):
            self._table = _header(line)
            self.runs += 1
            part = self.interarrival if self._table.is_bandwidth else self.latency
            part.begin_run(at_once=self._qps or 1, named=_named(self._qps))
            self._qps = None
        elif qps := _QPS.search(line.text):
            self._qps = int(qps.group(1) or qps.group(2))
        elif line.text.startswith(_WARNING):
            self.warnings += 1
        elif dump := _DUMP.match(line.text):
            if dump.group(1) == "cycles":
                refuse(f"line {line.number}: {_CYCLES}")
            self._iterations = []
        elif iteration := _ITERATION.match(line.text):
            time_us = number_of(iteration.group(1))
            self._iterations.append(nan if time_us is None else time_us)
        elif self._table is not None and line.text[0].isdigit():
            self._row(line, self._table)

    def _begin_test(self, line: Line, title: re.Match[str]) -> None:
        verb, options, quantity, _ = title.groups()
        name = f"{verb}{options}{quantity}".strip()
        if "Bidirectional" in options:
            refuse(f"line {line.number}: {name} is not read: {BOTH_WAYS}")
        if self.verb not in ("", verb):
            refuse(
                f"line {line.number}: {verb} after {self.verb} in one file: each takes a way of "
                "its own; pass one at a time"
            )
        self.verb, self._table, self._iterations = verb, None, []
        self.tests[name] = None

    def _row(self, line: Line, table: _Table) -> None:
        part = self.interarrival if table.is_bandwidth else self.latency
        iterations, self._iterations = self._iterations, []
        words = line.fields
        size = size_of(words[0])
        value = number_of(words[table.place]) if len(words) > table.place else None
        is_cut = not line.is_whole and table.place + 1 == len(words) < table.columns
        if size is None and value is None:
            return  # a line of another program
        if size is None or value is None or is_cut:
            part.leave_out("cut off or not a number")
        elif table.is_bandwidth:
            _add_bandwidth(part, size, value, table.column)
        elif iterations:
            self.columns["every iteration"] = None
            for time_us in iterations:
                part.add(size, time_us)
        else:
            part.add(size, value)
        if not iterations:
            self.columns[table.column] = None


def _header(line: Line) -> _Table:
    """Find the column that counts. Raises UnreadableTrace for units that are not times."""
    text = line.text.replace("% percentile", "%percentile")
    names = [name.strip() for name in _COLUMN.findall(text)]
    for wanted in (*_TIMES, *_BANDWIDTHS):
        if wanted in names:
            return _Table(wanted, names.index(wanted), len(names))
    rule = "expected a column t_typical[usec], t_avg[usec], BW average[MB/sec] or [Gb/sec]"
    return refuse(f"line {line.number}: {_CYCLES if 'cycles' in text else rule}")


def _named(qps: int | None) -> tuple[tuple[str, str], ...]:
    return () if qps is None else (("qps", str(qps)),)


def _add_bandwidth(part: Collector, size: int, value: float, column: str) -> None:
    if value == 0.0:
        part.leave_out("of a bandwidth that was printed as 0")
    elif "Gb/sec" in column:
        part.add(size, size * 8.0 / (value * _BITS_PER_GIGABIT) * 1e6)
    else:
        part.add(size, size / (value * _MEBIBYTE) * 1e6)


def _read(content: bytes, kind: TraceKind | None, test: str = "") -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    if not output.verb and (named := _BY_NAME.search(test)):
        output.verb = named.group(1).capitalize()
        output.tests[test] = None
    if not output.latency and not output.interarrival:
        refuse("no rows of sizes and times after the perftest header")
    trace = MessageTrace(output.latency.samples(), output.interarrival.samples())
    check_kind(trace, kind, FORMAT)
    stated, notices = _understood(trace, output), _notices(trace, output)
    conditions = output.latency.spans(), output.interarrival.spans()
    return Reading(FORMAT, trace, stated, notices, conditions)


def _is_whole_operation(output: _Output) -> bool:
    return "Read" in output.verb or "Atomic" in output.verb


def _understood(trace: MessageTrace, output: _Output) -> tuple[tuple[str, str], ...]:
    stated = [
        ("format", FORMAT),
        ("tests", ", ".join(output.tests) or "not named"),
        ("time_unit", "µs"),
    ]
    if trace.latency is not None:
        whole = f"a whole {output.verb} operation"
        stated.append(("latency_is", whole if _is_whole_operation(output) else "half a round trip"))
        if not output.verb:
            stated[-1] = ("latency_is", "taken as half a round trip: the test is not named")
    units = [
        "Gb/sec of 10^9 bits" if "Gb/sec" in column else "MB/sec of 2^20 bytes"
        for column in output.columns
        if column in _BANDWIDTHS
    ]
    if units:
        stated.append(
            ("interarrival_is", f"size / bandwidth, {' and '.join(dict.fromkeys(units))}")
        )
    stated += [("statistic", ", ".join(output.columns)), ("runs", str(output.runs))]
    if output.warnings:
        stated.append(("tool_warnings", f"{output.warnings}: {_WARNING} detected"))
    left_out = format_left_out(output.latency, output.interarrival)
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *left_out)


def _notices(trace: MessageTrace, output: _Output) -> tuple[Notice, ...]:
    notices: list[Notice] = []
    if trace.latency is not None and _is_whole_operation(output):
        notices.append(
            Notice(
                "read_is_round_trip",
                "the latency of an RDMA read or atomic has the way of the request in it; it is "
                "taken as it is, as a larger overhead",
            )
        )
    if output.warnings:
        notices.append(
            Notice(
                "tool_warned",
                f"perftest warned {output.warnings} times that the processor's frequency was not "
                "fixed: its times may be off by that",
            )
        )
    return tuple(notices)


SPEC = ReaderSpec(
    format=FORMAT,
    about="ib_send_lat, ib_write_lat, ib_read_lat and ib_*_bw",
    layout='a header line "#bytes #iterations ... t_typical[usec]" or "... BW average[...]"',
    marks=(
        mark("a column #bytes", r"#bytes\b"),
        mark("a column #iterations", r"#iterations\b"),
        mark(
            "a column t_typical[usec], t_avg[usec] or BW average",
            r"\bt_(typical|avg)\[|\bBW average",
        ),
    ),
    detects=_detects,
    read=_read,
    named=NamedTests(_BY_NAME, "ib_write_lat", _read),
)
