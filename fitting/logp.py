"""Signatures of an end point to LogP parameters.

Source    Culler96 sec. 3 and 4; theory.md sec. 7. Bulk transfers: the same as functions of n bytes.
Notation  M messages in a burst, D computation between them; o_s, o_r: LogP's send and receive
          overhead; g: LogP's gap, here message_gap_us; L: LogP's latency, here wire_latency_us;
          RTT: round-trip time.
Cost      O(N log N) for N bursts.
Exact     o_s: short bursts cost o_s + D. Long bursts: max(g, o_s + o_r + D) a message, which is g
          at D = 0 where g is the greater, and D + o_s + o_r once D > g - o_s - o_r. L = RTT/2 -
          o_s - o_r. Where the sender handles no replies the sums are without o_r, and o_r is what
          the receiver measured itself.
Traps     the gap is never below o_s + o_r at this end: what was measured is the greater of the two,
          and so is what is reported. A regime that is not in the data is not guessed: the parameter
          is missing, and a notice names the measurement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from domain.errors import PoorFit
from domain.fit import FitOptions, TraceFit, WholeMessages
from domain.loggp import NETWORK_STAGE, Estimate, LogGPFit, LogGPParameters, pipeline_assumptions
from domain.measurement import SignatureTrace, TraceKind
from fitting.logp_pipeline import pipeline_of, stage_of, stages_and_round_trips
from fitting.regimes import (
    AGREE,
    Bursts,
    Measured,
    is_settled,
    loaded_rate,
    long_rate,
    send_overhead,
    short_plateau,
)
from fitting.signature_sizes import SizeFit, ends_notices, missing_notices, negative_notices

Floats = NDArray[np.float64]
_SEEN = 0.1  # of the overheads, by which a gap above them is always seen


def fit_signatures(
    trace: SignatureTrace, options: FitOptions, *, understood: tuple[tuple[str, str], ...] = ()
) -> TraceFit:
    """Return parameters at every size, and the pipeline where there are sizes enough. Raises
    PoorFit.
    """
    columns = (trace.message_bytes, trace.bursts, trace.computation_us, trace.cost_us)
    x, bursts, computation, cost = (np.asarray(column, dtype=np.float64) for column in columns)
    sizes = []
    for size in np.unique(x):
        here = x == size
        rows = (bursts[here].astype(np.int64), computation[here], cost[here])
        sizes.append(_fit_size(int(size), rows, trace))
    if all(size.send is None and size.gap is None for size in sizes):
        raise PoorFit(
            "no regime can be told in these signatures: short bursts without computation give the "
            "send overhead, long ones the interval between messages",
            field="measurements",
        )
    stages, delay_us, aggregate, notices = pipeline_of(sizes, options)
    return TraceFit(
        kind=TraceKind.LOGP,
        method=options.method,
        understood=understood,
        stages=stages,
        aggregate=aggregate,
        loggp=LogGPFit(
            tuple(_parameters(size) for size in sizes),
            _byte_gap(sizes, options),
            pipeline_assumptions(tuple(stage.name for stage in stages)),
        ),
        delay_us=delay_us,
        timed_whole=tuple(
            WholeMessages(one.message_bytes, 1, one.half_us, one.stages_us + delay_us)
            for one in (stages_and_round_trips(sizes, stages) if stages else ())
        ),
        notices=(
            *missing_notices(sizes),
            *negative_notices(sizes),
            *ends_notices(sizes),
            *notices,
        ),
    )


def _fit_size(
    size: int, rows: tuple[NDArray[np.int64], Floats, Floats], trace: SignatureTrace
) -> SizeFit:
    bursts, computation, cost = rows
    idle = computation == 0.0
    missing: list[str] = []
    round_trip = _middle(trace.round_trip, size)
    send, gap, long_from = _without_computation(
        Bursts.of(bursts[idle], cost[idle]) if idle.any() else None,
        trace,
        round_trip,
        missing,
    )
    loaded = _with_computation(bursts[~idle], computation[~idle], cost[~idle], gap, long_from)
    if trace.handles_replies:
        receive = loaded.less(send) if loaded is not None and send is not None else None
    else:
        send, receive = loaded or send, _middle(trace.receive, size)
    ends = {"send overhead": send, "receive overhead": receive}
    ends_limit = trace.handles_replies and _ends_limit(gap, loaded, send)
    clipped = tuple(
        name
        for name, end in ends.items()
        if end is not None and end.value < 0.0 and not (ends_limit and -end.value <= end.half_width)
    )
    if loaded is None and (trace.handles_replies or send is None):
        missing.append("long bursts with more computation between messages than their interval")
    if round_trip is None:
        missing.append("round-trip times")
    if receive is None and not trace.handles_replies:
        missing.append("receive overheads")
    send, receive = _not_below_0(send), _not_below_0(receive)
    measured_receive = _middle(trace.receive, size) if trace.handles_replies else None
    return SizeFit(
        size,
        send,
        receive,
        gap,
        round_trip,
        tuple(missing),
        clipped,
        ends_limit=ends_limit,
        measured_receive=measured_receive,
    )


def _ends_limit(gap: Measured | None, loaded: Measured | None, send: Measured | None) -> bool:
    """Return whether messages follow each other as fast as the sending end works: g = o_s + o_r
    within the noise, or less (Culler96 sec. 5, remote procedure calls). Where the noise is so great
    that it would hide a tenth, nothing is said.
    """
    if gap is None or loaded is None or send is None:
        return False
    noise = float(np.hypot(gap.half_width, loaded.half_width))
    above = min(noise, _SEEN * loaded.value)
    return gap.value <= loaded.value + max(above, AGREE * loaded.value)


def _without_computation(
    idle: Bursts | None, trace: SignatureTrace, round_trip: Measured | None, missing: list[str]
) -> tuple[Measured | None, Measured | None, int]:
    """o_s of short bursts, the rate of long ones, and from which length a burst is long."""
    if idle is None:
        missing.append("bursts without computation between messages")
        return None, None, 1
    if not trace.handles_replies:  # costs are differences already: each is the rate of a long burst
        value, _ = short_plateau(Bursts(idle.lengths, idle.cost_us, idle.spread, idle.count))
        return None, value, int(idle.lengths[0])
    send, agreeing = send_overhead(idle, timer_subtracted=trace.timer_subtracted)
    rate = long_rate(idle)
    if agreeing == len(idle.lengths):  # one regime, or two that cost the same
        reach_us = float(idle.lengths[-1]) * send.value
        if round_trip is None or reach_us < 2.0 * round_trip.value:
            missing.append("longer bursts without computation between messages")
            return send, None, int(idle.lengths[-1])
        return send, rate[0] if rate else send, int(idle.lengths[-1])
    settled = rate is not None and is_settled(idle, rate[1])
    if rate is None or not settled or rate[1] < idle.lengths[agreeing - 1]:
        missing.append("longer bursts without computation between messages")
        return send, None, int(idle.lengths[-1])
    return send, rate[0], rate[1]


def _with_computation(
    bursts: NDArray[np.int64],
    computation: Floats,
    cost: Floats,
    gap: Measured | None,
    long_from: int,
) -> Measured | None:
    """What a message costs a busy sender beside the computation: o_s + o_r, or o_s.

    Found where the rate of long bursts less D stops falling with D, or D exceeds the interval
    between messages, which it cannot hide then.
    """
    found: list[tuple[float, Measured]] = []
    for D in np.unique(computation):
        here = (computation == D) & (bursts >= long_from)
        if not here.any():
            continue
        part = Bursts.of(bursts[here], cost[here])
        value = loaded_rate(part)
        if value is None:
            continue
        found.append((float(D), Measured(value.value - float(D), value.error, value.freedom)))
    beyond = [value for D, value in found if gap is not None and gap.value < D]
    if not beyond:
        beyond = _flat_end([value for _, value in found])
    if not beyond:
        return None
    weights = np.array(
        [1.0 / max(value.error, 1e-9 * abs(value.value) + 1e-12) for value in beyond]
    )
    weights = weights**2 / (weights**2).sum()
    values = np.array([value.value for value in beyond])
    error = float(np.sqrt(sum((w * v.error) ** 2 for w, v in zip(weights, beyond, strict=True))))
    return Measured(float(weights @ values), error, sum(value.freedom for value in beyond))


def _flat_end(values: list[Measured]) -> list[Measured]:
    """The values at the greatest computations, if at least two of them agree."""
    kept = values[-1:]
    for value in reversed(values[:-1]):
        noise = 3.0 * float(np.hypot(value.error, kept[0].error))
        if abs(value.value - kept[0].value) > max(noise, AGREE * abs(kept[0].value)):
            break
        kept.insert(0, value)
    return kept if len(kept) >= 2 else []


def _middle(samples: object, size: int) -> Measured | None:
    """Median of the times of one size, with its error."""
    from domain.measurement import Samples

    if not isinstance(samples, Samples):
        return None
    times = np.asarray(samples.times_us, dtype=np.float64)
    times = times[np.asarray(samples.message_bytes) == size]
    if not len(times):
        return None
    middle = float(np.median(times))
    spread = 1.4826 * float(np.median(np.abs(times - middle)))
    error = 1.2533 * spread / float(np.sqrt(len(times)))
    return Measured(middle, error, max(1.0, len(times) - 1.0))


def _not_below_0(value: Measured | None) -> Measured | None:
    if value is None or value.value >= 0.0:
        return value
    return Measured(0.0, value.error, value.freedom)


def _parameters(size: SizeFit) -> LogGPParameters:
    return LogGPParameters(
        message_bytes=size.message_bytes,
        send_overhead_us=_estimate(size.send),
        receive_overhead_us=_estimate(size.receive),
        message_gap_us=_estimate(size.gap),
        wire_latency_us=_estimate(_not_below_0(size.wire)),
        round_trip_us=_estimate(size.round_trip),
    )


def _estimate(value: Measured | None) -> Estimate | None:
    if value is None:
        return None
    half = value.half_width
    return Estimate(value.value, (max(0.0, value.value - half), value.value + half))


def _byte_gap(sizes: list[SizeFit], options: FitOptions) -> Estimate | None:
    """What each byte adds to the interval between messages (LogGP), in ns."""
    found = stage_of(NETWORK_STAGE, sizes, "gap", options)
    if found is None:
        return None
    line = found[0].lines[-1]
    return Estimate(line.ns_per_byte, line.ns_per_byte_interval)
