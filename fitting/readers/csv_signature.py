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
from fitting.contract import ReaderSpec
from fitting.readers.columns import Row, blocks_of, header_of
from fitting.readers.kinds import check_kind
from fitting.readers.text import Collector, refuse, sizes_text

FORMAT = "signature CSV"
_SIZE = "message_bytes"
_BURSTS = (_SIZE, "burst", "computation_us", "cost_us")
_ROUND_TRIPS = (_SIZE, "repetition", "round_trip_us")
_HEADERS = f"{','.join(_BURSTS)} and {','.join(_ROUND_TRIPS)}"
_GREATEST_BURST = 2**31


def _recognises(head: str) -> bool:
    return header_of(head, _SIZE) in (_BURSTS, _ROUND_TRIPS)


def _read(content: bytes, kind: TraceKind | None) -> Reading:
    bursts: list[tuple[int, int, float, float]] = []
    round_trip = Collector()
    for header, rows in blocks_of(content, first_column=_SIZE):
        names = tuple(name.strip() for name in header.text.split(","))
        if names == _BURSTS:
            bursts += [_burst(row) for row in rows]
        elif names == _ROUND_TRIPS:
            for row in rows:
                row.size(1, greatest=2**48, least=0)
                round_trip.add(row.size(0), _given(row, 2))
        else:
            refuse(f"line {header.number}: expected one of the header lines {_HEADERS}")
    if not bursts:
        refuse(f"no signature: expected at least one row below {','.join(_BURSTS)}")
    sizes, counts, computation, cost = zip(*bursts, strict=True)
    trace = SignatureTrace(sizes, counts, computation, cost, round_trip=round_trip.samples())
    check_kind(trace, kind, FORMAT)
    said = (
        ("format", FORMAT),
        ("time_unit", "µs"),
        ("cost_is", "mean per message, computation and replies included"),
        ("bursts", f"{len(set(counts))} lengths: {min(counts)} to {max(counts)} messages"),
    )
    return Reading(FORMAT, trace, (*said, *sizes_text(Samples(sizes, cost))))


def _burst(row: Row) -> tuple[int, int, float, float]:
    return (row.size(0), row.size(1, greatest=_GREATEST_BURST), _given(row, 2), _given(row, 3))


def _given(row: Row, place: int) -> float:
    value = row.time_us(place)
    if value is None:
        refuse(f"line {row.number}, column {place + 1}: expected a time, got an empty field")
    return value


SPEC = ReaderSpec(
    format=FORMAT,
    layout=f"the header lines {_HEADERS}",
    recognises=_recognises,
    read=_read,
)
