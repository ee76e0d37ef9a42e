"""POST /measurement-plans: measurements so far in; which message sizes to measure next out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, output, rule, sent
from .limits import DEFAULT_TOLERANCE, MAX_TOLERANCE, MIN_TOLERANCE
from .measurements import MeasurementsIn
from .rules import Bytes

Quantity: TypeAlias = Literal["interarrival", "latency"]


class MeasurementPlanIn(Input):
    """Measurements so far, none at the start, and the message sizes of interest."""

    measurements: MeasurementsIn | None = asked(
        "latencies and inter-arrival times so far; null: nothing is measured yet",
        help="latencies and inter-arrival times so far, folder of them, or -; none at the start",
        default=None,
        metavar="FILE",
    )
    min_message_bytes: Bytes = asked(
        "the smallest message of interest, bytes",
        help="smallest message (64)",
        unit="bytes",
        option="--min-message",
        metavar="SIZE",
    )
    max_message_bytes: Bytes = asked(
        "the largest message of interest, bytes",
        help="largest (1 MiB)",
        unit="bytes",
        option="--max-message",
        metavar="SIZE",
    )
    tolerance: Annotated[float, rule(ge=MIN_TOLERANCE, le=MAX_TOLERANCE)] = asked(
        "the difference of times that counts, as a share",
        help="the difference that counts (3%)",
        default=DEFAULT_TOLERANCE,
        unit="share",
        option="--tolerance",
        metavar="SHARE",
    )


@output
class NextMeasurementOut(Output):
    """One size to measure, how often, and why."""

    message_bytes: int = sent("size of the message, bytes")
    what: Quantity = sent(
        "interarrival: the time between arrivals of back-to-back messages; latency: the one-way "
        "time of a message on its own"
    )
    repetitions: int = sent("how often to measure it")
    why: str = sent("why, in words")


@output
class TransitionOut(Output):
    """Where one bottleneck takes over from another; `at_bytes` is null for a protocol switch."""

    between_bytes: tuple[int, int] = sent("the sizes on both sides of it, bytes")
    at_bytes: int | None = sent("where their lines meet, bytes; null: a protocol switches there")


@output
class KnownBottleneckOut(Output):
    """A line that inter-arrival times lie on; its overhead may come out below 0 in a part."""

    from_bytes: int = sent("the smallest message of the line, bytes")
    to_bytes: int = sent("the largest message of the line, bytes")
    overhead_us: float = sent("µs per message")
    ns_per_byte: float = sent("ns per byte")


@output
class MeasurementPlanOut(Output):
    """What to measure next; `decided` where nothing is, with the reason."""

    decided: bool = sent("whether enough is known")
    reason: str = sent("why, in words")
    measure: tuple[NextMeasurementOut, ...] = sent("what to measure next; empty where decided")
    transitions: tuple[TransitionOut, ...] = sent("where one bottleneck takes over from another")
    bottlenecks: tuple[KnownBottleneckOut, ...] = sent("the lines that are known, ascending")
