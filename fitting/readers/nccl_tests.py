"""nccl-tests and rccl-tests: sendrecv_perf, the one test of messages from one device to another.

    # Collective test starting: sendrecv_perf
    #  size   count    type   redop    root     time   algbw   busbw  #wrong     time   algbw ...
       4096    1024   float     sum      -1    17.02    0.24    0.24       0    17.11    0.24 ...

With --output_file the same is a document: `args`, and `results` with `size` and `out_of_place`.

`time` is in µs, the mean over operations that follow each other in one stream; the out-of-place one
is taken, for the test has no other. Each rank sends to the next and receives from the one before at
once. Which test it was is said by newer versions, by a command line in the log, or by the user.
Collectives are refused by name: their times are not those of one message on its way. Programs may
have a suffix, as sendrecv_perf_mpi.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from contract.limits import MAX_MESSAGE_BYTES
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
from fitting.readers.tool_json import documents_of, number, part, parts, whole

FORMAT = "nccl-tests"
# A program, also with a suffix, as sendrecv_perf_mpi; and what newer versions say.
_NAMED = re.compile(
    r"(?<![A-Za-z0-9])((?:sendrecv|all_reduce(?:_bias)?|all_gather|alltoallv?|broadcast"
    r"|reduce_scatter|reduce|gather|scatter|hypercube)_perf)(?![A-Za-z0-9])"
    r"|^# Collective test starting: ([a-z_]{2,30}?_perf)(?![A-Za-z0-9])",
    re.MULTILINE,
)
_GIVEN = re.compile(r"\b([a-z_]{2,30}?_perf)(?![A-Za-z0-9])")
_HEADER = re.compile(r"^#\s+size\s+count\s+type\b.*\b((?:cpu)?time)\s+(?:hipevt\s+)?algbw\b")
_ANYWHERE = re.compile(r"^[^\S\n]{0,80}#[^\S\n]{1,80}size[^\S\n]{1,80}count\b", re.MULTILINE)
_RANK = re.compile(r"^#\s+Rank\s+([0-9]{1,6})\b")
_PLACE = re.compile(r"^#\s+(out-of-place|in-place)\b")
_READ = "sendrecv_perf"
_TESTS = re.compile(
    r"_perf(?![a-z0-9])|^(?:send_?recv|all_?(?:reduce|gather|to_?all)|broadcast|reduce(?:_scatter)?"
    r"|gather|scatter|hypercube)$",
    re.IGNORECASE,
)
_WRONG = ("#wrong", "error")
_OF_PROCESSOR = "cputime"
AT_ONCE = "one way, while each rank sends and receives at once"
STATISTIC = "mean over operations that follow each other in one stream"


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    test: str = ""  # that of runs which do not name theirs
    samples: Collector = field(default_factory=Collector)
    others: dict[str, None] = field(default_factory=dict)
    runs: int = 0
    unnamed: int = 0
    is_named_by_user: bool = False
    ranks: int = 0
    is_in_place: bool = False  # a table has no other times
    _is_in_place: bool = False
    _test: str = ""
    _last_size: int = MAX_MESSAGE_BYTES  # of a run
    _columns: tuple[str, ...] = ()

    def take(self, line: Line) -> None:
        """Read one line."""
        if named := _NAMED.search(line.text):
            self._test, self._columns = named.group(1) or named.group(2), ()
        elif rank := _RANK.match(line.text):
            self.ranks = max(self.ranks, int(rank.group(1)) + 1)  # of all runs of a file
        elif place := _PLACE.match(line.text):
            self._is_in_place = place.group(1) == "in-place"
        elif header := _HEADER.match(line.text):
            if header.group(1) == _OF_PROCESSOR and self._test in ("", _READ):
                refuse(
                    f"line {line.number}: {_OF_PROCESSOR} is the time in which a processor hands "
                    "an operation over, and not that of the message: run it without "
                    "--report_cputime"
                )
            self._columns = tuple(line.fields[1:])
            self.is_named_by_user = self.is_named_by_user or (not self._test and bool(self.test))
            self._test = self._test or self.test
            self._last_size = MAX_MESSAGE_BYTES
            self.runs += self._test == _READ
            self.is_in_place = self.is_in_place or (self._is_in_place and self._test == _READ)
            self.unnamed += not self._test
            if self._test not in ("", _READ):
                self.others[self._test] = None
        elif self._columns and self._test == _READ and line.text[0].isdigit():
            self._row(line)

    def take_document(self, document: dict[str, Any]) -> None:
        """Read what --output_file wrote of one run."""
        found = _NAMED.search(" ".join(map(str, document.get("args") or ())))
        self._test = found.group(1) or found.group(2) if found else self.test
        self.is_named_by_user = self.is_named_by_user or (found is None and bool(self.test))
        self._last_size = MAX_MESSAGE_BYTES
        self.runs += self._test == _READ
        self.unnamed += not self._test
        if self._test not in ("", _READ):
            self.others[self._test] = None
        for row in parts(document, "results") if self._test == _READ else ():
            size, times = whole(row, "size"), part(row, "out_of_place")
            time_us = number(times, "time")
            if not size or time_us is None or time_us <= 0.0:
                self.samples.leave_out("without a time of the devices")
            elif (number(times, "nwrong") or 0.0) > 0.0:
                self.samples.leave_out("with wrong values")
            else:
                self._add(size, time_us, str(row.get("type", ""))[:20])

    def _add(self, size: int, time_us: float, kind: str) -> None:
        """Take a row, of a type that may be blank: sizes that start anew are of another run."""
        named = (("type", kind),) if kind[:1].isalpha() else self.samples.condition.named
        if size <= self._last_size or self.samples.condition.named != named:
            self.samples.begin_run(named=named)
        self._last_size = size
        self.samples.add(size, time_us)

    def _row(self, line: Line) -> None:
        words, place = line.fields, self._columns.index("time")
        if self._columns[-1] == "timestamp":  # of a day and a time
            words = words[:-1]
        # Columns of names may be blank, those of numbers are not: count from the end.
        at = len(words) - len(self._columns) + place
        numbers = words[max(at, 0) :]
        size = size_of(words[0])
        time_us = number_of(numbers[0]) if at >= 2 and line.is_whole else None
        if size is None or time_us is None or len(words) > len(self._columns):
            self.samples.leave_out("cut off or not a number")
        elif _is_wrong(self._columns[place:], numbers):
            self.samples.leave_out("with wrong values")
        else:
            self._add(size, time_us, line.fields[self._columns.index("type")])


def _is_wrong(columns: tuple[str, ...], numbers: list[str]) -> bool:
    """Whether the test checked what arrived, and found it wrong; N/A is not checked."""
    place = next((at for at, name in enumerate(columns) if name in _WRONG), None)
    return place is not None and (number_of(numbers[place]) or 0.0) > 0.0


def _is_document(text: str) -> bool:
    """Whether a text has what jsonOutputInit of src/util.cu begins a document with."""
    return '"start_time"' in text and '"args"' in text and _NAMED.search(text) is not None


def _is_printed(text: str) -> bool:
    return "algbw" in text and "busbw" in text and _ANYWHERE.search(text) is not None


def _detects(text: str) -> bool:
    return _is_printed(text) or _is_document(text)


def _read(content: bytes, kind: TraceKind | None, test: str = "") -> Reading:
    named = _GIVEN.search(test if "_perf" in test or not test else f"{test.lower()}_perf")
    output = _Output(named.group(1) if named else test)
    text = content.decode("utf-8", errors="replace")
    if not _is_printed(text):
        for document in documents_of(text):
            output.take_document(document)
    else:
        for line in lines_of(content):
            output.take(line)
    if not output.samples:
        refuse(_missing(output))
    trace = MessageTrace(latency=output.samples.samples())
    check_kind(trace, kind, FORMAT)
    conditions = (output.samples.spans(), ())
    return Reading(FORMAT, trace, _understood(trace, output), conditions=conditions)


def of_collectives(names: Iterable[str]) -> str:
    """Return why nothing is read of tests of these names, and what would be."""
    return (
        f"{', '.join(names)[:200]}: the time of a collective is not that of one message on its "
        "way, and nothing is fitted to it; what can be read is sendrecv_perf of the same nodes, "
        "best between two ranks: sendrecv_perf -b 8 -e 1G -f 2"
    )


def _missing(output: _Output) -> str:
    if output.others:
        return of_collectives(output.others)
    if output.unnamed:
        return (
            "this output of nccl-tests does not say which test it is of: name it, as by --test "
            "sendrecv_perf (test), or keep the line with the command above it, as in: "
            "sendrecv_perf -b 8 -e 1G -f 2"
        )
    return "no rows of sizes and times after the header of nccl-tests"


def _understood(trace: MessageTrace, output: _Output) -> tuple[tuple[str, str], ...]:
    stated = [
        ("format", FORMAT),
        ("tests", f"{_READ}, as you said" if output.is_named_by_user else _READ),
        ("time_unit", "µs"),
        ("latency_is", AT_ONCE),
        ("statistic", STATISTIC),
        ("runs", str(max(condition.run for _, condition in output.samples.spans()))),
    ]
    if output.is_in_place:
        stated.append(("buffers", "in place, of tables without a time out of place"))
    if output.ranks:
        stated.append(("ranks", str(output.ranks)))
    if output.others:
        stated.append(("tests_left_out", ", ".join(output.others)[:200]))
    if output.unnamed:
        stated.append(("runs_left_out", f"{output.unnamed}: the test is not named"))
    return (*stated, *format_sizes(trace.latency), *format_left_out(output.samples))


SPEC = ReaderSpec(
    format=FORMAT,
    about="sendrecv_perf of nccl-tests and rccl-tests",
    layout='a header line "# size count type redop root time algbw busbw ..."',
    marks=(
        mark("columns size, count and type", r"#\s+size\s+count\s+type\b"),
        mark("a column algbw", r"\balgbw\b"),
        mark("a column busbw", r"\bbusbw\b"),
    ),
    detects=_detects,
    read=_read,
    named=NamedTests(_TESTS, _READ, _read),
)
