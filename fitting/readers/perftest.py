"""perftest: ib_send_lat, ib_write_lat, ib_read_lat and their ib_*_bw.

     #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec] ...
    Conflicting CPU frequency values detected: 1500.000000 != 3100.000000. CPU Frequency is not max.
     2       1000          4.70           13.20        4.83                4.82 ...

t_typical is the median over the iterations, half a round trip for send and write; a read is a whole
operation (request and data), which is said. A duration run prints t_avg alone. `BW average` is in
MB/sec of 2^20 bytes or in Gb/sec of 10^9 bits and gives the time between messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from domain.measurement import MessageTrace, Reading, TraceKind
from domain.solution import Notice
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

FORMAT = "perftest"
_TITLE = re.compile(
    r"\b((?:RDMA_)?(?:Send|Write|Read|Atomic)[A-Za-z_ ]{0,40}?)\s+(Latency|BW) Test"
)
_COLUMN = re.compile(
    r"#?[A-Za-z0-9_.#%]+(?: ?(?:peak|average|percentile|Port[12]))*(?:\[[^\]]*\])?"
)
_WARNING = "Conflicting CPU frequency values"
_BITS_PER_GIGABIT, _MEBIBYTE = 1e9, 2**20


@dataclass(frozen=True, slots=True)
class _Table:
    """Which column holds what in the rows that follow."""

    column: str
    place: int
    is_bandwidth: bool


def _recognises(head: str) -> bool:
    return "#bytes" in head and "#iterations" in head


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    latency, interarrival = Collector(), Collector()
    tests: dict[str, None] = {}
    columns: dict[str, None] = {}
    table: _Table | None = None
    runs = warnings = 0
    for line in lines_of(content):
        if title := _TITLE.search(line.text):
            tests[f"{title.group(1)} {title.group(2)}"] = None
        elif line.text.startswith("#bytes"):
            table = _header(line)
            columns[table.column] = None
            runs += 1
        elif line.text.startswith(_WARNING):
            warnings += 1
        elif table is not None and line.text[0].isdigit():
            _row(line, table, interarrival if table.is_bandwidth else latency)
    if not latency and not interarrival:
        refuse("no rows of sizes and times after the perftest header")
    trace = MessageTrace(latency.samples(), interarrival.samples())
    check_kind(trace, kind, FORMAT)
    said = _understood(trace, tuple(tests), tuple(columns), runs)
    if warnings:
        said = (*said, ("tool_warnings", f"{warnings}: {_WARNING} detected"))
    notices = _notices(tests, warnings)
    return Reading(FORMAT, trace, (*said, *left_out_text(latency, interarrival)), notices)


def _header(line: Line) -> _Table:
    """Find the column that counts. Raises UnreadableTrace for units that are not times."""
    text = line.text.replace("% percentile", "%percentile")
    names = [name.strip() for name in _COLUMN.findall(text)]
    for place, name in enumerate(names):
        if (
            name in ("t_typical[usec]", "t_avg[usec]")
            and "t_typical[usec]" not in names[place + 1 :]
        ):
            return _Table(name, place, is_bandwidth=False)
        if name in ("BW average[MB/sec]", "BW average[Gb/sec]", "BW average[MiB/sec]"):
            return _Table(name, place, is_bandwidth=True)
    rule = "expected a column t_typical[usec], t_avg[usec], BW average[MB/sec] or [Gb/sec]"
    if "cycles" in text:
        rule = "the times are in cycles; run perftest without --report-cycles"
    return refuse(f"line {line.number}: {rule}")


def _row(line: Line, table: _Table, part: Collector) -> None:
    words = line.fields
    size = size_of(words[0])
    value = number_of(words[table.place]) if len(words) > table.place else None
    if size is None or value is None:
        part.leave_out("cut off or not a number")
    elif not table.is_bandwidth:
        part.add(size, value)
    elif value == 0.0:
        part.leave_out("of a bandwidth that was printed as 0")
    elif "Gb/sec" in table.column:
        part.add(size, size * 8.0 / (value * _BITS_PER_GIGABIT) * 1e6)
    else:
        part.add(size, size / (value * _MEBIBYTE) * 1e6)


def _understood(
    trace: MessageTrace, tests: tuple[str, ...], columns: tuple[str, ...], runs: int
) -> tuple[tuple[str, str], ...]:
    said = [("format", FORMAT), ("tests", ", ".join(tests) or "not named"), ("time_unit", "µs")]
    if trace.latency is not None:
        reads = any("Read" in test for test in tests)
        said.append(("latency_is", "a whole read operation" if reads else "half a round trip"))
    if trace.interarrival is not None:
        units = "Gb/sec of 10^9 bits" if "BW average[Gb/sec]" in columns else "MB/sec of 2^20 bytes"
        said.append(("interarrival_is", f"size / bandwidth, {units}"))
    said += [("statistic", ", ".join(columns)), ("runs", str(runs))]
    return (*said, *sizes_text(trace.latency, trace.interarrival))


def _notices(tests: dict[str, None], warnings: int) -> tuple[Notice, ...]:
    notices: list[Notice] = []
    if any("Read" in test and "Latency" in test for test in tests):
        notices.append(
            Notice(
                "read_is_round_trip",
                "the latency of an RDMA read has the way of the request in it; it is taken as it "
                "is, as a larger overhead",
            )
        )
    if warnings:
        notices.append(
            Notice(
                "tool_warned",
                f"perftest warned {warnings} times that the processor's frequency was not fixed: "
                "its times may be off by that",
            )
        )
    return tuple(notices)


SPEC = ReaderSpec(
    format=FORMAT,
    layout='a header line "#bytes #iterations ... t_typical[usec]" or "... BW average[...]"',
    recognises=_recognises,
    read=_read,
)
