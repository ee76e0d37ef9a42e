"""ucx_perftest without -v: a box that names the test and its size, then rows until the final one.

The server prints the box and the client the rows: put both logs together, in any order, or the
client's with its command line (`ucx_perftest HOST -t tag_lat -s 4096`), which says the same.

    | Test:         tag match latency                       |
    | Message size: 4096                                    |
    |    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall | ...
    [thread 0]            240551      4.021     4.157     4.157      939.62     939.62  ...
    Final:               1000000      4.020     4.110     4.110      950.43     950.43  ...

The units are those of the CSV (fitting/readers/ucx_perftest.py), but here the test and its size are
said. The last row of a box counts, the rows above it are its progress. With -N thousands are
separated by commas. Versions before 1.9 have no column Stage.
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
from fitting.readers.ucx_perftest import Run, is_whole_operation, notices, run_by

FORMAT = "ucx_perftest output"
_TEST = re.compile(r"^\| Test:\s+(\S(?:.{0,58}\S)?)\s*\|$")
_SIZE = re.compile(r"^\| Message size:\s+([0-9]{1,20})\s*\|$")
_COLUMNS = re.compile(r"^\|\s*(?:(?:Stage|Test)\s*\|\s*)?# iterations\s*\|\s*(\S{1,20})\s*\|")
_ROW = re.compile(
    r"^(?:\[thread [0-9]{1,6}\]|(?P<final>Final:))?\s*(?P<numbers>[0-9][0-9,.\se+-]*)"
)
_TOGETHER = "the server prints the boxes and the client the rows; put both logs into one file"
_NUMBERS = 8
_PERCENTILE, _OVERALL_LATENCY, _OVERALL_RATE = 1, 3, 7
_MEDIANS = ("typical", "50.0%ile")


@dataclass(slots=True)
class _Table:
    """What the percentile's column is called, and the last row; none where it was cut off."""

    column: str
    last: tuple[float, ...] = ()


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
    _boxes: list[tuple[int, Run]] = field(default_factory=list)  # and how many tables came before
    _commands: list[tuple[int, Run]] = field(default_factory=list)
    _tables: list[_Table] = field(default_factory=list)

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if test := _TEST.match(line.text):
            self._test = test.group(1)
        elif size := _SIZE.match(line.text):
            self._boxes.append((len(self._tables), Run(self._test, size_of(size.group(1)))))
        elif columns := _COLUMNS.match(line.text):
            self._tables.append(_Table(columns.group(1)))
        elif run := run_by(line.text):
            self._commands.append((len(self._tables), run))
        elif self._tables and (row := _ROW.match(line.text)):
            self._row(line, row, self._tables[-1])

    def _row(self, line: Line, row: re.Match[str], table: _Table) -> None:
        words = row.group("numbers").replace(",", "").split()
        numbers = [number_of(word) for word in words[:_NUMBERS]]
        if len(words) < _NUMBERS or None in numbers or not line.is_whole:
            table.last = () if row.group("final") else table.last
            self.latency.leave_out("with fewer than 8 numbers (of several threads, or cut off)")
        else:
            table.last = tuple(number or 0.0 for number in numbers)

    def finish(self) -> None:
        """The file has ended: every table is of a box, or of a command line.

        Raises UnreadableTrace where nobody can tell which belongs to which.
        """
        count = len(self._tables)
        runs = _matched(self._boxes, count) or _matched(self._nearest(count), count)
        if runs is None:
            refuse(
                f"{count} tables of ucx_perftest, and {len(self._boxes)} boxes that name a test "
                f"and its message size: {_TOGETHER}, or say what the client ran, as with sluice "
                "fit --test tag_lat --message-bytes 4096, or by the command above its table: "
                "ucx_perftest HOST -t tag_lat -s 4096"
            )
        for run, table in zip(runs, self._tables, strict=True):
            if table.last:
                self._add(run, table)

    def _nearest(self, tables: int) -> list[tuple[int, Run]]:
        """The commands; of more than there are tables, the last above each."""
        if len(self._commands) <= tables:
            return self._commands
        return list({place: (place, run) for place, run in self._commands}.values())

    def _add(self, run: Run, table: _Table) -> None:
        self.runs += 1
        if run.size is None:
            self.latency.leave_out("without a message size")
        elif run.is_latency:
            self.latency_test = _same(self.latency_test, run.test)
            is_median = table.column in _MEDIANS
            self.statistics["median" if is_median else "mean"] = None
            self.latency.begin_size(run.size)
            self.latency.add(run.size, table.last[_PERCENTILE if is_median else _OVERALL_LATENCY])
        elif table.last[_OVERALL_RATE] > 0.0:
            self.bandwidth_test = _same(self.bandwidth_test, run.test)
            self.interarrival.begin_size(run.size)
            self.interarrival.add(run.size, 1e6 / table.last[_OVERALL_RATE])
        else:
            self.interarrival.leave_out("of a message rate that was printed as 0")


def _matched(runs: list[tuple[int, Run]], tables: int) -> list[Run] | None:
    """The run of each table: the one right above it, or that of the same place in another log.

    None where it is neither, and nobody can tell.
    """
    places = [place for place, _ in runs]
    in_turn, apart = places == list(range(tables)), len(set(places)) == 1
    return [run for _, run in runs] if len(runs) == tables and (in_turn or apart) else None


def _same(before: str, test: str) -> str:
    if before not in ("", test):
        refuse(
            f"the file holds the tests {before} and {test}, each of a way of its own; pass one at "
            "a time"
        )
    return test


def _detects(head: str) -> bool:
    has_box = "| Test:" in head and "| Message size:" in head
    return has_box or ("# iterations" in head and "message rate (msg/s)" in head)


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    output.finish()
    if not output.latency and not output.interarrival:
        refuse(f"no row of results after the header of ucx_perftest: {_TOGETHER}")
    trace = MessageTrace(output.latency.samples(), output.interarrival.samples())
    check_kind(trace, kind, FORMAT)
    stated, said = _understood(trace, output), notices(output.latency_test)
    conditions = output.latency.spans(), output.interarrival.spans()
    return Reading(FORMAT, trace, stated, said, conditions)


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
    layout='a box with "| Test: ..." and "| Message size: ...", and rows up to "Final:"',
    marks=(
        mark('a column "# iterations"', r"# iterations\b"),
        mark("a column message rate (msg/s)", r"message rate \(msg/s\)"),
    ),
    detects=_detects,
    read=_read,
)
