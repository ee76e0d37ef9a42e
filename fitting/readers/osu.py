"""OSU micro-benchmarks: point-to-point latency and bandwidth.

    # OSU MPI Latency Test v5.3.2           # OSU MPI Bandwidth Test v7.5
    # Size          Latency (us)            # Datatype: MPI_CHAR.
    1                       2.46            # Size      Bandwidth (MB/s)

Latencies are half a round trip already; MB/s are 10^6 bytes a second, and a window of back-to-back
messages gives the time between two of them: size / bandwidth. Later versions say `Avg Latency(us)`
and may add columns (Min, Max, P99, Validation) after the one that counts.
"""

from __future__ import annotations

import re

from domain.measurement import MessageTrace, Reading, TraceKind
from fitting.contract import ReaderSpec
from fitting.readers.kinds import check_kind
from fitting.readers.text import (
    Collector,
    Line,
    clean,
    left_out_text,
    lines_of,
    number_of,
    refuse,
    size_of,
    sizes_text,
)

FORMAT = "OSU micro-benchmarks"
_TITLE = re.compile(r"^# OSU (.{1,80}?) v([0-9][0-9A-Za-z.]*)", re.ASCII)
_HEADER = re.compile(r"^# Size\s+(?:Avg\s+)?(Latency|Bandwidth)\s*\((us|MB/s)\)")
_LATENCY = re.compile(r"^(?:MPI|OpenSHMEM|UPC|UPC\+\+|NCCL|RCCL)?.*\bLatency Test$")
_OTHERS = {
    "Bi-Directional": "both directions at once share the stages",
    "Multiple": "several pairs at once share the stages",
    "Multi": "several pairs at once share the stages",
}


def _recognises(head: str) -> bool:
    return "# OSU " in head and any(
        _TITLE.match(clean(line, is_html="&gt;" in head or "<br" in head))
        for line in head.splitlines()
    )


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    latency, bandwidth = Collector(), Collector()
    versions: dict[str, None] = {}
    runs, part, extra = 0, None, False
    for line in lines_of(content):
        title = _TITLE.match(line.text)
        if title:
            _check_test(title.group(1), line.number)
            versions[title.group(2)] = None
            runs, part = runs + 1, None
        elif header := _HEADER.match(line.text):
            part = latency if header.group(1) == "Latency" else bandwidth
            extra = extra or "Validation" in line.text
        elif part is not None and line.text[0].isdigit():
            _row(line, part, is_bandwidth=part is bandwidth)
    trace = _trace(latency, bandwidth)
    check_kind(trace, kind, FORMAT)
    return Reading(FORMAT, trace, _understood(trace, (latency, bandwidth), tuple(versions), runs))


def _check_test(name: str, number: int) -> None:
    for word, why in _OTHERS.items():
        if word in name:
            refuse(f"line {number}: OSU {name[:60]} is not read: {why}")
    if "Latency" not in name and "Bandwidth" not in name:
        refuse(
            f"line {number}: OSU {name[:60]} is not read; expected a point-to-point latency or "
            "bandwidth test"
        )
    collective = ("Allreduce", "Bcast", "Alltoall", "Allgather", "Reduce", "Gather", "Scatter")
    if any(word in name for word in (*collective, "Barrier")):
        refuse(f"line {number}: OSU {name[:60]} is a collective: not one message on its way")


def _row(line: Line, part: Collector, *, is_bandwidth: bool) -> None:
    words = line.fields
    size = size_of(words[0])
    value = number_of(words[1]) if len(words) > 1 else None
    if size is None or value is None:
        part.leave_out("cut off or not a number")
    elif len(words) > 2 and words[-1] == "Fail":
        part.leave_out("with failed validation")
    elif not is_bandwidth:
        part.add(size, value)
    elif value == 0.0:
        part.leave_out("of a bandwidth that was printed as 0")
    else:
        part.add(size, size / value)  # bytes / (10^6 bytes/s) = µs


def _trace(latency: Collector, bandwidth: Collector) -> MessageTrace:
    if not latency and not bandwidth:
        refuse("no rows of sizes and times after the OSU header")
    return MessageTrace(latency.samples(), bandwidth.samples())


def _understood(
    trace: MessageTrace, parts: tuple[Collector, Collector], versions: tuple[str, ...], runs: int
) -> tuple[tuple[str, str], ...]:
    said = [("format", FORMAT), ("tool_version", ", ".join(versions)), ("time_unit", "µs")]
    if trace.latency is not None:
        said.append(("latency_is", "half a round trip"))
    if trace.interarrival is not None:
        said.append(("interarrival_is", "size / bandwidth, MB/s of 10^6 bytes"))
    said.append(("statistic", "mean over the iterations of a run"))
    said.append(("runs", str(runs)))
    return (*said, *sizes_text(trace.latency, trace.interarrival), *left_out_text(*parts))


SPEC = ReaderSpec(
    format=FORMAT,
    layout='lines "# OSU ... Test v..." and "# Size ... Latency (us)" or "Bandwidth (MB/s)"',
    recognises=_recognises,
    read=_read,
)
