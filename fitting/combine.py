"""The measurements of one pipeline: which traces go together, and which fit they get.

One direct trace gives the stages; several of the same stages are joined row by row. Latencies and
inter-arrival times of whole messages belong together, from however many files. So do signatures.
Anything else would mix what was measured of different things, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import NoReturn, TypeVar

from domain.errors import InvalidInput, UnreadableTrace
from domain.fit import FitOptions, TraceFit
from domain.measurement import DirectTrace, MessageTrace, Reading, Samples, SignatureTrace, Trace
from domain.traced_events import TracedEvents, one_after_the_other

T = TypeVar("T")
_FIELD = "measurements"


def fit_readings(readings: Sequence[Reading], options: FitOptions) -> TraceFit:
    """Join and fit. Raises UnreadableTrace for traces that do not go together, and PoorFit."""
    if not readings:
        _refuse("expected at least one trace")
    trace = joined([reading.trace for reading in readings])
    if options.groups and not isinstance(trace, DirectTrace):
        raise InvalidInput("groups are of the steps of a direct trace", field="groups")
    if options.total_is_uncut and not isinstance(trace, MessageTrace):
        raise InvalidInput(
            "latencies of whole messages, seen from outside, are uncut or not; these measurements "
            "are of stages",
            field="total_is_uncut",
        )
    if options.stages_overlap is not None and not isinstance(trace, DirectTrace):
        raise InvalidInput("these measurements have no stages", field="stages_overlap")
    fit = _fit(trace, options, _understood(readings))
    notices = chain.from_iterable(reading.notices for reading in readings)
    return replace(fit, notices=(*notices, *fit.notices))


def joined(traces: Sequence[Trace]) -> Trace:
    """Return one trace of all. Raises UnreadableTrace for traces that do not go together."""
    if len(traces) == 1:
        return traces[0]
    direct = [trace for trace in traces if isinstance(trace, DirectTrace)]
    messages = [trace for trace in traces if isinstance(trace, MessageTrace)]
    signatures = [trace for trace in traces if isinstance(trace, SignatureTrace)]
    if len(direct) == len(traces):
        return _joined_direct(direct)
    if len(messages) == len(traces):
        return MessageTrace(
            _joined_samples([trace.latency for trace in messages]),
            _joined_samples([trace.interarrival for trace in messages]),
        )
    if len(signatures) == len(traces):
        return _joined_signatures(signatures)
    return _refuse(
        "the traces do not go together: "
        + ", ".join(sorted({str(trace.kind) for trace in traces}))
        + "; expected times of the same stages, or latencies and inter-arrival times, or signatures"
    )


def _fit(trace: Trace, options: FitOptions, understood: tuple[tuple[str, str], ...]) -> TraceFit:
    if isinstance(trace, DirectTrace):
        from fitting.direct import fit_direct

        return fit_direct(trace, options, understood=understood)
    if isinstance(trace, MessageTrace):
        from fitting.indirect import fit_messages

        return fit_messages(trace, options, understood=understood)
    from fitting.logp import fit_signatures

    return fit_signatures(trace, options, understood=understood)


def _joined_direct(traces: Sequence[DirectTrace]) -> DirectTrace:
    first = traces[0]
    if any(trace.stage_names != first.stage_names for trace in traces):
        _refuse("the direct traces have different stages; expected the same names in one order")
    totals = [trace.total_us for trace in traces]
    known = [total for total in totals if total is not None]
    return DirectTrace(
        first.stage_names,
        _joined_columns([trace.message_bytes for trace in traces]),
        _joined_columns([trace.repetitions for trace in traces]),
        tuple(
            _joined_columns([trace.stage_us[place] for trace in traces])
            for place in range(len(first.stage_names))
        ),
        _joined_columns(known) if len(known) == len(totals) else None,
        _joined_events([trace.events for trace in traces]),
    )


def _joined_events(parts: Sequence[TracedEvents | None]) -> TracedEvents | None:
    """The events of all files, whose messages follow each other; None where a file has none."""
    known = [part for part in parts if part is not None]
    return one_after_the_other(known) if len(known) == len(parts) else None


def _joined_signatures(traces: Sequence[SignatureTrace]) -> SignatureTrace:
    replies = {trace.handles_replies for trace in traces}
    if len(replies) > 1:
        _refuse("some signatures handle replies and others do not; expected one or the other")
    return SignatureTrace(
        _joined_columns([trace.message_bytes for trace in traces]),
        _joined_columns([trace.bursts for trace in traces]),
        _joined_columns([trace.computation_us for trace in traces]),
        _joined_columns([trace.cost_us for trace in traces]),
        round_trip=_joined_samples([trace.round_trip for trace in traces]),
        receive=_joined_samples([trace.receive for trace in traces]),
        handles_replies=replies.pop(),
        timer_subtracted=all(trace.timer_subtracted for trace in traces),
    )


def _joined_samples(parts: Sequence[Samples | None]) -> Samples | None:
    known = [part for part in parts if part is not None]
    if len(known) <= 1:
        return known[0] if known else None
    return Samples(
        _joined_columns([part.message_bytes for part in known]),
        _joined_columns([part.times_us for part in known]),
    )


def _joined_columns(columns: Sequence[Sequence[T]]) -> Sequence[T]:
    return columns[0] if len(columns) == 1 else tuple(chain.from_iterable(columns))


def _understood(readings: Sequence[Reading]) -> tuple[tuple[str, str], ...]:
    """What was read of each file, by its place where there are several."""
    if len(readings) == 1:
        return readings[0].understood
    return tuple(
        (f"file_{place}_{name}", value)
        for place, reading in enumerate(readings, 1)
        for name, value in reading.understood
    )


def _refuse(detail: str) -> NoReturn:
    raise UnreadableTrace(detail, field=_FIELD)
