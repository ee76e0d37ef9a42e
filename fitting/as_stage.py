"""A measurement of whole messages that is one stage: a sweep of copies, or of one device.

Source: nothing in such a file tells it from latencies of a pipeline; the user says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from domain.errors import InvalidInput
from domain.fit import FitOptions
from domain.measurement import DirectTrace, MessageTrace, Reading

AS_STAGE = "measured stage"
_FIELD = "as_stage"
_TWO_TIMES = "the measurements hold latencies and inter-arrival times; one stage has one time"


def as_stage(readings: Sequence[Reading], options: FitOptions) -> Sequence[Reading]:
    """Return the readings as direct ones of the stage that the options name, if they name one.

    Raises InvalidInput for stages, signatures, latencies with inter-arrival times, and groups.
    """
    if options.as_stage is None:
        return readings
    if options.groups:
        raise InvalidInput("one stage has no steps that could be grouped", field=_FIELD)
    prepared = [_as_stage(reading, options.as_stage) for reading in readings]
    if len({_is_latency(reading) for reading in readings}) > 1:
        raise InvalidInput(_TWO_TIMES, field=_FIELD)
    return prepared


def _is_latency(reading: Reading) -> bool:
    return isinstance(reading.trace, MessageTrace) and reading.trace.latency is not None


def _as_stage(reading: Reading, name: str) -> Reading:
    trace = reading.trace
    if not isinstance(trace, MessageTrace):
        raise InvalidInput(
            f"the measurements are {trace.kind} ones, which say themselves what they are of; "
            "latencies or inter-arrival times alone can be those of one stage",
            field=_FIELD,
        )
    if trace.latency is not None and trace.interarrival is not None:
        raise InvalidInput(_TWO_TIMES, field=_FIELD)
    samples = trace.latency or trace.interarrival
    assert samples is not None
    direct = DirectTrace((name,), samples.message_bytes, range(len(samples)), (samples.times_us,))
    return replace(reading, trace=direct, understood=(*reading.understood, (AS_STAGE, name)))
