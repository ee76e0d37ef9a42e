"""The project's own format of whole messages.

    message_bytes,repetition,latency_us,interarrival_us
    4096,0,184.3,81.2

Either time column, or both; an empty field was not measured. Latencies are one-way and of
unpipelined messages, inter-arrival times of back-to-back messages of one size. A header with these
names is never one of stages: beside stages, the time of the whole message is total_us. The column
of repetitions may be absent, and the sizes may be called bytes, size or msg_size. Each header line
begins a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.conditions import Condition
from domain.measurement import MessageTrace, Reading, Spans, TraceKind
from fitting.contract import CSV_BEGINS, FIRST_SIZE, ReaderSpec, mark
from fitting.readers.columns import (
    REPETITION,
    SIZE,
    Block,
    Column,
    header_of,
    read_blocks,
    samples_of,
)
from fitting.readers.text import (
    BELOW_ZERO,
    check_kind,
    format_reasons,
    format_sizes,
    is_repetition,
    refuse,
    refuse_below_zero,
)

FORMAT = "message CSV"
_LATENCY, _INTERARRIVAL = "latency_us", "interarrival_us"
_TIMES = {_LATENCY, _INTERARRIVAL}
_HEADER = f"{SIZE.name},{_LATENCY} or {_INTERARRIVAL} or both"


def _detects(head: str) -> bool:
    times = _times_of(header_of(head))
    return bool(times) and not _TIMES.isdisjoint(times)


def _times_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns behind those of sizes and repetitions."""
    return names[2:] if is_repetition("".join(names[1:2])) else names[1:]


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    blocks: dict[tuple[str, ...], Block] = {}
    begins: dict[tuple[str, ...], list[tuple[int, int]]] = {}

    def block_of(names: tuple[str, ...], number: int) -> Block:
        _check_header(names, number)
        times = [Column(name, may_be_empty=True) for name in _times_of(names)]
        numbers = [SIZE, REPETITION][: len(names) - len(times)]
        block = blocks.setdefault(names, Block((*numbers, *times)))
        begins.setdefault(names, []).append((len(block), sum(map(len, begins.values())) + 1))
        return block

    read_blocks(content, block_of)
    latency, interarrival = (samples_of(blocks.values(), n) for n in (_LATENCY, _INTERARRIVAL))
    below = sum(block.below_zero for block in blocks.values())
    if latency is None and interarrival is None:
        if below:
            refuse_below_zero(below, below)
        refuse("no measurements: expected at least one row with a time")
    trace = MessageTrace(latency, interarrival)
    check_kind(trace, kind, FORMAT)
    stated = [("format", FORMAT), ("time_unit", "µs"), ("size_unit", "bytes")]
    if latency is not None:
        stated.append(("latency_is", "one way, as the file says"))
    if interarrival is not None:
        stated.append(("interarrival_is", "between arrivals, as the file says"))
    counted = (*format_sizes(latency, interarrival), *format_reasons({BELOW_ZERO: below}))
    runs = [(block, begins[names]) for names, block in blocks.items()]
    conditions = tuple(_spans(runs, name) for name in (_LATENCY, _INTERARRIVAL))
    return Reading(FORMAT, trace, (*stated, *counted), conditions=conditions)


def _spans(runs: Sequence[tuple[Block, Sequence[tuple[int, int]]]], name: str) -> Spans:
    """From which time of this column on which run goes: every header line begins one.

    `runs` are blocks, and the places of their rows where a run of a number begins.
    """
    import numpy as np

    spans, total = dict[int, Condition](), 0
    for block, begins in runs:
        if all(column.name != name for column in block.columns):
            continue
        is_given = ~np.isnan(np.frombuffer(block.times(name), np.float64))
        before = np.concatenate(([0], np.cumsum(is_given)))
        for place, run in begins:
            spans[total + int(before[place])] = Condition(run)
        total += int(before[-1])
    return tuple((start, spans[start]) for start in sorted(spans) if start < total)


def _check_header(names: tuple[str, ...], number: int) -> None:
    times = _times_of(names)
    if not times or len(set(names)) < len(names):
        refuse(f"line {number}: expected the header line {_HEADER}")
    if "fragment_bytes" in names:
        refuse(
            f"line {number}: these are whole messages cut by several sizes, which say whether a "
            "model holds and not what a stage costs: sluice verify SOURCE --recorded FILE"
        )
    if not set(times) <= _TIMES:
        refuse(
            f"line {number}: expected the header line {_HEADER}; beside the times of stages the "
            "time of the whole message is total_us, the last column"
        )


SPEC = ReaderSpec(
    format=FORMAT,
    about="latencies of whole messages, times between arrivals, or both",
    layout=f"a header line {_HEADER}",
    marks=(
        mark("message_bytes as the first column", FIRST_SIZE),
        mark("a column latency_us or interarrival_us", r"\b(latency|interarrival)_us\b"),
    ),
    detects=_detects,
    read=_read,
    begins=CSV_BEGINS,
)
