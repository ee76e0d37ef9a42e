"""Whole messages seen from outside to an aggregate: all stages together, and the slowest of them.

Source    Wang98 sec. 5.3 (indirect measurement); theory.md sec. 7.
Notation  S(x): latency of an unpipelined message of x bytes, the sum of all stages and any constant
          delay; b(x): time between arrivals of back-to-back messages, that of the slowest stage.
Cost      two fits of one stage each.
Exact     as fitting/stage.py; b(x) <= S(x) is checked against the data, and enforced on the costs
          that answers come from (AggregateFit.to_aggregate), not on the fits.
Traps     latencies alone say nothing about a bottleneck: as a pipeline of one stage their best cut
          would be no cut. A library may cut messages on their way, and nothing in their latencies
          tells. Inter-arrival times alone say nothing about what surrounds it.
"""

from __future__ import annotations

from domain.aggregate import PREMISE
from domain.errors import PoorFit
from domain.fit import (
    BOTTLENECK_STAGE,
    END_TO_END_STAGE,
    AggregateFit,
    FitOptions,
    StageFit,
    TraceFit,
    taken_for_granted,
)
from domain.measurement import MessageTrace, Samples
from domain.solution import Notice
from domain.units import format_bytes

_SPREADS = 3.0  # robust standard deviations beyond which a difference is no noise
_MIN_EXCESS = 0.02  # nor is a smaller relative difference worth a word


def fit_messages(
    trace: MessageTrace, options: FitOptions, *, understood: tuple[tuple[str, str], ...] = ()
) -> TraceFit:
    """Return the aggregate, or the one stage that half of it gives. Raises PoorFit."""
    total, total_notices = _stage(trace.latency, END_TO_END_STAGE, options)
    bottleneck, notices = _stage(trace.interarrival, BOTTLENECK_STAGE, options)
    found = (*total_notices, *notices)
    if total is not None and bottleneck is not None:
        return TraceFit(
            kind=trace.kind,
            method=options.method,
            understood=understood,
            aggregate=AggregateFit(total, bottleneck, options.total_is_uncut),
            notices=(*_check_order(total, bottleneck), *_premise(options), *found),
        )
    alone = total or bottleneck
    assert alone is not None
    return TraceFit(
        kind=trace.kind,
        method=options.method,
        understood=understood,
        stages=(alone,),
        notices=(_half(is_latency=total is not None), *found),
    )


def _premise(options: FitOptions) -> tuple[Notice, ...]:
    return () if options.total_is_uncut else (taken_for_granted(PREMISE),)


def _stage(
    samples: Samples | None, name: str, options: FitOptions
) -> tuple[StageFit | None, tuple[Notice, ...]]:
    if samples is None:
        return None, ()
    from fitting.stage import fit_stage

    try:
        return fit_stage(name, samples.message_bytes, samples.times_us, options)
    except PoorFit as refusal:
        what = "latencies" if name == END_TO_END_STAGE else "inter-arrival times"
        raise PoorFit(f"{what}: {refusal.detail}", field=refusal.field) from None


def _half(*, is_latency: bool) -> Notice:
    if is_latency:
        return Notice(
            "no_bottleneck",
            "latencies alone do not tell which stage is the bottleneck: to cut messages, measure "
            "inter-arrival times of back-to-back messages too (a bandwidth test), or the stages",
        )
    return Notice(
        "latency_missing",
        "inter-arrival times alone give the bottleneck: to cut messages, measure latencies of "
        "unpipelined messages too",
    )


def _check_order(total: StageFit, bottleneck: StageFit) -> tuple[Notice, ...]:
    """Whether the slowest stage takes longer than all together at some size, beyond the noise."""
    model = total.to_stage()
    worst: tuple[float, int] | None = None
    for size in bottleneck.sizes:
        whole_us = model.time_us(size.message_bytes)
        noise = _SPREADS * max(size.relative_spread / size.num_samples**0.5, 0.0)
        excess = size.median_us / whole_us - 1.0 if whole_us > 0.0 else 0.0
        if excess > max(noise, _MIN_EXCESS) and (worst is None or excess > worst[0]):
            worst = (excess, size.message_bytes)
    if worst is None:
        return ()
    return (
        Notice(
            "bottleneck_above_total",
            f"messages of {format_bytes(worst[1])} arrive {100.0 * worst[0]:.0f} % further apart "
            "than one takes all the way, which no pipeline can do: were both measured on the same "
            "path, and is the latency one way? The latency counts there",
        ),
    )
