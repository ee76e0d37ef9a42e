"""Intel MPI Benchmarks: PingPong, and the PingPong-like ones whose time is half a round trip.

    # Benchmarking PingPong
    # #processes = 2
           #bytes #repetitions      t[usec]   Mbytes/sec
                0         1000         2.23         0.00

t[usec] is half a round trip. Mbytes/sec is not used: it is 2^20 bytes in versions up to 2017 and
10^6 later. Other benchmarks in the same file are left out by name; a file without a PingPong is
refused.
"""

from __future__ import annotations

import re

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

FORMAT = "Intel MPI Benchmarks"
_BENCHMARK = re.compile(r"^#\s*Benchmarking\s+([A-Za-z_0-9]{1,60})")
_VERSION = re.compile(r"^#.*(?:Benchmarks?|Benchmark Suite) (?:V|v|[0-9]{4}\b)?.{0,40}", re.ASCII)
_HEADER = re.compile(r"^#bytes\s+#repetitions\s+t\[usec\]")
_MINMAX_HEADER = re.compile(r"^#bytes\s+#repetitions\s+t_min")
_READ = {"pingpong", "pingpongspecificsource", "pingponganysource"}


def _recognises(head: str) -> bool:
    return "#repetitions" in head and ("#bytes" in head) and "[usec]" in head


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    samples, others = Collector(), dict[str, None]()
    repetitions: list[int] = []
    version, name, part, runs = "", "", None, 0
    for line in lines_of(content):
        if benchmark := _BENCHMARK.match(line.text):
            name, part = benchmark.group(1), None
        elif _HEADER.match(line.text):
            if name.lower() in _READ or not name:
                part, runs = samples, runs + 1
            else:
                others[name] = None
        elif _MINMAX_HEADER.match(line.text):
            part = None
            others[name or "a benchmark with t_min and t_max"] = None
        elif line.text.startswith("#"):
            if not version and _VERSION.match(line.text):
                version = line.text.lstrip("# ")[:80]
        elif part is not None and line.text[0].isdigit():
            _row(line, part, repetitions)
    if not samples:
        refuse(_missing(tuple(others)))
    trace = MessageTrace(latency=samples.samples())
    check_kind(trace, kind, FORMAT)
    return Reading(
        FORMAT, trace, _understood(trace, samples, repetitions, version, runs, tuple(others))
    )


def _row(line: Line, part: Collector, repetitions: list[int]) -> None:
    words = line.fields
    numbers = [size_of(word) for word in words[:2]]
    value = number_of(words[2]) if len(words) > 2 else None
    if None in numbers or len(numbers) < 2 or value is None:
        part.leave_out("cut off or not a number")
        return
    size, count = int(numbers[0] or 0), int(numbers[1] or 0)
    before = len(part)
    part.add(size, value)
    if len(part) > before:
        repetitions.append(count)


def _missing(others: tuple[str, ...]) -> str:
    if others:
        return (
            f"no PingPong in this file, only {', '.join(others)[:200]}: their times are not those "
            "of one message on its way"
        )
    return "no rows after the header #bytes #repetitions t[usec]"


def _understood(
    trace: MessageTrace,
    samples: Collector,
    repetitions: list[int],
    version: str,
    runs: int,
    others: tuple[str, ...],
) -> tuple[tuple[str, str], ...]:
    fewest, most = min(repetitions), max(repetitions)
    count = str(fewest) if fewest == most else f"{fewest} to {most}"
    said = [("format", FORMAT)]
    if version:
        said.append(("tool_version", version))
    said += [
        ("time_unit", "µs"),
        ("latency_is", "half a round trip"),
        ("statistic", f"mean over {count} repetitions"),
        ("runs", str(runs)),
    ]
    if others:
        said.append(("benchmarks_left_out", ", ".join(others)[:200]))
    return (*said, *sizes_text(trace.latency), *left_out_text(samples))


SPEC = ReaderSpec(
    format=FORMAT,
    layout='a header line "#bytes #repetitions t[usec]"',
    recognises=_recognises,
    read=_read,
)
