"""The project's own format of LogP signatures, with or without round-trip times.

    message_bytes,burst,computation_us,cost_us
    16,1,0,2.9
    message_bytes,repetition,round_trip_us
    16,0,25.1

A row: `burst` messages were issued one after the other with `computation_us` of computation between
them, and one of them cost `cost_us` on average, computation and the handling of replies included
(Culler96 sec. 3). Blocks may come in any order and more than once.
"""

from __future__ import annotations

from domain.measurement import Reading, Samples, SignatureTrace, TraceKind
from fitting.contract import FIRST_SIZE, ReaderSpec, mark
from fitting.readers.columns import (
    BURST,
    REPETITION,
    SIZE,
    Block,
    Column,
    header_of,
    read_blocks,
    samples_of,
)
from fitting.readers.text import check_kind, format_sizes, refuse

FORMAT = "signature CSV"
_COMPUTATION, _COST, _ROUND_TRIP = "computation_us", "cost_us", "round_trip_us"
_BURSTS = (SIZE, BURST, Column(_COMPUTATION), Column(_COST))
_ROUND_TRIPS = (SIZE, REPETITION, Column(_ROUND_TRIP))
_LAYOUTS = {tuple(column.name for column in layout): layout for layout in (_BURSTS, _ROUND_TRIPS)}
_BURSTS_HEADER, _ROUND_TRIPS_HEADER = (",".join(names) for names in _LAYOUTS)
_HEADERS = f"{_BURSTS_HEADER} and {_ROUND_TRIPS_HEADER}"


def _detects(head: str) -> bool:
    return header_of(head) in _LAYOUTS


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    bursts, round_trips = Block(_BURSTS), Block(_ROUND_TRIPS)

    def block_of(names: tuple[str, ...], number: int) -> Block:
        if names not in _LAYOUTS:
            refuse(f"line {number}: expected one of the header lines {_HEADERS}")
        return bursts if _LAYOUTS[names] is _BURSTS else round_trips

    read_blocks(content, block_of)
    if not len(bursts):
        refuse(f"no signature: expected at least one row below {_BURSTS_HEADER}")
    sizes, counts = bursts.whole(SIZE.name), bursts.whole(BURST.name)
    cost = bursts.times(_COST)
    round_trip = samples_of([round_trips], _ROUND_TRIP)
    trace = SignatureTrace(sizes, counts, bursts.times(_COMPUTATION), cost, round_trip=round_trip)
    check_kind(trace, kind, FORMAT)
    stated = [
        ("format", FORMAT),
        ("time_unit", "µs"),
        ("size_unit", "bytes"),
        ("cost_is", "mean per message, computation and replies included"),
        ("bursts", f"{len(set(counts))} lengths: {min(counts)} to {max(counts)} messages"),
    ]
    if round_trip is not None:
        stated.append(("round_trips", f"{len(round_trip)}, full round trips"))
    return Reading(FORMAT, trace, (*stated, *format_sizes(Samples(sizes, cost))))


SPEC = ReaderSpec(
    format=FORMAT,
    about="LogP signatures of an end point, with round trips or without",
    layout=f"the header lines {_HEADERS}",
    marks=(
        mark("message_bytes as the first column", FIRST_SIZE),
        mark("burst as the second", r'^[^,]+,\s*"?burst\b'),
        mark("the columns computation_us and cost_us", r"\bcomputation_us\b.*\bcost_us\b"),
    ),
    detects=_detects,
    read=_read,
)
