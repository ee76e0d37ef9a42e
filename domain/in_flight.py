"""What an answer of a machine says beside its sizes: what is in use at once, what of it is enough,
and what sets the pace.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

KNEE = 0.4  # of the shared rate: this near to it lanes together are slower than the model says


@dataclass(frozen=True, slots=True)
class InUse:
    """Lanes, places or bytes: how many were given, are in use at once, and are enough.

    `used` is of the answer's cut, at most; a place counts until it is free again. None of more
    fragments than are looked at. `fewest` are those with which the best repeated size costs no more
    than the margin over that with all of them; None where no size can be repeated.
    """

    given: int
    used: int | None
    fewest: int | None

    @property
    def enough(self) -> int | None:
        """A quarter more than the fewest, rounded up, and no more than were given: where lanes or
        places are just enough, the model is optimistic.
        """
        return None if self.fewest is None else min(self.given, -(-5 * self.fewest // 4))


@dataclass(frozen=True, slots=True)
class StageLanes:
    """The lanes of a stage, counted from 0.

    A fragment of the answer's size takes `alone_us` on a lane, of which lanes share `shared_us`.
    `last_round` is how many fragments the last round over the lanes has, of which the greatest
    takes `last_us`.
    """

    stage: int
    lanes: InUse
    alone_us: float
    shared_us: float
    last_round: int
    last_us: float

    @property
    def rate_ratio(self) -> float:
        """What all lanes could do over what their shared part lets through; 0 without one."""
        return self.lanes.given * self.shared_us / self.alone_us if self.shared_us else 0.0

    @property
    def is_near_knee(self) -> bool:
        """Whether lanes together could do about as much as their shared part lets through."""
        return abs(self.rate_ratio - 1.0) <= KNEE

    @property
    def uneven_us(self) -> float:
        """What lanes that are idle in the last round could take off it, µs; 0 where none is."""
        return self.last_us * (self.lanes.given - self.last_round) / self.lanes.given


@dataclass(frozen=True, slots=True)
class WindowPlaces:
    """The places of a window, counted from 0 among those of the machine, for fragments of the
    answer's size; `bytes` of one that is given in bytes.

    `never_binds`: equal fragments take no longer with it than without it.
    """

    window: int
    places: InUse
    bytes: InUse | None
    never_binds: bool


@dataclass(frozen=True, slots=True)
class ProcessorLag:
    """The lag of a processor in the answer's cut: so many fragments its first stage is ahead.

    `greatest` is the greatest that would not deadlock with the windows, None where any would do.
    """

    name: str
    stages: tuple[int, int]
    lag: int
    max_lag: int | None


class LimitKind(StrEnum):
    """What sets the pace.

    stage        a stage, one fragment at a time
    lanes        the lanes of a stage
    shared_part  what the lanes of a stage share
    window       the places of a window, which come back too late
    processor    the stages of a processor, one after another
    """

    STAGE = "stage"
    LANES = "lanes"
    SHARED_PART = "shared_part"
    WINDOW = "window"
    PROCESSOR = "processor"


@dataclass(frozen=True, slots=True)
class FullRate:
    """What lets the rate through that no lanes and places could raise: so many places, or lanes,
    and bytes in them; `period_us` passes between two fragments then.
    """

    period_us: float
    places: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Limit:
    """What sets the pace: from stage `first` to stage `last`; `window` or `processor` names it.

    `round_trip_us` passes from a fragment's start until its lane or place is free again; of a
    processor it is what both stages take. `places` fragments pass in that. `full_rate` is None
    where lanes or places are not what limits, or where nothing else does.
    """

    kind: LimitKind
    first: int
    last: int
    round_trip_us: float
    places: int
    window: int | None = None
    processor: str | None = None
    full_rate: FullRate | None = None

    @property
    def period_us(self) -> float:
        """The time between two fragments, µs."""
        return self.round_trip_us / self.places


@dataclass(frozen=True, slots=True)
class InFlight:
    """What is said of an answer of a machine, for fragments of its greatest size, `size_bytes`.

    `period_us` passes between two fragments of a message without end. `work_us` is what the busiest
    processor does for the whole message, 0 without one. `delays_alone`: nothing is over the delays,
    so that they change no cut.
    """

    size_bytes: int
    period_us: float
    stages: tuple[StageLanes, ...]
    windows: tuple[WindowPlaces, ...]
    processors: tuple[ProcessorLag, ...]
    limit: Limit
    work_us: float
    delays_alone: bool


@dataclass(frozen=True, slots=True)
class CountRow:
    """The best repeated size with so many lanes or places, bytes, and the latency, µs."""

    count: int
    size_bytes: int
    fragments: int
    latency_us: float


@dataclass(frozen=True, slots=True)
class CountTable:
    """Size and time by the lanes of a stage, or by the places of a window; the other is None.

    Of a window in bytes each row is for as many equal buffers in those bytes. `left_out` are counts
    for which there was no time.
    """

    stage: int | None
    window: int | None
    rows: tuple[CountRow, ...]
    left_out: tuple[int, ...] = ()
