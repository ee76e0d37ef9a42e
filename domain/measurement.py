"""Raw measurements: what readers return and fits are made of.

Three things can be measured about a pipeline, and each kind of trace has its own type: the time of
every stage (DirectTrace), whole messages seen from outside (MessageTrace), and the cost of issuing
messages at an end point (SignatureTrace). Columns, not rows: a trace may have millions of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, nan
from typing import Protocol, TypeAlias, runtime_checkable

from contract.limits import MAX_MESSAGE_BYTES, MAX_TIME_US
from domain.conditions import Condition
from domain.errors import UnreadableTrace
from domain.solution import Notice
from domain.traced_events import TracedEvents

_FIELD = "measurements"
# From which sample on, in the order of the file, which condition holds.
Spans: TypeAlias = tuple[tuple[int, Condition], ...]


class TraceKind(StrEnum):
    """What was measured, by the names clients use.

    direct      the time of every stage of unpipelined messages
    indirect    inter-arrival times of back-to-back messages, with or without latencies
    end_to_end  latencies of unpipelined messages alone
    logp        signatures of an end point (Culler96), with or without round-trip times
    """

    DIRECT = "direct"
    INDIRECT = "indirect"
    END_TO_END = "end_to_end"
    LOGP = "logp"


@dataclass(frozen=True, slots=True)
class Samples:
    """Times (µs) of messages of these sizes (bytes), one entry a sample. Raises UnreadableTrace."""

    message_bytes: Sequence[int]
    times_us: Sequence[float]

    def __post_init__(self) -> None:
        _check_sizes(self.message_bytes)
        _check_columns(len(self.message_bytes), (self.times_us,))

    def __len__(self) -> int:
        return len(self.message_bytes)


@dataclass(frozen=True, slots=True)
class DirectTrace:
    """Per-stage times of unpipelined messages (Wang98 sec. 5.2: direct measurement), by column.

    Row r is one measured message: `message_bytes[r]`, `repetitions[r]` and, for every stage j,
    `stage_us[j][r]` in µs. `total_us[r]` is the time of the whole message, where it was measured
    too. `events` are when each stage had which fragment, of all stages of the file, where it says
    so: rows that are left out later stay in them. Raises UnreadableTrace for times that are
    negative or not finite, and for sizes out of range.
    """

    stage_names: tuple[str, ...]
    message_bytes: Sequence[int]
    repetitions: Sequence[int]
    stage_us: tuple[Sequence[float], ...]
    total_us: Sequence[float] | None = None
    events: TracedEvents | None = None

    def __post_init__(self) -> None:
        if not self.stage_names or len(self.stage_us) != len(self.stage_names):
            raise UnreadableTrace("expected one column per stage, at least one", field=_FIELD)
        _check_sizes(self.message_bytes)
        if len(self.repetitions) != len(self.message_bytes):
            raise UnreadableTrace("expected columns of the same length", field=_FIELD)
        total = () if self.total_us is None else (self.total_us,)
        _check_columns(len(self.message_bytes), (*self.stage_us, *total))

    def __len__(self) -> int:
        """How many messages were measured."""
        return len(self.message_bytes)

    @property
    def kind(self) -> TraceKind:
        """What was measured."""
        return TraceKind.DIRECT


@dataclass(frozen=True, slots=True)
class MessageTrace:
    """Whole messages seen from outside (Wang98 sec. 5.3: indirect measurement).

    `latency` holds one-way latencies of unpipelined messages, `interarrival` the times between
    arrivals of back-to-back messages of one size. At least one of them. Raises UnreadableTrace.
    """

    latency: Samples | None = None
    interarrival: Samples | None = None

    def __post_init__(self) -> None:
        if self.latency is None and self.interarrival is None:
            raise UnreadableTrace("expected latencies or inter-arrival times", field=_FIELD)

    def __len__(self) -> int:
        """How many times were measured."""
        return sum(len(part) for part in (self.latency, self.interarrival) if part is not None)

    @property
    def kind(self) -> TraceKind:
        """What was measured."""
        return TraceKind.END_TO_END if self.interarrival is None else TraceKind.INDIRECT


@dataclass(frozen=True, slots=True)
class SignatureTrace:
    """Signatures of an end point (Culler96 sec. 3), by column.

    Row r: `bursts[r]` messages of `message_bytes[r]` were issued one after the other with
    `computation_us[r]` of computation between them, and one of them cost `cost_us[r]` on average,
    computation included. With `handles_replies` the sender also receives one reply for each
    request, as Culler's does; without, it only sends. `round_trip` holds round-trip times,
    `receive` receive overheads where the receiver measured them itself. `timer_subtracted`: the
    time that timing itself takes is in none of them. Raises UnreadableTrace.
    """

    message_bytes: Sequence[int]
    bursts: Sequence[int]
    computation_us: Sequence[float]
    cost_us: Sequence[float]
    round_trip: Samples | None = None
    receive: Samples | None = None
    handles_replies: bool = True
    timer_subtracted: bool = False

    def __post_init__(self) -> None:
        _check_sizes(self.message_bytes)
        rows = len(self.message_bytes)
        if len(self.bursts) != rows or min(self.bursts) < 1:
            raise UnreadableTrace("expected bursts of at least one message", field=_FIELD)
        _check_columns(rows, (self.computation_us, self.cost_us))

    def __len__(self) -> int:
        """How many bursts were measured."""
        return len(self.message_bytes)

    @property
    def kind(self) -> TraceKind:
        """What was measured."""
        return TraceKind.LOGP


Trace: TypeAlias = DirectTrace | MessageTrace | SignatureTrace


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace as a reader understood it.

    `format` names the layout ("OSU latency"); `understood` says back, in (name, value) pairs,
    units, half or full round trip, repetitions, rows left out and why; `notices` what a user must
    see. `conditions` are those of the samples: of latencies and of inter-arrival times, of the rows
    of a direct trace, or of costs, round trips and receives of a signature; none where a format
    does not tell them apart.
    """

    format: str
    trace: Trace
    understood: tuple[tuple[str, str], ...] = ()
    notices: tuple[Notice, ...] = ()
    conditions: tuple[Spans, ...] = ()


def _check_sizes(sizes: Sequence[int]) -> None:
    if len(sizes) == 0:
        raise UnreadableTrace("expected at least one measured row", field=_FIELD)
    minimum, maximum = _extremes(sizes)
    if not 1 <= minimum <= maximum <= MAX_MESSAGE_BYTES:
        raise UnreadableTrace(f"expected 1 <= message_bytes <= {MAX_MESSAGE_BYTES}", field=_FIELD)


def _check_columns(rows: int, columns: Sequence[Sequence[float]]) -> None:
    if any(len(column) != rows for column in columns):
        raise UnreadableTrace("expected columns of the same length", field=_FIELD)
    for column in columns:
        minimum, maximum = _extremes(column)
        if not 0.0 <= minimum <= maximum <= MAX_TIME_US:
            raise UnreadableTrace(f"expected times from 0 to {MAX_TIME_US:g} µs", field=_FIELD)


def _extremes(column: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest number; NaN where any of them is not finite.

    A column that knows its extremes is asked: a loop over a million objects takes a while.
    """
    if isinstance(column, _KnowsExtremes):
        return column.min(), column.max()
    # min() and max() pass over a NaN, a sum does not; that of times within the limits is finite.
    return (min(column), max(column)) if isfinite(sum(column)) else (nan, nan)


@runtime_checkable
class _KnowsExtremes(Protocol):
    """A column of numbers with fast extremes of its own, which are NaN where any number is."""

    def min(self) -> float: ...

    def max(self) -> float: ...
