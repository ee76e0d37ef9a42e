"""nixlbench of NIXL: transfers of blocks between two agents, or to storage.

    Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)  Avg Prep (us)  ...
    ----------------------------------------------------------------------------------
    65536               1              4.612000       14.2           1.0            ...

`Avg Lat.` is the mean time of one transfer in µs, B/W the bytes of a worker over its time, GB/s of
10^9 bytes, as `printStats` of utils.cpp has them. With a batch size of 1 and one thread a transfer
waits for the one before: its time is a latency. Transfers of a larger batch are under way at once:
size / (B/W) is the time between two of them. The batch size is a condition, `batch`: where some are
of 1, the others are taken only if they are chosen. Files of
several threads and workers are refused, whose lanes no row tells apart. Columns are found by their
names, which versions order differently; in a CSV they are block_size, batch_size, avg_lat_us and
bw_gb_us.
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

FORMAT = "nixlbench"
_ON_SCREEN = re.compile(
    r"^[^\S\n]{0,20}Block Size \(B\)[^\S\n]{1,40}Batch(?: Size)?\b", re.MULTILINE
)
_IN_CSV = re.compile(r"^block_size,batch_size,[a-z0-9_,]{0,300}lat", re.MULTILINE)
_APART = re.compile(r"\s{2,80}")
_SIZES = ("Block Size (B)", "block_size")
_BATCHES = ("Batch Size", "Batch", "batch_size")
_TIMES = ("Avg Lat. (us)", "avg_lat_us", "avg_latency_us")
_RATES = ("B/W (GB/Sec)", "bw_gb_us")
_BATCH = "batch"
_NS_PER_US = 1e3
_THREADS = re.compile(r"--num_threads=N\)\s{0,80}:\s{0,8}([0-9]{1,6})")
_AGGREGATE = "Aggregate B/W (GB/Sec)"  # printed where there are more than two workers


@dataclass(frozen=True, slots=True)
class _Columns:
    """The places of what counts, and how many columns there are."""

    size: int
    batch: int
    time: int
    rate: int | None
    count: int
    is_csv: bool


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    samples: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    runs: int = 0
    _columns: _Columns | None = None

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        if threads := _THREADS.search(line.text):
            if threads.group(1) != "1":
                refuse(
                    f"line {line.number}: nixlbench of {threads.group(1)} threads: they transfer "
                    "at once, and no row tells them apart; run it with --num_threads=1"
                )
        elif (columns := _columns(line)) is not None:
            self._columns, self.runs = columns, self.runs + 1
            self.samples.begin_run()
            self.interarrival.begin_run()
        elif self._columns is not None and line.text[0].isdigit():
            self._row(line, self._columns)

    def _row(self, line: Line, columns: _Columns) -> None:
        words = [word.strip() for word in line.text.split(",")] if columns.is_csv else line.fields
        if size_of(words[0]) is None or len(words) < 2 or len(words) > columns.count:
            return  # a line of another program
        if len(words) < columns.count or not line.is_whole:
            self.samples.leave_out("cut off or not a number")
            return
        size, batch = size_of(words[columns.size]), size_of(words[columns.batch])
        at = columns.time if batch == 1 else columns.rate
        value = None if at is None else number_of(words[at])
        if at is None:
            self.samples.leave_out("of several transfers at once, without a bandwidth")
        elif size is None or not batch or value is None:
            self.samples.leave_out("cut off or not a number")
        elif batch == 1:
            self.samples.add(size, value, self._condition(self.samples, batch))
        elif not 0.0 < value < inf:
            self.interarrival.leave_out("of a bandwidth that was printed as 0")
        else:
            condition = self._condition(self.interarrival, batch)
            self.interarrival.add(size, size / value / _NS_PER_US, condition)

    def _condition(self, part: Collector, batch: int) -> Condition:
        named = ((_BATCH, str(batch)),)
        return Condition(part.condition.run, batch, named, is_spare=batch > 1)


def _columns(line: Line) -> _Columns | None:
    """The columns of a header line. Raises UnreadableTrace for one of several workers."""
    is_csv = _IN_CSV.match(line.text) is not None
    if not is_csv and _ON_SCREEN.match(line.text) is None:
        return None
    names = line.text.split(",") if is_csv else _APART.split(line.text)
    if _AGGREGATE in names:
        refuse(
            f"line {line.number}: nixlbench of more than two workers: they share the way; run it "
            "between two"
        )
    places = [
        next((names.index(name) for name in wanted if name in names), None)
        for wanted in (_SIZES, _BATCHES, _TIMES, _RATES)
    ]
    size, batch, time, rate = places
    if size is None or batch is None or time is None:
        refuse(f"line {line.number}: expected a column Avg Lat. (us) of nixlbench")
    return _Columns(size, batch, time, rate, len(names), is_csv)


def _detects(text: str) -> bool:
    on_screen = "Avg Lat. (us)" in text and _ON_SCREEN.search(text) is not None
    return on_screen or ("batch_size," in text and _IN_CSV.search(text) is not None)


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    if not output.samples and not output.interarrival:
        refuse("no rows of block sizes and times after the header of nixlbench")
    trace = MessageTrace(output.samples.samples(), output.interarrival.samples())
    stated = [("format", FORMAT), ("time_unit", "µs")]
    if trace.latency is not None:
        stated.append(("latency_is", "the whole transfer of a block, of batch size 1"))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "block size / bandwidth of a batch, GB of 10^9 bytes"))
    stated += [("statistic", "mean over the iterations of a row"), ("runs", str(output.runs))]
    counted = format_sizes(trace.latency, trace.interarrival)
    left_out = format_left_out(output.samples, output.interarrival)
    conditions = output.samples.spans(), output.interarrival.spans()
    return Reading(FORMAT, trace, (*stated, *counted, *left_out), conditions=conditions)


SPEC = ReaderSpec(
    format=FORMAT,
    about="nixlbench of NIXL: on the screen, or a CSV of its columns",
    layout='a header line "Block Size (B)  Batch Size ... Avg Lat. (us) ..."',
    marks=(
        mark("a column Block Size (B)", r"\bBlock Size \(B\)|^block_size,"),
        mark("a column Avg Lat. (us)", r"\bAvg Lat\. \(us\)|,avg_lat"),
    ),
    detects=_detects,
    read=_read,
)
