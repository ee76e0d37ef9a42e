"""tebench of Mooncake: transfers of blocks, a row for each block size and batch size.

    BlkSize (B)   Batch   BW (GB/s)     Avg Lat (us)  Avg Tx (us)   P99 Tx (us)   P999 Tx (us)
    ------------------------------------------------------------------------------------------
    65536         1       4.612000      14.2          13.9          15.0          19.6

`Avg Lat` is the mean time of a batch in one thread, BW the bytes of all threads over the duration,
GB of 10^9 bytes (`printStats` of benchmark/utils.cpp). Rows do not say how many threads there were;
bandwidth × time / bytes of a batch does: a row for which that is no whole number is left out. Of
batch size 1 and one thread the time is that of a transfer. Else block size / bandwidth is the time
between two blocks (conditions `batch` and `threads`), which is taken where there are no single
transfers, or where it is chosen. Newer versions put further columns between those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import inf

from domain.conditions import Condition
from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec, mark
from fitting.readers.text import (
    Collector,
    Line,
    format_left_out,
    format_sizes,
    lines_of,
    number_of,
    refuse,
    size_of,
)

FORMAT = "tebench"
_HEADER = re.compile(
    r"^[^\S\n]{0,20}BlkSize \(B\)[^\S\n]{1,40}Batch[^\S\n]{1,40}BW \(GB/[sS]\)", re.MULTILINE
)
_APART = re.compile(r"\s{2,80}")
_SIZE, _BATCH, _RATE, _TIME = "blksize (b)", "batch", "bw (gb/s)", "avg lat (us)"
_NEAR = 0.1  # of a number of threads, beside what the digits allow
_BYTES_PER_US = 1e3  # of one GB/s


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    latency: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    runs: int = 0
    _places: tuple[int, ...] = ()  # of sizes, batches, rates and times
    _count: int = 0  # of columns

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if _HEADER.match(line.text):
            names = [name.casefold() for name in _APART.split(line.text)]
            wanted = (_SIZE, _BATCH, _RATE, _TIME)
            if not {*wanted} <= {*names}:
                refuse(
                    f"line {line.number}: expected the columns BlkSize (B), Batch, BW (GB/s) and "
                    "Avg Lat (us) of tebench, apart by two blanks or more"
                )
            self._places = tuple(map(names.index, wanted))
            self._count, self.runs = len(names), self.runs + 1
            self.latency.begin_run()
            self.interarrival.begin_run()
        elif self._places and line.text[0].isdigit():
            self._row(line)

    def _row(self, line: Line) -> None:
        words = line.fields
        if size_of(words[0]) is None or len(words) < 2 or len(words) > self._count:
            return  # a line of another program
        if len(words) < self._count or not line.is_whole:
            self.latency.leave_out("cut off or not a number")
            return
        size, batch = (size_of(words[place]) for place in self._places[:2])
        rate, time_us = (number_of(words[place]) for place in self._places[2:])
        if not size or not batch or rate is None or time_us is None:
            self.latency.leave_out("cut off or not a number")
        elif not (0.0 < rate < inf and 0.0 < time_us < inf):
            self.latency.leave_out("of a bandwidth or a time that was printed as 0")
        elif not (threads := _threads(size * batch, rate, time_us)):
            self.latency.leave_out("whose bandwidth and time contradict each other")
        else:
            self._add(size, batch, threads, rate, time_us)

    def _add(self, size: int, batch: int, threads: int, rate: float, time_us: float) -> None:
        at_once = batch * threads
        named = (("batch", str(batch)), ("threads", str(threads)))
        part = self.latency if at_once == 1 else self.interarrival
        condition = Condition(part.condition.run, at_once, named, is_spare=at_once > 1)
        part.add(size, time_us if at_once == 1 else size / rate / _BYTES_PER_US, condition)


def _threads(batch_bytes: int, rate: float, time_us: float) -> int:
    """How many threads had such batches under way; 0 where that is no whole number."""
    count = rate * _BYTES_PER_US * time_us / batch_bytes
    whole = round(count) if count < 1e6 else 0
    # A time is printed to a tenth of a µs, a bandwidth to six decimals.
    allowed = whole * (_NEAR + 0.05 / time_us + 5e-7 / rate)
    return whole if abs(count - whole) <= min(allowed, 0.5) else 0


def _detects(text: str) -> bool:
    return "BlkSize (B)" in text and _HEADER.search(text) is not None


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    if not output.latency and not output.interarrival:
        left_out = "".join(value for _, value in format_left_out(output.latency))
        refuse(
            "no rows of block sizes and times after the header of tebench"
            + (f"; left out are {left_out}" if left_out else "")
        )
    trace = MessageTrace(output.latency.samples(), output.interarrival.samples())
    stated = [("format", FORMAT), ("time_unit", "µs")]
    if trace.latency is not None:
        stated.append(("latency_is", "a whole transfer, of batch size 1 and one thread"))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "block size / BW of all threads, GB of 10^9 bytes"))
    stated += [("statistic", "mean over the duration of a row"), ("runs", str(output.runs))]
    counted = format_sizes(trace.latency, trace.interarrival)
    of_rows = format_left_out(output.latency, output.interarrival)
    conditions = output.latency.spans(), output.interarrival.spans()
    return Reading(FORMAT, trace, (*stated, *counted, *of_rows), conditions=conditions)


SPEC = ReaderSpec(
    format=FORMAT,
    about="tebench of Mooncake",
    layout='a header line "BlkSize (B)  Batch  BW (GB/s) ... Avg Lat (us) ..."',
    marks=(
        mark("a column BlkSize (B)", r"\bBlkSize \(B\)"),
        mark("a column Avg Lat (us)", r"\bAvg Lat \(us\)"),
    ),
    detects=_detects,
    read=_read,
)
