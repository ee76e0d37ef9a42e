"""OSU micro-benchmarks: point-to-point latency and bandwidth.

    # OSU MPI Latency Test v5.3.2           # OSU MPI Bandwidth Test v7.5
    # Size          Latency (us)            # Datatype: MPI_CHAR.
    1                       2.46            # Size      Bandwidth (MB/s)

Latencies are half a round trip already; MB/s are 10^6 bytes a second, and a window of back-to-back
messages gives the time between two of them: size / bandwidth. Those in Python begin
`# OMB-Py MPI Latency Test`, and name no version. Later versions say `Avg Latency(us)`
and may add columns (Min, Max, Iterations, Validation, P99) after the one that counts; versions 2
name themselves `(Version 2.1)`. osu_mbw_mr of one pair ("[ pairs: 1 ]") is osu_bw. Other tests of
the same file are left out by name. Several columns of one name are the same test elsewhere, as of
several machines: each is a condition, `column` 1, 2 and so on. Without its title a file does not
say which test it is of, and may be bare columns: then the user does, as osu_latency or osu_bw.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import nan

from domain.conditions import Condition
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

FORMAT = "OSU micro-benchmarks"
_TITLE = re.compile(
    r"^# (?:OSU (.{1,80}?)\s+(?:v([0-9][0-9A-Za-z.]{0,15})|\(Version ([0-9][0-9.]{0,15})\))"
    r"|OMB-Py (MPI .{1,80}? Test)$)",
    re.ASCII,
)
_ANYWHERE = re.compile(
    r"^[^\S\n]{0,80}# (?:OSU [^\n]{1,80}?[^\S\n]{1,40}(?:v[0-9]|\(Version [0-9])|OMB-Py MPI )",
    re.MULTILINE,
)
_HEADER = re.compile(r"^# Size(?: \(B\))?\s+(?:Avg\s+)?(Latency|Bandwidth)\s*\((us|MB/s)\)")
_PAIRS = re.compile(r"^# \[ pairs: ([0-9]{1,9}) \]")
_PAIRS_HEADER = re.compile(r"^# Size\s+MB/s\s+Messages/s")
_OF_PAIRS = re.compile(r"(MPI(?:-[A-Z]{2,10})?) Multiple Bandwidth / Message Rate Test")
_APART = re.compile(r"\s{2,80}")
_COLUMN = "column"  # what tells apart columns of one name: their place from 1
_BUFFERS = re.compile(r"^# (?:Send Buffer|Rank 0 Memory) on .{1,80}")
_TESTS = re.compile(r"^osu_([a-z_]{1,40})$", re.IGNORECASE)
_LATENCY, _BANDWIDTH = "latency", "bw"
_BARE_HEADER = re.compile(r"^#?\s{0,8}\"?size\b.{0,40}?\b(latency|bandwidth)", re.IGNORECASE)
_APART_BY = re.compile(r"[,;|\t]")
# Between which kind of memory, by which library: the same for all that is read of one file.
_READ = re.compile(
    r"((?:MPI|[A-Z]CCL)(?:-[A-Z]{2,10})?(?: MANAGED)?) (?:Persistent )?(Latency|Bandwidth)"
    r"(?: Persistent)? Test"
)
_RUN = "run osu_latency and osu_bw, of two processes"
_BOTH_WAYS = "both directions at once share the stages"
_SEVERAL = "several pairs or threads at once share the stages"
_ONE_SIDED = "the time of a one-sided operation is not that of a message on its way"
_NO_MESSAGE = "not one message on its way from one process to another"
_OTHERS = (
    (re.compile("bi-?directional", re.IGNORECASE), _BOTH_WAYS),
    (re.compile("multi", re.IGNORECASE), _SEVERAL),
    (re.compile(r"MPI_|one.sided|shmem|upc", re.IGNORECASE), _ONE_SIDED),
)
_OTHER_PROGRAMS = (  # by the names of the programs
    (re.compile("bibw"), _BOTH_WAYS),
    (re.compile("mbw_mr|multi_lat|latency_m[tp]|bw_m[tp]"), _SEVERAL),
    (re.compile("(?:put|get|acc|get_acc|cas|fop|oshm|upc)_"), _ONE_SIDED),
)


def _detects(text: str) -> bool:
    return ("# OSU " in text or "# OMB-Py " in text) and _ANYWHERE.search(text) is not None


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    latency: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    versions: dict[str, None] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    runs: int = 0
    path: str = ""
    _current: str = ""
    _part: Collector | None = None
    _pairs: tuple[str, str, str] | None = None  # a test of pairs whose number is still to come
    _decimals: int = 0
    _alike: int = 1  # columns of one name beside each other
    _last_size: int = -1  # of bare columns
    _has_header: bool = False

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if title := _TITLE.match(line.text):
            of_python = title.group(4)
            version = title.group(2) or title.group(3) or "OMB-Py"
            self._begin_test(of_python or title.group(1), version)
        elif self._current and _BUFFERS.match(line.text):
            self._current += ", " + line.text.lstrip("# ")
        elif self._current and (header := _HEADER.match(line.text)):
            self._begin_rows(line, is_latency=header.group(1) == "Latency")
        elif self._pairs and (pairs := _PAIRS.match(line.text)):
            self._begin_pairs(pairs.group(1))
        elif self._current and not self._pairs and _PAIRS_HEADER.match(line.text):
            self._begin_rows(line, is_latency=False)
        elif self._part is not None and line.text[0].isdigit():
            self._row(line, self._part)

    def _begin_pairs(self, count: str) -> None:
        """Read on where a test of pairs has one of them: then it is osu_bw."""
        of_pairs, self._pairs = self._pairs, None
        if of_pairs is not None and count == "1":
            name, version, self._current = of_pairs
            self.others.pop(name, None)
            self.versions[version] = None
            self.tests[f"{name} of one pair"] = None
            self.runs += 1

    def _begin_test(self, name: str, version: str) -> None:
        self._part, self._current, self._pairs = None, "", None
        if of_pairs := _OF_PAIRS.fullmatch(name):
            self._pairs = name, version, of_pairs.group(1)
        known = _READ.fullmatch(name)
        if known is None:
            self.others[name] = _reason(name)
            return
        self.versions[version] = None
        self.tests[name] = None
        self.runs += 1
        self._current = known.group(1)

    def _begin_rows(self, line: Line, *, is_latency: bool) -> None:
        if self.path and self._current != self.path:
            refuse(
                f"line {line.number}: the tests of this file are between different kinds of memory "
                "or by different libraries: they are different pipelines; pass one at a time"
            )
        self.path = self._current
        self._part = self.latency if is_latency else self.interarrival
        self._part.begin_run()
        self._alike = _columns_alike(line)
        self._decimals = 0

    def _row(self, line: Line, part: Collector) -> None:
        words = line.fields
        size = size_of(words[0])
        value = number_of(words[1]) if len(words) > 1 else None
        if size is None and value is None:
            return  # a line of another program
        if size is None or value is None or self._is_cut(line, words):
            part.leave_out("cut off or not a number")
        elif "Fail" in words[2:]:
            part.leave_out("with failed validation")
        elif self._alike == 1:
            self._add(part, size, value)
        elif len(words) < 1 + self._alike or not line.is_whole:
            part.leave_out("with fewer columns than the header")
        else:
            for at, word in enumerate(words[1 : 1 + self._alike], 1):
                self._add_column(part, size, word, at)

    def take_bare(self, line: Line, *, is_latency: bool, test: str) -> None:
        """Read one line of a file without titles. Raises UnreadableTrace."""
        part = self.latency if is_latency else self.interarrival
        if header := _BARE_HEADER.match(line.text):
            if (header.group(1).lower() == "latency") != is_latency:
                refuse(f"line {line.number}: the header is of {header.group(1)}, and not of {test}")
            part.begin_run()
            self._has_header = _HEADER.match(line.text) is not None
            self._alike = _columns_alike(line) if self._has_header else 1
        elif line.text[0].isdigit():
            row = replace(line, text=_APART_BY.sub(" ", line.text))
            size = size_of(row.fields[0])
            if size is not None and size <= self._last_size:
                part.begin_run()
            self._last_size = self._last_size if size is None else size
            if self._has_header or _is_bare_row(row.fields):
                self._row(row, part)
            else:
                part.leave_out("with other columns than the tool prints")

    def _add_column(self, part: Collector, size: int, word: str, at: int) -> None:
        """Take the value of one of several columns of one name."""
        value, condition = number_of(word), replace(part.condition, named=((_COLUMN, str(at)),))
        if value is None:
            part.leave_out("cut off or not a number")
        else:
            self._add(part, size, value, condition)

    def _add(
        self, part: Collector, size: int, value: float, condition: Condition | None = None
    ) -> None:
        if part is self.latency:
            part.add(size, value, condition)
        elif value == 0.0:
            part.leave_out("of a bandwidth that was printed as 0")
        else:
            part.add(size, size / value, condition)  # bytes / (10^6 bytes/s) = µs

    def _is_cut(self, line: Line, words: list[str]) -> bool:
        """A last line without an end, whose value has fewer decimals than those before it."""
        before, self._decimals = self._decimals, len(words[1].partition(".")[2])
        return not line.is_whole and self._decimals < max(before, 2)


def _is_bare_row(words: list[str]) -> bool:
    """Whether these are a size and a value, with the extremes where there are further ones."""
    values = [number_of(word) for word in words[1:4]]
    if len(values) < 3:
        return len(values) == 1
    average, lowest, highest = (nan if value is None else value for value in values)
    return lowest <= average <= highest


def _columns_alike(line: Line) -> int:
    """How many columns after the sizes have the name of the first: the same test elsewhere."""
    names = [name.strip() for name in _APART.split(line.text.lstrip("# "))][1:]
    return max(1, next((at for at, name in enumerate(names) if name != names[0]), len(names)))


def _reason(name: str) -> str:
    for pattern, why in _OTHERS:
        if pattern.search(name):
            return why
    return _NO_MESSAGE


def _read(content: bytes, kind: TraceKind | None, test: str = "") -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    if test and not (output.tests or output.others):
        _read_bare(content, output, test.lower())
    if not output.latency and not output.interarrival:
        for name, why in output.others.items():
            refuse(f"OSU {name} is not read: {why}; {_RUN}")
        refuse(f"no rows of sizes and times after the OSU header; {_RUN}")
    trace = MessageTrace(output.latency.samples(), output.interarrival.samples())
    check_kind(trace, kind, FORMAT)
    conditions = output.latency.spans(), output.interarrival.spans()
    return Reading(FORMAT, trace, _understood(trace, output), conditions=conditions)


def _read_bare(content: bytes, output: _Output, test: str) -> None:
    """Read a file that does not say which test it is of. Raises UnreadableTrace."""
    found = _TESTS.match(test)
    name = "" if found is None else found.group(1)
    if name not in (_LATENCY, _BANDWIDTH):
        why = next((why for one, why in _OTHER_PROGRAMS if one.match(name)), _NO_MESSAGE)
        refuse(f"{test} is not read: {why}; {_RUN}")
    for line in lines_of(content):
        output.take_bare(line, is_latency=name == _LATENCY, test=test)
    output.tests[f"{test}, as you said"] = None
    output.runs = len(
        {one.run for _, one in (*output.latency.spans(), *output.interarrival.spans())}
    )


def _understood(trace: MessageTrace, output: _Output) -> tuple[tuple[str, str], ...]:
    stated = [
        ("format", FORMAT),
        ("tool_version", ", ".join(output.versions) or "not named"),
        ("tests", ", ".join(output.tests)),
        ("time_unit", "µs"),
    ]
    _, _, buffers = output.path.partition(", ")
    if buffers:
        stated.append(("buffers", buffers))
    if trace.latency is not None:
        stated.append(("latency_is", "half a round trip"))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "size / bandwidth, MB/s of 10^6 bytes"))
    stated += [("statistic", "mean over the iterations of a run"), ("runs", str(output.runs))]
    if output.others:
        reasons = "; ".join(f"{name}: {why}" for name, why in output.others.items())
        stated.append(("tests_left_out", reasons[:500]))
    parts = format_left_out(output.latency, output.interarrival)
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *parts)


SPEC = ReaderSpec(
    format=FORMAT,
    about="osu_latency and osu_bw, versions 2 to 7",
    layout='lines "# OSU ... Test v..." and "# Size ... Latency (us)" or "Bandwidth (MB/s)"',
    marks=(
        mark(
            'its title, "# OSU ... Test v..."',
            r"^[^#]{0,40}#[#\s]{0,16}(OSU\s.*(v[0-9]|Version)|OMB-Py MPI\s)",
        ),
        mark(
            'the header line "# Size ... Latency (us)" or "Bandwidth (MB/s)"',
            r"\bSize(\s\(B\))?\s+((Avg\s+)?(Latency|Bandwidth)\s*\(|MB/s\s+Messages/s)",
        ),
    ),
    detects=_detects,
    read=_read,
    named=NamedTests(_TESTS, "osu_latency", _read),
)
