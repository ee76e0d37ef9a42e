"""ucx_perftest -v: CSV rows after a header, with the names of the batch files in front.

    test_types_uct,msg_pow2,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,...
    am_short_lat,8,2000000,2.012,2.034,2.034,3.75,3.75,491580,491580

Latencies are µs, bandwidths MB/s of 1024^2 bytes, message rates 1/s. Older versions call the second
number `typical_lat`; it is taken where it is the median, the overall mean otherwise. A row does not
say its message size: it is taken from a name in the batch ("tag_lat_4096", "8") where bandwidth /
message rate agree, or else from these, which is exact to the printed digits; where neither gives a
whole number of bytes, the row is left out. A command line above the header is the name of its rows
(`ucx_perftest HOST -t tag_lat -s 4096 -v`). Of a latency test ("lat" in its name) the latency is
taken, half a round trip, but a whole operation of "get"; of a bandwidth test ("bw", "mr") 1 /
message rate is the time between messages. Where the names do not tell, the user's `kind` has to:
the columns look alike. Rows that repeat a test (its progress) are replaced by its last one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

from domain.measurement import MessageTrace, Reading, TraceKind
from domain.solution import Notice
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

FORMAT = "ucx_perftest CSV"
_HEADER = re.compile(
    r"^(?P<names>(?:[^,]*,)*)iterations,(?P<rank>[a-z0-9_.]*lat),avg_lat,overall_lat,avg_bw,"
    r"overall_bw,avg_mr,overall_mr"
)
_COMMAND = re.compile(r"(?:^|[/\s])ucx_perftest\s+(.*)$")
_DEFAULT_BYTES = 8  # of a command line without -s
_THREAD = re.compile(r"\[thread [0-9]{1,6}\]")
_NUMBERS = 8
_MEBIBYTE = 2**20
_SIZE_IN_NAME = re.compile(r"(?:^|[_\-/ :.])([0-9]{1,13})([kKmMgG]?)(?:i?[bB])?$")
_PREFIXES = " kmg"  # each 1024 times the one before
_MEDIANS = ("typical_lat", "50.0_percentile_lat", "50_percentile_lat")
_PERCENTILE, _OVERALL_LATENCY, _OVERALL_BANDWIDTH, _OVERALL_RATE = 1, 3, 5, 7
_NEAR = 0.05  # how far bandwidth / rate may be from a whole number of bytes, at small sizes


@dataclass(frozen=True, slots=True)
class Run:
    """What was run, as a box or a command line says."""

    test: str
    size: int | None

    @property
    def is_latency(self) -> bool:
        """Whether it is a latency test: "tag match latency", "tag_lat"."""
        return "lat" in self.test.lower()


def run_by(line: str) -> Run | None:
    """Return what a command line names; None for that of a server, and for other lines."""
    command = _COMMAND.search(line)
    words = command.group(1).split() if command else []
    test = next((word for name, word in pairwise(words) if name == "-t"), "")
    sizes = [word for name, word in pairwise(words) if name == "-s"]
    return Run(test[:60], size_of(sizes[-1]) if sizes else _DEFAULT_BYTES) if test else None


@dataclass(frozen=True, slots=True)
class _Row:
    names: tuple[str, ...]
    numbers: tuple[float, ...]

    @property
    def test(self) -> str:
        """The names without the sizes."""
        return ",".join(name for name in map(_without_size, self.names) if name)

    def is_bandwidth(self, kind: TraceKind | None) -> bool:
        """A stream of messages, by the names of the test or by what the user says of the file."""
        tests = " ".join(self.names).lower()
        if "lat" in tests or "bw" in tests or "_mr" in tests:
            return "lat" not in tests
        if kind is None:
            refuse(
                "the ucx_perftest CSV does not say whether it is of a latency or of a bandwidth "
                "test: pass kind end_to_end for latencies, indirect for bandwidths"
            )
        return kind is TraceKind.INDIRECT

    @property
    def size(self) -> int | None:
        """The message size: by name where the numbers do not contradict it, or by them."""
        measured, error = self._size_measured()
        for name in reversed(self.names):
            named = _size_in(name)
            if named is not None and (math.isnan(measured) or abs(measured - named) <= error):
                return named
        if math.isnan(measured) or error > max(0.5, _NEAR * measured):
            return None
        return round(measured) or None

    def _size_measured(self) -> tuple[float, float]:
        """Bandwidth / rate in bytes, and how far off it may be; NaN where it tells nothing."""
        bandwidth, rate = self.numbers[_OVERALL_BANDWIDTH] * _MEBIBYTE, self.numbers[_OVERALL_RATE]
        if not (rate > 0.0 and math.isfinite(rate) and math.isfinite(bandwidth)):
            return math.nan, math.nan
        # Both are rounded: the bandwidth to 0.005 MB/s, the rate to 0.5 a second.
        size = bandwidth / rate
        return size, (size * 0.5 + 0.005 * _MEBIBYTE) / max(rate - 0.5, 0.5) * (1.0 + 1e-9)


def _size_in(name: str) -> int | None:
    found = _SIZE_IN_NAME.search(name)
    if found is None:
        return None
    return int(found.group(1)) << 10 * _PREFIXES.index(found.group(2).lower() or " ")


def _without_size(name: str) -> str:
    return _SIZE_IN_NAME.sub("", name)


def _detects(head: str) -> bool:
    return "overall_lat," in head and "overall_mr" in head


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    kind: TraceKind | None
    latency: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    tests: dict[bool, str] = field(default_factory=dict)  # by whether it is of bandwidths
    rank: str = ""
    runs: int = 0
    _rows: dict[tuple[str, ...], _Row] = field(default_factory=dict)
    _named: Run | None = None  # what the command line above a table without names says
    _asked: list[Run] = field(default_factory=list)  # by command lines whose tables are to come

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if header := _HEADER.match(line.text):
            self.finish()
            if self.rank not in ("", header.group("rank")):
                refuse(f"line {line.number}: expected the same percentile in all runs of a file")
            self.rank, self.runs = header.group("rank"), self.runs + 1
            self._named = self._asked.pop(0) if self._asked else None
        elif run := run_by(line.text):
            self._asked.append(run)
        elif self.rank and (row := _row_of(line, self.latency)) is not None:
            if self._named is not None and not row.names:
                row = replace(row, names=(self._named.test, str(self._named.size or "")))
            self._rows[row.names or (str(len(self._rows)),)] = row

    def finish(self) -> None:
        """A run has ended: the last row of each test counts. Raises UnreadableTrace."""
        rows, self._rows = self._rows, {}
        self.latency.begin_run()
        self.interarrival.begin_run()
        for row in rows.values():
            size = row.size
            if size is None:
                self.latency.leave_out("without a message size")
            else:
                self._add(row, size, is_bandwidth=row.is_bandwidth(self.kind))

    def _add(self, row: _Row, size: int, *, is_bandwidth: bool) -> None:
        known = self.tests.setdefault(is_bandwidth, row.test)
        if known != row.test:
            refuse(
                f"the file holds several {'bandwidth' if is_bandwidth else 'latency'} tests "
                f"({known[:60]} and {row.test[:60]}), each of a way of its own; pass one at a time"
            )
        rate = row.numbers[_OVERALL_RATE]
        if not is_bandwidth:
            self.latency.add(size, row.numbers[self.latency_place])
        elif rate > 0.0:
            self.interarrival.add(size, 1e6 / rate)
        else:
            self.interarrival.leave_out("of a message rate that was printed as 0")

    @property
    def latency_place(self) -> int:
        """Which number is the latency: the median, or the mean where another was printed."""
        return _PERCENTILE if self.rank in _MEDIANS else _OVERALL_LATENCY


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output(kind)
    for line in lines_of(content):
        output.take(line)
    output.finish()
    if not output.latency and not output.interarrival:
        refuse(
            "no row of the ucx_perftest CSV gives a message size: name the tests of the batch by "
            'their sizes ("tag_lat_4096"), or let bandwidth and message rate be printed'
        )
    trace = MessageTrace(output.latency.samples(), output.interarrival.samples())
    check_kind(trace, kind, FORMAT)
    stated, said = _understood(trace, output), notices(output.tests.get(False, ""))
    conditions = output.latency.spans(), output.interarrival.spans()
    return Reading(FORMAT, trace, stated, said, conditions)


def _row_of(line: Line, part: Collector) -> _Row | None:
    words = [word.strip() for word in _THREAD.sub("", line.text).split(",")]
    numbers = [number_of(word) for word in words[-_NUMBERS:]]
    if not line.is_whole:
        part.leave_out("without an end of line: perhaps cut off")
    elif len(words) >= _NUMBERS and None not in numbers:
        return _Row(tuple(words[:-_NUMBERS]), tuple(number or 0.0 for number in numbers))
    elif size_of(words[-1]) is not None:
        part.leave_out("with fewer than 8 numbers (a run of several threads, or cut off)")
    return None


def notices(latency_test: str) -> tuple[Notice, ...]:
    """Return what a user must see of a latency test of this name or description."""
    if not is_whole_operation(latency_test):
        return ()
    stated = (
        "the latency of a get or of an atomic that fetches has the way of the request in it; it is "
        "taken as it is, as a larger overhead"
    )
    return (Notice("read_is_round_trip", stated),)


def is_whole_operation(test: str) -> bool:
    """Return whether a test asks and waits: get, fetch-and-add, swap.

    The tool does not halve their times.
    """
    return re.search(r"(?:^|[^a-z])(?:get|fadd|fetch|c?swap)", test.lower()) is not None


def _understood(trace: MessageTrace, output: _Output) -> tuple[tuple[str, str], ...]:
    stated = [("format", FORMAT), ("time_unit", "µs")]
    if named := [test for test in output.tests.values() if test]:
        stated.append(("tests", ", ".join(dict.fromkeys(named))[:200]))
    if trace.latency is not None:
        whole = is_whole_operation(output.tests.get(False, ""))
        stated.append(("latency_is", "a whole operation" if whole else "half a round trip"))
        median = output.latency_place == _PERCENTILE
        stated.append(("statistic", f"median ({output.rank})" if median else "mean (overall_lat)"))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "1 / overall message rate"))
    stated.append(("size_is", "from the test's name, or overall bandwidth (2^20 bytes) / rate"))
    stated.append(("runs", str(output.runs)))
    left_out = format_left_out(output.latency, output.interarrival)
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *left_out)


SPEC = ReaderSpec(
    format=FORMAT,
    about="ucx_perftest -v",
    layout="a header line iterations,...,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr",
    marks=(
        mark("a column overall_lat", r"\boverall_lat\b"),
        mark("a column overall_mr", r"\boverall_mr\b"),
    ),
    detects=_detects,
    read=_read,
)
