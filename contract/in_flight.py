"""What an answer of a machine says beside its sizes: lanes and places, and what sets the pace."""

from __future__ import annotations

from .declare import Output, output, sent


@output
class InUseOut(Output):
    """Lanes, places or bytes: given, in use at once at most, and enough.

    `enough` are the fewest with which the best repeated size costs 1 % more at most, and a quarter
    more of them, rounded up, but no more than given: where they are just enough the model is
    optimistic.
    """

    given: int = sent("how many were given")
    used: int | None = sent(
        "how many the answer has in use at once, at most; null: it has too many fragments to tell"
    )
    enough: int | None = sent("how many are enough; null: no size can be repeated")


@output
class StageLanesOut(Output):
    """The lanes of a stage."""

    stage: int = sent("the stage by its place, from 0")
    lanes: InUseOut = sent("its lanes")


@output
class WindowPlacesOut(Output):
    """The places of a window for fragments of the answer's greatest size, and its bytes."""

    window: int = sent("the window by its place, from 0")
    places: InUseOut = sent("its places")
    bytes: InUseOut | None = sent("its bytes; null: it is given in fragments")


@output
class ProcessorLagOut(Output):
    """How many fragments a processor's first stage is ahead of the second in the answer."""

    processor: str = sent("the processor by its name")
    lag: int = sent("by how many fragments its first stage is ahead")
    max_lag: int | None = sent(
        "the greatest that would not deadlock with the windows; null: any would do"
    )


@output
class InFlightOut(Output):
    """What an answer of a machine has under way at once.

    Times and places are those of fragments of `size_bytes`, the greatest size of the answer.
    """

    size_bytes: int = sent("the greatest fragment of the answer, bytes")
    stages: tuple[StageLanesOut, ...] = sent("each stage that has lanes")
    windows: tuple[WindowPlacesOut, ...] = sent("each window")
    processors: tuple[ProcessorLagOut, ...] = sent("each processor of two stages")


@output
class FullRateOut(Output):
    """What lets the rate through that no number of lanes and places could raise."""

    period_us: float = sent("the time between two fragments then, µs")
    places: int = sent("so many lanes, or places, are needed")
    bytes: int = sent("so many bytes are under way in them")


@output
class LimitOut(Output):
    """What sets the pace: a stage, its lanes, what they share, a window, or a processor."""

    kind: str = sent("stage, lanes, shared_part, window, or processor")
    first_stage: int = sent("the stage where it begins, by its place from 0")
    last_stage: int = sent("the stage where it ends, by its place from 0")
    window: int | None = sent("the window by its place, from 0; null: it is none")
    processor: str | None = sent("the processor by its name; null: it is none")
    round_trip_us: float = sent(
        "the time from a fragment's start until its lane or place is free again, µs"
    )
    places: int = sent("how many fragments pass in that time")
    full_rate: FullRateOut | None = sent(
        "what the full rate takes; null: it is there, or nothing else limits"
    )
    sentence: str = sent("what sets the pace, in words")
