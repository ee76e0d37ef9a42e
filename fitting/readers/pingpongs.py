"""Ping-pongs of smaller tools: mpi4py.bench, and NetPIPE on the screen and in its file.

    # MPI PingPong Test
    # Size [B]  Bandwidth [MB/s] | Time Mean [s] ± StdDev [s]  Samples
            64             25.63 | 2.4968000e-06 ± 1.7251e-06       50

Seconds, half a round trip, the mean of the samples; without the statistics (--no-stats) size /
bandwidth, MB being 10^6 bytes.

      0:       1 bytes  11147 times -->      1.08 Mbps in       7.07 usec
           1 1.079379   0.00000707

The file np.out has bytes, Mbit/s of 2^20 bits, and seconds: half a round trip, the fastest of its
trials. It has no words: where the second column is not what the two others give, the file is not
NetPIPE's. A stream (-s) looks the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import inf

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.text import (
    Collector,
    Line,
    check_kind,
    first_lines,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
    size_of,
)

MPI4PY_FORMAT, NETPIPE_FORMAT = "mpi4py.bench pingpong", "NetPIPE"
_TITLE, _STATISTICS = "# MPI PingPong Test", "Time Mean [s]"
_MPI_ROW = re.compile(
    r"^([0-9]{1,13})\s+([0-9.naif]{1,20})(?:\s+\|\s+(\S{1,24})\s+(?:(?:±|\+/-)\s*)?\S.*)?$"
)
_ON_SCREEN = re.compile(
    r"^([0-9]{1,6}):\s+([0-9]{1,13}) bytes\s+[0-9]{1,12} times -->"
    r"\s+\S{1,20} Mbps in\s+(\S{1,20}) usec$"
)
_IN_FILE = re.compile(r"^([0-9]{1,13})\s+([0-9]+\.[0-9]+)\s+([0-9]+\.[0-9]+)$")
_FILE_BEGINS = re.compile(
    r"^[^\S\n]{0,20}[0-9]{1,13}[^\S\n]{1,20}[0-9]{1,20}\.[0-9]{1,20}[^\S\n]{1,20}[0-9]{1,20}\."
    r"[0-9]{1,20}$",
    re.MULTILINE,
)
_US_PER_S, _MEBIBIT = 1e6, 2.0**20
_NEAR = 0.02  # of the bandwidth that size and time give; the time has three digits or more
_MIN_ROWS = 2


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    samples: Collector = field(default_factory=Collector)
    statistics: dict[str, None] = field(default_factory=dict)
    runs: int = 0
    _place: int = -1

    def take_mpi(self, line: Line) -> None:
        """Read one line of mpi4py.bench."""
        if line.text.startswith(_TITLE):
            self.runs += 1
            self.samples.begin_run()
        elif self.runs and line.text[0].isdigit():
            row = _MPI_ROW.match(line.text)
            value = number_of(row.group(3) or row.group(2)) if row else None
            if row is None or value is None or not line.is_whole:
                self.samples.leave_out("cut off or not a number")
            elif row.group(3):
                self.statistics["mean"] = None
                self.samples.add(int(row.group(1)), value * _US_PER_S)
            elif 0.0 < value < inf:
                self.statistics["size / bandwidth"] = None
                self.samples.add(int(row.group(1)), int(row.group(1)) / value)
            else:
                self.samples.leave_out("of a bandwidth that was printed as 0")

    def take_netpipe(self, line: Line) -> None:
        """Read one line of NetPIPE."""
        if row := _ON_SCREEN.match(line.text):
            self.statistics["fastest trial, as on the screen"] = None
            self._add(line, row.group(2), row.group(3), 1.0, int(row.group(1)))
        elif row := _IN_FILE.match(line.text):
            self.statistics["fastest trial, as in the file"] = None
            self._add(line, row.group(1), row.group(3), _US_PER_S, int(row.group(1)))
        elif line.text[0].isdigit():
            self.samples.leave_out("cut off or not a number")

    def _add(self, line: Line, size: str, time: str, scale: float, place: int) -> None:
        """Take a row of NetPIPE. `place` grows within a run: its number, or in a file its size."""
        value = number_of(time)
        if place <= self._place:
            self.samples.begin_run()
        self._place = place
        if value is None or not line.is_whole:
            self.samples.leave_out("cut off or not a number")
        else:
            self.samples.add(size_of(size) or 0, value * scale)


def _detects_mpi(head: str) -> bool:
    return _TITLE in head and "Bandwidth [MB/s]" in head


def _detects_netpipe(head: str) -> bool:
    """By the words of the screen, or by the numbers of the file."""
    if "Mbps in" in head and " times -->" in head:
        return True
    lines = first_lines(head, 8)
    rows = [_IN_FILE.match(line) for line in lines]
    if len(rows) < _MIN_ROWS:
        return False
    return all(row is not None and _agrees(*row.groups()) for row in rows[: max(2, len(rows) - 1)])


def _agrees(size: str, mbps: str, seconds: str) -> bool:
    """Whether the bandwidth is that of size and time."""
    rate, time_s = float(mbps), float(seconds)
    if not 0.0 < time_s < 1e12 or not rate < 1e12:
        return False
    expected = int(size) * 8.0 / time_s / _MEBIBIT
    return abs(rate - expected) <= _NEAR * expected


def _read_mpi(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take_mpi(line)
    stated = [("runs", str(output.runs))]
    return _reading(MPI4PY_FORMAT, output, kind, stated)


def _read_netpipe(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take_netpipe(line)
    return _reading(NETPIPE_FORMAT, output, kind, [])


def _reading(
    format_name: str, output: _Output, kind: TraceKind | None, stated: list[tuple[str, str]]
) -> Reading:
    if not output.samples:
        refuse(f"no row with a size above 0 and a time ({format_name})")
    trace = MessageTrace(latency=output.samples.samples())
    check_kind(trace, kind, format_name)
    head = [
        ("format", format_name),
        ("time_unit", "turned into µs"),
        ("latency_is", "half a round trip"),
        ("statistic", ", ".join(output.statistics)),
    ]
    counted = format_sizes(trace.latency)
    understood = (*head, *stated, *counted, *format_left_out(output.samples))
    return Reading(format_name, trace, understood, conditions=(output.samples.spans(), ()))


MPI4PY_SPEC = ReaderSpec(
    format=MPI4PY_FORMAT,
    about="python -m mpi4py.bench pingpong",
    layout='"# MPI PingPong Test", then "# Size [B]  Bandwidth [MB/s] | Time Mean [s] ..."',
    marks=(
        mark("its title # MPI PingPong Test", r"# MPI PingPong Test"),
        mark("a column Bandwidth [MB/s]", r"Bandwidth \[MB/s\]"),
    ),
    detects=_detects_mpi,
    read=_read_mpi,
)
NETPIPE_SPEC = ReaderSpec(
    format=NETPIPE_FORMAT,
    about="NPtcp, NPmpi and the like: np.out, or the screen",
    layout="rows of bytes, Mbit/s and seconds, or N bytes ... times --> ... Mbps in ... usec",
    marks=(
        mark(
            "rows of bytes, Mbit/s and seconds",
            rf"Mbps in\s|{_IN_FILE.pattern}",
        ),
    ),
    detects=_detects_netpipe,
    read=_read_netpipe,
    begins=_FILE_BEGINS,
)
