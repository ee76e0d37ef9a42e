"""transfer_engine_bench of Mooncake: batches of blocks from one segment of memory to another.

    I0504 10:11:12.345678 4711 transfer_engine_bench.cpp:397] Worker 11 stopped!
    I0504 10:11:12.346001 4700 transfer_engine_bench.cpp:513] Test completed: duration 10.01, batch
    count 141295, throughput 118.41 GB/s

(one line). A run says how long it took and how many batches went, not of which blocks: block and
batch size are of the command above it, or of what a script prints, as `block_size=65536`; where the
command leaves one out, of the defaults of the program. Bytes of a batch are throughput × duration /
batches: where block × batch size is not that, as far as the digits tell, the run is left out.
Threads are counted by their lines, else said by the command; defaults differ among versions.

A thread submits a batch and waits for all of it. So of batch size 1 and one thread duration /
batches is the time of a transfer, which for a read has the request in it. Else duration / blocks of
all threads is the time between two of them (conditions `batch` and `threads`): it is taken where
there are no single transfers, or where it is chosen.

    Test completed: duration 1843us, block size 64KB, total size 1280KB , throughput 0.71 GB/s

is of the programs for Ascend, one batch of one thread, with KB of 1024 bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import inf

from domain.measurement import MessageTrace, Reading, TraceKind
from domain.solution import Notice
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

FORMAT = "transfer_engine_bench"
_DONE = re.compile(
    r"Test completed: duration ([0-9.]{1,20})(?:, batch count ([0-9]{1,18})"
    r"|us, block size ([0-9]{1,15})KB, total size ([0-9]{1,15})KB ?),"
    r" throughput ([0-9.]{1,20})(?: ([KMG]i?[Bb])(/s|ps)?)?"
)
_WORKER = re.compile(r"\bWorker ([0-9]{1,6}) stopped!")
_COMMAND = re.compile(r"\btransfer_engine_[a-z_]{1,60}(?=\s{1,20}-|\s{0,20}\\?$)")
_SAID = re.compile(
    r"(?<![\w])(block|batch)[_ -]size(?:=|:|\s)\s{0,8}[\"']?([0-9]{1,15})(?![\w.])"
    r"|(?<![\w])(threads|mode|operation)(?:=|:|\s)\s{0,8}[\"']?([a-z0-9]{1,15})(?![\w.])",
    re.IGNORECASE,
)
_DEFAULTS = {"block": (65_536, 4096), "batch": (128,)}  # of newer and older versions
_PREFIXES = "KMG"
_US_PER_S, _KB = 1e6, 1024
_MAX_DOUBT = 0.3  # of a throughput of so few digits that it would agree with half of a size, too
_EXAMPLE = "transfer_engine_bench --block_size=65536 --batch_size=1 --threads=1"


@dataclass(slots=True)
class _Output:
    """What was read of a file so far."""

    latency: Collector = field(default_factory=Collector)
    interarrival: Collector = field(default_factory=Collector)
    runs: int = 0
    operations: dict[str, None] = field(default_factory=dict)
    unnamed: int = 0  # runs of which nothing says the sizes
    _said: dict[str, str] = field(default_factory=dict)
    _has_command: bool = False
    _command: str = ""  # as far as it goes, while its lines are continued
    _threads: int = 0  # as their lines count them

    def take(self, line: Line) -> None:
        """Read one line."""
        if self._command or _COMMAND.search(line.text):
            self._command += f" {line.text.removesuffix(chr(92))}"
            if not line.text.endswith("\\"):
                self._begin_command()
        elif worker := _WORKER.search(line.text):
            self._threads = max(self._threads, int(worker.group(1)) + 1)
        elif done := _DONE.search(line.text):
            self._end_run(done)
        else:
            self._said.update(_said(line.text))

    def _begin_command(self) -> None:
        said, self._command = _said(self._command), ""
        if said.get("mode") != "target":
            self._said, self._has_command = said, True

    def _end_run(self, done: re.Match[str]) -> None:
        self.runs += 1
        duration, batches, block_kb, total_kb, rate, unit, _ = done.groups()
        threads, self._threads = self._threads, 0
        scales, doubt = _scales(unit, done.group(7)), _doubt(rate)
        length, bytes_s = number_of(duration), number_of(rate)
        if length is None or bytes_s is None or length <= 0.0 or bytes_s <= 0.0:
            self.latency.leave_out("of a duration or a throughput that was printed as 0")
            return
        if batches is None:
            block, total = int(block_kb) * _KB, int(total_kb) * _KB
            sizes = [(block, total // block)] if block and total % block == 0 else []
            threads, count, length_s = 1, 1, length / _US_PER_S
        else:
            sizes, count, length_s = self._sizes(), int(batches), length
            doubt += _doubt(duration)
            threads = threads or size_of(self._said.get("threads", "")) or 0
        if not sizes:
            self.unnamed += 1
            self.latency.leave_out("of which nothing says the block size")
        elif not count or doubt > _MAX_DOUBT:
            self.latency.leave_out("of a throughput with too few digits to check the sizes by")
        elif not (agreeing := _agreeing(sizes, bytes_s * length_s / count, scales, doubt)):
            self.latency.leave_out("whose throughput contradicts the block and batch size")
        elif not threads:
            self.latency.leave_out("of which nothing says the number of threads")
        else:
            self._add(*agreeing[0], threads, length_s / count * _US_PER_S)

    def _sizes(self) -> list[tuple[int, int]]:
        """Block and batch sizes that this run may have had; none where nothing says them."""
        if not (self._has_command or {"block", "batch"} & self._said.keys()):
            return []
        blocks, batches = (
            (int(self._said[name]),) if name in self._said else _DEFAULTS[name]
            for name in ("block", "batch")
        )
        return [(block, batch) for block in blocks for batch in batches if block and batch]

    def _add(self, block: int, batch: int, threads: int, batch_us: float) -> None:
        """Take a run whose batches ended in such intervals, in all threads together."""
        self.operations[self._said.get("operation", "read, by default")] = None
        named = (("batch", str(batch)), ("threads", str(threads)))
        at_once = batch * threads
        part = self.latency if at_once == 1 else self.interarrival
        part.begin_size(block, at_once=at_once, named=named, is_spare=at_once > 1)
        part.add(block, batch_us / batch)


def _said(text: str) -> dict[str, str]:
    """What a line says of a run, by the first words of the flags."""
    found = {}
    for size, number, name, word in _SAID.findall(text):
        found[(size or name).lower()] = number or word.lower()
    return found


def _scales(unit: str | None, end: str | None) -> tuple[float, ...]:
    """How many bytes a second one of a throughput may be."""
    if unit is None:
        return (1e9,)
    scale = (1024.0 if "i" in unit else 1e3) ** (1 + _PREFIXES.index(unit[0]))
    if end == "ps":  # one program calls bytes so
        return (scale, scale / 8.0)
    return (scale,) if unit.endswith("B") else (scale / 8.0,)


def _doubt(word: str) -> float:
    """How far a number may be off, as a share of it: half of its last digit."""
    value = number_of(word)
    if not value:
        return inf
    return 0.5 * 10.0 ** -len(word.partition(".")[2]) / value


def _agreeing(
    sizes: list[tuple[int, int]], batch_bytes: float, scales: tuple[float, ...], doubt: float
) -> list[tuple[int, int]]:
    """Those whose batches have as many bytes as the throughput says."""
    allowed = 1e-6 + doubt
    return [
        (block, batch)
        for block, batch in sizes
        if any(abs(batch_bytes * scale / (block * batch) - 1.0) <= allowed for scale in scales)
    ]


def _detects(text: str) -> bool:
    return "Test completed: duration" in text and _DONE.search(text) is not None


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    output = _Output()
    for line in lines_of(content):
        output.take(line)
    if not output.latency and not output.interarrival:
        refuse(_missing(output))
    trace = MessageTrace(output.latency.samples(), output.interarrival.samples())
    conditions = output.latency.spans(), output.interarrival.spans()
    stated = _understood(trace, output)
    return Reading(FORMAT, trace, stated, _notices(trace, output), conditions)


def _missing(output: _Output) -> str:
    if output.unnamed:
        return (
            f"{FORMAT} says how many batches went, and not of which blocks: keep the command above "
            f"its lines, as in: {_EXAMPLE}, run once for each block size"
        )
    left_out = "".join(value for _, value in format_left_out(output.latency))
    return (
        f"no run of {FORMAT} can be read; left out are {left_out}. What can be read has its "
        f"command above it, and lines that count its threads, as in: {_EXAMPLE} "
        "--report_precision=6"
    )


def _understood(trace: MessageTrace, output: _Output) -> tuple[tuple[str, str], ...]:
    stated = [
        ("format", FORMAT),
        ("tests", ", ".join(output.operations)[:200]),
        ("time_unit", "µs"),
        ("size_is", "the block size of the command, which the throughput agrees with"),
    ]
    if trace.latency is not None:
        stated.append(("latency_is", "a whole transfer, of batch size 1 and one thread"))
    if trace.interarrival is not None:
        stated.append(("interarrival_is", "duration / blocks of all threads together"))
    stated += [("statistic", "mean over a run"), ("runs", str(output.runs))]
    left_out = format_left_out(output.latency, output.interarrival)
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *left_out)


def _notices(trace: MessageTrace, output: _Output) -> tuple[Notice, ...]:
    if trace.latency is None or all(operation == "write" for operation in output.operations):
        return ()
    stated = (
        "the time of a read has the way of the request in it; it is taken as it is, as a larger "
        "overhead"
    )
    return (Notice("read_is_round_trip", stated),)


SPEC = ReaderSpec(
    format=FORMAT,
    about="transfer_engine_bench of Mooncake, with its command",
    layout='lines "Test completed: duration ..., batch count ..., throughput ..."',
    marks=(mark('a line "Test completed: duration"', r"Test completed: duration [0-9]"),),
    detects=_detects,
    read=_read,
)
