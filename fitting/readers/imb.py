"""Intel MPI Benchmarks: PingPong, half a round trip, and Uniband, messages back to back.

    # Benchmarking PingPong
    # #processes = 2
           #bytes #repetitions      t[usec]   Mbytes/sec
                0         1000         2.23         0.00

    # Benchmarking Uniband
    # #processes = 2
           #bytes #repetitions   Mbytes/sec      Msg/sec
                1         1000         4.00      4000000

t[usec] is half a round trip, 1 / (Msg/sec) of two processes the time between two messages.
Mbytes/sec is not used: it is 2^20 bytes in older versions and 10^6 in newer ones. Other benchmarks
in the same file (PingPing sends both ways at once; Sendrecv, Exchange and collectives are no single
message) are left out by name, so is a PingPong of several pairs at once, and a Uniband of more than
two processes, whose pairs share the way; a file without either is refused. Instead of a time a row
may say `out-of-mem.`, `int-overflow` or `time-out`. Where no title says which benchmark it is, the
user does: PingPong or Uniband, also of bare columns, whose rates then have to be those of times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from domain.measurement import MessageTrace, Reading, TraceKind
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

FORMAT = "Intel MPI Benchmarks"
_BENCHMARK = re.compile(r"^#\s*Benchmarking\s+([A-Za-z_0-9-]{1,60})")
_PROCESSES = re.compile(r"^#\s*#processes\s*=\s*([0-9]{1,9})")
_VERSION = re.compile(
    r"^#\s*Intel ?\(R\) MPI Benchmarks? .{1,60}|^#.{0,20}MPI Benchmark Suite .{1,40}"
)
_HEADER = re.compile(r"^#bytes\s+#repetitions\s+t\[usec\]")
_RATES = re.compile(r"^#bytes\s+#repetitions\s+Mbytes/sec\s+Msg/sec")
_PINGPONGS = {"pingpong", "pingpongspecificsource", "pingponganysource"}
_UNIBAND = "uniband"
_TESTS = re.compile(
    r"^(?:imb[-_])?(?:mpi1[-_]|p2p[-_])?(pingpong(?:specificsource|anysource)?|pingping|uniband|biband"
    r"|sendrecv|exchange)$",
    re.IGNORECASE,
)
_NAMES = {"pingpong": "PingPong", "uniband": "Uniband"}  # as the tool writes them
_BARE_PINGPONG = ("#bytes", "#repetitions", "t[usec]", "Mbytes/sec")
_BARE_UNIBAND = ("#bytes", "#repetitions", "Mbytes/sec", "Msg/sec")
_MEGABYTES = (1e6, 2.0**20)  # of newer and older versions
_NEAR = 0.06  # of a rate; 2^20 is 0.049 more than 10^6
_TIME_PLACE, _RATE_PLACE = 2, 3
_US_PER_S = 1e6


def _detects(head: str) -> bool:
    has_times = "[usec]" in head or "Msg/sec" in head
    return "#repetitions" in head and "#bytes" in head and has_times


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    samples: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    repetitions: list[int] = field(default_factory=list)
    others: dict[str, None] = field(default_factory=dict)
    version: str = ""
    benchmark: str = ""  # the PingPong that is read: there are variants
    runs: int = 0
    asked: str = ""  # the benchmark of what the file does not name
    _name: str = ""
    _columns: tuple[str, ...] = ()
    _processes: int | None = None
    _last_size: int = -1  # of bare columns

    def take(self, line: Line) -> None:
        """Read one line."""
        if title := _BENCHMARK.match(line.text):
            self._begin_benchmark(title.group(1))
        elif processes := _PROCESSES.match(line.text):
            self._processes = int(processes.group(1))
            if self._processes > 2:
                self._leave_out(f"{self._name or 'a benchmark'} of {self._processes} processes")
        elif _RATES.match(line.text) and self._is_uniband():
            self._columns = tuple(line.fields)
            self.runs += 1
            self.interarrival.begin_run()
        elif _HEADER.match(line.text):
            self._begin_rows(line)
        elif "#repetitions" in line.text:
            nameless = "" if self.others or self.benchmark else "a benchmark without a name"
            self._leave_out(self._name or nameless)
        elif line.text.startswith("#"):
            if not self.version and _VERSION.match(line.text):
                self.version = line.text.lstrip("# ")[:80]
        elif self._columns and line.text[0].isdigit():
            self._row(line)

    def _is_uniband(self) -> bool:
        """Whether the table to come is of a Uniband of two processes, as far as anybody says."""
        if self._name or self.others or self.benchmark:
            return self._name.lower() == _UNIBAND and self._processes == 2
        return self.asked == _UNIBAND and self._processes in (None, 2)

    def take_bare(self, line: Line) -> None:
        """Read one line of bare columns of the benchmark that was asked for."""
        words = line.fields
        if size_of(words[0]) is None:
            return
        if not self._columns or (size_of(words[0]) or 0) <= self._last_size:
            self._columns = _BARE_UNIBAND if self.asked == _UNIBAND else _BARE_PINGPONG
            self.benchmark = "" if self.asked == _UNIBAND else self.asked
            self.runs += 1
            self.samples.begin_run()
            self.interarrival.begin_run()
        self._last_size = size_of(words[0]) or 0
        if len(words) != len(self._columns) or not line.is_whole:
            self.samples.leave_out("with another number of columns than the benchmark prints")
        elif not _is_rate(words, is_uniband=self.asked == _UNIBAND):
            self.samples.leave_out("whose Mbytes/sec are not those of its time")
        else:
            self._row(line)

    def _begin_benchmark(self, name: str) -> None:
        self._name, self._columns, self._processes = name, (), None
        is_other = name.lower() not in _PINGPONGS or name != (self.benchmark or name)
        if is_other and name.lower() != _UNIBAND:
            self._leave_out(name)

    def _leave_out(self, name: str) -> None:
        """Read no rows until the next benchmark."""
        if name:
            self.others[name] = None
        self._name, self._columns = "", ()

    def _begin_rows(self, line: Line) -> None:
        # A header without a title above is believed only where the file has no titles at all.
        if not self._name and self.asked and self.asked not in _PINGPONGS:
            self._leave_out(self.asked)
        elif self._name or not (self.others or self.benchmark):
            self.benchmark = self._name
            self._columns = tuple(line.fields)
            self.runs += 1
            self.samples.begin_run()

    def _row(self, line: Line) -> None:
        words = line.fields
        is_rate = "t[usec]" not in self._columns
        part = self.interarrival if is_rate else self.samples
        place = _RATE_PLACE if is_rate else _TIME_PLACE
        numbers = [size_of(word) for word in words[:_TIME_PLACE]]
        value = number_of(words[place]) if len(words) > place else None
        is_cut = not line.is_whole and len(words) < len(self._columns)
        if numbers[0] is None and value is None:
            return  # a line of another program
        if None in numbers or value is None or is_cut:
            part.leave_out("cut off or not a number")
        elif _has_defects(words, self._columns):
            part.leave_out("with defects")
        elif is_rate and value <= 0.0:
            part.leave_out("of a message rate that was printed as 0")
        else:
            before = len(part)
            part.add(numbers[0] or 0, _US_PER_S / value if is_rate else value)
            if len(part) > before:
                self.repetitions.append(numbers[1] or 0)


def _is_rate(words: list[str], *, is_uniband: bool) -> bool:
    """Whether the Mbytes/sec of a row are those of its time, or of its messages a second."""
    size, first, second = (number_of(words[at]) for at in (0, _TIME_PLACE, _RATE_PLACE))
    if size is None or first is None or second is None:
        return True  # it is left out as what it is
    if is_uniband:
        rate, expected = first, size * second
    else:
        rate, expected = second, size / first * _US_PER_S if first > 0.0 else 0.0
    return any(
        abs(rate - expected / scale) <= _NEAR * expected / scale + 0.01 for scale in _MEGABYTES
    )


def _has_defects(words: list[str], columns: tuple[str, ...]) -> bool:
    """Whether the benchmark checked what arrived, and found it wrong."""
    if columns[-1] != "defects" or len(words) < len(columns):
        return False
    return number_of(words[len(columns) - 1]) != 0.0


def _read(content: bytes, kind: TraceKind | None, test: str = "") -> Reading:
    found = _TESTS.match(test)
    output = _Output(asked=found.group(1).lower() if found else "")
    for line in lines_of(content):
        output.take(line)
    if output.asked and not (output.runs or output.others):
        if output.asked not in (*_PINGPONGS, _UNIBAND):
            refuse(_missing((output.asked,)))
        for line in lines_of(content):
            output.take_bare(line)
    if not output.samples and not output.interarrival:
        refuse(_missing(tuple(output.others)))
    trace = MessageTrace(output.samples.samples(), output.interarrival.samples())
    check_kind(trace, kind, FORMAT)
    conditions = output.samples.spans(), output.interarrival.spans()
    return Reading(FORMAT, trace, _understood(trace, output), conditions=conditions)


_RUN = "run IMB-MPI1 PingPong Uniband with two processes"


def _missing(others: tuple[str, ...]) -> str:
    if others:
        return (
            "no PingPong or Uniband of two processes in this file, only "
            f"{', '.join(others)[:200]}: their times are not those of one message on its way; "
            f"{_RUN}"
        )
    return f"no rows after the header #bytes #repetitions t[usec]; {_RUN}"


def _understood(trace: MessageTrace, output: _Output) -> tuple[tuple[str, str], ...]:
    low, high = min(output.repetitions), max(output.repetitions)
    count = str(low) if low == high else f"{low} to {high}"
    stated = [("format", FORMAT)]
    if output.version:
        stated.append(("tool_version", output.version))
    said = ", as you said" if output.asked else ": taken as PingPong"
    named = output.benchmark or f"{_NAMES.get(output.asked, output.asked) or 'not named'}{said}"
    tests = [named] if trace.latency is not None else []
    tests += ["Uniband"] if trace.interarrival is not None else []
    stated += [("tests", ", ".join(tests)), ("time_unit", "µs")]
    if trace.latency is not None:
        stated.append(("latency_is", "half a round trip"))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "1 / (Msg/sec)"))
    stated += [
        ("statistic", f"mean over {count} repetitions"),
        ("runs", str(output.runs)),
    ]
    if output.others:
        stated.append(("benchmarks_left_out", ", ".join(output.others)[:200]))
    left_out = format_left_out(output.samples, output.interarrival)
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *left_out)


SPEC = ReaderSpec(
    format=FORMAT,
    about="PingPong of IMB-MPI1, and Uniband",
    layout='a header line "#bytes #repetitions t[usec]", or "... Mbytes/sec Msg/sec" of Uniband',
    marks=(
        mark("a column #bytes", r"#bytes\b"),
        mark("a column #repetitions", r"#repetitions\b"),
        mark("a column t[usec]", r"\bt\[usec\]|\bMsg/sec\b"),
    ),
    detects=_detects,
    read=_read,
    named=NamedTests(_TESTS, "PingPong", _read),
)
