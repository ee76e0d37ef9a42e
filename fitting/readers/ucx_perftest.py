"""ucx_perftest -v: CSV rows after a header, with the names of the batch files in front.

    iterations,typical_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
    1000,2.012,2.034,2.034,3.75,3.75,491580,491580

Latencies are µs, bandwidths MB/s of 1024^2 bytes, message rates 1/s. Later versions call the second
column `<rank>_percentile_lat`. A row does not say its message size: it is taken from the name of
the test in a batch ("tag_lat_4096"), or else follows from bandwidth / message rate, which is exact
to the printed digits; where neither gives a whole number of bytes, the row is left out. Of a
latency test ("lat" in its name) the typical latency is taken, half a round trip; of a bandwidth
test ("bw", "mr") 1 / message rate is the time between messages. Where the names do not tell, the
user's `kind` has to: the columns look alike. Rows that repeat a test (its progress) are replaced by
its last one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec
from fitting.readers.kinds import check_kind
from fitting.readers.text import (
    Collector,
    Line,
    left_out_text,
    lines_of,
    number_of,
    refuse,
    size_of,
    sizes_text,
)

FORMAT = "ucx_perftest CSV"
_HEADER = re.compile(
    r"^(?P<names>(?:[^,]*,)*)iterations,(?P<rank>[a-z0-9_.]*lat),avg_lat,overall_lat,avg_bw,"
    r"overall_bw,avg_mr,overall_mr"
)
_NUMBERS = 8
_MEBIBYTE = 2**20
_SIZE_IN_NAME = re.compile(r"(?:^|[^0-9])([0-9]{1,13})([kKmMgG]?)(?:i?[bB])?$")
_UNITS = {letter: 1024**power for power, letter in enumerate(("", *"kmg"))}
_NEAR = 0.05  # how far bandwidth / rate may be from a whole number of bytes, at small sizes


@dataclass(frozen=True, slots=True)
class _Row:
    names: tuple[str, ...]
    numbers: tuple[float, ...]

    def is_bandwidth(self, kind: TraceKind | None) -> bool:
        """A stream of messages, by the names of the test or by what the user says of the file."""
        told = " ".join(self.names).lower()
        if "lat" in told or "bw" in told or "_mr" in told:
            return "lat" not in told
        if kind is None:
            refuse(
                "the ucx_perftest CSV does not say whether it is of a latency or of a bandwidth "
                "test: pass kind end_to_end for latencies, indirect for bandwidths"
            )
        return kind is TraceKind.INDIRECT

    @property
    def size(self) -> int | None:
        """The message size: by name, or bandwidth over rate."""
        for name in reversed(self.names):
            if found := _SIZE_IN_NAME.search(name):
                unit: int = _UNITS[found.group(2).lower()]
                return int(found.group(1)) * unit
        bandwidth, rate = self.numbers[5] * _MEBIBYTE, self.numbers[7]
        if not (rate > 0.0 and math.isfinite(bandwidth)):
            return None
        # Both are rounded: the bandwidth to 0.005 MB/s, the rate to 0.5 a second.
        error = bandwidth / rate * (0.5 / rate) + 0.005 * _MEBIBYTE / rate
        whole = round(bandwidth / rate)
        return whole if whole >= 1 and error <= max(0.5, _NEAR * whole) else None


def _recognises(head: str) -> bool:
    return "overall_lat," in head and "overall_mr" in head


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    latency, interarrival = Collector(), Collector()
    rows: dict[tuple[str, ...], _Row] = {}
    finished: list[_Row] = []
    rank = ""
    for line in lines_of(content):
        if header := _HEADER.match(line.text):
            finished += rows.values()
            rows, rank = {}, header.group("rank")
        elif rank and (row := _row_of(line, latency)) is not None:
            key = row.names if row.names else (str(len(rows)),)
            rows[key] = row
    for row in [*finished, *rows.values()]:
        _take(row, latency, interarrival, kind)
    if not latency and not interarrival:
        refuse(
            "no row of the ucx_perftest CSV gives a message size: name the tests of the batch by "
            'their sizes ("tag_lat_4096"), or let bandwidth and message rate be printed'
        )
    trace = MessageTrace(latency.samples(), interarrival.samples())
    check_kind(trace, kind, FORMAT)
    said = [("format", FORMAT), ("time_unit", "µs")]
    if trace.latency is not None:
        said.append(("latency_is", f"half a round trip ({rank})"))
    if trace.interarrival is not None:
        said.append(("interarrival_is", "1 / overall message rate"))
    said.append(("size_is", "from the test's name, or overall bandwidth (2^20 bytes) / rate"))
    counted = sizes_text(trace.latency, trace.interarrival)
    return Reading(FORMAT, trace, (*said, *counted, *left_out_text(latency, interarrival)))


def _row_of(line: Line, part: Collector) -> _Row | None:
    words = [word.strip() for word in line.text.split(",")]
    numbers = [number_of(word) for word in words[-_NUMBERS:]]
    if len(words) < _NUMBERS or None in numbers:
        if words and size_of(words[-1]) is not None:
            part.leave_out("with fewer than 8 numbers (a run of several threads, or cut off)")
        return None
    return _Row(tuple(words[:-_NUMBERS]), tuple(number or 0.0 for number in numbers))


def _take(row: _Row, latency: Collector, interarrival: Collector, kind: TraceKind | None) -> None:
    size = row.size
    if size is None:
        latency.leave_out("without a message size")
    elif row.is_bandwidth(kind):
        rate = row.numbers[7]
        if rate > 0.0:
            interarrival.add(size, 1e6 / rate)
        else:
            interarrival.leave_out("of a message rate that was printed as 0")
    else:
        latency.add(size, row.numbers[1])


SPEC = ReaderSpec(
    format=FORMAT,
    layout="a header line iterations,...,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr",
    recognises=_recognises,
    read=_read,
)
