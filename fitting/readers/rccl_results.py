"""The file of results that rccl-tests write beside their table (--output_file, --output_format).

    {"numCycle":0, "name":"SendRecv", "gpus":2, "size":4096, "type":"float", "redop":"sum",
     "inPlace":0, "time":17.020000, "algBw":0.240658, "busBw":0.240658, "wrong":"0"}

JSON, an object a line or a list of them, or CSV of the same with the header `collective, gpus,
size, type, redop, inplace, time, algbw, busbw, #wrong`. Built with MPI it has nodes, ranks and two
more in place of gpus, and its CSV a number of nodes that the header does not name: so columns count
from the end. Times are µs; a row whose bandwidth is not size / time is left out.

SendRecv alone is read, as of `fitting.readers.nccl_tests`: each rank sends to the next and receives
from the one before at once. Rows in place (condition `in_place`) are taken where there are no
others, or where they are chosen. Sizes that come again, as in cycles (numCycle), are another run's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.nccl_tests import AT_ONCE, STATISTIC, of_collectives
from fitting.readers.text import (
    Collector,
    Line,
    check_kind,
    decoded,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
    size_of,
)
from fitting.readers.tool_json import documents_of, number, whole

FORMAT = "rccl-tests results"
_IN_CSV = re.compile(
    r"^(?:numCycle, ?)?collective, ?[a-z, ]{1,80}size, ?type, ?redop, ?inplace, ?time, ?algbw",
    re.MULTILINE,
)
_IN_JSON = re.compile(r'"(?:inPlace|busBw)": ?[0-9]')
_READ = "SendRecv"
_NAMES = ("size", "type", "redop", "inPlace", "time", "algBw", "busBw", "wrong")  # the last ones
_MOST = len(_NAMES) + 6  # columns of a row, of which some versions have none
_NEAR = 0.01  # of the bandwidth, beside its last digit
_DIGIT = 1e-6
_BYTES_PER_US = 1e3  # of one GB/s


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    samples: Collector = field(default_factory=Collector)
    others: dict[str, None] = field(default_factory=dict)
    ranks: dict[int, None] = field(default_factory=dict)
    _has_header: bool = False

    def take_line(self, line: Line) -> None:
        """Read one line of CSV."""
        if _IN_CSV.match(line.text):
            self._has_header = True
            return
        if not self._has_header or "," not in line.text:
            return
        words = ["", *(word.strip().strip('"') for word in line.text.split(","))][-_MOST:]
        if len(words) <= len(_NAMES):
            self.samples.leave_out("cut off or not a number")
            return
        *first, size, kind, operation, in_place, time, rate, bus, wrong = words
        name = next((word for word in first if word and not word.isdigit()), "")
        if not line.is_whole or not name or size_of(size) is None:
            self.samples.leave_out("cut off or not a number")
            return
        values = (size_of(size), kind, operation, size_of(in_place), *map(number_of, (time, rate)))
        fields = dict(zip(_NAMES, (*values, number_of(bus), wrong), strict=True))
        self._add({**fields, "name": name})

    def take_document(self, document: dict[str, Any]) -> None:
        """Read one object of JSON."""
        if "name" in document and "size" in document:
            self._add(document)

    def _add(self, row: Mapping[str, Any]) -> None:
        given = dict(row)
        name = str(given["name"])[:60]
        if name != _READ:
            self.others[name] = None
            return
        for key in ("ranks", "gpus"):
            if count := whole(given, key):
                self.ranks[count] = None
        size, time_us, rate = whole(given, "size"), number(given, "time"), number(given, "algBw")
        wrong = number_of(str(given.get("wrong", given.get("#wrong", ""))))
        if size is None or time_us is None or rate is None or time_us <= 0.0:
            self.samples.leave_out("without a time")
        elif wrong is not None and wrong > 0.0:
            self.samples.leave_out("with wrong values")
        elif abs(size / time_us / _BYTES_PER_US - rate) > _NEAR * rate + _DIGIT:
            self.samples.leave_out("whose bandwidth is not size / time")
        else:
            is_in_place = given.get("inPlace") == 1
            named = (
                ("in_place", "1" if is_in_place else "0"),
                ("type", str(given.get("type", ""))[:20]),
            )
            self.samples.begin_size(size, named=named, is_spare=is_in_place)
            self.samples.add(size, time_us)


def _detects(text: str) -> bool:
    if "algbw" in text and _IN_CSV.search(text) is not None:
        return True
    return '"inPlace"' in text and '"redop"' in text and _IN_JSON.search(text) is not None


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output, text = _Output(), decoded(content)
    if _IN_CSV.search(text) is not None:
        for line in lines_of(content):
            output.take_line(line)
    else:
        for document in documents_of(text):
            output.take_document(document)
    if not output.samples:
        if output.others:
            refuse(of_collectives(output.others))
        left_out = "".join(value for _, value in format_left_out(output.samples))
        refuse(f"no result of rccl-tests can be read; left out are {left_out or 'none'}")
    trace = MessageTrace(latency=output.samples.samples())
    check_kind(trace, kind, FORMAT)
    stated = [
        ("format", FORMAT),
        ("tests", _READ),
        ("time_unit", "µs"),
        ("latency_is", AT_ONCE),
        ("statistic", STATISTIC),
        ("runs", str(max(condition.run for _, condition in output.samples.spans()))),
    ]
    if output.ranks:
        stated.append(("ranks", ", ".join(map(str, output.ranks))[:100]))
    if output.others:
        stated.append(("tests_left_out", ", ".join(output.others)[:200]))
    counted, of_rows = format_sizes(trace.latency), format_left_out(output.samples)
    conditions = (output.samples.spans(), ())
    return Reading(FORMAT, trace, (*stated, *counted, *of_rows), conditions=conditions)


SPEC = ReaderSpec(
    format=FORMAT,
    about="rccl-tests --output_file: JSON or CSV of sendrecv_perf",
    layout='rows with "inPlace", "algBw", "busBw", or a header collective,...,inplace,time,algbw',
    marks=(
        mark("a column inplace", r"\binplace\b"),
        mark("a column busbw", r"\bbusbw\b"),
        mark("a column redop", r"\bredop\b"),
    ),
    detects=_detects,
    read=_read,
)
