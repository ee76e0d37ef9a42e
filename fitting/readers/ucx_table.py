"""ucx_perftest without -v: a box that names the test and its size, then rows until the final one.

    | Test:         tag match latency                       |
    | Message size: 4096                                    |
    |    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall | ...
    [thread 0]            240551      4.021     4.157     4.157      939.62     939.62  ...
    Final:               1000000      4.020     4.110     4.110      950.43     950.43  ...

The units are those of the CSV (fitting/readers/ucx_perftest.py), but here the test and its size are
said. The last row of a box counts, the rows above it are its progress. With -N thousands are
separated by commas.
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
    size_of,
)
from fitting.readers.ucx_perftest import is_whole_operation, notices

FORMAT = "ucx_perftest output"
_TEST = re.compile(r"^\| Test:\s+(.{1,60}?)\s*\|$")
_SIZE = re.compile(r"^\| Message size:\s+([0-9]{1,20})\s*\|$")
_COLUMNS = re.compile(r"^\|\s*(?:Stage|Test)\s*\|\s*# iterations\s*\|\s*(\S{1,20})\s*\|")
_ROW = re.compile(
    r"^(?:\[thread [0-9]{1,6}\]|(?P<final>Final:))?\s*(?P<numbers>[0-9][0-9,.\se+-]*)"
)
_NUMBERS = 8
_PERCENTILE, _OVERALL_LATENCY, _OVERALL_RATE = 1, 3, 7
_MEDIANS = ("typical", "50.0%ile")


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    latency: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    latency_test: str = ""
    bandwidth_test: str = ""
    statistics: dict[str, None] = field(default_factory=dict)
    runs: int = 0
    _test: str = ""
    _size: int | None = None
    _column: str = ""
    _last: tuple[float, ...] = ()

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if test := _TEST.match(line.text):
            self.finish()
            self._test = test.group(1)
        elif size := _SIZE.match(line.text):
            self._size = size_of(size.group(1))
        elif columns := _COLUMNS.match(line.text):
            self._column = columns.group(1)
        elif self._column and (row := _ROW.match(line.text)):
            self._row(line, row)

    def _row(self, line: Line, row: re.Match[str]) -> None:
        words = row.group("numbers").replace(",", "").split()
        numbers = [number_of(word) for word in words[:_NUMBERS]]
        if len(words) < _NUMBERS or None in numbers or not line.is_whole:
            self._last = () if row.group("final") else self._last
            self.latency.leave_out("with fewer than 8 numbers (of several threads, or cut off)")
        else:
            self._last = tuple(number or 0.0 for number in numbers)

    def finish(self) -> None:
        """A box has ended: its last row counts. Raises UnreadableTrace."""
        last, size, column = self._last, self._size, self._column
        self._last, self._size, self._column = (), None, ""
        if not last:
            return
        self.runs += 1
        if size is None:
            self.latency.leave_out("without a message size")
        elif "latency" in self._test:
            self.latency_test = self._same(self.latency_test)
            is_median = column in _MEDIANS
            self.statistics["median" if is_median else "mean"] = None
            self.latency.add(size, last[_PERCENTILE if is_median else _OVERALL_LATENCY])
        elif last[_OVERALL_RATE] > 0.0:
            self.bandwidth_test = self._same(self.bandwidth_test)
            self.interarrival.add(size, 1e6 / last[_OVERALL_RATE])
        else:
            self.interarrival.leave_out("of a message rate that was printed as 0")

    def _same(self, before: str) -> str:
        if before not in ("", self._test):
            refuse(
                f"the file holds the tests {before} and {self._test}, each of a way of its own; "
                "pass one at a time"
            )
        return self._test


def _detects(head: str) -> bool:
    return "| Test:" in head and "| Message size:" in head and "# iterations" in head


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    output.finish()
    if not output.latency and not output.interarrival:
        refuse("no row of results after the header of ucx_perftest (its server prints none)")
    trace = MessageTrace(output.latency.samples(), output.interarrival.samples())
    check_kind(trace, kind, FORMAT)
    return Reading(FORMAT, trace, _understood(trace, output), notices(output.latency_test))


def _understood(trace: MessageTrace, output: _Output) -> tuple[tuple[str, str], ...]:
    tests = [test for test in (output.latency_test, output.bandwidth_test) if test]
    stated = [("format", FORMAT), ("tests", ", ".join(tests)), ("time_unit", "µs")]
    if trace.latency is not None:
        whole = is_whole_operation(output.latency_test)
        stated.append(("latency_is", "a whole operation" if whole else "half a round trip"))
        stated.append(("statistic", ", ".join(output.statistics)))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "1 / overall message rate"))
    stated.append(("runs", str(output.runs)))
    left_out = format_left_out(output.latency, output.interarrival)
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *left_out)


SPEC = ReaderSpec(
    format=FORMAT,
    about="ucx_perftest, the box that it prints",
    layout='a box with "| Test: ..." and "| Message size: ...", then rows up to "Final:"',
    marks=(
        mark('a line "| Test: ..."', r"\|\s*Test:"),
        mark('a line "| Message size: ..."', r"\|\s*Message size:"),
        mark('a column "# iterations"', r"# iterations\b"),
    ),
    detects=_detects,
    read=_read,
)
